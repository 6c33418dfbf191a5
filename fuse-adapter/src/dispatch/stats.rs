//! What a mount's dispatch has done: [`DispatchStats`].

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::readers::ReaderStats;
use crate::operation::Operation;

/// Figures of a mount's requests and threads since it began; see
/// [`Mount::dispatch_stats`](crate::Mount::dispatch_stats). Printed, it is a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DispatchStats {
    /// Of each operation that was asked for at least once.
    pub operations: Vec<OperationStats>,
    /// The threads that read requests.
    pub readers: ReaderStats,
    /// Threads of the pool.
    pub handlers: usize,
    /// Threads that end what others may wait for (closing files, unlocking).
    pub closers: usize,
    /// Requests that wait for one of these.
    pub queued: usize,
    /// Requests for locks that others hold. They take no thread.
    pub waiting_for_locks: usize,
}

/// Figures of one operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OperationStats {
    /// Which.
    pub operation: Operation,
    /// How many were read from the kernel.
    pub requests: u64,
    /// How many of them went to a pool; the others were answered where they were read. (Who waits for
    /// a lock goes there again for each attempt.)
    pub handed_over: u64,
    /// How many wait in a queue just now.
    pub queued: u64,
    /// How long those that were handed over waited.
    pub in_queue: Latency,
    /// How long they were worked on: the handler, with the leases it took and the answer to the kernel.
    /// Forgets are counted, but not measured.
    pub in_handler: Latency,
}

/// A distribution of durations, to about 3 %.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

impl Latency {
    pub(super) fn new(histogram: Histogram<u64>) -> Self {
        Latency(histogram)
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// That of all durations `percent` per cent are no longer than this. Zero where there are none.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_percentile(percent))
    }

    /// The average. Zero where there are none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.0.mean() as u64)
    }

    /// The longest. Zero where there are none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

impl fmt::Display for DispatchStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { readers, handlers, closers, queued, waiting_for_locks, .. } = self;
        writeln!(
            f,
            "readers: {} reading, {} spare, {} stuck; handlers: {handlers}+{closers}; queued: {queued}; \
             waiting for locks: {waiting_for_locks}",
            readers.reading, readers.parked, readers.stuck
        )?;
        write!(
            f,
            "{:<14} {:>10} {:>10} {:>6} | {:>9} {:>9} {:>9} | {:>9} {:>9} {:>9}",
            "operation",
            "requests",
            "handed",
            "queued",
            "queue p50",
            "p99",
            "max",
            "work p50",
            "p99",
            "max"
        )?;
        for operation in &self.operations {
            write!(f, "\n{operation}")?;
        }
        Ok(())
    }
}

impl fmt::Display for OperationStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.operation);
        write!(f, "{name:<14} {:>10} {:>10} {:>6}", self.requests, self.handed_over, self.queued)?;
        for latency in [&self.in_queue, &self.in_handler] {
            let [median, most] = [50.0, 99.0].map(|percent| short(latency.percentile(percent)));
            write!(f, " | {median:>9} {most:>9} {:>9}", short(latency.max()))?;
        }
        Ok(())
    }
}

/// Three digits and a unit.
fn short(duration: Duration) -> String {
    match duration.as_nanos() {
        0 => "-".into(),
        nanos @ ..1_000 => format!("{nanos}ns"),
        nanos @ ..1_000_000 => format!("{:.1}us", nanos as f64 / 1e3),
        nanos @ ..1_000_000_000 => format!("{:.1}ms", nanos as f64 / 1e6),
        nanos => format!("{:.1}s", nanos as f64 / 1e9),
    }
}
