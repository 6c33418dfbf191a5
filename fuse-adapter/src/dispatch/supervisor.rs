//! The supervisor: a thread that notices who is stuck, and decides what goes where.
//!
//! Requests never wait for it. While there are any it looks around every few milliseconds; when all is
//! quiet it sleeps, and the next request wakes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use super::dispatcher::Core;
use super::pool::Pool;
use super::waiters;

/// Between two looks, as long as nobody seems to be stuck.
const CALM: Duration = Duration::from_millis(4);
/// While somebody does, or waits in a queue.
const TENSE: Duration = Duration::from_millis(1);
/// Between two decisions.
const WINDOW: Duration = Duration::from_millis(50);
/// Between two attempts to do with fewer threads.
const SHRINK: Duration = Duration::from_millis(500);
/// So long without a request are worth sleeping.
const QUIET: Duration = Duration::from_millis(100);

/// A reader that is at it for so long is worth a look.
const SUSPECT: Duration = Duration::from_micros(50);
/// One that sleeps in a handler for so long is stuck.
const STUCK: Duration = Duration::from_micros(500);
/// And so is one that computes, for so long.
const TOO_LONG: Duration = Duration::from_millis(10);
/// Whatever is at it for so long on the pool stays there for the time being.
const LONG_ON_POOL: Duration = Duration::from_millis(20);

/// Wakes the supervisor.
#[derive(Default)]
pub(super) struct Alarm {
    asleep: AtomicBool,
    stop: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Alarm {
    /// A request has come: for each of them, after it shows in what the supervisor looks at.
    pub(super) fn ring(&self) {
        // SeqCst, here and below: see `Busy::begin`.
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            if let Some(thread) = self.thread.get() {
                thread.unpark();
            }
        }
    }

    pub(super) fn stop(&self) {
        // Release: pairs with the Acquire in `run`, and carries nothing; unpark does the rest.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// What the supervisor remembers between two looks. Times are the clock's nanoseconds.
#[derive(Default)]
struct Memory {
    requests: u64,
    last_request: u64,
    last_decision: u64,
    last_shrink: u64,
    last_lock_round: u64,
    /// The pools have as few threads as they may.
    settled: bool,
}

/// The supervisor's life.
pub(super) fn run<C: Send + Sync + 'static>(core: &Arc<Core<C>>) {
    let _ = core.alarm.thread.set(std::thread::current());
    let mut memory = Memory::default();
    while !core.alarm.stop.load(Ordering::Acquire) {
        let now = core.clock.now();
        let tense = look(core, now);
        memory.now_and_then(core, now);
        if tense {
            std::thread::park_timeout(TENSE);
        } else if since(memory.last_request, now) < QUIET {
            std::thread::park_timeout(CALM);
        } else {
            sleep(core, &memory);
        }
    }
}

/// Until there is something to do.
fn sleep<C: Send + Sync + 'static>(core: &Core<C>, memory: &Memory) {
    core.alarm.asleep.store(true, Ordering::SeqCst);
    // Once more: what came before this store has not rung.
    let came = core.readers.look().any(|(_, seen)| !seen.marked)
        || core.pools().any(Pool::is_short_of_threads);
    match came {
        true => std::thread::park_timeout(TENSE),
        false if core.waiters.len() > 0 => std::thread::park_timeout(waiters::INTERVAL),
        false if !memory.settled => std::thread::park_timeout(SHRINK),
        false => std::thread::park(),
    }
    core.alarm.asleep.store(false, Ordering::SeqCst);
}

/// Looks at who is at what. Answers whether to look again soon.
fn look<C: Send + Sync + 'static>(core: &Core<C>, now: u64) -> bool {
    let mut tense = false;
    for (cell, seen) in core.readers.look() {
        let age = seen.age(now);
        if seen.marked || age < SUSPECT {
            continue;
        }
        let asleep = cell.sleeps();
        core.lanes.found(seen.operation, asleep);
        if age > if asleep { STUCK } else { TOO_LONG } {
            let alike = core.readers.replace(cell, &seen);
            // One that is slow for once costs a reader for a while. Several would cost all of them.
            // (What is awake may only wait for a CPU; its times tell, in the end.)
            if asleep && (alike > 1 || alike > 0 && age > TOO_LONG) {
                core.lanes.blocks(seen.operation, now);
            }
        } else {
            tense |= asleep;
        }
    }
    for pool in core.pools() {
        // One of them is enough to tell, and to look at a thread takes a while.
        let mut found = false;
        pool.grow(now, |worker, seen| {
            let age = seen.age(now);
            if age > LONG_ON_POOL {
                core.lanes.blocks(seen.operation, now);
            } else if age > SUSPECT && !std::mem::replace(&mut found, true) {
                core.lanes.found(seen.operation, worker.sleeps());
            }
        });
        tense |= pool.is_short_of_threads();
    }
    tense
}

impl Memory {
    fn now_and_then<C: Send + Sync + 'static>(&mut self, core: &Arc<Core<C>>, now: u64) {
        if since(self.last_decision, now) >= WINDOW {
            self.last_decision = now;
            core.lanes.decide(|operation| core.counters.total(operation), now);
            let requests = core.counters.requests();
            if requests != self.requests {
                (self.requests, self.last_request) = (requests, now);
            }
        }
        if since(self.last_shrink, now) >= SHRINK {
            self.last_shrink = now;
            // All of them, not only until the first that is not done.
            self.settled = core.pools().filter(|pool| !pool.shrink()).count() == 0;
        }
        if core.waiters.len() > 0 && since(self.last_lock_round, now) >= waiters::INTERVAL {
            self.last_lock_round = now;
            for inode in core.waiters.inodes() {
                core.lock_round(core.waiters.round(inode, true));
            }
        }
    }
}

fn since(then: u64, now: u64) -> Duration {
    Duration::from_nanos(now.saturating_sub(then))
}
