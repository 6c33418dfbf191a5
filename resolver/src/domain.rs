//! [`Domain`]: the per-thread slots in which requests count themselves and leases are published.
//!
//! A request pin must be able to end on another thread than it began on, so it can't be a flag of a
//! thread. As in Linux's sleepable RCU (kernel/rcu/srcutree.c) it is a pair of counters per thread
//! and parity, *entered* and *exited*; a pin is counted in the slot of the thread that begins it and
//! counted out in the slot of the thread that ends it. Only the sums mean something.
//!
//! Invariants:
//! 1. `entered`, `exited` and the *taking* of cells of a slot are written by the thread that has the
//!    slot's number, and by no other. So they are plain loads and stores. (A cell is *emptied* by
//!    whichever thread drops the lease.)
//! 2. A slot is reachable from the domain before anything is written to it.
//! 3. Slots are never freed, and a domain isn't either: it is used again by a later resolver. What
//!    an earlier one left counted in it only delays the later one's reclamation.

use crossbeam_utils::CachePadded;

use crate::fence::Fences;
pub(crate) use crate::graves::Grave;
use crate::graves::Graves;
use crate::own_slot::with_slot;
use crate::segments::{Segments, Zeroed};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use crate::threads;

/// Cells that a thread has without asking for more: one cache line.
const CELLS: usize = if cfg!(loom) { 1 } else { 8 };
/// Cells of each further block, for a thread that begins many leases which end elsewhere.
const MORE_CELLS: usize = if cfg!(loom) { 2 } else { 31 };

/// Where a lease publishes its inode; 0 is empty.
pub(crate) type Cell = AtomicU64;

#[derive(Debug, Default)]
pub(crate) struct Slot {
    counts: CachePadded<Counts>,
    cells: CachePadded<[Cell; CELLS]>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    entered: [AtomicU64; 2],
    exited: [AtomicU64; 2],
    /// More cells, a list that only grows.
    more: AtomicPtr<Block>,
}

#[derive(Debug, Default)]
struct Block {
    cells: [Cell; MORE_CELLS],
    next: AtomicPtr<Block>,
}

// SAFETY: counters and cells of zero, and a null pointer, are what `Default` gives; padding is padding.
unsafe impl Zeroed for Slot {}

#[derive(Debug)]
pub(crate) struct Domain {
    fences: Fences,
    /// The parity that new pins count in is its lowest bit.
    current: CachePadded<AtomicUsize>,
    /// How many transactions wait for leases to end. Read when a lease ends.
    waiting: CachePadded<AtomicUsize>,
    /// What anchors left to their last requests. Read when a request ends.
    graves: Graves,
    /// 1 once so much waits to be reclaimed that requests should try to advance.
    pressing: CachePadded<AtomicUsize>,
    slots: Segments<Slot>,
}

impl Domain {
    pub(crate) fn new() -> Self {
        Domain {
            fences: Fences::detect(),
            current: CachePadded::new(AtomicUsize::new(0)),
            waiting: CachePadded::new(AtomicUsize::new(0)),
            graves: Graves::default(),
            pressing: CachePadded::new(AtomicUsize::new(0)),
            slots: Segments::new(),
        }
    }

    pub(crate) fn fences(&self) -> Fences {
        self.fences
    }

    /// Counts a request in and answers the parity under which to count it out.
    #[inline]
    pub(crate) fn enter(&'static self) -> usize {
        with_slot(self, |slot| self.enter_in(&slot.counts))
    }

    /// The same where the calling thread's counters are known.
    #[inline(always)]
    pub(crate) fn enter_in(&self, counts: &Counts) -> usize {
        // Relaxed: a stale parity is allowed. `drained` looks at both parities after a node
        // was retired, so it sees this pin wherever it counts itself.
        let parity = self.current.load(Ordering::Relaxed) & 1;
        increment(&counts.entered[parity], Ordering::Relaxed);
        // Pairs with the heavy fence in `drained`: either `drained` sees the count above and
        // waits, or what this request reads next is not older than what was true when
        // `drained` was called. Weaker: a node is reclaimed under a request that found it.
        self.fences.light();
        parity
    }

    /// Counts a request out. May run on any thread.
    #[inline]
    pub(crate) fn exit(&'static self, parity: usize) {
        with_slot(self, |slot| self.exit_in(&slot.counts, parity));
        // Pairs with the heavy fence in `bury`: either it sees the count above, or we see the grave.
        // Weaker: nobody drops the value.
        self.fences.light();
        if self.graves.open() {
            self.graves.close_drained(|parity| self.drained(parity));
        }
    }

    /// The count alone, where the calling thread's counters are known; the epochs have no graves.
    #[inline(always)]
    pub(crate) fn exit_in(&self, counts: &Counts, parity: usize) {
        // Release: pairs with the Acquire in `drained`. All that the request read happened
        // before its nodes are reclaimed, and `drained`, which sees this, sees the count of
        // `enter` too. Weaker: reclaimed while still being read; exits without entries.
        increment(&counts.exited[parity & 1], Ordering::Release);
    }

    /// Should a request try to advance reclamation?
    #[inline]
    pub(crate) fn pressing(&self) -> bool {
        // Relaxed here and below: a hint when to try, which publishes nothing.
        self.pressing.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn press(&self, now: bool) {
        self.pressing.store(usize::from(now), Ordering::Relaxed);
    }

    /// Drops a value once all requests have ended that were counted in before this was called: now,
    /// or when the last of them ends, on its thread.
    pub(crate) fn bury(&self, grave: Grave) {
        self.graves.dig(grave);
        self.fences.heavy();
        self.graves.close_drained(|parity| self.drained(parity));
    }

    /// The slot of the thread that has this number.
    #[inline]
    pub(crate) fn slot(&self, number: usize) -> &Slot {
        self.slots.get_or_grow(number)
    }

    /// The counters of the thread that has this number.
    #[inline]
    pub(crate) fn counts(&self, number: usize) -> &Counts {
        &self.slot(number).counts
    }

    /// Has the calling thread counted in more than it has counted out? Means something only where
    /// what begins on a thread ends there.
    pub(crate) fn thread_is_inside(&self) -> bool {
        threads::with_number(|number| {
            let counts = self.counts(number);
            // Relaxed: only this thread writes them.
            let sum = |counters: &[AtomicU64; 2]| {
                counters[0]
                    .load(Ordering::Relaxed)
                    .wrapping_add(counters[1].load(Ordering::Relaxed))
            };
            sum(&counts.entered) != sum(&counts.exited)
        })
    }

    /// Have all requests of this parity ended that were counted in before this was called?
    ///
    /// New ones may come meanwhile where the parity is still current; they only turn the answer
    /// into no.
    pub(crate) fn drained(&self, parity: usize) -> bool {
        // A first look without a fence: nearly always enough to see that the answer is no.
        if self.sum(|counts| &counts.exited[parity]) != self.sum(|counts| &counts.entered[parity]) {
            return false;
        }
        // Exits first, entries after. The other order could count the exit of a request that
        // entered after the entries were summed up, in place of one that is still inside.
        let exited = self.sum(|counts| &counts.exited[parity]);
        self.fences.heavy();
        let entered = self.sum(|counts| &counts.entered[parity]);
        exited == entered
    }

    /// The parity that is not current: new requests don't count in it, but for stragglers.
    pub(crate) fn idle_parity(&self) -> usize {
        (self.current.load(Ordering::Relaxed) + 1) & 1
    }

    /// Makes the other parity current. Only the one reclaimer calls this (under its lock).
    pub(crate) fn flip(&self) {
        // Relaxed: a request that still reads the old parity is a straggler, which `enter` allows.
        self.current.store(self.current.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn sum<'a>(&'a self, counter: impl Fn(&'a Counts) -> &'a AtomicU64) -> u64 {
        self.slots
            .iter()
            .map(|slot| counter(&slot.counts).load(Ordering::Acquire))
            .fold(0, u64::wrapping_add)
    }

    /// Publishes `value` in an empty cell of this thread and answers the cell.
    ///
    /// What the caller reads after this, and what a transaction published before its heavy fence,
    /// see each other (one of the two at least).
    #[inline]
    pub(crate) fn publish(&'static self, value: u64) -> &'static Cell {
        debug_assert_ne!(value, 0);
        with_slot(self, |slot| {
            let cell = empty(&slot.cells[..]).unwrap_or_else(|| more_cells(&slot.counts.more));
            // Relaxed, with the light fence after it: pairs with the heavy fence of a transaction
            // (`transaction.rs`). Either it finds this cell, or the lease finds its mark.
            cell.store(value, Ordering::Relaxed);
            self.fences.light();
            cell
        })
    }

    /// Empties a cell. True if a transaction waits for leases to end and must be told.
    #[inline]
    #[must_use]
    pub(crate) fn unpublish(&self, cell: &Cell) -> bool {
        // Release: pairs with the Acquire in `for_each_published` and in `empty`; what was done
        // under the lease happened before the transaction goes on, and before the cell's next use.
        cell.store(0, Ordering::Release);
        // Pairs with the heavy fence between `begin_waiting` and the look through the cells:
        // either the transaction sees the cell empty or we see that it waits. Weaker: it sleeps on.
        self.fences.light();
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// From now on `unpublish` says that somebody waits. A heavy fence must follow.
    pub(crate) fn begin_waiting(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_waiting(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Shows every published value with its cell.
    pub(crate) fn for_each_published(&self, mut f: impl FnMut(u64, &Cell)) {
        let mut show = |cells: &[Cell]| {
            for cell in cells {
                let value = cell.load(Ordering::Acquire);
                if value != 0 {
                    f(value, cell);
                }
            }
        };
        for slot in self.slots.iter() {
            show(&slot.cells[..]);
            let mut block = slot.counts.more.load(Ordering::Acquire);
            // SAFETY: blocks are published whole (Release in `more_cells`) and freed only when the
            // domain is dropped, which needs it unborrowed.
            while let Some(more) = unsafe { block.as_ref() } {
                show(&more.cells);
                block = more.next.load(Ordering::Acquire);
            }
        }
    }

    /// How many leases are held, for statistics.
    pub(crate) fn published(&self) -> usize {
        let mut count = 0;
        self.for_each_published(|_, _| count += 1);
        count
    }

    /// How many requests are counted in and not yet out, for statistics; exact when nothing moves.
    pub(crate) fn inside(&self) -> u64 {
        (0..2)
            .map(|parity| {
                let exited = self.sum(|counts| &counts.exited[parity]);
                self.sum(|counts| &counts.entered[parity]).wrapping_sub(exited)
            })
            .sum()
    }
}

/// How far a batch of what was retired has come: both parities must have been seen drained since it
/// was taken. One is not enough: a request may have read the current parity, been delayed, and
/// counted itself in the old one after that was seen drained.
#[derive(Debug, Default)]
pub(crate) struct GracePeriod {
    /// The idle parity was seen drained, and the parity flipped.
    flipped: bool,
}

impl GracePeriod {
    /// Goes on as far as it can now. Only one thread at a time does this to a domain.
    pub(crate) fn over(&mut self, domain: &Domain) -> bool {
        if !self.flipped {
            if !domain.drained(domain.idle_parity()) {
                return false;
            }
            domain.flip();
            self.flipped = true;
        }
        domain.drained(domain.idle_parity())
    }
}

/// One more, by the counter's only writer.
#[inline(always)]
fn increment(counter: &AtomicU64, order: Ordering) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), order);
}

#[inline(always)]
fn empty(cells: &[Cell]) -> Option<&Cell> {
    // Acquire: pairs with the Release in `unpublish` (see there).
    cells.iter().find(|cell| cell.load(Ordering::Acquire) == 0)
}

/// An empty cell of the list, which grows by a block if all are taken.
#[cold]
fn more_cells(list: &AtomicPtr<Block>) -> &Cell {
    let mut link = list;
    loop {
        let block = link.load(Ordering::Relaxed);
        if block.is_null() {
            // Release: the block is whole before the transaction's walk can reach it.
            link.store(Box::into_raw(Box::new(Block::default())), Ordering::Release);
            continue;
        }
        // SAFETY: only this thread appends (invariant 1), and nobody frees while the domain lives.
        let block = unsafe { &*block };
        if let Some(cell) = empty(&block.cells) {
            return cell;
        }
        link = &block.next;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut block = self.counts.more.load(Ordering::Relaxed);
        while !block.is_null() {
            // SAFETY: made by `Box::into_raw` in `more_cells`, reached once, and nobody else is
            // here: we have `&mut self`.
            let more = unsafe { Box::from_raw(block) };
            block = more.next.load(Ordering::Relaxed);
        }
    }
}

/// The domains of the process: taken by a resolver when it is made, given back when it is dropped.
///
/// A pin holds a `&'static Domain` and so needs no count of references, whose line every request
/// would write to. The price is that as many domains stay as there ever were resolvers at a time.
pub(crate) mod pool {
    use super::Domain;

    #[cfg(not(any(loom, shuttle)))]
    static IDLE: crate::sync::Mutex<Vec<&'static Domain>> =
        crate::sync::Mutex::constant(Vec::new());

    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn take() -> &'static Domain {
        let idle = IDLE.lock().pop();
        idle.unwrap_or_else(|| Box::leak(Box::new(Domain::new())))
    }

    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn give_back(domain: &'static Domain) {
        IDLE.lock().push(domain);
    }

    /// Under loom nothing outlives a run of the model: each resolver has a domain of its own, and
    /// the memory is leaked.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn take() -> &'static Domain {
        Box::leak(Box::new(Domain::new()))
    }

    #[cfg(any(loom, shuttle))]
    pub(crate) fn give_back(_domain: &'static Domain) {}
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_its_parity_from_draining() {
        let domain: &'static Domain = Box::leak(Box::new(Domain::new()));
        let parity = domain.enter();
        assert!(!domain.drained(parity));
        domain.flip();
        assert!(!domain.drained(parity));
        domain.exit(parity);
        assert!(domain.drained(0) && domain.drained(1));
    }

    #[test]
    fn a_request_may_end_on_another_thread() {
        let domain: &'static Domain = Box::leak(Box::new(Domain::new()));
        let parity = domain.enter();
        std::thread::scope(|scope| {
            scope.spawn(|| domain.exit(parity));
        });
        assert!(domain.drained(parity));
        assert_eq!(domain.inside(), 0);
    }

    #[test]
    fn cells_grow_with_the_leases_in_flight_and_are_used_again() {
        let domain: &'static Domain = Box::leak(Box::new(Domain::new()));
        let cells: Vec<_> = (1..=100).map(|value| domain.publish(value)).collect();
        let mut seen = Vec::new();
        domain.for_each_published(|value, _| seen.push(value));
        seen.sort_unstable();
        assert_eq!(seen, (1..=100).collect::<Vec<u64>>());
        let first = std::ptr::from_ref(cells[0]);
        for cell in cells {
            assert!(!domain.unpublish(cell));
        }
        assert!(std::ptr::eq(domain.publish(7), first));
    }
}
