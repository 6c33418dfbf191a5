//! Pins, reclamation, and the reuse of slots.

#![cfg(any(loom, shuttle))]

use pinpath::{Inode, Resolver};
use pinpath_loom_tests::{file, name, path, run_model, settle, thread};

/// A request that began while the node was known keeps it, whatever is forgotten and reclaimed.
///
/// Bad: the reclaimer sums the counters before the pin's count reaches it, although the pin's owner
/// has seen the node.
#[test]
fn pin_against_retire_and_reclaim() {
    run_model("pin_against_retire_and_reclaim", || {
        let resolver = Resolver::new(());
        let inode = file(&resolver, Inode::ROOT, "a");
        let request = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                let pin = resolver.pin();
                if resolver.lookup_count(inode) == Some(1) {
                    // It was known when the pin had begun, so it lives until the pin ends.
                    assert_eq!(path(&resolver, inode).unwrap(), "a");
                }
                drop(pin);
            })
        };
        resolver.forget(inode, 1);
        resolver.reclaim();
        request.join().unwrap();
        settle(&resolver);
        assert_eq!(resolver.stats().nodes, 1);
    });
}

/// The reclaimer goes through a whole grace period, for another node, while the pin is between
/// reading the current parity and counting itself.
///
/// Bad: the pin is counted in the old parity, and the next grace period looks only at the one that
/// was current when it began.
#[test]
fn pin_in_the_old_parity() {
    run_model("pin_in_the_old_parity", || {
        let resolver = Resolver::new(());
        let other = file(&resolver, Inode::ROOT, "a");
        let inode = file(&resolver, Inode::ROOT, "b");
        let request = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                let pin = resolver.pin();
                if resolver.lookup_count(inode) == Some(1) {
                    assert_eq!(path(&resolver, inode).unwrap(), "b");
                }
                drop(pin);
            })
        };
        resolver.forget(other, 1);
        resolver.reclaim();
        resolver.forget(inode, 1);
        resolver.reclaim();
        request.join().unwrap();
        settle(&resolver);
        assert_eq!(resolver.stats().nodes, 1);
    });
}

/// A request that is counted in the old parity begins another pin there and ends it, while the
/// counters are summed up.
///
/// Bad: the first entry is summed up, and then the exit of the second pin, which is taken for that
/// of the first.
#[test]
fn pin_within_a_pin_in_the_old_parity() {
    run_model("pin_within_a_pin_in_the_old_parity", || {
        let resolver = Resolver::new(());
        let other = file(&resolver, Inode::ROOT, "a");
        let inode = file(&resolver, Inode::ROOT, "b");
        let request = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                let pin = resolver.pin();
                if resolver.lookup_count(inode) == Some(1) {
                    drop(resolver.pin());
                    let count = resolver.lookup_count(inode);
                    assert!(count.is_some(), "reclaimed under a pin");
                }
                drop(pin);
            })
        };
        resolver.forget(other, 1);
        resolver.reclaim();
        resolver.forget(inode, 1);
        resolver.reclaim();
        request.join().unwrap();
        settle(&resolver);
        assert_eq!(resolver.stats().nodes, 1);
    });
}

/// The pin begins here and ends on another thread.
///
/// Bad: the exit is summed up and the entry isn't.
#[test]
fn pin_ends_on_another_thread() {
    run_model("pin_ends_on_another_thread", || {
        let resolver = Resolver::new(());
        let inode = file(&resolver, Inode::ROOT, "a");
        let pin = resolver.pin();
        let worker = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                assert_eq!(path(&resolver, inode).unwrap(), "a");
                drop(pin);
            })
        };
        resolver.forget(inode, 1);
        resolver.reclaim();
        worker.join().unwrap();
        settle(&resolver);
        assert_eq!(resolver.stats().nodes, 1);
    });
}

/// Two forgets of one lookup each: exactly one of them finds zero.
///
/// Bad: both do, and the node is reclaimed twice; or neither, and it is never.
#[test]
fn two_forgets_reach_zero() {
    run_model("two_forgets_reach_zero", || {
        let resolver = Resolver::new(());
        let inode = file(&resolver, Inode::ROOT, "a");
        file(&resolver, Inode::ROOT, "a");
        let other = {
            let resolver = resolver.clone();
            thread::spawn(move || resolver.forget(inode, 1))
        };
        resolver.forget(inode, 1);
        other.join().unwrap();
        settle(&resolver);
        assert_eq!(resolver.stats().nodes, 1);
    });
}

/// A lookup meets the last forget and the reclaimer: it gets the old node, alive, or a new one.
///
/// Bad: it counts a node that is dead already, and answers an id that is stale at once.
#[test]
fn lookup_revives_or_reinserts() {
    run_model("lookup_revives_or_reinserts", || {
        let resolver = Resolver::new(());
        let inode = file(&resolver, Inode::ROOT, "a");
        let lookup = {
            let resolver = resolver.clone();
            thread::spawn(move || file(&resolver, Inode::ROOT, "a"))
        };
        resolver.forget(inode, 1);
        resolver.reclaim();
        let found = lookup.join().unwrap();
        assert_eq!(path(&resolver, found).unwrap(), "a");
        assert_eq!(resolver.lookup_count(found), Some(1));
        settle(&resolver);
        assert_eq!(path(&resolver, found).unwrap(), "a");
        assert_eq!(resolver.stats().nodes, 2);
    });
}

/// A slot is used again while somebody still has the old id.
///
/// Bad: the old id leads to the new file.
#[test]
fn slot_reuse_with_generation() {
    run_model("slot_reuse_with_generation", || {
        let resolver = Resolver::new(());
        let old = file(&resolver, Inode::ROOT, "a");
        let reader = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                if let Ok(path) = path(&resolver, old) {
                    assert_eq!(path, "a");
                }
            })
        };
        resolver.forget(old, 1);
        resolver.reclaim();
        let new = file(&resolver, Inode::ROOT, "b");
        assert_ne!(old, new);
        reader.join().unwrap();
        assert_eq!(path(&resolver, new).unwrap(), "b");
        settle(&resolver);
    });
}

/// A child is made while its forgotten parent is being reclaimed.
///
/// Bad: the child hangs under a dead parent.
#[test]
fn child_against_reclaimed_parent() {
    run_model("child_against_reclaimed_parent", || {
        let resolver = Resolver::new(());
        let parent = pinpath_loom_tests::dir(&resolver, Inode::ROOT, "d");
        let maker = {
            let resolver = resolver.clone();
            thread::spawn(move || resolver.lookup(parent, name("f"), pinpath::Kind::Leaf, ()))
        };
        resolver.forget(parent, 1);
        resolver.reclaim();
        if let Ok(child) = maker.join().unwrap() {
            assert_eq!(path(&resolver, child).unwrap(), "d/f");
        }
        settle(&resolver);
    });
}
