//! What does it cost to keep a mapping alive and turn an inode into a path?
//!
//! The file is `alpha/beta/file`, three components, as in easy_fuser's `benchmark_id_resolution_costs`, for
//! which the figures are known that this project began with. *Guarded* is with a request begun and
//! ended around each operation, *unguarded* is the same operation alone.

use std::ffi::OsStr;
use std::hint::black_box;
use std::sync::Arc;

use pinpath::Inode;

use crate::alternate::Case;
use crate::peers::{Dash, EasyFuser, HashMaps, Ours, Table};

/// `alpha/beta/file` in a new table.
fn with_file<T: Table>() -> (Arc<T>, u64) {
    let table = T::new();
    let alpha = table.lookup(1, OsStr::new("alpha"), true);
    let beta = table.lookup(alpha, OsStr::new("beta"), true);
    let file = table.lookup(beta, OsStr::new("file"), false);
    (Arc::new(table), file)
}

/// A case of an operation on the file, guarded or not.
fn case<T: Table, R>(
    name: &str,
    guarded: bool,
    operation: impl Fn(&T, u64) -> R + Sync + 'static,
) -> Case {
    let (table, file) = with_file::<T>();
    let what = if guarded { "guarded" } else { "unguarded" };
    let name = format!("{} {name}, {what}", T::name());
    if guarded {
        Case::of(name, move || {
            let guard = table.enter();
            drop(black_box(operation(&table, black_box(file))));
            drop(guard);
        })
    } else {
        Case::of(name, move || drop(black_box(operation(&table, black_box(file)))))
    }
}

/// A pin, or what the peers have in its place, begun and dropped.
pub fn alone() -> Vec<Case> {
    let (ours, _) = with_file::<Ours>();
    let (easy_fuser, _) = with_file::<EasyFuser>();
    vec![
        Case::of("pinpath pin", move || drop(black_box(ours.enter()))),
        Case::of("crossbeam-epoch pin", || drop(black_box(crossbeam_epoch::pin()))),
        Case::of("easy_fuser guard", move || drop(black_box(easy_fuser.enter()))),
    ]
}

/// An owned path.
pub fn owned() -> Vec<Case> {
    vec![
        case("PathBuf", true, Ours::path),
        case("PathBuf", false, Ours::path),
        case("PathBuf", true, EasyFuser::path),
        case("PathBuf", false, EasyFuser::path),
        case("PathBuf", false, HashMaps::path),
        case("PathBuf", false, Dash::path),
        // What any of them pays at least: the memory of the answer, and its bytes.
        Case::of("allocate and copy 15 bytes", || {
            drop(black_box(std::path::PathBuf::from(black_box("alpha/beta/file"))));
        }),
    ]
}

/// A path that is lent: copied nowhere, or into a buffer that is there.
pub fn borrowed() -> Vec<Case> {
    fn length(table: &Ours, file: u64) -> usize {
        table.0.with_path(Inode::from_raw(file), |path| path.as_os_str().len()).expect("known")
    }
    vec![
        case("borrowed path", true, length),
        case("borrowed path", false, length),
        case("PathBuf", true, EasyFuser::path),
    ]
}

/// A list of components.
pub fn components() -> Vec<Case> {
    fn ours(table: &Ours, file: u64) -> Vec<std::ffi::OsString> {
        table.0.parts_paths(Inode::from_raw(file)).swap_remove(0)
    }
    vec![
        case("components", true, ours),
        case("components", false, ours),
        case("components", true, EasyFuser::components),
        case("components", false, EasyFuser::components),
    ]
}

/// All paths of a file that has one name, by way of an owned handle.
pub fn paths() -> Vec<Case> {
    let (table, file) = with_file::<Ours>();
    let ours = table.0.mapped(Inode::from_raw(file));
    let (peer, peer_file) = with_file::<EasyFuser>();
    let (parts, peer_parts) = (ours.clone(), Arc::clone(&peer));
    vec![
        Case::of("pinpath paths()", move || drop(black_box(ours.paths()))),
        Case::of("easy_fuser paths()", move || drop(black_box(peer.paths(peer_file)))),
        Case::of("pinpath parts_paths()", move || drop(black_box(parts.parts_paths()))),
        Case::of("easy_fuser parts_paths()", move || {
            drop(black_box(peer_parts.parts_paths(peer_file)));
        }),
    ]
}

/// Making the owned handle.
pub fn mapped() -> Vec<Case> {
    vec![
        case("MappedInode", true, |table: &Ours, file| table.0.mapped(Inode::from_raw(file))),
        case("MappedInode", false, |table: &Ours, file| table.0.mapped(Inode::from_raw(file))),
        case("MappedInode", true, |table: &EasyFuser, file| black_box(table.mapped(file)).0),
        case("MappedInode", false, |table: &EasyFuser, file| black_box(table.mapped(file)).0),
    ]
}
