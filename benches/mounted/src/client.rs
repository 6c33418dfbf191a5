//! The client: threads that stat files. Nothing is cached on the way, so that every call is one
//! GETATTR.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};

/// As many files as clients at most: `f0`, `f1`, ...
pub(crate) const FILES: usize = 8;

pub(crate) fn file_name(number: usize) -> String {
    format!("f{number}")
}

/// Names the files without opening them, so that no request carries a handle.
pub(crate) fn name_files(mountpoint: &Path) -> anyhow::Result<Vec<OwnedFd>> {
    let name = |number| {
        let path = mountpoint.join(file_name(number));
        openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .with_context(|| format!("{path:?}"))
    };
    (0..FILES).map(name).collect()
}

/// One request.
pub(crate) fn stat(file: &OwnedFd) -> rustix::io::Result<()> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    statx(file, "", flags, StatxFlags::BASIC_STATS).map(drop)
}

/// How many requests a second so many clients make, each of a file of its own. `cpu`: all of them
/// on that one.
pub(crate) fn rate(
    files: &[OwnedFd],
    clients: usize,
    length: Duration,
    cpu: Option<usize>,
) -> anyhow::Result<f64> {
    let (over, together) = (AtomicBool::new(false), Barrier::new(clients + 1));
    let (over, together) = (&over, &together);
    thread::scope(|scope| {
        let threads: Vec<_> = files
            .iter()
            .cycle()
            .take(clients)
            .map(|file| {
                scope.spawn(move || {
                    if let Some(cpu) = cpu {
                        let mut set = rustix::thread::CpuSet::new();
                        set.set(cpu);
                        let _ = rustix::thread::sched_setaffinity(None, &set);
                    }
                    together.wait();
                    let mut count = 0u64;
                    while !over.load(Ordering::Relaxed) {
                        stat(file)?;
                        count += 1;
                    }
                    Ok::<_, rustix::io::Errno>(count)
                })
            })
            .collect();
        together.wait();
        let start = Instant::now();
        thread::sleep(length);
        over.store(true, Ordering::Relaxed);
        let took = start.elapsed();
        let mut sum = 0;
        for thread in threads {
            sum += thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(sum as f64 / took.as_secs_f64())
    })
}
