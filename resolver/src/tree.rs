//! [`Tree`]: one word that says whether directories are where they were.
//!
//! The word holds a version and the number of directories that transactions have marked as moving.
//!
//! * A change of a directory's name or place makes the version odd, swaps the links, and makes it
//!   even again. Such changes are serialised by a mutex that no reader touches.
//! * A reader that walks up accepts its walk if the version was the same before and after. An odd
//!   version is allowed: within one version at most one change can have taken effect.
//! * A path may be kept with the word it was built under only while the word is *settled* (version
//!   even, nothing moving), and may be used only while the word is still that. So the comparison
//!   also sends a lease past the cache as soon as a directory is marked.

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// A million directories may move at once, and 2^43 changes pass before a version comes again.
const MOVING_BITS: u32 = 20;
const MOVING_MASK: u64 = (1 << MOVING_BITS) - 1;
const VERSION: u64 = 1 << MOVING_BITS;

/// The tree's word as it was at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeState(u64);

impl TreeState {
    /// That of a new tree.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) const NEW: TreeState = TreeState(0);

    pub(crate) fn same_version(self, other: TreeState) -> bool {
        self.0 & !MOVING_MASK == other.0 & !MOVING_MASK
    }

    /// Is any directory marked as moving?
    pub(crate) fn moving(self) -> bool {
        self.0 & MOVING_MASK != 0
    }

    /// No change in progress and nothing marked: paths may be kept for this word.
    pub(crate) fn settled(self) -> bool {
        self.0 & (VERSION | MOVING_MASK) == 0
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    word: crossbeam_utils::CachePadded<AtomicU64>,
    changes: Mutex<()>,
}

/// The right to change where directories are.
#[derive(Debug)]
pub(crate) struct TreeLock<'a> {
    tree: &'a Tree,
    _changes: MutexGuard<'a, ()>,
}

impl Tree {
    #[inline]
    pub(crate) fn state(&self) -> TreeState {
        // Acquire: pairs with the Release in `TreeLock::change`. A reader that sees a version sees
        // the links that were swapped before it.
        TreeState(self.word.load(Ordering::Acquire))
    }

    /// The state after a walk; `before` must be compared with it.
    #[inline]
    pub(crate) fn state_after_reading(&self) -> TreeState {
        // The fence keeps the walk's loads before this one. It pairs with the Release fence in
        // `change`: a walk that read a link swapped in a change sees that change's odd version (or a
        // later one). Weaker: a path made of two states is accepted.
        crate::sync::fence(Ordering::Acquire);
        TreeState(self.word.load(Ordering::Relaxed))
    }

    /// A directory is about to be marked as moving.
    pub(crate) fn begin_moving(&self) {
        // Relaxed: the transaction's heavy fence comes between this and its look at the leases.
        self.word.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_moving(&self) {
        // Release: the marks are gone before the caches are used again.
        self.word.fetch_sub(1, Ordering::Release);
    }

    pub(crate) fn lock(&self) -> TreeLock<'_> {
        TreeLock { tree: self, _changes: self.changes.lock() }
    }
}

impl TreeLock<'_> {
    /// Runs `swap`, which gives directories other links, as one change.
    pub(crate) fn change(&self, swap: impl FnOnce()) {
        // Additions, because the number of moving directories may change meanwhile. Relaxed and a
        // Release fence: the odd version comes before the swap for whoever sees the swap.
        self.tree.word.fetch_add(VERSION, Ordering::Relaxed);
        crate::sync::fence(Ordering::Release);
        swap();
        // Release: whoever sees the even version sees the swap.
        self.tree.word.fetch_add(VERSION, Ordering::Release);
    }
}
