//! [`Busy`]: what a thread is at, for others to see.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::operation::Operation;

/// Counts nanoseconds from when it was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn new() -> Self {
        Clock(Instant::now())
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The operation that a thread works on and since when; or that it is free. Only its thread begins
/// and ends; the supervisor reads, and may mark what takes long.
///
/// One word: bit 63 the mark, bits 8 to 62 the beginning in units of 1,024 ns (a thousand years),
/// bits 0 to 7 the operation's number and one; 0: free.
#[derive(Debug, Default)]
pub(super) struct Busy(CachePadded<Inner>);

#[derive(Debug, Default)]
struct Inner {
    word: AtomicU64,
    /// The system's number of the thread; 0: none yet.
    thread: AtomicI32,
}

const MARK: u64 = 1 << 63;
const UNIT_BITS: u32 = 10;

/// Seen in a [`Busy`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    word: u64,
    pub(super) operation: Operation,
    pub(super) marked: bool,
}

impl Seen {
    /// For how long it has been at it, to the microsecond.
    pub(super) fn age(&self, now: u64) -> Duration {
        let began = ((self.word & !MARK) >> 8) << UNIT_BITS;
        Duration::from_nanos(now.saturating_sub(began))
    }
}

impl Busy {
    /// The calling thread is the one whose work this shows from now on.
    pub(super) fn adopt(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        // Relaxed: only for looking at the thread, which may have ended by then in any case.
        self.0.thread.store(thread, Ordering::Relaxed);
    }

    /// Does its thread sleep just now, rather than compute or wait for a CPU? Where that can't be
    /// known it is taken to sleep.
    pub(super) fn sleeps(&self) -> bool {
        let thread = self.0.thread.load(Ordering::Relaxed);
        let stat = std::fs::read(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
        // "1234 (name) S ...", and the name may have anything in it.
        let after_name = stat.iter().rposition(|&byte| byte == b')');
        after_name.and_then(|at| stat.get(at + 2)) != Some(&b'R')
    }

    pub(super) fn begin(&self, operation: Operation, now: u64) {
        let word = (((now >> UNIT_BITS) << 8) & !MARK) | (operation as u64 + 1);
        // SeqCst: pairs with the supervisor's `asleep`. Either it sees this when it looks around
        // before it sleeps, or this thread sees afterwards that it sleeps. Weaker: a handler that
        // blocks just then is not noticed.
        self.0.word.swap(word, Ordering::SeqCst);
    }

    /// Answers whether it was marked.
    pub(super) fn end(&self) -> bool {
        // Relaxed: the mark carries nothing but itself; what follows from it happens under a lock.
        self.0.word.swap(0, Ordering::Relaxed) & MARK != 0
    }

    pub(super) fn look(&self) -> Option<Seen> {
        let word = self.0.word.load(Ordering::SeqCst); // see `begin`
        let number = usize::try_from(word & 0xff).ok()?.checked_sub(1)?;
        let operation = *Operation::ALL.get(number)?;
        Some(Seen { word, operation, marked: word & MARK != 0 })
    }

    /// Marks what was seen, if it is still the same. (It could be another only if that began in the
    /// same microsecond; what is marked has gone on for many.)
    pub(super) fn mark(&self, seen: &Seen) -> bool {
        self.0
            .word
            .compare_exchange(seen.word, seen.word | MARK, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_what_was_begun() {
        let busy = Busy::default();
        assert!(busy.look().is_none());
        for &operation in Operation::ALL {
            busy.begin(operation, 5_000_000);
            let seen = busy.look().unwrap();
            assert_eq!((seen.operation, seen.marked), (operation, false));
            let age = seen.age(8_000_000);
            assert!((3_000_000..3_001_024).contains(&age.as_nanos()), "{age:?}");
            assert!(!busy.end());
        }
    }

    #[test]
    fn a_thread_that_sleeps_is_told_from_one_that_computes() {
        let busy = Busy::default();
        assert!(busy.sleeps(), "nothing is known of it");
        busy.adopt();
        assert!(!busy.sleeps(), "this thread runs");
        std::thread::scope(|scope| {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let busy = &busy;
            scope.spawn(move || {
                busy.adopt();
                let _ = ended.recv();
            });
            let start = Instant::now();
            while !busy.sleeps() {
                assert!(start.elapsed() < Duration::from_secs(10));
                std::thread::yield_now();
            }
            drop(end);
        });
    }

    #[test]
    fn only_what_was_seen_is_marked_and_its_thread_learns_it() {
        let busy = Busy::default();
        busy.begin(Operation::Read, 1_000_000);
        let seen = busy.look().unwrap();
        assert!(busy.mark(&seen));
        assert!(busy.look().unwrap().marked);
        assert!(busy.end());
        busy.begin(Operation::Read, 2_000_000);
        assert!(!busy.mark(&seen), "another one");
        assert!(!busy.end());
    }
}
