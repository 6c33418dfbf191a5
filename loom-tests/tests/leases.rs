//! Leases against transactions: a path that is leased stays true.
//!
//! "The handler" of a lease or of a transaction touches a `Backend`, which reports it if two handlers
//! that must exclude each other do so at once.

#![cfg(any(loom, shuttle))]

use pinpath::{Inode, RenameMode, Resolver};
use pinpath_loom_tests::{Backend, dir, file, name, path, run_model, settle, thread};

/// Renames the file itself while it is leased.
///
/// Bad: the lease doesn't find the mark and the transaction doesn't find the lease. Weaken either
/// fence (`Domain::publish`, `Marks::wait_for_leases`) and loom finds it.
#[test]
fn lease_against_rename() {
    run_model("lease_against_rename", || {
        let (resolver, backend) = (Resolver::new(()), Backend::new());
        let f = file(&resolver, Inode::ROOT, "f");
        let renamer = {
            let (resolver, backend) = (resolver.clone(), backend.clone());
            thread::spawn(move || {
                let transaction = resolver
                    .begin_rename(
                        Inode::ROOT,
                        name("f"),
                        Inode::ROOT,
                        name("g"),
                        RenameMode::Replace,
                    )
                    .unwrap();
                backend.touch();
                transaction.commit().unwrap();
            })
        };
        let lease = resolver.lease(f).unwrap();
        let before = lease.path().unwrap();
        backend.touch();
        assert_eq!(lease.path().unwrap(), before, "the path changed under the lease");
        drop(lease);
        renamer.join().unwrap();
        assert_eq!(path(&resolver, f).unwrap(), "g");
        settle(&resolver);
    });
}

/// Renames the directory above.
///
/// Bad: the lease looks at the tree's state before the directory is counted as moving, and the
/// transaction looks through the cells before the lease is there. Dropping `begin_moving`'s count
/// before the mark makes it fail too.
#[test]
fn lease_against_rename_of_an_ancestor() {
    run_model("lease_against_rename_of_an_ancestor", || ancestor(false));
}

/// The same when the path is kept already.
///
/// Bad: who has a kept path looks no further, and the mark above is never seen. Taking a kept path for
/// enough in `Shared::check_lease` makes it fail.
#[test]
fn lease_with_a_cached_path_against_rename_of_an_ancestor() {
    run_model("lease_with_a_cached_path_against_rename_of_an_ancestor", || ancestor(true));
}

fn ancestor(cached: bool) {
    let (resolver, backend) = (Resolver::new(()), Backend::new());
    let d = dir(&resolver, Inode::ROOT, "d");
    let f = file(&resolver, d, "f");
    if cached {
        resolver.with_path(f, |_| ()).unwrap();
    }
    let renamer = {
        let (resolver, backend) = (resolver.clone(), backend.clone());
        thread::spawn(move || {
            let transaction = resolver
                .begin_rename(Inode::ROOT, name("d"), Inode::ROOT, name("e"), RenameMode::Replace)
                .unwrap();
            backend.touch();
            transaction.commit().unwrap();
        })
    };
    let lease = resolver.lease(f).unwrap();
    let before = lease.path().unwrap();
    backend.touch();
    assert_eq!(lease.path().unwrap(), before, "the path changed under the lease");
    drop(lease);
    renamer.join().unwrap();
    assert_eq!(path(&resolver, f).unwrap(), "e/f");
    settle(&resolver);
}

/// Two directories are renamed by two threads, one within the other, and a third leases below both.
///
/// Bad: each waits for a lease of the other; or one sleeps and the other doesn't wake it. Without the
/// wake-up at the end of `Marks` it fails: loom finds that all threads sleep.
#[test]
fn two_renames_and_a_lease() {
    run_model("two_renames_and_a_lease", || {
        let resolver = Resolver::new(());
        let d = dir(&resolver, Inode::ROOT, "d");
        let s = dir(&resolver, d, "s");
        let outer = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                let transaction = resolver
                    .begin_rename(
                        Inode::ROOT,
                        name("d"),
                        Inode::ROOT,
                        name("e"),
                        RenameMode::Replace,
                    )
                    .unwrap();
                transaction.commit().unwrap();
            })
        };
        let inner = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                let transaction =
                    resolver.begin_rename(d, name("s"), d, name("t"), RenameMode::Replace).unwrap();
                transaction.commit().unwrap();
            })
        };
        drop(resolver.lease(s).unwrap());
        outer.join().unwrap();
        inner.join().unwrap();
        assert_eq!(path(&resolver, s).unwrap(), "e/t");
        settle(&resolver);
    });
}

/// A link needs two leases at once, and one of them is being renamed.
///
/// Bad: it holds one while it waits for the other, and the rename waits for the one. Sleeping before
/// the leases are dropped (`lease_all`) makes it fail.
#[test]
fn two_leases_at_once_against_a_rename() {
    run_model("two_leases_at_once_against_a_rename", || {
        let (resolver, backend) = (Resolver::new(()), Backend::new());
        let d = dir(&resolver, Inode::ROOT, "d");
        let f = file(&resolver, d, "f");
        let renamer = {
            let (resolver, backend) = (resolver.clone(), backend.clone());
            thread::spawn(move || {
                let transaction = resolver
                    .begin_rename(
                        Inode::ROOT,
                        name("d"),
                        Inode::ROOT,
                        name("e"),
                        RenameMode::Replace,
                    )
                    .unwrap();
                backend.touch();
                transaction.commit().unwrap();
            })
        };
        let leases = resolver.lease_all([f, d]).unwrap();
        backend.touch();
        drop(leases);
        renamer.join().unwrap();
        assert_eq!(path(&resolver, f).unwrap(), "e/f");
        settle(&resolver);
    });
}

/// A transaction is given up.
///
/// Bad: a mark stays, and the lease waits for ever. Not clearing it at the end of `Marks` makes it
/// fail.
#[test]
fn abort_lets_leases_go_on() {
    run_model("abort_lets_leases_go_on", || {
        let resolver = Resolver::new(());
        let d = dir(&resolver, Inode::ROOT, "d");
        let f = file(&resolver, d, "f");
        let aborter = {
            let resolver = resolver.clone();
            thread::spawn(move || drop(resolver.begin_unlink(Inode::ROOT, name("d")).unwrap()))
        };
        let lease = resolver.lease(f).unwrap();
        assert_eq!(lease.path().unwrap().to_str(), Some("d/f"));
        drop(lease);
        aborter.join().unwrap();
        assert_eq!(path(&resolver, f).unwrap(), "d/f");
        settle(&resolver);
    });
}

/// The lease ends on another thread than it began on.
///
/// Bad: the transaction sleeps and nobody wakes it: the lease's end doesn't see that somebody waits,
/// and the transaction doesn't see the end. Without the fence in `Domain::unpublish` it fails.
#[test]
fn lease_ends_on_another_thread() {
    run_model("lease_ends_on_another_thread", || {
        let backend = Backend::new();
        let owned = Box::into_raw(Box::new(Resolver::new(())));
        // SAFETY: freed at the end of the model, when the other thread has ended.
        let resolver: &'static Resolver = unsafe { &*owned };
        let f = file(resolver, Inode::ROOT, "f");
        let lease = resolver.lease(f).unwrap();
        let holder = {
            let backend = backend.clone();
            thread::spawn(move || {
                backend.touch();
                drop(lease);
            })
        };
        let transaction = resolver.begin_unlink(Inode::ROOT, name("f")).unwrap();
        backend.touch();
        transaction.commit().unwrap();
        holder.join().unwrap();
        assert!(path(resolver, f).is_err());
        settle(resolver);
        // SAFETY: see above; the lease is gone and the thread joined.
        drop(unsafe { Box::from_raw(owned) });
    });
}
