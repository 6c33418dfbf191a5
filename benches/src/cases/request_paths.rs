//! The ways that requests take: an inode is resolved, and a fresh name is looked up and forgotten.
//!
//! The second benchmark of easy_fuser, `benchmark_request_paths`. Fresh names, because that is what a
//! listing of a large tree or a build brings; all in one directory and all different, so that threads
//! meet in the structures and not at a name. Each lookup and each forget is a request of its own.

use std::ffi::OsString;
use std::hint::black_box;
use std::sync::Arc;

use pinpath::{Counting, Inode, Kind, Name};

use crate::alternate::Case;
use crate::peers::{Dash, EasyFuser, HashMaps, Ours, Table};
use crate::threads;

/// The most names a thread and sample: they are made before the time is taken.
pub const MOST: u64 = 50_000;

/// One lookup and one forget of a name that was not there before; one operation is the pair.
pub fn lookup_and_forget() -> Vec<Case> {
    fn case<T: Table>() -> Case {
        let table = Arc::new(T::new());
        Case::new(format!("{} lookup and forget", T::name()), move |threads, iterations| {
            let table = &table;
            threads::time(threads, iterations, |thread| {
                let names: Vec<OsString> =
                    (0..iterations).map(|index| format!("file-{thread}-{index}").into()).collect();
                move |index| {
                    let guard = table.enter();
                    let inode = table.lookup(1, &names[index as usize], false);
                    drop(guard);
                    let guard = table.enter();
                    table.forget(inode);
                    drop(guard);
                }
            })
        })
    }
    vec![case::<Ours>(), case::<EasyFuser>(), case::<HashMaps>(), case::<Dash>()]
}

/// A directory of a hundred known names listed with their inodes, and all of it forgotten, as when the
/// kernel drops what a listing brought: at once, and name by name. One operation is the hundred.
pub fn listing() -> Vec<Case> {
    const ENTRIES: usize = 100;
    fn names() -> Vec<OsString> {
        (0..ENTRIES).map(crate::tree::name).collect()
    }
    let (batch, single) = (Ours::new(), Ours::new());
    for table in [&batch, &single] {
        names().iter().for_each(|name| {
            table.lookup(1, name, false);
        });
    }
    let (names_batch, names_single) = (names(), names());
    vec![
        Case::of("at once", move || {
            let entries = names_batch
                .iter()
                .map(|name| (Name::from_os_str(name).expect("a name"), Kind::Leaf, ()));
            let listed = batch.0.list(Inode::ROOT, entries, Counting::Counted).expect("the root");
            batch.0.forget_batch(listed.into_iter().flatten().map(|inode| (inode, 1)));
        }),
        Case::of("name by name", move || {
            let inodes: Vec<u64> =
                names_single.iter().map(|name| single.lookup(1, name, false)).collect();
            inodes.into_iter().for_each(|inode| single.forget(inode));
        }),
    ]
}

/// The path of a file in the root, guarded.
pub fn resolve() -> Vec<Case> {
    fn case<T: Table>() -> Case {
        let table = T::new();
        let file = table.lookup(1, "stable".as_ref(), false);
        Case::of(format!("{} resolve", T::name()), move || {
            let guard = table.enter();
            drop(black_box(table.path(black_box(file))));
            drop(guard);
        })
    }
    vec![case::<Ours>(), case::<EasyFuser>(), case::<HashMaps>(), case::<Dash>()]
}
