//! When forgotten nodes go: not while anything may need them, and then all of them.

use pinpath::{Counting, Inode, Kind, Name, NodeData, PathError, Resolver};
use pinpath_testkit::history::settle;
use pinpath_testkit::{Data, Resolver as Identified};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const ROOT: Inode = Inode::ROOT;

fn name(name: &str) -> &Name {
    Name::new(name).expect("a literal that is a name")
}

fn look_up(resolver: &Resolver, parent: Inode, at: &str, kind: Kind) -> Inode {
    resolver.lookup(parent, name(at), kind, ()).expect("the parent is there")
}

fn leaf(resolver: &Resolver, at: &str) -> Inode {
    look_up(resolver, ROOT, at, Kind::Leaf)
}

/// More often than it should take, where nothing hinders.
fn reclaim_often(resolver: &Resolver) {
    for _ in 0..10 {
        resolver.reclaim();
    }
}

fn is_known(resolver: &Resolver, inode: Inode) -> bool {
    resolver.path(inode) != Err(PathError::Stale(inode))
}

#[test]
fn what_is_forgotten_goes_when_nobody_is_pinned() {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    resolver.forget(a, 1);
    assert!(is_known(&resolver, a), "not before somebody reclaims");
    assert_eq!(resolver.reclaim(), 1);
    assert!(!is_known(&resolver, a));
    assert_ne!(leaf(&resolver, "a"), a, "a number that was used is not used again");
}

#[test]
fn a_pin_keeps_what_was_counted_when_it_began() {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    let pin = resolver.pin();
    resolver.forget(a, 1);
    reclaim_often(&resolver);
    assert_eq!(resolver.path(a).as_deref(), Ok(Path::new("a")));
    drop(pin);
    reclaim_often(&resolver);
    assert!(!is_known(&resolver, a));
}

#[test]
fn a_pin_keeps_the_directories_above_what_it_keeps() {
    let resolver = Resolver::new(());
    let d = look_up(&resolver, ROOT, "d", Kind::Directory);
    let x = look_up(&resolver, d, "x", Kind::Leaf);
    resolver.forget(d, 1);
    let pin = resolver.pin();
    resolver.forget(x, 1);
    reclaim_often(&resolver);
    assert_eq!(resolver.path(x).as_deref(), Ok(Path::new("d/x")));
    drop(pin);
    reclaim_often(&resolver);
    assert!(!is_known(&resolver, x) && !is_known(&resolver, d));
}

#[test]
fn a_pin_that_ends_on_another_thread_is_gone() {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    let pin = resolver.pin();
    resolver.forget(a, 1);
    reclaim_often(&resolver);
    std::thread::spawn(move || drop(pin)).join().unwrap();
    assert_eq!(resolver.stats().pins, 0);
    reclaim_often(&resolver);
    assert!(!is_known(&resolver, a));
}

/// The grace period of the first forget is no reason to take the node from a request that began
/// when it was counted once more.
#[test]
fn a_node_forgotten_again_waits_for_the_pins_of_the_second_time() {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    let first = resolver.pin();
    resolver.forget(a, 1);
    // It leaves the queue for a grace period that is to end with the first pin.
    reclaim_often(&resolver);
    assert_eq!(leaf(&resolver, "a"), a);
    let second = resolver.pin();
    resolver.forget(a, 1);
    drop(first);
    reclaim_often(&resolver);
    assert_eq!(resolver.path(a).as_deref(), Ok(Path::new("a")), "the second pin is held");
    drop(second);
    reclaim_often(&resolver);
    assert!(!is_known(&resolver, a));
}

/// As above, where the node is found by its name and not counted.
fn found_while_waiting(find: impl Fn(&Resolver) -> Option<Inode>) {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    let first = resolver.pin();
    resolver.forget(a, 1);
    reclaim_often(&resolver);
    let second = resolver.pin();
    assert_eq!(find(&resolver), Some(a));
    drop(first);
    reclaim_often(&resolver);
    assert_eq!(resolver.path(a).as_deref(), Ok(Path::new("a")), "the second pin is held");
    drop(second);
    reclaim_often(&resolver);
    assert!(!is_known(&resolver, a));
}

#[test]
fn a_forgotten_node_that_is_peeked_at_waits_for_the_pins_of_then() {
    found_while_waiting(|resolver| resolver.peek(ROOT, name("a")).unwrap());
}

#[test]
fn a_forgotten_node_that_is_listed_waits_for_the_pins_of_then() {
    found_while_waiting(|resolver| {
        let entries = [(name("a"), Kind::Leaf, ())];
        let listed = resolver.list(ROOT, entries, Counting::Uncounted).unwrap();
        listed[0].ok()
    });
}

#[test]
fn an_uncounted_listing_makes_nodes_that_live_as_long_as_the_pin() {
    let resolver = Resolver::new(());
    let pin = resolver.pin();
    let entries = [(name("a"), Kind::Leaf, ()), (name("b"), Kind::Directory, ())];
    let listed = resolver.list(ROOT, entries, Counting::Uncounted).unwrap();
    reclaim_often(&resolver);
    assert!(listed.iter().all(|inode| is_known(&resolver, inode.unwrap())));
    drop(pin);
    reclaim_often(&resolver);
    assert!(!listed.iter().any(|inode| is_known(&resolver, inode.unwrap())));
}

#[test]
fn pins_that_follow_each_other_without_a_gap_keep_nothing_for_ever() {
    let resolver = Resolver::new(());
    let mut pin = resolver.pin();
    let a = leaf(&resolver, "a");
    resolver.forget(a, 1);
    for _ in 0..10 {
        let next = resolver.pin();
        drop(std::mem::replace(&mut pin, next));
        resolver.reclaim();
    }
    assert!(!is_known(&resolver, a), "though there always was a pin");
    drop(pin);
}

#[test]
fn a_node_counted_again_stays() {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    resolver.forget(a, 1);
    assert_eq!(leaf(&resolver, "a"), a);
    reclaim_often(&resolver);
    assert_eq!(resolver.lookup_count(a), Some(1));
    resolver.forget(a, 5);
    reclaim_often(&resolver);
    assert_eq!(resolver.lookup_count(a), None);
}

#[test]
fn a_directory_stays_for_what_is_in_it_and_goes_with_the_last_of_it() {
    let resolver = Resolver::new(());
    let d = look_up(&resolver, ROOT, "d", Kind::Directory);
    let (x, y) =
        (look_up(&resolver, d, "x", Kind::Leaf), look_up(&resolver, d, "y", Kind::Directory));
    resolver.forget_batch([(d, 1), (x, 1)]);
    reclaim_often(&resolver);
    assert!(!is_known(&resolver, x) && is_known(&resolver, d), "y is in d");
    resolver.forget(y, 1);
    assert_eq!(resolver.reclaim(), 2);
    assert!(!is_known(&resolver, y) && !is_known(&resolver, d));
}

/// A recursion would end with the stack.
#[test]
fn a_very_deep_tree_goes_at_once() {
    const DEPTH: usize = if cfg!(miri) { 100 } else { 50_000 };
    let resolver = Resolver::new(());
    let mut all = vec![ROOT];
    for _ in 0..DEPTH {
        let parent = all[all.len() - 1];
        all.push(look_up(&resolver, parent, "d", Kind::Directory));
    }
    resolver.forget_batch(all.iter().map(|inode| (*inode, 1)));
    settle(&resolver);
    assert_eq!((resolver.stats().nodes, resolver.stats().links), (1, 0));
}

#[test]
fn known_hard_links_keep_their_node_until_they_are_pruned() {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    resolver.link(a, ROOT, name("b")).unwrap();
    resolver.forget(a, 2);
    reclaim_often(&resolver);
    assert_eq!(resolver.paths(a), [Path::new("a"), Path::new("b")]);
    assert_eq!(leaf(&resolver, "b"), a, "one file, as before");
    resolver.forget(a, 1);
    assert_eq!(resolver.prune(), 1);
    reclaim_often(&resolver);
    assert!(!is_known(&resolver, a));
    assert_ne!(leaf(&resolver, "a"), leaf(&resolver, "b"), "now nobody knows");
}

#[test]
fn with_an_identity_hard_links_keep_nothing_because_they_are_found_again() {
    let resolver: Identified = Identified::new(Data(None));
    let met = |at| resolver.lookup(ROOT, name(at), Kind::Leaf, Data(Some(7))).unwrap();
    let a = met("a");
    assert_eq!(met("b"), a);
    resolver.forget(a, 2);
    settle(&resolver);
    assert_eq!(resolver.lookup_count(a), None);
    assert_eq!(met("a"), met("b"));
}

#[test]
fn an_unlinked_node_stays_while_it_is_counted() {
    let resolver = Resolver::new(());
    let a = leaf(&resolver, "a");
    assert_eq!(resolver.unlink(ROOT, name("a")), Ok(Some(a)));
    reclaim_often(&resolver);
    assert_eq!(resolver.path(a), Err(PathError::Unlinked(a)));
    resolver.forget(a, 1);
    reclaim_often(&resolver);
    assert_eq!(resolver.path(a), Err(PathError::Stale(a)));
}

/// Nobody calls `reclaim` here.
#[test]
#[cfg_attr(miri, ignore = "much work for an interpreter")]
fn a_busy_table_reclaims_by_itself() {
    let resolver = Resolver::new(());
    let names: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let mut most = 0;
    for round in 0..20 {
        for each in &names {
            let _pin = resolver.pin();
            let inode = leaf(&resolver, each);
            resolver.forget(inode, 1);
        }
        if round > 0 {
            most = most.max(resolver.waiting());
        }
    }
    assert!(most < 4000, "{most} of 20000 were waiting");
}

/// Counts what is alive of it.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(alive))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "dropped more often than made");
    }
}

impl NodeData for Counted {
    type Identity = Infallible;
}

/// Some is dropped only when the threads of other tests have moved on.
fn wait_until_alive(alive: &AtomicUsize, expected: usize, mut meanwhile: impl FnMut()) {
    let start = Instant::now();
    while alive.load(Ordering::Relaxed) != expected {
        assert!(start.elapsed() < Duration::from_secs(30), "{alive:?} instead of {expected}");
        meanwhile();
    }
}

#[test]
#[cfg_attr(miri, ignore = "much work for an interpreter")]
fn data_is_dropped_once_for_each_node_and_for_each_that_was_not_needed() {
    let alive = Arc::new(AtomicUsize::new(0));
    let resolver = Resolver::new(Counted::new(&alive));
    let make =
        |at: &str| resolver.lookup(ROOT, name(at), Kind::Leaf, Counted::new(&alive)).unwrap();
    let kept = make("kept");
    assert_eq!(make("kept"), kept);
    assert_eq!(alive.load(Ordering::Relaxed), 2, "that of the root, and the first of the node");
    let gone: Vec<Inode> = (0..100).map(|number| make(&number.to_string())).collect();
    assert_eq!(alive.load(Ordering::Relaxed), 102);
    resolver.forget_batch(gone.iter().map(|inode| (*inode, 1)));
    wait_until_alive(&alive, 2, || _ = resolver.reclaim());
    assert!(resolver.with_data(kept, |_| ()).is_some());
    drop(resolver);
    // What waits is dropped when somebody goes on with the epochs; any resolver does.
    let other = Resolver::new(());
    wait_until_alive(&alive, 0, || {
        let inode = leaf(&other, "a");
        other.forget(inode, 1);
        other.reclaim();
    });
}
