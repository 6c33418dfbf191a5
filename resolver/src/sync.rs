//! The one place that chooses between `std`, loom and shuttle.
//!
//! Everything concurrent in this crate takes its atomics, locks, thread-locals and its epoch
//! reclamation from here, so that the models in `loom-tests/` run the very same code. Nothing else
//! in the crate names `std::sync`, loom or shuttle.

#[cfg(not(any(loom, shuttle)))]
mod imp {
    pub(crate) use std::sync::atomic::{
        AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
    };
    pub(crate) use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    pub(crate) use crate::epoch::global as epoch;

    pub(crate) fn spin_loop() {
        std::hint::spin_loop();
    }
}

#[cfg(loom)]
mod imp {
    pub(crate) use loom::sync::atomic::{
        AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    pub(crate) use super::model_epoch as epoch;
    pub(crate) use loom::{lazy_static, thread_local};

    pub(crate) fn spin_loop() {
        loom::thread::yield_now();
    }
}

#[cfg(shuttle)]
mod imp {
    pub(crate) use shuttle::sync::atomic::{
        AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use shuttle::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    pub(crate) use super::model_epoch as epoch;
    pub(crate) use shuttle::{lazy_static, thread_local};

    pub(crate) fn spin_loop() {
        shuttle::thread::yield_now();
    }
}

pub(crate) use imp::*;

#[cfg(not(any(loom, shuttle)))]
use std::sync as locks;

#[cfg(loom)]
use loom::sync as locks;

#[cfg(shuttle)]
use shuttle::sync as locks;

/// A mutex that a panic doesn't poison: every critical section here leaves its data whole at each
/// point where it can unwind.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(locks::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(locks::Mutex::new(value))
    }

    #[cfg(not(any(loom, shuttle)))]
    pub(crate) const fn constant(value: T) -> Self {
        Mutex(locks::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A reader-writer lock that a panic doesn't poison.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(locks::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(locks::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar(locks::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// The epochs of the models of everything else: what is deferred runs once no guard is held.
///
/// Simpler than the real ones (`epoch/`, which have a model of their own) and at least as eager, so it
/// hides no use after free that they would show, and it invents none.
#[cfg(any(loom, shuttle))]
pub(crate) mod model_epoch {
    use std::cell::RefCell;

    type Deferred = Box<dyn FnOnce()>;

    super::lazy_static! {
        static ref PENDING: super::locks::Mutex<Pending> =
            super::locks::Mutex::new(Pending { guards: 0, deferred: RefCell::new(Vec::new()) });
    }

    struct Pending {
        guards: usize,
        deferred: RefCell<Vec<Deferred>>,
    }

    // SAFETY: loom and shuttle run all threads of a model on one OS thread, one at a time.
    unsafe impl Send for Pending {}

    #[derive(Debug)]
    pub(crate) struct Guard(());

    pub(crate) fn pin() -> Guard {
        PENDING.lock().unwrap().guards += 1;
        Guard(())
    }

    impl Guard {
        /// # Safety
        /// As `crate::epoch::Guard::retire`.
        pub(crate) unsafe fn retire<T>(&self, pointer: *mut T, free: unsafe fn(*mut T)) {
            // SAFETY: the caller's promise.
            unsafe { self.defer_unchecked(move || free(pointer)) };
        }

        /// # Safety
        /// As `crate::epoch::Guard::defer_unchecked`.
        pub(crate) unsafe fn defer_unchecked<F: FnOnce()>(&self, f: F) {
            let boxed: Box<dyn FnOnce() + '_> = Box::new(f);
            // SAFETY: the caller promises that what `f` borrows outlives the deferral.
            let boxed: Deferred = unsafe { std::mem::transmute(boxed) };
            PENDING.lock().unwrap().deferred.get_mut().push(boxed);
        }

        pub(crate) fn flush(&self) {}
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            let ready = {
                let mut pending = PENDING.lock().unwrap();
                pending.guards -= 1;
                if pending.guards > 0 {
                    return;
                }
                pending.deferred.take()
            };
            for deferred in ready {
                deferred();
            }
        }
    }
}
