//! Runs an operation on several threads that start together.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The numbers of threads that are measured: 1, 2, 4, 8, and as many as there are CPUs.
pub fn counts() -> Vec<usize> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let mut counts = vec![1, 2, 4, 8, cpus];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Runs `operation(index)` for each index below `iterations` on each of so many threads, and answers
/// the time from when they all started to when the last was done.
///
/// `prepare(thread)` makes each thread's operation before the start.
pub fn time<F: FnMut(u64)>(
    threads: usize,
    iterations: u64,
    prepare: impl Fn(usize) -> F + Sync,
) -> Duration {
    let barrier = Barrier::new(threads);
    let run = |number| {
        let mut operation = prepare(number);
        barrier.wait();
        let begun = Instant::now();
        for index in 0..iterations {
            operation(index);
        }
        (begun, Instant::now())
    };
    let run = &run;
    let spans: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|number| scope.spawn(move || run(number))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no operation panics")).collect()
    });
    let begun = spans.iter().map(|span| span.0).min().expect("a thread at least");
    let ended = spans.iter().map(|span| span.1).max().expect("a thread at least");
    ended - begun
}

/// Runs `measure` while `disturb` is called again and again on another thread. Answers what
/// `measure` does, and how many disturbances there were a second.
pub fn beside<R>(disturb: impl Fn(u64) + Sync, measure: impl FnOnce() -> R) -> (R, f64) {
    let over = AtomicBool::new(false);
    let started = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            started.wait();
            let begun = Instant::now();
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                disturb(count);
                count += 1;
            }
            count as f64 / begun.elapsed().as_secs_f64()
        });
        started.wait();
        let measured = measure();
        over.store(true, Ordering::Relaxed);
        (measured, other.join().expect("no disturbance panics"))
    })
}
