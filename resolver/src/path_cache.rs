//! [`PathCache`]: a path that was built for a link, and the state of the tree under which it is true.
//!
//! Immutable, one allocation, replaced whole. It is kept at the link, so a rename of the node itself
//! drops it with the link. Changes above it are seen by comparing `tree` with the tree's state
//! (`tree.rs`), which every change of a directory's place advances.
//!
//! All kept paths together take at most as many bytes as the resolver's options say. When there is no
//! room for one more, a hand that goes round the table takes some out (`Shared::make_room`), whether
//! they are in use or not: readers write nothing, so nobody knows.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use crate::tree::TreeState;

#[repr(C)]
pub(crate) struct PathCache {
    /// The (settled) state of the tree for which the path was built.
    tree: TreeState,
    length: u32,
    // the bytes of the path follow
}

const BYTES: usize = std::mem::offset_of!(PathCache, length) + size_of::<u32>();

impl PathCache {
    fn layout(length: usize) -> Layout {
        Layout::from_size_align(BYTES + length, align_of::<PathCache>()).expect("a path fits")
    }

    /// Bytes that the cache of a path of this length takes.
    pub(crate) const fn bytes(length: usize) -> usize {
        BYTES + length
    }

    pub(crate) fn new(tree: TreeState, path: &[u8]) -> Option<*mut PathCache> {
        let length = u32::try_from(path.len()).ok()?;
        let layout = Self::layout(path.len());
        // SAFETY: the layout isn't empty.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let cache = memory.cast::<PathCache>();
        // SAFETY: freshly allocated with room for both fields and the path.
        unsafe {
            (&raw mut (*cache).tree).write(tree);
            (&raw mut (*cache).length).write(length);
            std::ptr::copy_nonoverlapping(path.as_ptr(), memory.add(BYTES), path.len());
        }
        Some(cache)
    }

    /// # Safety
    /// Not null, and not freed while `'a` lasts.
    pub(crate) unsafe fn read<'a>(cache: *const PathCache) -> (TreeState, &'a [u8]) {
        // SAFETY: the caller's promise; `length` bytes follow the fields. The slice is derived from
        // the pointer of the whole allocation.
        unsafe {
            let length = (*cache).length as usize;
            ((*cache).tree, std::slice::from_raw_parts(cache.cast::<u8>().add(BYTES), length))
        }
    }

    /// # Safety
    /// Made by `new`, and nobody else can see it any more.
    pub(crate) unsafe fn free(cache: *mut PathCache) {
        // SAFETY: the caller's promise; the layout is that of `new`.
        unsafe {
            let length = (*cache).length as usize;
            dealloc(cache.cast(), Self::layout(length));
        }
    }
}

/// Walks under one state of the tree, after which it is taken to stay a while.
#[cfg(not(any(loom, shuttle)))]
const CALM: u32 = 64;

/// Should a path be kept that was just built for this state of the tree?
///
/// Where directories are renamed without pause a kept path is outdated before it is used, and keeping
/// it costs more than the walk did. So each thread looks how long the states lasted that it has seen:
/// after one that was soon over it keeps nothing until another has lasted.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn worth_keeping(tree: TreeState) -> bool {
    use std::cell::Cell;

    #[derive(Clone, Copy)]
    struct Seen {
        state: TreeState,
        walks: u32,
        /// The state before lasted.
        calm: bool,
    }

    thread_local! {
        static LAST: Cell<Seen> =
            const { Cell::new(Seen { state: TreeState::NEW, walks: 0, calm: true }) };
    }
    let last = LAST.get();
    let now = if last.state == tree {
        Seen { walks: last.walks.saturating_add(1), ..last }
    } else {
        Seen { state: tree, walks: 1, calm: last.walks >= CALM }
    };
    LAST.set(now);
    now.calm || now.walks >= CALM
}

/// In the models everything is kept.
#[cfg(any(loom, shuttle))]
pub(crate) fn worth_keeping(_tree: TreeState) -> bool {
    true
}
