//! Small dense numbers for threads, used again after a thread has ended.
//!
//! Whoever holds a number is the only writer of the slots that belong to it in every
//! [`Domain`](crate::domain::Domain). A number passes from a thread that ends to a new one through
//! a mutex, so the new owner sees all that the old one wrote.

use std::collections::BTreeSet;

use crate::sync::Mutex;

#[derive(Debug, Default)]
struct Numbers {
    /// Given back. The smallest goes first, so that the numbers in use stay small.
    free: BTreeSet<usize>,
    /// The smallest never given out.
    next: usize,
}

#[cfg(not(any(loom, shuttle)))]
static NUMBERS: Mutex<Numbers> = Mutex::constant(Numbers { free: BTreeSet::new(), next: 0 });

#[cfg(any(loom, shuttle))]
crate::sync::lazy_static! {
    static ref NUMBERS: Mutex<Numbers> = Mutex::new(Numbers::default());
}

fn acquire() -> usize {
    let mut numbers = NUMBERS.lock();
    numbers.free.pop_first().unwrap_or_else(|| {
        numbers.next += 1;
        numbers.next - 1
    })
}

fn give_back(number: usize) {
    NUMBERS.lock().free.insert(number);
}

#[cfg(not(any(loom, shuttle)))]
mod own {
    use std::cell::Cell;

    const NONE: usize = usize::MAX;

    /// A number for as long as this lives.
    #[derive(Debug)]
    struct Number(usize);

    impl Drop for Number {
        fn drop(&mut self) {
            // Before the number can be another thread's.
            NUMBER.set(NONE);
            crate::epoch::global::forget_thread();
            crate::own_slot::forget_thread();
            super::give_back(self.0);
        }
    }

    thread_local! {
        /// What `OWNER` has. It has no destructor, so reading it is a load and nothing else.
        static NUMBER: Cell<usize> = const { Cell::new(NONE) };
        static OWNER: Number = Number(super::acquire());
    }

    /// Runs `f` with a number that no other thread has meanwhile.
    #[inline]
    pub(crate) fn with_number<R>(f: impl FnOnce(usize) -> R) -> R {
        match NUMBER.get() {
            NONE => match own_number() {
                Some(number) => f(number),
                // A borrowed one does as well.
                None => f(Number(super::acquire()).0),
            },
            number => f(number),
        }
    }

    /// The thread's own number. None if it is gone already: the thread is ending, and something that
    /// it kept in a thread-local calls us while being dropped.
    #[cold]
    pub(crate) fn own_number() -> Option<usize> {
        let number = OWNER.try_with(|number| number.0).ok()?;
        NUMBER.set(number);
        Some(number)
    }
}

/// loom drops its statics while thread-locals are still being dropped, so a model says itself when
/// a thread ends.
#[cfg(any(loom, shuttle))]
mod own {
    use std::cell::Cell;

    crate::sync::thread_local! {
        static NUMBER: Cell<Option<usize>> = Cell::new(None);
    }

    pub(crate) fn with_number<R>(f: impl FnOnce(usize) -> R) -> R {
        let known = NUMBER.with(Cell::get);
        let number = known.unwrap_or_else(super::acquire);
        NUMBER.with(|own| own.set(Some(number)));
        f(number)
    }

    /// As when a thread ends: its number may go to another.
    pub fn end_thread() {
        if let Some(number) = NUMBER.with(Cell::take) {
            super::give_back(number);
        }
    }
}

pub(crate) use own::with_number;

#[cfg(not(any(loom, shuttle)))]
pub(crate) use own::own_number;

#[cfg(any(loom, shuttle))]
pub use own::end_thread;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn threads_alive_together_have_different_numbers() {
        let barrier = Barrier::new(8);
        let numbers: BTreeSet<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let number = with_number(|number| number);
                        barrier.wait();
                        number
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(numbers.len(), 8);
    }

    #[test]
    fn a_thread_keeps_its_number() {
        assert_eq!(with_number(|number| number), with_number(|number| number));
    }
}
