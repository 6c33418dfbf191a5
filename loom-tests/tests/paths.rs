//! Paths against changes of the namespace: no path is ever answered that never was.

#![cfg(any(loom, shuttle))]

use pinpath::{Inode, Kind, PathError, Resolver};
#[cfg(shuttle)]
use pinpath_loom_tests::{Turn, run_in_turns};
use pinpath_loom_tests::{dir, file, name, path, run_model, run_model_with, settle, thread};

/// Bad: the new name of the directory and the old one of the tree above it, or a torn walk.
#[test]
fn rename_against_path_building() {
    run_model("rename_against_path_building", || {
        let resolver = Resolver::new(());
        let d = dir(&resolver, Inode::ROOT, "d");
        let f = file(&resolver, d, "f");
        let renamer = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.rename(Inode::ROOT, name("d"), Inode::ROOT, name("e")).unwrap();
            })
        };
        let seen = path(&resolver, f).unwrap();
        assert!(seen == "d/f" || seen == "e/f", "{seen}");
        renamer.join().unwrap();
        assert_eq!(path(&resolver, f).unwrap(), "e/f");
        settle(&resolver);
    });
}

/// A file is renamed while its directory is being renamed, and who renamed the file sees that the
/// directory has its old name still.
///
/// Bad: `e/x`: the walk read the file's name before it was renamed, and the directory's after, all
/// within the odd version of the directory's rename. Only looking at the first link again
/// (`Start::still`) shows it.
///
/// Three threads and three preemptions: hours under loom, and too rare for random schedules. So the
/// order is given in which the threads interrupt each other, and all their steps are tried: the
/// directory's rename makes the version odd; the walk reads the file's link; the file is renamed;
/// the directory's link is swapped; the walk goes on.
#[test]
#[cfg(shuttle)]
fn leaf_rename_within_a_directory_rename_against_path() {
    let [directory, file_and_directory, walk] = [1, 2, 3];
    let order = [
        Turn::Some(directory),
        Turn::Some(walk),
        Turn::All(file_and_directory),
        Turn::Some(directory),
        Turn::All(walk),
    ];
    run_in_turns("leaf_rename_within_a_directory_rename_against_path", &order, || {
        let resolver = Resolver::new(());
        let d = dir(&resolver, Inode::ROOT, "d");
        let f = file(&resolver, d, "x");
        let of_directory = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.rename(Inode::ROOT, name("d"), Inode::ROOT, name("e")).unwrap();
            })
        };
        let of_file = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.rename(d, name("x"), d, name("y")).unwrap();
                path(&resolver, d).unwrap()
            })
        };
        let walk = {
            let resolver = resolver.clone();
            thread::spawn(move || path(&resolver, f).unwrap())
        };
        of_directory.join().unwrap();
        let directory_after_file = of_file.join().unwrap();
        let seen = walk.join().unwrap();
        assert!(!(seen == "e/x" && directory_after_file == "d"), "a path that never was");
        settle(&resolver);
    });
}

/// The inner directory is renamed first, then the outer one.
///
/// Bad: `A/b/f`: the walk passed the inner one before its rename and the outer one after.
#[test]
fn two_directory_renames_against_path() {
    run_model("two_directory_renames_against_path", || {
        let resolver = Resolver::new(());
        let a = dir(&resolver, Inode::ROOT, "a");
        let b = dir(&resolver, a, "b");
        let f = file(&resolver, b, "f");
        let renamer = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.rename(a, name("b"), a, name("B")).unwrap();
                resolver.rename(Inode::ROOT, name("a"), Inode::ROOT, name("A")).unwrap();
            })
        };
        let seen = path(&resolver, f).unwrap();
        assert!(["a/b/f", "a/B/f", "A/B/f"].contains(&seen.as_str()), "{seen}");
        renamer.join().unwrap();
        settle(&resolver);
    });
}

/// A directory is renamed, and the path of what is in it asked for through what is kept.
///
/// Bad: the directory has its new name already, and the path kept for its child has the old one.
#[test]
fn kept_path_is_not_older_than_its_directory() {
    for kept_before in [true, false] {
        run_model_with("kept_path_is_not_older_than_its_directory", 3, move || {
            let resolver = Resolver::new(());
            let d = dir(&resolver, Inode::ROOT, "d");
            let f = file(&resolver, d, "f");
            if kept_before {
                resolver.with_path(f, |_| ()).unwrap();
            }
            let renamer = {
                let resolver = resolver.clone();
                thread::spawn(move || {
                    resolver.rename(Inode::ROOT, name("d"), Inode::ROOT, name("e")).unwrap();
                })
            };
            if !kept_before {
                resolver.with_path(f, |_| ()).unwrap();
            }
            let directory = path(&resolver, d).unwrap();
            let child = resolver.with_path(f, |path| path.to_str().unwrap().to_owned()).unwrap();
            assert!(!(directory == "e" && child == "d/f"), "the child's path is older");
            renamer.join().unwrap();
            settle(&resolver);
        });
    }
}

/// A path is kept, and its directory renamed.
///
/// Bad: the kept path is used after the rename was seen to be done, or an old path is kept for the
/// new state of the tree.
#[test]
fn cached_path_against_rename() {
    run_model("cached_path_against_rename", || {
        let resolver = Resolver::new(());
        let d = dir(&resolver, Inode::ROOT, "d");
        let f = file(&resolver, d, "f");
        let renamer = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.rename(Inode::ROOT, name("d"), Inode::ROOT, name("e")).unwrap();
                // The rename is done: no reader may see the old path from here on.
                let seen = resolver.with_path(f, |path| path.to_str().unwrap().to_owned());
                assert_eq!(seen.unwrap(), "e/f");
            })
        };
        let first = resolver.with_path(f, |path| path.to_str().unwrap().to_owned()).unwrap();
        let second = resolver.with_path(f, |path| path.to_str().unwrap().to_owned()).unwrap();
        // Time doesn't run backwards.
        assert!(!(first == "e/f" && second == "d/f"), "{first}, then {second}");
        renamer.join().unwrap();
        assert_eq!(path(&resolver, f).unwrap(), "e/f");
        settle(&resolver);
    });
}

/// A rename over a target is one step.
///
/// Bad: both files have the name, or the target has lost it before the source has it.
#[test]
fn rename_over_a_target_is_one_step() {
    run_model("rename_over_a_target_is_one_step", || {
        let resolver = Resolver::new(());
        let a = file(&resolver, Inode::ROOT, "a");
        let b = file(&resolver, Inode::ROOT, "b");
        let renamer = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.rename(Inode::ROOT, name("a"), Inode::ROOT, name("b")).unwrap();
            })
        };
        let b_first = path(&resolver, b);
        let a_second = path(&resolver, a).unwrap();
        if b_first == Err(PathError::Unlinked(b)) {
            assert_eq!(a_second, "b", "the target had lost its name already");
        }
        let a_third = path(&resolver, a).unwrap();
        let b_fourth = path(&resolver, b);
        assert!(!(a_third == "b" && b_fourth.is_ok()), "two files of one name");
        renamer.join().unwrap();
        settle(&resolver);
    });
}

/// An exchange is one step.
///
/// Bad: both have the same name for a moment.
#[test]
fn exchange_is_one_step() {
    run_model("exchange_is_one_step", || {
        let resolver = Resolver::new(());
        let a = file(&resolver, Inode::ROOT, "a");
        let b = file(&resolver, Inode::ROOT, "b");
        let swapper = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.exchange(Inode::ROOT, name("a"), Inode::ROOT, name("b")).unwrap();
            })
        };
        let (first, second) = (path(&resolver, a).unwrap(), path(&resolver, b).unwrap());
        assert!(!(first == "b" && second == "b"), "a was exchanged when b was looked at");
        swapper.join().unwrap();
        assert_eq!(path(&resolver, a).unwrap(), "b");
        assert_eq!(path(&resolver, b).unwrap(), "a");
        settle(&resolver);
    });
}

/// A second name is made and the first removed, while all paths are asked for.
///
/// Bad: none, although the file had a name at every moment; or two after the removal was seen.
#[test]
fn link_and_unlink_against_paths() {
    run_model("link_and_unlink_against_paths", || {
        let resolver = Resolver::new(());
        let a = file(&resolver, Inode::ROOT, "a");
        let changer = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.link(a, Inode::ROOT, name("b")).unwrap();
                resolver.unlink(Inode::ROOT, name("a")).unwrap();
            })
        };
        let seen: Vec<_> =
            resolver.paths(a).iter().map(|path| path.to_str().unwrap().to_owned()).collect();
        let seen: Vec<_> = seen.iter().map(String::as_str).collect();
        assert!([&["a"][..], &["a", "b"], &["b"]].contains(&&seen[..]), "{seen:?}");
        changer.join().unwrap();
        assert_eq!(path(&resolver, a).unwrap(), "b");
        settle(&resolver);
    });
}

/// Two threads look one new name up.
///
/// Bad: two nodes, or one count.
#[test]
fn two_lookups_make_one_node() {
    run_model("two_lookups_make_one_node", || {
        let resolver = Resolver::new(());
        let other = {
            let resolver = resolver.clone();
            thread::spawn(move || file(&resolver, Inode::ROOT, "a"))
        };
        let mine = file(&resolver, Inode::ROOT, "a");
        assert_eq!(other.join().unwrap(), mine);
        assert_eq!(resolver.lookup_count(mine), Some(2));
        settle(&resolver);
    });
}

/// Two threads make nodes whose slots are in a segment that isn't there yet.
///
/// Bad: one thread's segment is lost with what was written into it.
#[test]
fn table_growth() {
    run_model("table_growth", || {
        let resolver = Resolver::new(());
        let other = {
            let resolver = resolver.clone();
            thread::spawn(move || file(&resolver, Inode::ROOT, "a"))
        };
        let b = file(&resolver, Inode::ROOT, "b");
        let a = other.join().unwrap();
        assert_eq!(path(&resolver, a).unwrap(), "a");
        assert_eq!(path(&resolver, b).unwrap(), "b");
        settle(&resolver);
    });
}

/// A name is removed and made anew while it is looked up.
///
/// Bad: the lookup answers a node that has no name, or counts one that nobody finds.
#[test]
fn lookup_against_unlink() {
    run_model("lookup_against_unlink", || {
        let resolver = Resolver::new(());
        let old = file(&resolver, Inode::ROOT, "a");
        let remover = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                assert_eq!(resolver.unlink(Inode::ROOT, name("a")).unwrap(), Some(old));
            })
        };
        let found = resolver.lookup(Inode::ROOT, name("a"), Kind::Leaf, ()).unwrap();
        remover.join().unwrap();
        if found == old {
            assert_eq!(path(&resolver, found), Err(PathError::Unlinked(found)));
            assert_eq!(resolver.lookup_count(found), Some(2));
        } else {
            assert_eq!(path(&resolver, found).unwrap(), "a");
        }
        settle(&resolver);
    });
}

/// A thread ends and another takes over its number, and with it its counters.
///
/// Bad: the new owner starts from counters that it sees as they were earlier, and a count is lost.
#[test]
fn thread_exit_and_slot_reuse() {
    run_model("thread_exit_and_slot_reuse", || {
        let resolver = Resolver::new(());
        let inode = file(&resolver, Inode::ROOT, "a");
        let pins: Vec<_> = (0..2)
            .map(|_| {
                let resolver = resolver.clone();
                thread::spawn(move || {
                    let pin = resolver.pin();
                    pinpath::end_thread();
                    pin
                })
            })
            .collect();
        resolver.forget(inode, 1);
        let pins: Vec<_> = pins.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(resolver.stats().pins, 2);
        drop(pins);
        assert_eq!(resolver.stats().pins, 0);
        settle(&resolver);
        assert_eq!(resolver.stats().nodes, 1);
    });
}

/// The kernel forgets all it knows of a file that gets one more name at the same time.
///
/// Bad: the lookup that the new name counts is there before the name. Who forgets takes it back, and
/// looks up the names: only then does the new one come, and nothing is counted for it.
#[test]
fn count_of_a_new_name_against_forget() {
    run_model("count_of_a_new_name_against_forget", || {
        let resolver = Resolver::new(());
        let inode = file(&resolver, Inode::ROOT, "a");
        let pin = resolver.pin();
        let forgetter = {
            let resolver = resolver.clone();
            thread::spawn(move || {
                resolver.forget(inode, u64::MAX);
                resolver.paths(inode).len()
            })
        };
        resolver.link(inode, Inode::ROOT, name("b")).unwrap();
        let names = forgetter.join().unwrap();
        let counted = resolver.lookup_count(inode);
        assert!(names == 2 || counted == Some(1), "{names} names seen, {counted:?} counted");
        drop(pin);
    });
}
