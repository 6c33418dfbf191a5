//! [`Graves`]: values whose owner is gone and whose last request has not ended yet.

use std::ptr::NonNull;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicUsize, Mutex, Ordering};

/// A value to be dropped once each parity was seen drained.
pub(crate) struct Grave {
    value: NonNull<dyn Send>,
    drained: [bool; 2],
}

// SAFETY: it owns a value that may be dropped on any thread.
unsafe impl Send for Grave {}

impl Grave {
    /// # Safety
    /// The pointer comes from a box, which is given up. Whoever else uses it is counted in the
    /// domain that the grave is put in, since before this.
    pub(crate) unsafe fn new<T: Send + 'static>(value: NonNull<T>) -> Self {
        Grave { value, drained: [false; 2] }
    }
}

impl std::fmt::Debug for Grave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grave").field("drained", &self.drained).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Graves {
    /// How many there are. Requests read it when they end.
    open: CachePadded<AtomicUsize>,
    waiting: Mutex<Vec<Grave>>,
}

impl Graves {
    /// Is there any? Read by a request after it has counted itself out and a light fence.
    #[inline]
    pub(crate) fn open(&self) -> bool {
        self.open.load(Ordering::Relaxed) != 0
    }

    /// One more. A heavy fence must follow, and then `close_drained`.
    pub(crate) fn dig(&self, grave: Grave) {
        self.waiting.lock().push(grave);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops the values whose requests have all ended.
    #[cold]
    pub(crate) fn close_drained(&self, mut drained: impl FnMut(usize) -> bool) {
        let mut waiting = self.waiting.lock();
        // Asked under the lock, so of two that end at the same time the later sees both.
        let now = [drained(0), drained(1)];
        for grave in &mut *waiting {
            for (before, now) in grave.drained.iter_mut().zip(now) {
                *before |= now;
            }
        }
        let (closed, still): (Vec<_>, _) =
            waiting.drain(..).partition(|grave| grave.drained == [true; 2]);
        *waiting = still;
        self.open.fetch_sub(closed.len(), Ordering::Relaxed);
        drop(waiting);
        for grave in closed {
            // SAFETY: from a box (see `new`), taken out of the list once, and every request that
            // could use it has ended.
            drop(unsafe { Box::from_raw(grave.value.as_ptr()) });
        }
    }
}
