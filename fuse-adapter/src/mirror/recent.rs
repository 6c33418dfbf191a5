//! [`Recent`]: what was just looked up, held for the request that follows.
//!
//! A program's `open` is two requests: the name is looked up, then the inode is opened. A file that
//! is replaced between the two can't be opened any more; the answer is `ESTALE`, and the kernel
//! looks the name up again. But it does so once. Where a file is replaced again and again, the
//! second attempt may lose as well, and the program would get an error that no other filesystem
//! gives. So from the first such answer on, and for a while, what is looked up is held by a
//! descriptor until it is used, or a moment has passed.
//!
//! In quiet times this costs one load of a number that nobody writes.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::identity::Identity;
use super::open_files::{OpenFiles, Registered};

/// How long look-ups are suspected after a race was noticed.
const SUSPICION: Duration = Duration::from_secs(1);
/// How long a descriptor waits for its use: what was deleted takes up space for so long.
const MOMENT: Duration = Duration::from_millis(250);
/// More are not held: the oldest goes.
const AT_MOST: usize = 128;

#[derive(Debug)]
pub(super) struct Recent {
    begin: Instant,
    /// Look-ups are suspect until so many milliseconds after `begin`; 0: they aren't.
    suspect_until: AtomicU64,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    /// The oldest first.
    queue: VecDeque<(Instant, Registered)>,
    /// A thread is there to let go of them.
    swept: bool,
}

impl Recent {
    pub(super) fn new() -> Self {
        Recent { begin: Instant::now(), suspect_until: AtomicU64::new(0), held: Arc::default() }
    }

    /// Somebody lost a race.
    pub(super) fn suspect(&self) {
        let until = self.now().saturating_add(SUSPICION.as_millis() as u64);
        // Relaxed, here and below: a hint. Who reads an old value does what is done in quiet times.
        self.suspect_until.store(until, Ordering::Relaxed);
    }

    /// Should what is looked up be held?
    pub(super) fn is_suspect(&self) -> bool {
        let until = self.suspect_until.load(Ordering::Relaxed);
        if until == 0 {
            return false;
        }
        if until > self.now() {
            return true;
        }
        let _ = self.suspect_until.compare_exchange(until, 0, Ordering::Relaxed, Ordering::Relaxed);
        false
    }

    /// Makes the descriptor the way to its file, for a moment.
    pub(super) fn hold(&self, open_files: &Arc<OpenFiles>, identity: Identity, fd: OwnedFd) {
        let registered = open_files.register_as_it_is(identity, fd);
        // Dropped after the lock: closing a file may take time.
        let _oldest = {
            let mut held = lock(&self.held);
            held.queue.push_back((Instant::now(), registered));
            if !held.swept {
                held.swept = start_sweeper(Arc::downgrade(&self.held));
            }
            // Without a sweeper nothing may stay.
            let room = if held.swept { AT_MOST } else { 0 };
            if held.queue.len() > room { held.queue.pop_front() } else { None }
        };
    }

    fn now(&self) -> u64 {
        // Not 0, which has a meaning.
        self.begin.elapsed().as_millis() as u64 + 1
    }
}

/// A thread that lives as long as there is something to let go.
fn start_sweeper(held: Weak<Mutex<Held>>) -> bool {
    let sweep = move || {
        loop {
            std::thread::sleep(MOMENT / 2);
            let Some(held) = held.upgrade() else { return };
            let (old, empty) = take_old(&held);
            drop(old);
            if empty {
                return;
            }
        }
    };
    std::thread::Builder::new().name("mirror-recent".into()).spawn(sweep).is_ok()
}

fn take_old(held: &Mutex<Held>) -> (VecDeque<(Instant, Registered)>, bool) {
    let mut held = lock(held);
    let young = held.queue.iter().position(|(since, _)| since.elapsed() < MOMENT);
    let keep = match young {
        Some(index) => held.queue.split_off(index),
        None => VecDeque::new(),
    };
    let old = std::mem::replace(&mut held.queue, keep);
    held.swept = !held.queue.is_empty();
    (old, !held.swept)
}

/// The queue is whole at any time.
fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_fd() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn held_for_a_moment() {
        let (recent, open_files) = (Recent::new(), OpenFiles::new());
        let identity = |ino| Identity { ino, birth: 0, device: 0 };
        for ino in 0..200 {
            recent.hold(&open_files, identity(ino), some_fd());
        }
        assert!(open_files.find(&identity(0)).is_none(), "too many: the oldest went");
        assert!(open_files.find(&identity(199)).is_some());
        let start = Instant::now();
        while open_files.find(&identity(199)).is_some() {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(10));
        }
        // Another burst has a sweeper again.
        recent.hold(&open_files, identity(1), some_fd());
        assert!(open_files.find(&identity(1)).is_some());
    }

    #[test]
    fn suspicion_ends() {
        let recent = Recent::new();
        assert!(!recent.is_suspect());
        recent.suspect();
        assert!(recent.is_suspect());
        recent.suspect_until.store(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(2));
        assert!(!recent.is_suspect());
        assert_eq!(recent.suspect_until.load(Ordering::Relaxed), 0);
    }
}
