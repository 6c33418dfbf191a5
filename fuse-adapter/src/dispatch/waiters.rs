//! [`LockWaiters`]: requests for locks that others hold. They wait here, on no thread.
//!
//! Each is tried again when a lock of its inode may have been released through this mount, and every
//! now and then: who holds it may be somebody else. fuser 0.18 tells nobody that a request was
//! interrupted, so whether a waiter was signalled is read from `/proc` at the same time; if so it is
//! answered `EINTR`, upon which the kernel lets it die, or run its signal handler.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiter is looked after without a reason.
pub(super) const INTERVAL: Duration = Duration::from_millis(50);

/// What a waiter is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Ask for the lock.
    Try,
    /// Answer that a signal came first.
    Interrupted,
}

/// Asks for a lock. Answers whether that was the end of it: it was had, or failed for good, and the
/// kernel has been told.
pub(crate) type Attempt<C> = Box<dyn FnMut(&C, Call) -> bool + Send>;

/// One request that waits.
pub(crate) struct Waiter<C> {
    pub(crate) inode: u64,
    /// The thread that asked; 0: none that this process can see.
    pub(crate) thread: u32,
    pub(crate) attempt: Attempt<C>,
}

pub(crate) struct LockWaiters<C> {
    queues: Mutex<HashMap<u64, Queue<C>>>,
    count: AtomicUsize,
    /// Counts the locks that may have been released.
    releases: AtomicU64,
}

struct Queue<C> {
    waiters: VecDeque<Waiter<C>>,
    /// Somebody is at it; `again`: and shall look once more.
    busy: bool,
    again: bool,
}

/// What is to be done for an inode, on a thread of the pool.
pub(crate) struct Round<C> {
    waiters: Arc<LockWaiters<C>>,
    inode: u64,
    look_for_signals: bool,
    over: bool,
}

impl<C> Default for LockWaiters<C> {
    fn default() -> Self {
        LockWaiters {
            queues: Mutex::default(),
            count: AtomicUsize::new(0),
            releases: AtomicU64::new(0),
        }
    }
}

impl<C> LockWaiters<C> {
    fn queues(&self) -> MutexGuard<'_, HashMap<u64, Queue<C>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// To be read before a lock is asked for the first time, and given to [`LockWaiters::add`].
    pub(crate) fn releases(&self) -> u64 {
        // SeqCst here and in `released`: a lock that is released after this was read is either seen
        // by the attempt that follows, or counted before `add` looks. Weaker: the waiter sleeps
        // until the next interval.
        self.releases.load(Ordering::SeqCst)
    }

    /// Lets a request wait. `Some`: a lock was released meanwhile, to be tried at once.
    pub(crate) fn add(self: &Arc<Self>, waiter: Waiter<C>, releases: u64) -> Option<Round<C>> {
        let inode = waiter.inode;
        let mut queues = self.queues();
        self.count.fetch_add(1, Ordering::SeqCst); // see `released`
        let empty = || Queue { waiters: VecDeque::new(), busy: false, again: false };
        queues.entry(inode).or_insert_with(empty).waiters.push_back(waiter);
        drop(queues);
        if self.releases() == releases { None } else { self.round(inode, false) }
    }

    /// A lock of this inode may have been released. `Some`: and somebody waits for one.
    pub(crate) fn released(self: &Arc<Self>, inode: u64) -> Option<Round<C>> {
        self.releases.fetch_add(1, Ordering::SeqCst);
        // SeqCst: either this sees who was added, or who is added sees the release.
        if self.count.load(Ordering::SeqCst) == 0 { None } else { self.round(inode, false) }
    }

    /// The inodes that somebody waits for.
    pub(super) fn inodes(&self) -> Vec<u64> {
        self.queues().keys().copied().collect()
    }

    /// Another look at an inode, unless somebody is at it: then he will look once more.
    pub(super) fn round(self: &Arc<Self>, inode: u64, look_for_signals: bool) -> Option<Round<C>> {
        let mut queues = self.queues();
        let queue = queues.get_mut(&inode)?;
        if queue.busy {
            queue.again = true;
            return None;
        }
        queue.busy = true;
        Some(Round { waiters: self.clone(), inode, look_for_signals, over: false })
    }

    /// The mount has ended: nobody waits for an answer any more.
    pub(super) fn clear(&self) {
        let queues = std::mem::take(&mut *self.queues());
        // Dropped outside of the lock: an answer is sent as they go.
        drop(queues);
        self.count.store(0, Ordering::SeqCst);
    }
}

impl<C> Round<C> {
    /// Tries all that wait, in the order in which they came.
    pub(crate) fn run(mut self, context: &C) {
        loop {
            let mut rest = self.take();
            let all = rest.len();
            rest.retain_mut(|waiter| {
                let call = match self.look_for_signals && is_signalled(waiter.thread) {
                    true => Call::Interrupted,
                    false => Call::Try,
                };
                !(waiter.attempt)(context, call)
            });
            self.waiters.count.fetch_sub(all - rest.len(), Ordering::SeqCst);
            if !self.put_back(rest) {
                self.over = true;
                return;
            }
        }
    }

    fn take(&self) -> VecDeque<Waiter<C>> {
        let mut queues = self.waiters.queues();
        let queue = queues.get_mut(&self.inode);
        queue.map_or_else(VecDeque::new, |queue| {
            queue.again = false;
            std::mem::take(&mut queue.waiters)
        })
    }

    /// Before those who came meanwhile. Answers whether to look once more.
    fn put_back(&self, mut rest: VecDeque<Waiter<C>>) -> bool {
        let mut queues = self.waiters.queues();
        let Some(queue) = queues.get_mut(&self.inode) else {
            // Cleared: the mount has ended.
            return false;
        };
        rest.append(&mut queue.waiters);
        queue.waiters = rest;
        if queue.again && !queue.waiters.is_empty() {
            return true;
        }
        queue.busy = false;
        if queue.waiters.is_empty() {
            queues.remove(&self.inode);
        }
        false
    }
}

impl<C> Drop for Round<C> {
    fn drop(&mut self) {
        // There was no room for it on the pool. There will be another round.
        if !self.over {
            if let Some(queue) = self.waiters.queues().get_mut(&self.inode) {
                queue.busy = false;
            }
        }
    }
}

/// Has the thread a signal that it would act on?
fn is_signalled(thread: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{thread}/status")) else {
        return false; // not one that can be seen from here, or gone
    };
    signalled(&status)
}

fn signalled(status: &str) -> bool {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        u64::from_str_radix(line.trim(), 16).unwrap_or(0)
    };
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    pending & !mask("SigBlk:") & !mask("SigIgn:") != 0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// One lock, as a handler has it: who holds it; 0 nobody.
    type Lock = AtomicI32;

    fn waiter(inode: u64, who: i32, had: Sender<i32>) -> Waiter<Lock> {
        let attempt = move |lock: &Lock, call| {
            if call == Call::Interrupted {
                had.send(-who).unwrap();
                return true;
            }
            let had_it = lock.compare_exchange(0, who, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if had_it {
                had.send(who).unwrap();
            }
            had_it
        };
        Waiter { inode, thread: 0, attempt: Box::new(attempt) }
    }

    #[test]
    fn who_came_first_gets_it_and_the_others_wait_on() {
        let (lock, waiters) = (Lock::new(9), Arc::new(LockWaiters::default()));
        let (had, who) = channel();
        for number in 1..=3 {
            assert!(waiters.add(waiter(7, number, had.clone()), waiters.releases()).is_none());
        }
        waiters.round(7, false).unwrap().run(&lock);
        assert_eq!((waiters.len(), who.try_recv().ok()), (3, None), "somebody else has it");
        for number in 1..=3 {
            lock.store(0, Ordering::SeqCst);
            assert!(waiters.released(8).is_none(), "another inode");
            waiters.released(7).unwrap().run(&lock);
            assert_eq!(who.try_recv(), Ok(number));
            assert!(who.try_recv().is_err());
        }
        assert_eq!((waiters.len(), waiters.inodes()), (0, vec![]));
    }

    #[test]
    fn a_release_between_the_attempt_and_the_wait_is_not_lost() {
        let (lock, waiters) = (Lock::new(9), Arc::new(LockWaiters::default()));
        let (had, who) = channel();
        let before = waiters.releases();
        // The attempt failed here; now it is released, and nobody waits yet.
        lock.store(0, Ordering::SeqCst);
        assert!(waiters.released(7).is_none());
        waiters.add(waiter(7, 1, had), before).expect("to be tried at once").run(&lock);
        assert_eq!(who.try_recv(), Ok(1));
    }

    #[test]
    fn a_release_while_somebody_looks_makes_him_look_again() {
        let (lock, waiters) = (Lock::new(9), Arc::new(LockWaiters::default()));
        let (had, who) = channel();
        let inner = waiters.clone();
        let mut first = true;
        let mut asks = waiter(7, 1, had).attempt;
        let attempt = move |lock: &Lock, call| {
            let done = asks(lock, call);
            if std::mem::take(&mut first) {
                lock.store(0, Ordering::SeqCst);
                assert!(inner.released(7).is_none(), "somebody is at it");
            }
            done
        };
        assert!(
            waiters.add(Waiter { inode: 7, thread: 0, attempt: Box::new(attempt) }, 0).is_none()
        );
        drop(waiters.round(7, false)); // one for which there was no room
        waiters.round(7, false).unwrap().run(&lock);
        assert_eq!(who.try_recv(), Ok(1));
    }

    #[test]
    fn only_signals_that_would_do_something_count() {
        let status = |pending: &str, blocked: &str| {
            format!("Name:\tx\nSigPnd:\t{pending}\nShdPnd:\t0\nSigBlk:\t{blocked}\nSigIgn:\t1\n")
        };
        assert!(signalled(&status("0000000000000100", "0")));
        assert!(!signalled(&status("0000000000000100", "0000000000000100")));
        assert!(!signalled(&status("0000000000000001", "0")));
        assert!(!signalled(&status("0", "0")));
        assert!(!is_signalled(rustix::thread::gettid().as_raw_nonzero().get() as u32));
    }
}
