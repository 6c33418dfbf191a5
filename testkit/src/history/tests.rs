//! Histories that are known to be right or wrong, written down by hand. That the wrong ones are
//! rejected is what makes the others worth recording.

use super::*;
use crate::call::Entry;
use crate::oracle::Place;
use pinpath::PathError;

const ROOT: Inode = Inode::ROOT;

fn at(parent: Inode, name: &str) -> Place {
    Place { parent, name: name.into() }
}

/// A history that is written down: a tree, and the events in it.
struct Told {
    forest: Forest,
    events: Vec<Event<Asked, super::Told>>,
    next: u64,
}

impl Told {
    fn new(reclaims: bool) -> Self {
        Told { forest: Forest { oracle: Oracle::new(None), reclaims }, events: vec![], next: 2 }
    }

    /// A node of the tree that there is at first.
    fn node(&mut self, parent: Inode, name: &str, kind: Kind) -> Inode {
        let inode = Inode::from_raw(self.next);
        self.next += 1;
        let (call, answer) = lookup(parent, name, kind, inode);
        assert_eq!(call.on_oracle(&mut self.forest.oracle, &answer), answer);
        inode
    }

    /// An event between two moments.
    fn event(&mut self, invoked: u64, returned: u64, (call, answer): (Call, Answer)) -> &mut Self {
        let (call, answer) = (Asked::Call(call), super::Told::Answer(answer));
        self.events.push(Event { thread: 0, call, answer, invoked, returned });
        self
    }

    fn is_right(&self) -> bool {
        History::new(self.forest.clone(), self.events.clone()).check().is_ok()
    }
}

fn lookup(parent: Inode, name: &str, kind: Kind, inode: Inode) -> (Call, Answer) {
    let entry = Entry { name: name.into(), kind, identity: None };
    (Call::Lookup { parent, entry }, Answer::Inode(Ok(inode)))
}

fn rename(from: Place, to: Place) -> (Call, Answer) {
    (Call::Rename(from, to), Answer::Done(Ok(())))
}

fn exchange(from: Place, to: Place) -> (Call, Answer) {
    (Call::Exchange(from, to), Answer::Done(Ok(())))
}

fn path(inode: Inode, path: &str) -> (Call, Answer) {
    (Call::Path(inode), Answer::Path(Ok(path.into())))
}

fn no_path(error: PathError) -> (Call, Answer) {
    let inode = match error {
        PathError::Stale(inode) | PathError::Unlinked(inode) => inode,
    };
    (Call::Path(inode), Answer::Path(Err(error)))
}

#[test]
fn a_path_that_never_was_is_rejected() {
    // d becomes e, and then x in it becomes y; meanwhile the path of x is asked for.
    for (seen, right) in [("d/x", true), ("e/x", true), ("e/y", true), ("d/y", false)] {
        let mut told = Told::new(false);
        let d = told.node(ROOT, "d", Kind::Directory);
        let x = told.node(d, "x", Kind::Leaf);
        told.event(1, 2, rename(at(ROOT, "d"), at(ROOT, "e")));
        told.event(3, 4, rename(at(d, "x"), at(d, "y")));
        told.event(0, 5, path(x, seen));
        assert_eq!(told.is_right(), right, "{seen}");
    }
}

#[test]
fn two_nodes_with_one_path_are_rejected() {
    // a replaces b. While that goes on, one thread asks for both paths, one after the other.
    for (first, second, right) in
        [("a", Some("b"), true), ("b", None, true), ("b", Some("b"), false)]
    {
        let mut told = Told::new(false);
        let a = told.node(ROOT, "a", Kind::Leaf);
        let b = told.node(ROOT, "b", Kind::Leaf);
        told.event(0, 5, rename(at(ROOT, "a"), at(ROOT, "b")));
        told.event(1, 2, path(a, first));
        let second = second.map_or(no_path(PathError::Unlinked(b)), |second| path(b, second));
        told.event(3, 4, second);
        assert_eq!(told.is_right(), right, "{first}");
    }
}

#[test]
fn half_an_exchange_is_rejected() {
    for (first, second, right) in [("a", "b", true), ("b", "a", true), ("b", "b", false)] {
        let mut told = Told::new(false);
        let a = told.node(ROOT, "a", Kind::Leaf);
        let b = told.node(ROOT, "b", Kind::Leaf);
        told.event(0, 5, exchange(at(ROOT, "a"), at(ROOT, "b")));
        told.event(1, 2, path(a, first)).event(3, 4, path(b, second));
        assert_eq!(told.is_right(), right, "{first} {second}");
    }
}

#[test]
fn a_lookup_that_finds_neither_of_two_nodes_is_rejected() {
    for third in [false, true] {
        let mut told = Told::new(false);
        let a = told.node(ROOT, "a", Kind::Leaf);
        let b = told.node(ROOT, "b", Kind::Leaf);
        let seen = if third { Inode::from_raw(77) } else { a };
        told.event(0, 3, rename(at(ROOT, "a"), at(ROOT, "b")));
        told.event(1, 2, lookup(ROOT, "b", Kind::Leaf, seen));
        assert_eq!(told.is_right(), !third);
        assert_ne!(a, b);
    }
}

#[test]
fn an_unreferenced_node_may_go_but_not_under_a_pin_and_not_if_referenced() {
    for (pinned, forgotten, right) in
        [(false, 1, true), (true, 1, false), (false, 0, false), (true, 0, false)]
    {
        let mut told = Told::new(!pinned);
        let a = told.node(ROOT, "a", Kind::Leaf);
        told.event(1, 2, (Call::Forget(a, forgotten), Answer::Done(Ok(()))));
        told.event(3, 4, no_path(PathError::Stale(a)));
        assert_eq!(told.is_right(), right, "pinned {pinned}, forgotten {forgotten}");
    }
}

#[test]
fn what_is_gone_stays_gone_and_what_is_revived_stays() {
    for (count_of_a, new, right) in [(1, false, true), (1, true, false), (0, true, true)] {
        let mut told = Told::new(true);
        let a = told.node(ROOT, "a", Kind::Leaf);
        told.event(0, 3, (Call::Forget(a, 1), Answer::Done(Ok(()))));
        let met = if new { Inode::from_raw(77) } else { a };
        told.event(1, 2, lookup(ROOT, "a", Kind::Leaf, met));
        let count = (count_of_a > 0).then_some(count_of_a);
        told.event(4, 5, (Call::LookupCount(a), Answer::Count(count)));
        assert_eq!(told.is_right(), right, "{count_of_a} {new}");
    }
}

#[test]
fn the_report_leaves_out_reads_that_prove_nothing() {
    let mut told = Told::new(false);
    let a = told.node(ROOT, "a", Kind::Leaf);
    told.event(1, 2, path(a, "a")).event(3, 4, path(a, "b")).event(5, 6, path(ROOT, ""));
    let report = History::new(told.forest, told.events).check().unwrap_err();
    assert_eq!(report.matches("Path(").count(), 2, "a call and its answer: {report}");
}
