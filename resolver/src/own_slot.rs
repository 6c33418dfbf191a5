//! Each thread's way to its slot in the domain that it used last: a thread-local read and a
//! comparison. A thread that serves one mount uses one domain.

use crate::domain::{Domain, Slot};

/// Runs `f` with a slot of the domain to which no other thread writes meanwhile.
#[cfg(not(any(loom, shuttle)))]
#[inline(always)]
pub(crate) fn with_slot<R>(domain: &'static Domain, f: impl FnOnce(&'static Slot) -> R) -> R {
    match own::LAST.get() {
        Some((last, slot)) if std::ptr::eq(last, domain) => f(slot),
        _ => own::look(domain, f),
    }
}

#[cfg(not(any(loom, shuttle)))]
pub(crate) use own::forget_thread;

#[cfg(not(any(loom, shuttle)))]
mod own {
    use super::{Domain, Slot};
    use crate::threads;
    use std::cell::Cell;

    thread_local! {
        /// Set only while the thread has a number of its own. It has no destructor, so it can be read
        /// until the thread's end.
        pub(super) static LAST: Cell<Option<(&'static Domain, &'static Slot)>> =
            const { Cell::new(None) };
    }

    #[cold]
    #[inline(never)]
    pub(super) fn look<R>(domain: &'static Domain, f: impl FnOnce(&'static Slot) -> R) -> R {
        if let Some(number) = threads::own_number() {
            LAST.set(Some((domain, domain.slot(number))));
        }
        threads::with_number(|number| f(domain.slot(number)))
    }

    /// The thread's number passes to another, and its slots with it.
    pub(crate) fn forget_thread() {
        LAST.set(None);
    }
}

/// In a model the number is looked up each time.
#[cfg(any(loom, shuttle))]
pub(crate) fn with_slot<R>(domain: &'static Domain, f: impl FnOnce(&'static Slot) -> R) -> R {
    crate::threads::with_number(|number| f(domain.slot(number)))
}
