//! [`Parking`]: where threads sleep until a mark is gone or a lease has ended.
//!
//! Nobody sleeps here while holding a lease, but for a transaction that waits for the leases below
//! what it moves (`transaction.rs` says why that can't be a circle). Those that wake others look at
//! one counter first, and take the lock only if somebody sleeps.

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence};

#[derive(Debug)]
pub(crate) struct Parking {
    lock: Mutex<()>,
    changed: Condvar,
    sleepers: AtomicUsize,
}

impl Parking {
    pub(crate) fn new() -> Self {
        Parking { lock: Mutex::new(()), changed: Condvar::new(), sleepers: AtomicUsize::new(0) }
    }

    /// Sleeps until `ready`; it is asked again after every `wake` (or `wake_all`).
    pub(crate) fn sleep_until(&self, mut ready: impl FnMut() -> bool) {
        let mut lock = self.lock.lock();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake`: either the waker sees that we sleep, or we see what it
        // did before. Weaker: we sleep on.
        fence(Ordering::SeqCst);
        while !ready() {
            lock = self.changed.wait(lock);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        drop(lock);
    }

    /// Something changed that a sleeper may wait for.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake_all();
        }
    }

    /// The same where the caller knows that somebody waits.
    #[cold]
    pub(crate) fn wake_all(&self) {
        // The lock orders us after the sleeper's question and before its sleep, or after both.
        drop(self.lock.lock());
        self.changed.notify_all();
    }
}
