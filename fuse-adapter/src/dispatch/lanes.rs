//! [`Lanes`]: which operations run where they are read, and which go to the pool.
//!
//! An operation starts out as its class says. From then on what counts is how often it was slow of
//! late, on whichever thread. Where that is because it *sleeps*, a hand-over is cheaper than a reader
//! that does nothing meanwhile; what computes, or waits for a CPU on a busy machine, is no better off
//! on another thread. (So a mean says little: it is made by the few requests that had to wait for a CPU.)
//! Two bounds, so that an operation near one of them does not go to and fro; and one that was caught
//! blocking readers stays away for a while, twice as long each time it happens again.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::operation::{Class, Operation};

/// Nanoseconds that make one request slow: worth a hand-over, which costs about 10 us, if it sleeps.
pub(super) const SLOW: u64 = 50_000;
/// One slow one in so many sends an operation away.
const OFTEN: u64 = 20;
/// One in so many, or fewer, lets it come back.
const RARELY: u64 = 40;
/// A mean above this is too long for a reader, however it is spent.
const VERY_LONG: Duration = Duration::from_millis(1);
/// So many measurements make a mean.
const ENOUGH: u64 = 16;
/// For how long who blocked a reader stays away, at first and at most.
const FIRST_HOLD: Duration = Duration::from_millis(100);
const LONGEST_HOLD: Duration = Duration::from_secs(10);

/// How many times an operation was done, how many of them took longer than [`SLOW`], and how long all
/// took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) count: u64,
    pub(super) slow: u64,
    pub(super) nanos: u64,
}

pub(super) struct Lanes {
    /// By [`Operation`]. Read for every request, written when something changes.
    away: Vec<AtomicBool>,
    /// The supervisor's.
    history: Mutex<Vec<History>>,
}

struct History {
    /// It goes away by its nature, however short it was.
    by_nature: bool,
    /// What had been done when the window began.
    begun: Done,
    /// How often a slow one was found asleep or awake in this window.
    asleep: u32,
    awake: u32,
    /// Not before this moment does it come back.
    until: u64,
    /// How long it stays away after it blocks the next time.
    hold: Duration,
}

impl Lanes {
    pub(super) fn new(class: impl Fn(Operation) -> Class) -> Self {
        let by_nature = |&operation: &Operation| class(operation) == Class::MayBlock;
        let history = Operation::ALL.iter().map(|operation| History {
            by_nature: by_nature(operation),
            begun: Done::default(),
            asleep: 0,
            awake: 0,
            until: 0,
            hold: FIRST_HOLD,
        });
        let history: Vec<_> = history.collect();
        let away = history.iter().map(|history| AtomicBool::new(history.by_nature)).collect();
        Lanes { away, history: Mutex::new(history) }
    }

    /// Does it go to the pool?
    pub(super) fn is_away(&self, operation: Operation) -> bool {
        // Relaxed: a hint. A request that goes the old way is late or slow, not wrong.
        self.away[operation as usize].load(Ordering::Relaxed)
    }

    /// One of these was found at work, longer than most, and asleep or not.
    pub(super) fn found(&self, operation: Operation, asleep: bool) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let history = &mut history[operation as usize];
        let count = if asleep { &mut history.asleep } else { &mut history.awake };
        *count = count.saturating_add(1);
    }

    /// These block their threads right now: away with them.
    pub(super) fn blocks(&self, operation: Operation, now: u64) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let history = &mut history[operation as usize];
        let was_here = !self.is_away(operation);
        let hold = nanos(history.hold);
        if was_here {
            // Long since the last time: begin anew.
            let calm = now.saturating_sub(history.until) > nanos(LONGEST_HOLD);
            history.hold = if calm { FIRST_HOLD } else { (history.hold * 2).min(LONGEST_HOLD) };
        }
        history.until = history.until.max(now + hold);
        self.away[operation as usize].store(true, Ordering::Relaxed);
    }

    /// Looks at what has been done until now.
    pub(super) fn decide(&self, done: impl Fn(Operation) -> Done, now: u64) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        for &operation in Operation::ALL {
            let history = &mut history[operation as usize];
            let (all, begun) = (done(operation), history.begun);
            let count = all.count.saturating_sub(begun.count);
            if history.by_nature || count < ENOUGH {
                continue;
            }
            history.begun = all;
            let slow = all.slow.saturating_sub(begun.slow);
            let mean = Duration::from_nanos(all.nanos.saturating_sub(begun.nanos) / count);
            let (asleep, awake) = (history.asleep, history.awake);
            (history.asleep, history.awake) = (0, 0);
            let away = self.is_away(operation);
            let change = if away {
                let waits_for_a_cpu = awake > 4 * asleep && mean < VERY_LONG;
                (slow * RARELY <= count || waits_for_a_cpu) && now >= history.until
            } else {
                mean > VERY_LONG || slow * OFTEN > count && asleep > awake
            };
            if change {
                self.away[operation as usize].store(!away, Ordering::Relaxed);
            }
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    /// All that was done so far of one operation, in windows.
    struct Work(Done);

    impl Work {
        /// So many, each of which took so long.
        fn window(&mut self, lanes: &Lanes, count: u64, micros: u64, now: u64) -> bool {
            self.mixed(lanes, &[(count, micros)], now)
        }

        fn mixed(&mut self, lanes: &Lanes, parts: &[(u64, u64)], now: u64) -> bool {
            for (count, micros) in parts {
                self.0.count += count;
                self.0.nanos += count * micros * 1000;
                self.0.slow += if micros * 1000 > SLOW { *count } else { 0 };
            }
            let done = self.0;
            let of = |operation| if operation == Operation::Read { done } else { Done::default() };
            lanes.decide(of, now);
            lanes.is_away(Operation::Read)
        }
    }

    #[test]
    fn what_is_often_slow_goes_away_and_comes_back() {
        let lanes = Lanes::new(Operation::class);
        let mut work = Work(Done::default());
        assert!(!work.window(&lanes, 100, 10, 0));
        lanes.found(Operation::Read, true);
        assert!(!work.mixed(&lanes, &[(97, 10), (3, 1000)], 0), "rarely slow");
        lanes.found(Operation::Read, true);
        assert!(work.mixed(&lanes, &[(90, 10), (10, 1000)], 0));
        assert!(work.mixed(&lanes, &[(97, 10), (3, 1000)], 0), "between the bounds it stays");
        assert!(!work.mixed(&lanes, &[(98, 10), (2, 1000)], 0));
        assert!(!work.window(&lanes, ENOUGH - 1, 5000, 0), "too few to tell");
        assert!(work.window(&lanes, 100, 1001, 0), "too long for a reader in any case");
        assert!(!lanes.is_away(Operation::GetAttr));
    }

    #[test]
    fn what_computes_stays_and_what_sleeps_goes() {
        let lanes = Lanes::new(Operation::class);
        let mut work = Work(Done::default());
        assert!(!work.window(&lanes, 100, 500, 0));
        lanes.found(Operation::Read, true);
        lanes.found(Operation::Read, false);
        assert!(!work.window(&lanes, 100, 500, 0));
        lanes.found(Operation::Read, true);
        assert!(work.window(&lanes, 100, 500, 0));
        assert!(work.window(&lanes, 100, 500, 0));
        lanes.found(Operation::Read, false);
        assert!(!work.window(&lanes, 100, 500, 0), "on a busy machine it need not stay away");
    }

    #[test]
    fn what_blocked_stays_away_longer_each_time() {
        let lanes = Lanes::new(Operation::class);
        let mut work = Work(Done::default());
        lanes.blocks(Operation::Read, 0);
        assert!(work.window(&lanes, 100, 1, 99 * MILLI));
        assert!(!work.window(&lanes, 100, 1, 100 * MILLI));
        lanes.blocks(Operation::Read, 100 * MILLI);
        assert!(work.window(&lanes, 100, 1, 299 * MILLI));
        assert!(!work.window(&lanes, 100, 1, 300 * MILLI));
        // Blocking on the pool is what the pool is for.
        lanes.blocks(Operation::Read, 300 * MILLI);
        for _ in 0..100 {
            lanes.blocks(Operation::Read, 300 * MILLI);
        }
        assert!(!work.window(&lanes, 100, 1, 1100 * MILLI));
        let later = 60_000 * MILLI;
        lanes.blocks(Operation::Read, later);
        lanes.blocks(Operation::Read, later);
        assert!(!work.window(&lanes, 100, 1, later + 1600 * MILLI), "long ago is forgotten");
    }

    #[test]
    fn what_may_block_by_its_nature_never_comes() {
        let lanes = Lanes::new(Operation::class);
        let short = |_| Done { count: 1000, slow: 0, nanos: 1000 };
        lanes.decide(short, 0);
        assert!(lanes.is_away(Operation::FSync));
        assert!(!lanes.is_away(Operation::GetAttr));
    }
}
