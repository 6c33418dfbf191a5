//! The process's collector, and each thread's way to its counters: one thread-local read.

use std::cell::Cell;
use std::sync::OnceLock;

use super::Collector;
use crate::domain::Counts;
use crate::threads;

pub(crate) type Guard = super::Guard<'static>;

#[derive(Clone, Copy)]
struct Own {
    collector: &'static Collector,
    counts: &'static Counts,
}

thread_local! {
    /// Set while the thread has a number. It has no destructor, so it can be read until the end.
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
}

/// Begins a guard.
#[inline]
pub(crate) fn pin() -> Guard {
    match OWN.get() {
        Some(own) => own.collector.pin(Some(own.counts)),
        None => first_pin(),
    }
}

#[cold]
fn first_pin() -> Guard {
    static COLLECTOR: OnceLock<Collector> = OnceLock::new();
    let collector = COLLECTOR.get_or_init(Collector::new);
    let counts = threads::own_number().map(|number| collector.counts(number));
    OWN.set(counts.map(|counts| Own { collector, counts }));
    collector.pin(counts)
}

/// The thread's number passes to another: its counters are not this thread's any more. No guard is
/// held then, because a thread ends outside of all verbs.
pub(crate) fn forget_thread() {
    OWN.set(None);
}
