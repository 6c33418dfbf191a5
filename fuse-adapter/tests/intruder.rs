//! Somebody who may change the source tries to lead the mirror out of it.
//!
//! Intruders (this process) change the source behind the daemon: they swap directories for symbolic
//! links and back in one step, move directories out of the tree and in again, put pipes and devices
//! where files were, and mount things on each other, the mirror itself among them. Meanwhile users
//! of the mount, root and others, read, write, create, rename and remove by the same names.
//!
//! Outside the source lies a tree of the same names, the canary. At the end every byte, owner, mode,
//! time and name of it is what it was: nothing was written, and, by the times of access, nothing was
//! read. The users themselves never follow a symbolic link, so what they reach the daemon reached.
//!
//! The mirror has two defences, of which either holds alone: it follows no link, and it compares what
//! it reached with what it meant. This test fails when both are taken out.
//!
//! `PINPATH_INTRUDER_SECONDS` says how long (default 5), `PINPATH_INTRUDER_SEED` repeats a run's
//! choices, though not its timing.

#[path = "intruder/canary.rs"]
mod canary;
#[path = "intruder/intruders.rs"]
mod intruders;
mod running;
#[path = "intruder/users.rs"]
mod users;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use running::{Daemon, Places, can_mount};
use rustix::process::{Signal, kill_process};

use canary::Canary;
use intruders::Intruder;
use users::User;

/// The names that everybody uses, at every depth: the fewer, the more often paths meet.
const NAMES: [&str; 3] = ["a", "b", "c"];
const DEPTH: usize = 3;

/// What is fixed for a run.
struct Run {
    source: PathBuf,
    mountpoint: PathBuf,
    /// Where directories are moved to: outside of the source, on the same filesystem.
    elsewhere: PathBuf,
    canary: PathBuf,
    over: AtomicBool,
}

impl Run {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A path of up to [`DEPTH`] names.
    fn path(&mut self) -> PathBuf {
        (0..=self.below(DEPTH)).map(|_| self.pick(&NAMES)).collect()
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The same tree in the source and outside: directories and files at every level.
fn plant(root: &Path, content: &str, depth: usize) {
    for name in NAMES {
        let path = root.join(name);
        if depth > 0 {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("file"), content).unwrap();
            if content == canary::SECRET {
                std::fs::write(path.join(canary::ONLY_THERE), content).unwrap();
            }
            plant(&path, content, depth - 1);
        } else {
            std::fs::write(&path, content).unwrap();
        }
    }
}

#[test]
fn nothing_outside_the_source_is_read_or_written() {
    if !can_mount("nothing_outside_the_source_is_read_or_written") {
        return;
    }
    for cache in ["none", "auto", "always"] {
        attack(cache);
    }
}

fn attack(cache: &str) {
    // Everybody may do everything in the source.
    rustix::process::umask(rustix::fs::Mode::empty());
    let seconds = number("PINPATH_INTRUDER_SECONDS", 5);
    let seed = number("PINPATH_INTRUDER_SEED", u64::from(std::process::id()) << 20 | 1);
    eprintln!("cache mode {cache}, {seconds} seconds, seed {seed}");
    let places = Places::new();
    let unbinds = intruders::Unbinds { below: places.path().into(), but: places.mountpoint() };
    let run = Run {
        source: places.source(),
        mountpoint: places.mountpoint(),
        elsewhere: places.path().join("elsewhere"),
        canary: places.path().join("canary"),
        over: AtomicBool::new(false),
    };
    for folder in [&run.elsewhere, &run.canary] {
        std::fs::create_dir(folder).unwrap();
    }
    plant(&run.source, "inside", DEPTH);
    plant(&run.canary, canary::SECRET, DEPTH);
    let canary = Canary::new(&run.canary);

    let arguments = ["--allow-other", "-o", "suid,dev", "--cache", cache];
    let arguments = arguments.map(std::ffi::OsString::from).into_iter();
    let arguments: Vec<_> =
        arguments.chain([run.source.clone().into(), run.mountpoint.clone().into()]).collect();
    let daemon = Daemon::start(&arguments, &run.mountpoint);
    let idle = threads_of(&daemon);

    let (did, reached) = thread::scope(|scope| {
        // Killing it frees whoever waits for an answer that does not come.
        let pid = daemon.pid();
        let (done, over) = mpsc::channel::<()>();
        scope.spawn(move || {
            let limit = Duration::from_secs(seconds + 30);
            if over.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("hangs");
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let run = &run;
        let intruders: Vec<_> = (0..2)
            .map(|n| scope.spawn(move || Intruder::new(run, Random(seed + n)).work()))
            .collect();
        let users: Vec<_> = [(0, 0), (1000, 1000), (1001, 100)]
            .into_iter()
            .zip(10..)
            .map(|((uid, gid), n)| {
                scope.spawn(move || User::new(run, Random(seed + n)).work(uid, gid))
            })
            .collect();
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            threads_of(&daemon).iter().for_each(Thread::is_no_stranger);
            thread::sleep(Duration::from_millis(20));
        }
        run.over.store(true, Ordering::Relaxed);
        let did: Vec<u64> = intruders.into_iter().map(|thread| thread.join().unwrap()).collect();
        let reached: Vec<_> = users.into_iter().map(|thread| thread.join().unwrap()).collect();
        drop(done);
        (did, reached)
    });
    drop(unbinds);
    eprintln!("intruders did {did:?}; users had {reached:?}");
    canary.check();
    // Else nothing was tried.
    assert!(did.iter().all(|&did| did > 50), "{did:?}");
    assert!(reached.iter().all(|tried| tried.succeeded > 20), "{reached:?}");

    // Nobody has any business any more, so each thread is who it was.
    let so =
        running::until(running::SOON, || threads_of(&daemon).iter().all(|now| idle.contains(now)));
    assert!(so, "{:?} but {idle:?}", threads_of(&daemon));
    assert!(std::fs::read_dir(&run.mountpoint).is_ok(), "it answers");
    daemon.stop();
}

/// Who a thread of the daemon is, by `/proc`.
#[derive(Debug, PartialEq, Eq)]
struct Thread {
    uids: String,
    gids: String,
    groups: String,
    capabilities: Vec<String>,
}

impl Thread {
    /// While it works for somebody it has that one's ids, and never anybody else's.
    #[track_caller]
    fn is_no_stranger(&self) {
        let last = |ids: &str| ids.split_whitespace().last().and_then(|id| id.parse().ok());
        let (uid, gid): (Option<u32>, Option<u32>) = (last(&self.uids), last(&self.gids));
        assert!(matches!(uid, Some(0 | 1000 | 1001)), "{self:?}");
        assert!(matches!(gid, Some(0 | 1000 | 100)), "{self:?}");
    }
}

fn threads_of(daemon: &Daemon) -> Vec<Thread> {
    let tasks = format!("/proc/{}/task", daemon.pid().as_raw_nonzero());
    let tasks = std::fs::read_dir(tasks).unwrap();
    // One may end while we look.
    let texts =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let threads: Vec<_> = texts
        .map(|text| {
            let field = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim().to_owned()
            };
            Thread {
                uids: field("Uid:"),
                gids: field("Gid:"),
                groups: field("Groups:"),
                capabilities: ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].map(field).to_vec(),
            }
        })
        .collect();
    assert!(threads.len() > 2, "{threads:?}");
    threads
}
