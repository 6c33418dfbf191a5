//! [`Table`]: the nodes, and which slots are free.
//!
//! From an inode to its node is an index into [`Segments`]: no hash, no lock. Free slots are kept in
//! several stacks, each with a lock of its own that only making and freeing nodes take; a thread
//! uses the stack of its number first. Slots 0 and 1 are not given out: 0 is no inode, 1 is the root.

use crossbeam_utils::CachePadded;

use crate::inode::Inode;
use crate::node::Node;
use crate::segments::Segments;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::threads;

/// A power of two.
const STACKS: usize = if cfg!(loom) { 1 } else { 16 };
/// Slots that a stack takes at a time when it is empty.
const BATCH: u64 = if cfg!(loom) { 1 } else { 32 };

pub(crate) const ROOT_SLOT: u32 = 1;

#[derive(Debug, Default)]
struct Stack {
    free: Vec<u32>,
    /// Nodes made less nodes that died here. Only the sum over all stacks means something.
    nodes: isize,
}

#[derive(Debug)]
pub(crate) struct Table<D> {
    nodes: Segments<Node<D>>,
    stacks: Box<[CachePadded<Mutex<Stack>>]>,
    /// The first slot that no stack has had yet.
    next: AtomicU64,
}

impl<D> Table<D> {
    pub(crate) fn new() -> Self {
        Table {
            nodes: Segments::new(),
            stacks: (0..STACKS).map(|_| CachePadded::new(Mutex::new(Stack::default()))).collect(),
            next: AtomicU64::new(u64::from(ROOT_SLOT) + 1),
        }
    }

    /// The slot that this inode is about, whoever is in it now.
    #[inline]
    pub(crate) fn slot_of(&self, inode: Inode) -> Option<&Node<D>> {
        self.nodes.get(inode.slot() as usize)
    }

    /// The node with this id, if it is alive at this moment.
    #[inline]
    pub(crate) fn get(&self, inode: Inode) -> Option<&Node<D>> {
        self.slot_of(inode).filter(|node| node.check(inode).is_some())
    }

    /// A slot that is known to be there: it came out of a link, or was taken.
    #[inline]
    pub(crate) fn slot(&self, slot: u32) -> &Node<D> {
        self.nodes.get_or_grow(slot as usize)
    }

    /// A free slot, the caller's own from now on; `None` when 2^32 are in use.
    pub(crate) fn take(&self) -> Option<u32> {
        threads::with_number(|number| {
            let own = number % STACKS;
            self.pop(own)
                .or_else(|| self.refill(own))
                .or_else(|| (0..STACKS).find_map(|other| self.pop(other)))
        })
    }

    fn pop(&self, stack: usize) -> Option<u32> {
        let mut stack = self.stacks[stack].lock();
        let slot = stack.free.pop()?;
        stack.nodes += 1;
        Some(slot)
    }

    /// Gives an empty stack slots and takes one of them. What became free on other threads comes
    /// before slots that were never used: where some threads only make nodes and others only free
    /// them, the table would grow for ever. Never holds two locks.
    #[cold]
    fn refill(&self, own: usize) -> Option<u32> {
        let mut others = (0..STACKS).filter(|stack| *stack != own);
        let mut slots =
            others.find_map(|stack| self.surplus(stack)).unwrap_or_else(|| self.unused());
        let slot = slots.pop()?;
        let mut stack = self.stacks[own].lock();
        stack.free.append(&mut slots);
        stack.nodes += 1;
        Some(slot)
    }

    /// Half of what is free in a stack that has plenty.
    fn surplus(&self, stack: usize) -> Option<Vec<u32>> {
        let free = &mut self.stacks[stack].lock().free;
        (free.len() >= 2 * BATCH as usize).then(|| free.split_off(free.len() / 2))
    }

    /// Slots that were never used; none when there are no more.
    fn unused(&self) -> Vec<u32> {
        let start = self.next.fetch_add(BATCH, Ordering::Relaxed);
        let end = (start + BATCH).min(u64::from(u32::MAX));
        if start >= end {
            self.next.fetch_sub(BATCH, Ordering::Relaxed);
            return Vec::new();
        }
        // Highest first, so that they are given out in ascending order.
        (start as u32..end as u32).rev().collect()
    }

    /// So many nodes have died. Their slots are given back later, when nobody sees them any more.
    pub(crate) fn count_dead(&self, nodes: usize) {
        threads::with_number(|number| {
            self.stacks[number % STACKS].lock().nodes -= nodes as isize;
        });
    }

    /// Slots that nobody can see any more.
    pub(crate) fn give_back(&self, slots: impl IntoIterator<Item = u32>) {
        threads::with_number(|number| self.stacks[number % STACKS].lock().free.extend(slots));
    }

    /// Nodes alive, the root not counted. Exact while nothing changes.
    pub(crate) fn nodes(&self) -> usize {
        let sum: isize = self.stacks.iter().map(|stack| stack.lock().nodes).sum();
        usize::try_from(sum).unwrap_or(0)
    }

    /// So many slots were given to stacks, the first being 0: at least one.
    pub(crate) fn slots(&self) -> usize {
        // Relaxed: a bound that may be old.
        usize::try_from(self.next.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Every slot that was ever taken.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Node<D>)> {
        self.nodes.iter().enumerate().map(|(slot, node)| (slot as u32, node))
    }

    pub(crate) fn bytes(&self) -> usize {
        let free: usize =
            self.stacks.iter().map(|stack| stack.lock().free.capacity() * size_of::<u32>()).sum();
        self.nodes.bytes() + free
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn slots_that_one_thread_frees_are_used_by_another() {
        let table = Table::<()>::new();
        let mut highest = 0;
        for _ in 0..50 {
            let taken: Vec<u32> = (0..10_000).filter_map(|_| table.take()).collect();
            assert_eq!(taken.len(), 10_000);
            highest = highest.max(*taken.iter().max().expect("slots"));
            std::thread::scope(|scope| scope.spawn(|| table.give_back(taken)).join())
                .expect("a thread");
        }
        assert!(highest < 30_000, "the table grows: {highest}");
    }
}
