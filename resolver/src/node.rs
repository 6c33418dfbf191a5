//! [`Node`]: one slot of the table.
//!
//! A slot holds one node after the other. Its generation says which; it is advanced when a node is
//! reclaimed, *before* the slot is given to the next one. So a reader that holds an id reads the
//! generation, then what it came for, then the generation again: if both are the id's, what it read
//! belongs to its node.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::change::Intent;
use crate::inode::Inode;
use crate::link::{Link, Links};
use crate::segments::Zeroed;
use crate::state::{Snapshot, State};
use crate::sync::{AtomicPtr, AtomicU32, Ordering, epoch};

pub(crate) struct Node<D> {
    pub(crate) state: State,
    /// A [`Links`] word.
    links: AtomicPtr<()>,
    generation: AtomicU32,
    /// How many links name this node as their parent.
    pub(crate) children: AtomicU32,
    /// The filesystem's own; initialised while the slot holds a node, and until an epoch later.
    data: UnsafeCell<MaybeUninit<D>>,
}

// SAFETY: `data` is written only by who owns the slot exclusively (`init`, `drop_data`), and read
// through shared references only in between; `D` is `Send + Sync` wherever a resolver is made.
unsafe impl<D: Send + Sync> Sync for Node<D> {}

// SAFETY: zero bytes are an empty state, no links, generation 0, no children, and uninitialised
// data, as in `Default`.
unsafe impl<D> Zeroed for Node<D> {}

impl<D> Default for Node<D> {
    fn default() -> Self {
        Node {
            state: State::default(),
            links: AtomicPtr::default(),
            generation: AtomicU32::default(),
            children: AtomicU32::default(),
            data: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

impl<D> Node<D> {
    /// The state, if the slot still holds the node with this id.
    #[inline]
    pub(crate) fn check(&self, inode: Inode) -> Option<Snapshot> {
        let state = self.state.load();
        (state.alive() && self.is(inode)).then_some(state)
    }

    /// Is the slot's generation that of this id?
    #[inline]
    pub(crate) fn is(&self, inode: Inode) -> bool {
        // Acquire: pairs with the Release in `retire`. Who sees the old generation under an epoch
        // guard keeps the old node's data and links from being freed.
        self.generation.load(Ordering::Acquire) == inode.generation()
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// The id of the node that the slot holds now.
    pub(crate) fn inode(&self, slot: u32) -> Inode {
        Inode::new(slot, self.generation())
    }

    /// The names that hold now: what stands in the node, or what an intent there decides.
    #[inline]
    pub(crate) fn links(&self, _guard: &epoch::Guard) -> Links {
        // Acquire: pairs with the Release in `set_links`; what the word points to is whole.
        let word = Links::from_raw(self.links.load(Ordering::Acquire));
        match word.as_intent::<Intent>() {
            None => word,
            // SAFETY: the intent is freed an epoch after it was replaced, and we hold a guard.
            Some(intent) => unsafe { (*intent).links() },
        }
    }

    /// Its only name, where it has exactly one and no change is under way. The link may be compared
    /// and not followed, unless an epoch guard is held.
    #[inline]
    pub(crate) fn single_link(&self) -> Option<Link> {
        Links::from_raw(self.links.load(Ordering::Acquire)).single()
    }

    /// Replaces the word. Only who holds the node's lock, or owns the node, calls this.
    pub(crate) fn set_links(&self, links: Links) {
        self.links.store(links.raw(), Ordering::Release);
    }

    /// Fills a free slot that the caller owns. The node is reachable once a link to it is published.
    pub(crate) fn init(&self, data: D) {
        // SAFETY: the slot is free and the caller's, so nobody reads or writes it.
        unsafe { (*self.data.get()).write(data) };
        self.children.store(0, Ordering::Relaxed);
    }

    /// The filesystem's own.
    ///
    /// # Safety
    /// The slot holds a node, and its data can't be dropped while the reference is used: an epoch guard is held
    /// since before `is` or `check` was true of it, or a lock under which it can't be reclaimed.
    pub(crate) unsafe fn data(&self) -> &D {
        // SAFETY: the caller's promise.
        unsafe { (*self.data.get()).assume_init_ref() }
    }

    /// The node is dead: ids of it are stale from now on. False if the slot can't be used again,
    /// because its generations are used up.
    #[must_use]
    pub(crate) fn retire(&self) -> bool {
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        // Release: pairs with the Acquire in `is`.
        self.generation.store(next, Ordering::Release);
        next != 0
    }

    /// # Safety
    /// The slot held a node, no guard can see its data any more, and this is called once for it.
    pub(crate) unsafe fn drop_data(&self) {
        // SAFETY: the caller's promise.
        unsafe { (*self.data.get()).assume_init_drop() };
    }
}
