//! Grace periods of nanoseconds, for what is small and replaced often: sets of links, kept paths,
//! intents, freed slots.
//!
//! Who follows a pointer that others may replace holds a [`Guard`]; who replaced it *retires* what it
//! pointed to, which is freed once all guards have ended that were there then. The counting is that
//! of request pins ([`Domain`]), and so are its proof and its cost: two stores to the thread's own
//! line, and no fence but a compiler's. (An epoch that is published by a store and a full fence costs
//! four times that, which is more than the walk it protects.) Two things differ: a guard stays on its
//! thread, and there is one collector for the whole process (`global.rs`), so a guard finds its
//! counters without asking for a resolver's.
//!
//! Readers never free anything. Who retires does it when a guard ends under which enough was
//! retired, and holds none of the resolver's locks then.

#[cfg(not(any(loom, shuttle)))]
pub(crate) mod global;
#[cfg(any(loom, shuttle))]
pub(crate) mod model;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use crossbeam_utils::CachePadded;

use crate::domain::{Counts, Domain, GracePeriod};
use crate::sync::Mutex;
use crate::threads;

/// A power of two.
const STACKS: usize = if cfg!(loom) { 1 } else { 16 };
/// Pieces that wait in a stack before somebody tries to free them: a try costs two heavy fences,
/// which interrupt the other threads.
const ENOUGH: usize = if cfg!(loom) { 1 } else { 1024 };

/// Something to be freed, and how.
struct Garbage {
    pointer: *mut (),
    free: unsafe fn(*mut ()),
}

// SAFETY: who retires promises that it may be freed on any thread (`Guard::retire`).
unsafe impl Send for Garbage {}

#[derive(Debug)]
pub(crate) struct Collector {
    domain: Domain,
    stacks: Box<[CachePadded<Mutex<Vec<Garbage>>>]>,
    turn: Mutex<Turn>,
}

/// The batch that waits for its grace period.
#[derive(Debug, Default)]
struct Turn {
    batch: Vec<Garbage>,
    grace: GracePeriod,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Collector {
            domain: Domain::new(),
            stacks: (0..STACKS).map(|_| CachePadded::default()).collect(),
            turn: Mutex::new(Turn::default()),
        }
    }

    /// Begins a guard of the thread that has these counters, or of one that has to look for them.
    #[inline]
    pub(crate) fn pin<'c>(&'c self, counts: Option<&'c Counts>) -> Guard<'c> {
        let parity = match counts {
            Some(counts) => self.domain.enter_in(counts),
            None => threads::with_number(|number| self.domain.enter_in(self.domain.counts(number))),
        };
        Guard { collector: self, counts, parity, pressing: Cell::new(false), here: PhantomData }
    }

    /// The counters of the calling thread, whose number this is.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn counts(&self, number: usize) -> &Counts {
        self.domain.counts(number)
    }

    /// Answers whether enough waits now.
    fn push(&self, garbage: Garbage) -> bool {
        threads::with_number(|number| {
            let mut stack = self.stacks[number % STACKS].lock();
            stack.push(garbage);
            stack.len() >= ENOUGH
        })
    }

    /// Below another guard of this thread nothing can be freed, and locks may be held.
    #[cold]
    fn collect_unless_inside(&self) {
        if !self.domain.thread_is_inside() {
            self.collect();
        }
    }

    /// Frees what no guard can see any more. Never waits.
    #[cold]
    pub(crate) fn collect(&self) {
        // Freed without the lock: what is freed may be a filesystem's own, and call us.
        while let Some(batch) = self.ready() {
            for garbage in batch {
                // SAFETY: retired once, with this function, and its grace period is over.
                unsafe { (garbage.free)(garbage.pointer) };
            }
        }
    }

    /// Takes the batch as far through its grace period as it goes now.
    fn ready(&self) -> Option<Vec<Garbage>> {
        let mut turn = self.turn.try_lock()?;
        if turn.batch.is_empty() {
            for stack in &self.stacks {
                turn.batch.append(&mut stack.lock());
            }
            turn.grace = GracePeriod::default();
        }
        let ready = !turn.batch.is_empty() && turn.grace.over(&self.domain);
        ready.then(|| std::mem::take(&mut turn.batch))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let waiting = self.stacks.iter().map(|stack| std::mem::take(&mut *stack.lock()));
        let batch = std::mem::take(&mut self.turn.lock().batch);
        for garbage in waiting.flatten().chain(batch) {
            // SAFETY: retired once, with this function; guards borrow the collector, so none is left.
            unsafe { (garbage.free)(garbage.pointer) };
        }
    }
}

/// While it is held, nothing is freed that was retired after it began.
pub(crate) struct Guard<'c> {
    collector: &'c Collector,
    /// The thread's own counters, if it has a number of its own.
    counts: Option<&'c Counts>,
    parity: usize,
    /// Enough waits that it is worth a try to free it.
    pressing: Cell<bool>,
    /// Not to be sent: it ends in the counters in which it began.
    here: PhantomData<*mut ()>,
}

impl Guard<'_> {
    /// Calls `free` with the pointer, on some thread, once all guards have ended that are held now.
    ///
    /// # Safety
    /// Nobody who begins a guard from now on can find the pointer; it is retired once; and `free` may
    /// be called with it, on any thread.
    pub(crate) unsafe fn retire<T>(&self, pointer: *mut T, free: unsafe fn(*mut T)) {
        // SAFETY: a function of one thin pointer is called as one of another.
        let free = unsafe { std::mem::transmute::<unsafe fn(*mut T), unsafe fn(*mut ())>(free) };
        if self.collector.push(Garbage { pointer: pointer.cast(), free }) {
            self.pressing.set(true);
        }
    }

    /// The same with a closure.
    ///
    /// # Safety
    /// As `retire`: what it frees can't be found any more, and it may run on any thread.
    pub(crate) unsafe fn defer_unchecked<F: FnOnce()>(&self, f: F) {
        let boxed = Box::into_raw(Box::new(f));
        // SAFETY: the caller's promise; the box is opened once.
        unsafe { self.retire(boxed, |boxed| Box::from_raw(boxed)()) };
    }

    /// What was retired is freed when this guard ends, if it can be.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn flush(&self) {
        self.pressing.set(true);
    }
}

impl Drop for Guard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.counts {
            Some(counts) => self.collector.domain.exit_in(counts, self.parity),
            None => threads::with_number(|number| {
                let domain = &self.collector.domain;
                domain.exit_in(domain.counts(number), self.parity);
            }),
        }
        if self.pressing.get() {
            self.collector.collect_unless_inside();
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("parity", &self.parity).finish_non_exhaustive()
    }
}

impl fmt::Debug for Garbage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Garbage").field(&self.pointer).finish()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Retires a count of `counted` and says how many are left.
    fn retire(guard: &Guard<'_>, counted: &Arc<()>) {
        let counted = Arc::clone(counted);
        // SAFETY: it owns what it drops.
        unsafe { guard.defer_unchecked(move || drop(counted)) };
    }

    #[test]
    fn what_is_retired_waits_for_the_guards_that_are_there() {
        let (collector, counted) = (Collector::new(), Arc::new(()));
        let reader = collector.pin(None);
        retire(&collector.pin(None), &counted);
        for _ in 0..5 {
            collector.collect();
            assert_eq!(Arc::strong_count(&counted), 2);
        }
        drop(reader);
        collector.collect();
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn enough_garbage_frees_itself() {
        let (collector, counted) = (Collector::new(), Arc::new(()));
        for _ in 0..10 * ENOUGH {
            retire(&collector.pin(None), &counted);
        }
        assert!(Arc::strong_count(&counted) <= ENOUGH + 1);
    }

    #[test]
    fn nothing_is_freed_below_another_guard() {
        let (collector, counted) = (Collector::new(), Arc::new(()));
        let outer = collector.pin(None);
        let inner = collector.pin(None);
        retire(&inner, &counted);
        inner.flush();
        drop(inner);
        assert_eq!(Arc::strong_count(&counted), 2);
        outer.flush();
        drop(outer);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn what_is_left_goes_with_the_collector() {
        let (collector, counted) = (Collector::new(), Arc::new(()));
        retire(&collector.pin(None), &counted);
        drop(collector);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
