//! What the mounted tests share: a mountpoint that cleans up after itself, a watchdog, and a look
//! at this process's threads and descriptors. [`memory`] is a filesystem to mount.
//!
//! Where there is no `/dev/fuse` a mounted test says so and does nothing; with the variable
//! `PINPATH_REQUIRE_FUSE` it fails instead.

#![allow(dead_code)] // each test program uses a part of it

pub(crate) mod memory;
mod namespace;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pinpath_fuse::{Handler, Mount, Unmounter};
use rustix::mount::UnmountFlags;

/// A directory to mount on. Whatever is mounted there is detached when this is dropped.
pub(crate) struct Mountpoint(PathBuf);

/// `None`, said loudly, where nothing can be mounted.
pub(crate) fn mountpoint() -> Option<Mountpoint> {
    if let Err(error) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        if std::env::var_os("PINPATH_REQUIRE_FUSE").is_some() {
            panic!("PINPATH_REQUIRE_FUSE is set and /dev/fuse can't be opened: {error}");
        }
        eprintln!("\n*** SKIPPED, because /dev/fuse can't be opened: {error} ***\n");
        return None;
    }
    let directory = tempfile::Builder::new().prefix("pinpath-test-").tempdir().unwrap();
    // Kept: what removes a directory with its content must not meet a mount.
    Some(Mountpoint(directory.keep().canonicalize().unwrap()))
}

impl Mountpoint {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Is anything mounted on it?
    pub(crate) fn is_mounted(&self) -> bool {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.lines().any(|line| line.split(' ').nth(4) == self.0.to_str())
    }
}

impl Drop for Mountpoint {
    fn drop(&mut self) {
        for _ in 0..10 {
            if rustix::mount::unmount(&self.0, UnmountFlags::DETACH).is_err() {
                break;
            }
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Cuts the connection of a mount if a test takes longer than it may, so that whoever hangs in it
/// gets an error; the test then fails. If that doesn't help either, ends the process.
pub(crate) struct Watchdog {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<bool>>,
}

const LIMIT: Duration = Duration::from_secs(30);

impl Watchdog {
    /// For one mount.
    pub(crate) fn on<H: Handler>(mount: &Mount<H>) -> Self {
        Watchdog::start(LIMIT, Some(mount.unmounter()))
    }

    /// For a test that mounts nothing, or more than one.
    pub(crate) fn alone() -> Self {
        Watchdog::start(LIMIT, None)
    }

    pub(crate) fn start(limit: Duration, unmounter: Option<Unmounter>) -> Self {
        let (done, wait) = channel::<()>();
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        let thread = std::thread::spawn(move || {
            if wait.recv_timeout(limit) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
            eprintln!("{name}: longer than {limit:?}, cutting the connection");
            if let Some(unmounter) = unmounter {
                let _ = unmounter.abort();
            }
            if wait.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name}: hangs all the same, ending the process");
                std::process::abort();
            }
            true
        });
        Watchdog { done: Some(done), thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.done.take());
        let bit = self.thread.take().is_some_and(|thread| thread.join().unwrap_or(true));
        if bit && !std::thread::panicking() {
            panic!("took longer than it may");
        }
    }
}

/// Waits until something is true.
pub(crate) fn eventually(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Tests that count what this process has must have it for themselves.
static PROCESS: RwLock<()> = RwLock::new(());

pub(crate) fn shared_process() -> RwLockReadGuard<'static, ()> {
    PROCESS.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub(crate) fn own_process() -> RwLockWriteGuard<'static, ()> {
    PROCESS.write().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The names of the threads that serve mounts.
pub(crate) fn serving_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One may end while we look.
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let mut names: Vec<String> = names
        .map(|name| name.trim().to_owned())
        .filter(|name| name.starts_with("pinpath") || name.starts_with("fuser"))
        .collect();
    names.sort();
    names
}

/// What this process's descriptors lead to.
pub(crate) fn descriptors() -> Vec<PathBuf> {
    let fds = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut fds: Vec<PathBuf> =
        fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok()).collect();
    fds.sort();
    fds
}
