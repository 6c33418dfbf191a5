//! [`PathCache`]: a path that was built for a link, and the state of the tree under which it is true.
//!
//! Immutable, one allocation, replaced whole. It is kept at the link, so a rename of the node itself
//! drops it with the link. Changes above it are seen by comparing `tree` with the tree's state
//! (`tree.rs`), which every change of a directory's place advances.

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
