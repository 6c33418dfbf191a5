//! An allocator that counts, and what an inode costs by its count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use pinpath::Inode;

use crate::peers::{Ours, Table};
use crate::tree;

/// The system's allocator, counted. To be made the global one of a program.
#[derive(Debug)]
pub struct Counting;

static CHUNKS: AtomicUsize = AtomicUsize::new(0);

/// What glibc's malloc takes for an allocation: a word of its own, in steps of 16, 32 at least. (What
/// it takes for a large one is rounded to pages, which does not matter here.)
fn chunk(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CHUNKS.fetch_add(chunk(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CHUNKS.fetch_sub(chunk(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        CHUNKS.fetch_add(chunk(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CHUNKS.fetch_add(chunk(size), Ordering::Relaxed);
        CHUNKS.fetch_sub(chunk(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Bytes that are allocated now, with what malloc adds. 0 where `Counting` is not the allocator.
pub fn allocated() -> usize {
    CHUNKS.load(Ordering::Relaxed)
}

/// Bytes for each of so many files with names of 16 bytes, directories included.
pub fn per_inode<T: Table>(files: usize) -> f64 {
    let before = allocated();
    let table = T::new();
    drop(tree::build(&table, files, 3));
    let after = allocated();
    drop(table);
    (after - before) as f64 / files as f64
}

/// The same with every file's path kept.
pub fn per_inode_with_path(files: usize) -> f64 {
    let before = allocated();
    let options = pinpath::Options { path_cache_bytes: usize::MAX };
    let table = Ours(pinpath::Resolver::with_options((), options));
    for file in tree::build(&table, files, 3) {
        table.0.with_path(Inode::from_raw(file), |_| ()).expect("known");
    }
    let kept = table.0.stats().path_cache_bytes;
    // 16 bytes of a name twice, and the slash between: each of them is kept.
    assert!(kept > files * 50, "{kept} bytes of kept paths are too few for {files} files");
    let after = allocated();
    drop(table);
    (after - before) as f64 / files as f64
}
