//! Bugs that random tests have found, each as the shortest way to it.

use pinpath::{Error, Inode, Kind, Name, PathError, Resolver};
use pinpath_testkit::history::settle;
use pinpath_testkit::watchdog::watch;
use pinpath_testkit::{Data, Resolver as Identified};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROOT: Inode = Inode::ROOT;
const NONE: Data = Data(None);
const ONE: Data = Data(Some(1));

fn name(name: &str) -> &Name {
    Name::new(name).expect("a literal that is a name")
}

/// The reclaimer had killed a node and not yet taken its links, when somebody who had found it alive
/// by its name took the same links: they were freed twice.
#[test]
fn names_changed_while_their_forgotten_node_is_buried() {
    let resolver: Resolver = Resolver::new(());
    let done = AtomicBool::new(false);
    let _watched = watch("names changed while their node is buried".to_owned());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                resolver.reclaim();
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                resolver.unlink(ROOT, name("a")).expect("the root is a directory");
                resolver.rename(ROOT, name("b"), ROOT, name("a")).expect("leaves make no cycle");
                resolver.exchange(ROOT, name("a"), ROOT, name("b")).expect("nor now");
            }
        });
        let end = Instant::now() + Duration::from_millis(if cfg!(miri) { 5 } else { 1000 });
        while Instant::now() < end {
            for each in ["a", "b"] {
                let inode = resolver.lookup(ROOT, name(each), Kind::Leaf, ()).expect("room");
                resolver.forget(inode, 1);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    settle(&resolver);
    resolver.validate().expect("the table is sound");
    assert_eq!((resolver.stats().nodes, resolver.stats().links), (1, 0));
}

/// What is a directory to the backend, but was listed without its kind, got a name in itself.
#[test]
fn a_node_of_unknown_kind_linked_into_itself_is_a_cycle() {
    let resolver = Resolver::new(());
    let u = resolver.lookup(ROOT, name("u"), Kind::Unknown, ()).unwrap();
    assert_eq!(resolver.link(u, u, name("x")), Err(Error::Cycle(u)));
    resolver.lookup(u, name("x"), Kind::Directory, ()).unwrap();
    assert_eq!(resolver.link(u, ROOT, name("y")), Err(Error::DirectoryLink(u)));
    resolver.validate().unwrap();
}

/// The same by way of its identity.
#[test]
fn a_node_of_unknown_kind_met_below_itself_is_a_cycle() {
    let resolver: Identified = Identified::new(NONE);
    let u = resolver.lookup(ROOT, name("u"), Kind::Unknown, ONE).unwrap();
    assert_eq!(resolver.lookup(u, name("x"), Kind::Unknown, ONE), Err(Error::Cycle(u)));
    let d = resolver.lookup(u, name("d"), Kind::Directory, NONE).unwrap();
    // It has a child, so it is a directory, and has its name.
    assert_eq!(resolver.lookup(d, name("x"), Kind::Unknown, ONE), Err(Error::KnownElsewhere(u)));
    resolver.validate().unwrap();
}

/// A node of unknown kind could have several names and children: then there were several ways up,
/// and moves that went by one of them closed a circle by another, or left kept paths behind. What
/// has two names is no directory, and what has a child is one.
#[test]
fn a_node_of_unknown_kind_turns_out_to_be_a_file_or_a_directory() {
    let _watched = watch("a walk in circles".to_owned());
    let resolver = Resolver::new(());
    let d = resolver.lookup(ROOT, name("d"), Kind::Directory, ()).unwrap();
    let u = resolver.lookup(ROOT, name("u"), Kind::Unknown, ()).unwrap();
    resolver.link(u, d, name("second")).unwrap();
    let refused = resolver.lookup(u, name("x"), Kind::Directory, ());
    assert_eq!(refused, Err(Error::NotADirectory(u)));

    let v = resolver.lookup(ROOT, name("v"), Kind::Unknown, ()).unwrap();
    resolver.lookup(v, name("x"), Kind::Leaf, ()).unwrap();
    resolver.unlink(v, name("x")).unwrap();
    assert_eq!(resolver.link(v, d, name("second v")), Err(Error::DirectoryLink(v)));
    resolver.validate().unwrap();
}

/// The same by way of its identity.
#[test]
fn a_node_of_unknown_kind_met_twice_turns_out_to_be_a_file() {
    let resolver: Identified = Identified::new(NONE);
    let u = resolver.lookup(ROOT, name("a"), Kind::Unknown, ONE).unwrap();
    assert_eq!(resolver.lookup(ROOT, name("b"), Kind::Unknown, ONE), Ok(u));
    let refused = resolver.lookup(u, name("x"), Kind::Directory, NONE);
    assert_eq!(refused, Err(Error::NotADirectory(u)));
    resolver.validate().unwrap();
}

/// Of two names the first was in a directory that had been removed, and the file had no path.
#[test]
fn a_file_whose_first_name_is_in_a_removed_directory_has_the_path_of_the_second() {
    let resolver = Resolver::new(());
    let d = resolver.lookup(ROOT, name("d"), Kind::Directory, ()).unwrap();
    let x = resolver.lookup(d, name("x"), Kind::Leaf, ()).unwrap();
    resolver.link(x, ROOT, name("y")).unwrap();
    assert_eq!(resolver.path(x).as_deref(), Ok(Path::new("d/x")));
    resolver.unlink(ROOT, name("d")).unwrap();
    assert_eq!(resolver.path(x).as_deref(), Ok(Path::new("y")));
    assert_eq!(resolver.paths(x), [Path::new("y")]);
    let lease = resolver.lease(x).unwrap();
    assert_eq!(lease.path().as_deref(), Ok(Path::new("y")));
    drop(lease);
    resolver.unlink(ROOT, name("y")).unwrap();
    assert_eq!(resolver.path(x), Err(PathError::Unlinked(x)));
}

/// Without identities a file stayed known as a file after the backend had put a directory in its
/// place, and nothing in that could be looked up.
#[test]
fn a_file_replaced_by_a_directory_behind_the_table_is_another_node() {
    let resolver = Resolver::new(());
    let file = resolver.lookup(ROOT, name("a"), Kind::Leaf, ()).unwrap();
    let directory = resolver.lookup(ROOT, name("a"), Kind::Directory, ()).unwrap();
    assert_ne!(file, directory);
    assert_eq!(resolver.path(file), Err(PathError::Unlinked(file)));
    let below = resolver.lookup(directory, name("x"), Kind::Leaf, ()).unwrap();
    assert_eq!(resolver.path(below).as_deref(), Ok(Path::new("a/x")));
    // And back; what was in the directory has no path any more.
    let again = resolver.lookup(ROOT, name("a"), Kind::Leaf, ()).unwrap();
    assert_eq!(resolver.path(again).as_deref(), Ok(Path::new("a")));
    assert_eq!(resolver.path(below), Err(PathError::Unlinked(below)));
    resolver.validate().unwrap();
}

/// Of a forgotten file with several names, one that was used by another file meanwhile.
#[test]
fn prune_drops_only_the_names_that_the_forgotten_node_still_has() {
    let resolver = Resolver::new(());
    let a = resolver.lookup(ROOT, name("a"), Kind::Leaf, ()).unwrap();
    resolver.link(a, ROOT, name("b")).unwrap();
    resolver.link(a, ROOT, name("c")).unwrap();
    let other = resolver.lookup(ROOT, name("other"), Kind::Leaf, ()).unwrap();
    resolver.rename(ROOT, name("other"), ROOT, name("b")).unwrap();
    resolver.forget(a, 3);
    settle(&resolver);
    assert_eq!(resolver.lookup_count(a), Some(0), "two names keep it");
    assert_eq!(resolver.prune(), 1);
    settle(&resolver);
    assert_eq!(resolver.lookup_count(a), None);
    assert_eq!(resolver.path(other).as_deref(), Ok(Path::new("b")));
    resolver.validate().unwrap();
    assert_eq!((resolver.stats().nodes, resolver.stats().links), (2, 1));
}

/// A forgotten directory, kept for a forgotten child alone, was reclaimed with that child under a pin
/// that had found it by its name.
#[test]
fn a_forgotten_directory_that_is_found_outlives_its_last_child() {
    let resolver = Resolver::new(());
    let directory = resolver.lookup(ROOT, name("a"), Kind::Directory, ()).unwrap();
    let child = resolver.lookup(directory, name("b"), Kind::Leaf, ()).unwrap();
    resolver.forget(directory, 1);
    settle(&resolver); // looked at, kept for its child, and waiting for nothing now
    let earlier = resolver.pin();
    resolver.forget(child, 1);
    resolver.reclaim(); // the child waits for the earlier request from now on, and for no later one
    let request = resolver.pin();
    assert_eq!(resolver.peek(ROOT, name("a")), Ok(Some(directory)));
    drop(earlier);
    for _ in 0..4 {
        resolver.reclaim();
    }
    assert_eq!(resolver.stats().nodes, 2, "the child has gone");
    assert_eq!(resolver.lookup_count(directory), Some(0), "the request has found it");
    drop(request);
    settle(&resolver);
    assert_eq!(resolver.lookup_count(directory), None);
    assert_eq!(resolver.stats().nodes, 1);
}

/// A forgotten directory lost a child that was known, and another one, forgotten long before, kept it
/// no longer than its own grace period: it went under a pin that was older than the loss.
#[test]
fn a_forgotten_directory_outlives_the_loss_of_a_known_child() {
    let resolver = Resolver::new(());
    let directory = resolver.lookup(ROOT, name("a"), Kind::Directory, ()).unwrap();
    let forgotten = resolver.lookup(directory, name("b"), Kind::Leaf, ()).unwrap();
    let known = resolver.lookup(directory, name("c"), Kind::Leaf, ()).unwrap();
    resolver.forget(directory, 1);
    settle(&resolver); // looked at, kept for its children, and waiting for nothing now
    let earlier = resolver.pin();
    resolver.forget(forgotten, 1);
    resolver.reclaim(); // waits for the earlier request from now on, and for no later one
    let request = resolver.pin(); // the directory is above a known file
    resolver.unlink(directory, name("c")).unwrap();
    drop(earlier);
    for _ in 0..4 {
        resolver.reclaim();
    }
    assert_eq!(resolver.lookup_count(forgotten), None);
    assert_eq!(resolver.lookup_count(directory), Some(0), "the request may need it");
    drop(request);
    resolver.forget(known, 1);
    settle(&resolver);
    assert_eq!(resolver.stats().nodes, 1);
}
