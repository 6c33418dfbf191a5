//! What a mount does while handlers are blocked, wait for locks, panic, or use their own mount.
//!
//! `PINPATH_MOUNTS` says how often the last test mounts and unmounts (default 100), and
//! `PINPATH_BLOCKED_MS` for how long reads block (default 1,000).

mod support;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use pinpath_fuse::{
    Dispatch, FileType, Lifetimes, Mount, MountOptions, MountThreads, Operation, mount,
};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, StatxFlags, flock, open, statx};
use support::memory::Memory;
use support::{
    Mountpoint, Watchdog, descriptors, eventually, mountpoint, own_process, serving_threads,
    shared_process,
};

const SECOND: Duration = Duration::from_secs(1);
/// Nobody who is not concerned waits for longer than this. (Measured it is a few milliseconds, see
/// `benches/RESULTS.md`; but the machine may be busy with something else.)
const AT_ONCE: Duration = SECOND;

fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn blocked_for() -> Duration {
    Duration::from_millis(number_from("PINPATH_BLOCKED_MS", 1000))
}

/// Files `slow0`, `slow1`, ... and `other`, of which the kernel remembers nothing.
fn files(slow: usize) -> Memory {
    let memory = Memory { lifetimes: Lifetimes::ZERO, ..Memory::default() };
    for number in 0..slow {
        memory.put(format!("slow{number}"), FileType::Regular, b"slow");
    }
    memory.put("other", FileType::Regular, b"other");
    memory
}

fn is_slow(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with("slow"))
}

/// One request, and for a path whose names are not remembered a look-up before it.
fn stat(path: impl AsRef<Path>) -> rustix::io::Result<()> {
    statx(CWD, path.as_ref(), AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS).map(drop)
}

/// Stats again and again while `busy`; answers how long each took.
fn stat_meanwhile(path: &Path, busy: impl Fn() -> bool) -> Vec<Duration> {
    let mut took = Vec::new();
    while busy() {
        let start = Instant::now();
        stat(path).unwrap();
        took.push(start.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    took.sort_unstable();
    took
}

/// 32 clients are blocked in `operation`; `other` can be used meanwhile.
fn blocked_in(operation: Operation, options: &MountOptions) {
    const CLIENTS: usize = 32;
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = files(CLIENTS);
    let (inside, at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (entered, most) = (inside.clone(), at_once.clone());
    memory.set_hook(move |asked, path| {
        if asked == operation && is_slow(path) {
            most.fetch_max(entered.fetch_add(1, SeqCst) + 1, SeqCst);
            thread::sleep(blocked_for());
            entered.fetch_sub(1, SeqCst);
        }
        Ok(())
    });
    let mount = mount(memory, at.path(), options).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let (other, started) = (at.join("other"), Instant::now());
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let path = at.join(format!("slow{number}"));
                scope.spawn(move || fs::read(path))
            })
            .collect();
        let took = stat_meanwhile(&other, || !clients.iter().all(|client| client.is_finished()));
        let (last, p99) = (took.last().unwrap(), took[took.len() * 99 / 100]);
        println!("{operation:?}: {} stats, p99 {p99:?}, max {last:?}", took.len());
        assert!(*last < AT_ONCE, "one took {last:?} of {}", took.len());
        for client in clients {
            assert_eq!(client.join().unwrap().unwrap(), b"slow");
        }
    });
    assert_eq!(inside.load(SeqCst), 0);
    // They were all blocked at the same time, not one after the other.
    assert_eq!(at_once.load(SeqCst), CLIENTS);
    assert!(started.elapsed() >= blocked_for());
    eventually("nobody is stuck any more", 10 * SECOND, || {
        mount.dispatch_stats().readers.stuck == 0
    });
    mount.unmount().unwrap();
}

#[test]
fn blocked_reads_stop_nobody_else() {
    blocked_in(Operation::Read, &MountOptions::default());
}

#[test]
fn blocked_getattrs_and_look_ups_stop_nobody_else() {
    blocked_in(Operation::GetAttr, &MountOptions::default());
    blocked_in(Operation::Lookup, &MountOptions::default());
}

#[test]
fn blocked_opens_stop_nobody_else_with_one_reader() {
    let mut options = MountOptions::default();
    options.threads.readers = 1;
    blocked_in(Operation::Open, &options);
}

/// Every operation blocks for the first time at the same moment: all readers are gone at once.
#[test]
fn readers_that_block_together_are_replaced() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = files(8);
    memory.set_hook(move |operation, path| {
        let number = path.to_str().and_then(|path| path.strip_prefix("slow")?.parse().ok());
        let blocks = match number {
            Some(0 | 1) => operation == Operation::Lookup,
            Some(2 | 3) => operation == Operation::GetAttr,
            Some(4 | 5) => operation == Operation::Open,
            Some(_) => operation == Operation::Read,
            None => false,
        };
        if blocks {
            thread::sleep(blocked_for());
        }
        Ok(())
    });
    let mount = mount(memory, at.path(), &MountOptions::default()).unwrap();
    let _watchdog = Watchdog::on(&mount);
    for _ in 0..3 {
        thread::scope(|scope| {
            let read = |number| {
                let path = at.join(format!("slow{number}"));
                scope.spawn(move || (stat(&path), fs::read(&path)))
            };
            let clients: Vec<_> = (0..8).map(read).collect();
            let busy = || !clients.iter().all(|client| client.is_finished());
            let took = stat_meanwhile(&at.join("other"), busy);
            assert!(took.last().is_some_and(|last| *last < AT_ONCE), "{took:?}");
        });
    }
    mount.unmount().unwrap();
}

#[test]
fn what_ends_something_passes_blocked_work() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    for dispatch in [Dispatch::Adaptive, Dispatch::Pool] {
        let memory = files(16);
        let open_gate = Arc::new(AtomicBool::new(false));
        let gate = open_gate.clone();
        memory.set_hook(move |operation, path| {
            while operation == Operation::Read && is_slow(path) && !gate.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        let mut options = MountOptions::default();
        options.dispatch = dispatch;
        options.threads.handlers = 3;
        let mount = mount(memory, at.path(), &options).unwrap();
        let _watchdog = Watchdog::on(&mount);
        let file = fs::File::open(at.join("other")).unwrap();
        thread::scope(|scope| {
            for number in 0..16 {
                let path = at.join(format!("slow{number}"));
                scope.spawn(move || assert_eq!(fs::read(path).unwrap(), b"slow"));
            }
            // More than there are threads; some are queued.
            eventually("a queue", 10 * SECOND, || mount.stats().queued > 0);
            let released = mount.handler().released.load(SeqCst);
            drop(file);
            eventually("the release", AT_ONCE, || mount.handler().released.load(SeqCst) > released);
            assert!(mount.stats().queued > 0, "and the queue is still there");
            open_gate.store(true, SeqCst);
        });
        mount.unmount().unwrap();
    }
}

/// Locks are the handler's.
fn lockable() -> Memory {
    Memory { wishes: |wishes| (wishes.flock_locks, wishes.posix_locks) = (true, false), ..files(1) }
}

fn opened(path: PathBuf) -> OwnedFd {
    open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

#[test]
fn waiting_for_a_lock_takes_no_thread() {
    const WAITERS: usize = 64;
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    for dispatch in [Dispatch::Adaptive, Dispatch::Pool] {
        let mut options = MountOptions::default();
        options.dispatch = dispatch;
        options.threads.handlers = 4;
        let mount = mount(lockable(), at.path(), &options).unwrap();
        let _watchdog = Watchdog::on(&mount);
        let holder = opened(at.join("slow0"));
        flock(&holder, FlockOperation::LockExclusive).unwrap();
        let alone = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..WAITERS {
                let (file, alone) = (opened(at.join("slow0")), alone.clone());
                scope.spawn(move || {
                    flock(&file, FlockOperation::LockExclusive).unwrap();
                    assert_eq!(alone.fetch_add(1, SeqCst), 0, "the lock excludes");
                    thread::sleep(Duration::from_micros(100));
                    alone.fetch_sub(1, SeqCst);
                    flock(&file, FlockOperation::Unlock).unwrap();
                });
            }
            let waiting = || mount.dispatch_stats().waiting_for_locks;
            eventually("all wait", 10 * SECOND, || waiting() == WAITERS);
            let start = Instant::now();
            stat(at.join("other")).unwrap();
            assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
            let stats = mount.dispatch_stats();
            assert!(stats.handlers <= 4 && stats.queued == 0, "{stats}");
            let start = Instant::now();
            flock(&holder, FlockOperation::Unlock).unwrap();
            eventually("all had it", 20 * SECOND, || waiting() == 0);
            println!("{dispatch:?}: {WAITERS} waiters in {:?}", start.elapsed());
        });
        // With the holder's descriptor goes the lock, too.
        flock(&holder, FlockOperation::LockExclusive).unwrap();
        let next = opened(at.join("slow0"));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| flock(&next, FlockOperation::LockExclusive));
            eventually("it waits", 10 * SECOND, || mount.dispatch_stats().waiting_for_locks == 1);
            drop(holder);
            waiter.join().unwrap().unwrap();
        });
        drop(next);
        mount.unmount().unwrap();
    }
}

#[test]
#[ignore = "run by who_waits_for_a_lock_can_be_killed"]
fn wait_for_a_lock() {
    let Some(at) = std::env::var_os("PINPATH_TEST_MOUNTPOINT") else { return };
    let file = opened(Path::new(&at).join("slow0"));
    let _ = flock(&file, FlockOperation::LockExclusive);
}

#[test]
fn who_waits_for_a_lock_can_be_killed() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mount(lockable(), at.path(), &MountOptions::default()).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let holder = opened(at.join("slow0"));
    flock(&holder, FlockOperation::LockExclusive).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "wait_for_a_lock", "--ignored"])
        .env("PINPATH_TEST_MOUNTPOINT", at.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it waits", 10 * SECOND, || mount.dispatch_stats().waiting_for_locks == 1);
    child.kill().unwrap();
    let start = Instant::now();
    child.wait().unwrap();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(mount.dispatch_stats().waiting_for_locks, 0);
    flock(&holder, FlockOperation::Unlock).unwrap();
    drop(holder);
    mount.unmount().unwrap();
}

/// Reading `slow0` reads `other` through the mount itself, so an operation waits for another one.
#[test]
fn a_handler_may_use_its_own_mount() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = files(8);
    let own: Arc<OnceLock<PathBuf>> = Arc::default();
    let path = own.clone();
    memory.set_hook(move |operation, asked| {
        if operation == Operation::Read && is_slow(asked) {
            assert_eq!(fs::read(path.get().unwrap()).unwrap(), b"other");
        }
        Ok(())
    });
    let mount = mount(memory, at.path(), &MountOptions::default()).unwrap();
    let _watchdog = Watchdog::on(&mount);
    own.set(at.join("other")).unwrap();
    let together = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            let (path, together) = (at.join(format!("slow{number}")), &together);
            scope.spawn(move || {
                together.wait();
                for _ in 0..20 {
                    assert_eq!(fs::read(&path).unwrap(), b"slow");
                }
            });
        }
    });
    mount.unmount().unwrap();
}

#[test]
fn long_operations_go_to_the_pool_and_come_back() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = files(8);
    let sleeps = Arc::new(AtomicBool::new(false));
    let asleep = sleeps.clone();
    memory.set_hook(move |operation, _| {
        if operation == Operation::GetAttr && asleep.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let mount = mount(memory, at.path(), &MountOptions::default()).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let file = opened(at.join("other"));
    let handed = || {
        for _ in 0..300 {
            statx(&file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::SIZE)
                .unwrap();
        }
        let stats = mount.dispatch_stats();
        let of = |stats: &&pinpath_fuse::OperationStats| stats.operation == Operation::GetAttr;
        stats.operations.iter().find(of).map_or((0, 0), |stats| (stats.requests, stats.handed_over))
    };
    let (requests, before) = handed();
    assert!(before < requests / 2, "{before} of {requests} were handed over");
    sleeps.store(true, SeqCst);
    handed();
    let (_, before) = handed();
    let (_, after) = handed();
    assert_eq!(after - before, 300, "what sleeps is handed over");
    sleeps.store(false, SeqCst);
    eventually("it comes back", 20 * SECOND, || {
        let (_, before) = handed();
        handed().1 == before
    });
    mount.unmount().unwrap();
}

/// Load until `over`; whatever the mount answers is good, if only it does.
fn load(at: &Path, number: usize, over: &AtomicBool, answers: &AtomicU64) {
    while !over.load(SeqCst) {
        let _ = stat(at.join("other"));
        let _ = fs::read(at.join(format!("slow{number}")));
        let _ = fs::read_dir(at).map(Iterator::count);
        let _ = fs::create_dir(at.join(format!("dir{number}")));
        let _ = fs::rename(at.join(format!("dir{number}")), at.join(format!("moved{number}")));
        let _ = fs::remove_dir(at.join(format!("moved{number}")));
        answers.fetch_add(1, SeqCst);
    }
}

/// Mounts, has it used, and ends it in the middle of that. One operation in a hundred panics.
fn once(at: &Mountpoint, number: u64) -> io::Result<()> {
    let memory = files(4);
    let calls = AtomicU64::new(0);
    memory.set_hook(move |_, _| {
        assert!(calls.fetch_add(1, SeqCst) % 100 != 99, "on purpose");
        Ok(())
    });
    let mut options = MountOptions::default();
    options.dispatch = if number % 4 == 3 { Dispatch::Pool } else { Dispatch::Adaptive };
    options.threads = MountThreads { handlers: 8, ..options.threads };
    let mount: Mount<Memory> = mount(memory, at.path(), &options).map_err(io::Error::other)?;
    let (over, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..4 {
            let (over, answers) = (&over, &answers);
            scope.spawn(move || load(at.path(), number, over, answers));
        }
        while answers.load(SeqCst) < 8 {
            thread::sleep(Duration::from_micros(200));
        }
        let ended = match number % 3 {
            0 => mount.unmounter().abort(),
            _ => mount.unmounter().unmount().map(drop),
        };
        over.store(true, SeqCst);
        ended
    })?;
    mount.wait()
}

#[test]
fn mounts_that_end_under_load_leave_nothing() {
    let Some(at) = mountpoint() else { return };
    let _own = own_process();
    let rounds = number_from("PINPATH_MOUNTS", 100);
    let limit = Duration::from_secs(30) + Duration::from_millis(200) * rounds as u32;
    let _watchdog = Watchdog::start(limit, None);
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload().downcast_ref::<&str>().copied().unwrap_or("?");
        if !message.contains("on purpose") {
            eprintln!("{info}");
        }
    }));
    for number in 0..12 {
        once(&at, number).unwrap(); // what is made once and kept
    }
    let before = descriptors();
    for number in 0..rounds {
        once(&at, number).unwrap();
    }
    std::panic::set_hook(print);
    eventually("threads end", 5 * SECOND, || serving_threads().is_empty());
    assert_eq!(descriptors(), before);
    assert!(!at.is_mounted());
}
