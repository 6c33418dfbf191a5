//! The oracle is right by its simplicity; these are the sentences of its documentation, tried.

use super::*;
use pinpath::Counting;
use pinpath::Kind::{Directory, Leaf, Unknown};
use pinpath::RenameMode::Replace;
use pinpath::TransactionError;

const ROOT: Inode = Inode::ROOT;

/// An oracle that numbers its nodes itself: 2, 3, 4 ...
struct Tree {
    oracle: Oracle,
    next: u64,
}

impl Tree {
    fn new() -> Self {
        Tree { oracle: Oracle::new(None), next: 2 }
    }

    fn entry(&mut self, name: &str, kind: Kind, identity: Option<Identity>) -> NewEntry {
        let fresh = Inode::from_raw(self.next);
        self.next += 1;
        NewEntry { name: name.into(), kind, identity, fresh }
    }

    fn try_meet(
        &mut self,
        parent: Inode,
        name: &str,
        kind: Kind,
        identity: Option<Identity>,
    ) -> Result<Inode, Error> {
        let entry = self.entry(name, kind, identity);
        self.oracle.lookup(parent, &entry)
    }

    fn make(&mut self, parent: Inode, name: &str, kind: Kind) -> Inode {
        self.try_meet(parent, name, kind, None).unwrap()
    }

    fn meet(&mut self, parent: Inode, name: &str, kind: Kind, identity: Identity) -> Inode {
        self.try_meet(parent, name, kind, Some(identity)).unwrap()
    }

    fn paths(&self, inode: Inode) -> Vec<String> {
        let paths = self.oracle.paths(inode);
        paths.into_iter().map(|path| path.into_os_string().into_string().unwrap()).collect()
    }
}

fn at(parent: Inode, name: &str) -> Place {
    Place { parent, name: name.into() }
}

#[test]
fn a_lookup_makes_a_node_once_and_counts_each_time() {
    let mut tree = Tree::new();
    let a = tree.make(ROOT, "a", Leaf);
    assert_eq!(tree.make(ROOT, "a", Leaf), a);
    assert_eq!(tree.oracle.lookup_count(a), Some(2));
    assert_eq!(tree.oracle.peek(&at(ROOT, "a")), Ok(Some(a)));
    assert_eq!(tree.oracle.peek(&at(ROOT, "b")), Ok(None));
}

#[test]
fn names_are_held_by_directories_that_are_there() {
    let mut tree = Tree::new();
    let leaf = tree.make(ROOT, "leaf", Leaf);
    let unknown = tree.make(ROOT, "unknown", Unknown);
    let stale = Inode::from_raw(99);
    assert_eq!(tree.try_meet(leaf, "x", Leaf, None), Err(Error::NotADirectory(leaf)));
    assert_eq!(tree.try_meet(stale, "x", Leaf, None), Err(Error::Stale(stale)));
    assert!(tree.try_meet(unknown, "x", Leaf, None).is_ok());
}

#[test]
fn root_has_one_empty_path_and_the_others_are_below() {
    let mut tree = Tree::new();
    let d = tree.make(ROOT, "d", Directory);
    let x = tree.make(d, "x", Leaf);
    assert_eq!(tree.paths(ROOT), [""]);
    assert_eq!(tree.paths(x), ["d/x"]);
    assert_eq!(tree.oracle.parts_paths(x), [["d", "x"]]);
    assert_eq!(tree.oracle.parts_paths(ROOT), [[""; 0]]);
}

#[test]
fn a_linked_name_comes_last_and_a_met_name_first() {
    let mut tree = Tree::new();
    let a = tree.meet(ROOT, "a", Leaf, 7);
    tree.oracle.link(a, &at(ROOT, "b")).unwrap();
    assert_eq!(tree.paths(a), ["a", "b"]);
    assert_eq!(tree.meet(ROOT, "c", Leaf, 7), a);
    assert_eq!(tree.paths(a), ["c", "a", "b"]);
    assert_eq!(tree.oracle.lookup_count(a), Some(3));
}

#[test]
fn a_name_met_again_with_its_identity_comes_first() {
    let mut tree = Tree::new();
    let a = tree.meet(ROOT, "a", Leaf, 7);
    tree.oracle.link(a, &at(ROOT, "b")).unwrap();
    assert_eq!(tree.make(ROOT, "b", Leaf), a);
    assert_eq!(tree.paths(a), ["a", "b"], "it may be another file");
    assert_eq!(tree.meet(ROOT, "b", Leaf, 7), a);
    assert_eq!(tree.paths(a), ["b", "a"]);
}

#[test]
fn a_name_met_with_another_identity_is_taken_from_the_old_node() {
    let mut tree = Tree::new();
    let old = tree.meet(ROOT, "a", Leaf, 1);
    let new = tree.meet(ROOT, "a", Leaf, 2);
    assert_ne!(old, new);
    assert_eq!(tree.oracle.path(old), Err(PathError::Unlinked(old)));
    assert_eq!(tree.paths(new), ["a"]);
}

#[test]
fn a_name_met_as_another_kind_is_taken_from_the_old_node_unless_an_identity_says_otherwise() {
    let mut tree = Tree::new();
    let leaf = tree.make(ROOT, "a", Leaf);
    let directory = tree.make(ROOT, "a", Directory);
    assert_ne!(leaf, directory);
    assert_eq!(tree.oracle.path(leaf), Err(PathError::Unlinked(leaf)));
    assert_eq!(tree.make(ROOT, "a", Unknown), directory, "nobody says that it is another file");
    let identified = tree.meet(ROOT, "b", Leaf, 1);
    assert_eq!(tree.meet(ROOT, "b", Directory, 1), identified);
    assert_ne!(tree.make(ROOT, "b", Directory), identified);
}

#[test]
fn a_directory_is_met_under_one_name_only() {
    let mut tree = Tree::new();
    let d = tree.meet(ROOT, "d", Directory, 1);
    assert_eq!(tree.try_meet(ROOT, "e", Directory, Some(1)), Err(Error::KnownElsewhere(d)));
    tree.oracle.unlink(&at(ROOT, "d")).unwrap();
    assert_eq!(tree.try_meet(ROOT, "e", Directory, Some(1)), Ok(d));
    assert_eq!(tree.paths(d), ["e"]);
}

#[test]
fn a_directory_is_not_met_below_itself() {
    let mut tree = Tree::new();
    let d = tree.meet(ROOT, "d", Directory, 1);
    let below = tree.make(d, "below", Directory);
    tree.oracle.unlink(&at(ROOT, "d")).unwrap();
    assert_eq!(tree.try_meet(below, "x", Directory, Some(1)), Err(Error::Cycle(d)));
}

#[test]
fn a_node_of_unknown_kind_is_not_put_below_itself() {
    let mut tree = Tree::new();
    let u = tree.meet(ROOT, "u", Unknown, 1);
    assert_eq!(tree.oracle.link(u, &at(u, "x")), Err(Error::Cycle(u)));
    assert_eq!(tree.try_meet(u, "x", Unknown, Some(1)), Err(Error::Cycle(u)));
}

#[test]
fn a_node_of_unknown_kind_is_a_leaf_with_two_names_and_a_directory_with_a_child() {
    let mut tree = Tree::new();
    let (u, v) = (tree.make(ROOT, "u", Unknown), tree.make(ROOT, "v", Unknown));
    tree.oracle.link(u, &at(ROOT, "w")).unwrap();
    assert_eq!(tree.try_meet(u, "x", Leaf, None), Err(Error::NotADirectory(u)));
    tree.make(v, "x", Leaf);
    assert_eq!(tree.oracle.link(v, &at(ROOT, "y")), Err(Error::DirectoryLink(v)));
    tree.oracle.unlink(&at(v, "x")).unwrap();
    assert_eq!(tree.oracle.link(v, &at(ROOT, "y")), Err(Error::DirectoryLink(v)), "it stays one");
}

#[test]
fn link_takes_the_name_from_whoever_had_it() {
    let mut tree = Tree::new();
    let (a, b) = (tree.make(ROOT, "a", Leaf), tree.make(ROOT, "b", Leaf));
    let d = tree.make(ROOT, "d", Directory);
    tree.oracle.link(a, &at(ROOT, "b")).unwrap();
    tree.oracle.link(a, &at(ROOT, "b")).unwrap();
    assert_eq!((tree.paths(a), tree.paths(b)), (vec!["a".into(), "b".into()], vec![]));
    assert_eq!(tree.oracle.lookup_count(a), Some(3));
    assert_eq!(tree.oracle.link(d, &at(ROOT, "e")), Err(Error::DirectoryLink(d)));
}

#[test]
fn rename_moves_all_below_and_removes_the_target() {
    let mut tree = Tree::new();
    let d = tree.make(ROOT, "d", Directory);
    let x = tree.make(d, "x", Leaf);
    let y = tree.make(d, "y", Leaf);
    tree.oracle.rename(&at(ROOT, "d"), &at(ROOT, "e")).unwrap();
    tree.oracle.rename(&at(d, "x"), &at(d, "y")).unwrap();
    assert_eq!((tree.paths(x), tree.paths(y)), (vec!["e/y".into()], vec![]));
    assert_eq!(tree.oracle.rename(&at(ROOT, "e"), &at(d, "z")), Err(Error::Cycle(d)));
}

#[test]
fn rename_keeps_the_position_among_the_names() {
    let mut tree = Tree::new();
    let a = tree.make(ROOT, "a", Leaf);
    tree.oracle.link(a, &at(ROOT, "b")).unwrap();
    tree.oracle.rename(&at(ROOT, "a"), &at(ROOT, "c")).unwrap();
    assert_eq!(tree.paths(a), ["c", "b"]);
    // Two names of one file: rename(2) does nothing.
    tree.oracle.rename(&at(ROOT, "c"), &at(ROOT, "b")).unwrap();
    assert_eq!(tree.paths(a), ["c", "b"]);
}

#[test]
fn rename_of_what_is_not_known_removes_the_target() {
    let mut tree = Tree::new();
    let a = tree.make(ROOT, "a", Leaf);
    tree.oracle.rename(&at(ROOT, "unmet"), &at(ROOT, "a")).unwrap();
    assert_eq!(tree.oracle.path(a), Err(PathError::Unlinked(a)));
}

#[test]
fn exchange_swaps_known_and_unknown_alike() {
    let mut tree = Tree::new();
    let d = tree.make(ROOT, "d", Directory);
    let (a, x) = (tree.make(ROOT, "a", Leaf), tree.make(d, "x", Leaf));
    tree.oracle.exchange(&at(ROOT, "a"), &at(d, "x")).unwrap();
    assert_eq!((tree.paths(a), tree.paths(x)), (vec!["d/x".into()], vec!["a".into()]));
    tree.oracle.exchange(&at(ROOT, "unmet"), &at(ROOT, "a")).unwrap();
    assert_eq!(tree.paths(x), ["unmet"]);
    let below = tree.make(d, "below", Directory);
    let around = tree.oracle.exchange(&at(ROOT, "d"), &at(below, "x"));
    assert_eq!(around, Err(Error::Cycle(d)));
    let around = tree.oracle.exchange(&at(below, "x"), &at(ROOT, "d"));
    assert_eq!(around, Err(Error::Cycle(d)));
}

#[test]
fn a_name_in_an_unlinked_directory_is_no_path() {
    let mut tree = Tree::new();
    let d = tree.make(ROOT, "d", Directory);
    let x = tree.make(d, "x", Leaf);
    tree.oracle.link(x, &at(ROOT, "y")).unwrap();
    tree.oracle.unlink(&at(ROOT, "d")).unwrap();
    assert_eq!(tree.paths(x), ["y"]);
    assert_eq!(tree.oracle.path(x), Ok("y".into()), "its first name leads nowhere");
    tree.oracle.unlink(&at(ROOT, "y")).unwrap();
    assert_eq!(tree.oracle.path(x), Err(PathError::Unlinked(x)));
}

#[test]
fn lookups_children_and_hard_links_keep_a_node() {
    let mut tree = Tree::new();
    let d = tree.make(ROOT, "d", Directory);
    let x = tree.make(d, "x", Leaf);
    assert!(!tree.oracle.may_go(d) && !tree.oracle.may_go(x) && !tree.oracle.may_go(ROOT));
    tree.oracle.forget(d, 1);
    assert!(!tree.oracle.may_go(d), "x is in it");
    tree.oracle.forget(x, 1);
    assert!(tree.oracle.may_go(x));
    tree.oracle.link(x, &at(ROOT, "y")).unwrap();
    tree.oracle.forget(x, u64::MAX);
    tree.oracle.settle();
    assert_eq!(tree.oracle.nodes().count(), 3, "two names keep x, and x keeps d");
    tree.oracle.unlink(&at(ROOT, "y")).unwrap();
    tree.oracle.settle();
    assert_eq!(tree.oracle, Oracle::new(None));
}

#[test]
fn a_hard_link_with_an_identity_is_not_kept() {
    let mut tree = Tree::new();
    let a = tree.meet(ROOT, "a", Leaf, 7);
    assert_eq!(tree.meet(ROOT, "b", Leaf, 7), a);
    tree.oracle.forget(a, 2);
    assert!(tree.oracle.may_go(a));
}

#[test]
fn nodes_go_alone_or_with_all_below() {
    let mut tree = Tree::new();
    let d = tree.make(ROOT, "d", Directory);
    let (x, y) = (tree.make(d, "x", Leaf), tree.make(ROOT, "y", Leaf));
    for inode in [d, x, y] {
        tree.oracle.forget(inode, 1);
    }
    let mut sets = tree.oracle.reclaimable_sets();
    sets.sort();
    assert_eq!(sets, [vec![], vec![d, x], vec![d, x, y], vec![x], vec![x, y], vec![y]]);
    assert!(!tree.oracle.clone().reclaim(&[d]), "x is in it");
}

#[test]
fn an_uncounted_listing_makes_nodes_that_may_go() {
    let mut tree = Tree::new();
    let entries = [tree.entry("a", Leaf, None), tree.entry("b", Directory, None)];
    let made = tree.oracle.list(ROOT, &entries, Counting::Uncounted).unwrap();
    let made: Vec<Inode> = made.into_iter().map(Result::unwrap).collect();
    assert!(made.iter().all(|&inode| tree.oracle.may_go(inode)));
    let again = tree.oracle.list(ROOT, &entries, Counting::Counted).unwrap();
    assert_eq!(again, [Ok(made[0]), Ok(made[1])]);
    assert!(!made.iter().any(|&inode| tree.oracle.may_go(inode)));
}

#[test]
fn a_transaction_needs_paths_of_its_parents_and_changes_nothing_by_itself() {
    let mut tree = Tree::new();
    let d = tree.make(ROOT, "d", Directory);
    let x = tree.make(d, "x", Leaf);
    let change = Change::Rename(at(d, "x"), at(ROOT, "y"), Replace);
    let begun = tree.oracle.begin(&change).unwrap();
    assert_eq!((begun.source, begun.target), (Some(x), None));
    assert_eq!((begun.parent, begun.new_parent), (Ok("d".into()), Ok("".into())));
    assert_eq!(tree.paths(x), ["d/x"]);
    tree.oracle.unlink(&at(ROOT, "d")).unwrap();
    let unlinked = TransactionError::Path(PathError::Unlinked(d));
    assert_eq!(tree.oracle.begin(&change), Err(unlinked));
}
