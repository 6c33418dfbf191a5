//! [`Counters`]: what was done, how often and how long it took. Each thread counts for itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use hdrhistogram::Histogram;
use thread_local::ThreadLocal;

use super::lanes::{Done, SLOW};
use super::stats::{Latency, OperationStats};
use crate::operation::Operation;

/// What is told apart: nanoseconds from 64 on, up to a day, to one significant digit (3 % at most
/// in the middle of a bucket). 5 KiB a histogram.
const LEAST: u64 = 64;
const MOST: u64 = 24 * 3600 * 1_000_000_000;
const DIGITS: u8 = 1;

pub(super) fn histogram() -> Histogram<u64> {
    // The bounds are constants that it takes; `new` cannot fail, and measures the same more coarsely.
    Histogram::new_with_bounds(LEAST, MOST, DIGITS).unwrap_or_else(|_| {
        Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("one digit is allowed"))
    })
}

/// One for each thread that ever counted; a new thread goes on with that of one that has ended.
#[derive(Default)]
pub(super) struct Counters(ThreadLocal<CachePadded<OfThread>>);

/// By [`Operation`].
struct OfThread(Vec<OfOperation>);

/// Written by one thread, so a load and a store are an addition.
#[derive(Default)]
struct OfOperation {
    read: AtomicU64,
    queued: AtomicU64,
    taken: AtomicU64,
    done: AtomicU64,
    slow: AtomicU64,
    nanos: AtomicU64,
    /// Locked by its thread, and by who looks: nobody waits here but for a look.
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    work: Option<Histogram<u64>>,
    queue: Option<Histogram<u64>>,
}

fn add(counter: &AtomicU64, more: u64) {
    // Relaxed: figures.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

fn record(times: &mut Option<Histogram<u64>>, nanos: u64) {
    times.get_or_insert_with(histogram).saturating_record(nanos.max(1));
}

impl Counters {
    fn of(&self, operation: Operation) -> &OfOperation {
        let new = || {
            CachePadded::new(OfThread(
                Operation::ALL.iter().map(|_| OfOperation::default()).collect(),
            ))
        };
        &self.0.get_or(new).0[operation as usize]
    }

    /// A request was read that its reader works on (or has, and that took no time worth measuring).
    pub(super) fn read(&self, operation: Operation) {
        add(&self.of(operation).read, 1);
    }

    /// A request was read and queued.
    pub(super) fn queued(&self, operation: Operation) {
        let counters = self.of(operation);
        add(&counters.read, 1);
        add(&counters.queued, 1);
    }

    /// A request that was read before is queued again.
    pub(super) fn queued_again(&self, operation: Operation) {
        add(&self.of(operation).queued, 1);
    }

    /// A request was taken from a queue, after so long.
    pub(super) fn taken(&self, operation: Operation, nanos: u64) {
        let counters = self.of(operation);
        add(&counters.taken, 1);
        record(&mut counters.times.lock().unwrap_or_else(PoisonError::into_inner).queue, nanos);
    }

    /// A request was worked on for so long.
    pub(super) fn done(&self, operation: Operation, nanos: u64) {
        let counters = self.of(operation);
        add(&counters.done, 1);
        add(&counters.slow, u64::from(nanos > SLOW));
        add(&counters.nanos, nanos);
        record(&mut counters.times.lock().unwrap_or_else(PoisonError::into_inner).work, nanos);
    }

    /// All that was done of this operation.
    pub(super) fn total(&self, operation: Operation) -> Done {
        self.0.iter().fold(Done::default(), |sum, thread| {
            let counters = &thread.0[operation as usize];
            Done {
                count: sum.count + counters.done.load(Ordering::Relaxed),
                slow: sum.slow + counters.slow.load(Ordering::Relaxed),
                nanos: sum.nanos + counters.nanos.load(Ordering::Relaxed),
            }
        })
    }

    /// How many requests were read.
    pub(super) fn requests(&self) -> u64 {
        let of_thread = |thread: &CachePadded<OfThread>| -> u64 {
            thread.0.iter().map(|counters| counters.read.load(Ordering::Relaxed)).sum()
        };
        self.0.iter().map(of_thread).sum()
    }

    /// Everything about this operation, up to now.
    pub(super) fn stats(&self, operation: Operation) -> OperationStats {
        let (mut requests, mut queued, mut taken) = (0, 0, 0u64);
        let (mut work, mut queue) = (histogram(), histogram());
        for thread in &self.0 {
            let counters = &thread.0[operation as usize];
            requests += counters.read.load(Ordering::Relaxed);
            queued += counters.queued.load(Ordering::Relaxed);
            taken += counters.taken.load(Ordering::Relaxed);
            let times = counters.times.lock().unwrap_or_else(PoisonError::into_inner);
            // They have the same bounds, so adding can't fail.
            let _ = times.work.as_ref().map(|times| work.add(times));
            let _ = times.queue.as_ref().map(|times| queue.add(times));
        }
        OperationStats {
            operation,
            requests,
            handed_over: queued,
            // The two are counted by different threads: one that was just taken may seem to be
            // in the queue, and one that was just queued to have been taken before.
            queued: queued.saturating_sub(taken),
            in_queue: Latency::new(queue),
            in_handler: Latency::new(work),
        }
    }
}
