//! [`Reclaimer`]: the thread that frees what the resolver retired.
//!
//! Whoever retires something only says so; what was retired is freed once no request that could
//! know it is under way. With nothing to free the thread sleeps until it is woken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use pinpath::{NodeData, Resolver};

/// How long requests get to let go of what was retired before the next attempt.
const INTERVAL: Duration = Duration::from_millis(100);

/// So many nodes fewer than there were are worth giving their memory back to the system.
const MANY: usize = 10_000;

/// Dropping it ends the thread.
pub(super) struct Reclaimer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Something may have been retired.
    work: AtomicBool,
    stop: AtomicBool,
}

/// Says that something may have been retired.
pub(super) struct Bell {
    shared: Arc<Shared>,
    thread: std::sync::OnceLock<Thread>,
}

impl Bell {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Bell { shared: Arc::default(), thread: std::sync::OnceLock::new() })
    }

    /// On the request path: mostly one load of a line that nobody writes.
    pub(super) fn ring(&self) {
        if !self.shared.work.load(Ordering::Relaxed)
            && !self.shared.work.swap(true, Ordering::SeqCst)
        {
            if let Some(thread) = self.thread.get() {
                thread.unpark();
            }
        }
    }
}

impl Reclaimer {
    /// Starts the thread that `bell` wakes.
    pub(super) fn start<D: NodeData>(bell: &Bell, resolver: Resolver<D>) -> io::Result<Self> {
        let shared = bell.shared.clone();
        let for_thread = shared.clone();
        let builder = std::thread::Builder::new().name("pinpath-reclaim".into());
        let thread = builder.spawn(move || reclaim(&for_thread, &resolver))?;
        let _ = bell.thread.set(thread.thread().clone());
        Ok(Reclaimer { shared, thread: Some(thread) })
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn reclaim<D: NodeData>(shared: &Shared, resolver: &Resolver<D>) {
    let mut most = 0;
    while !shared.stop.load(Ordering::Acquire) {
        if !shared.work.load(Ordering::SeqCst) {
            std::thread::park();
            continue;
        }
        std::thread::park_timeout(INTERVAL);
        // Taken back before looking: what is retired from here on rings again.
        shared.work.store(false, Ordering::SeqCst);
        most = most.max(resolver.nodes());
        resolver.reclaim();
        if resolver.waiting() > 0 {
            shared.work.store(true, Ordering::SeqCst);
        } else if most > resolver.nodes() + MANY {
            most = resolver.nodes();
            give_memory_back();
        }
    }
}

/// A tree of a million files that was listed once and forgotten leaves the allocator's heaps full of
/// holes, which glibc keeps unless it is told.
fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes any number, may be called from any thread at any time, and touches only memory
    // that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}
