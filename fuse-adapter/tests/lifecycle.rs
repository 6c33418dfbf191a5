//! How mounts begin, live and end.

mod support;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pinpath_fuse::{
    Errno, FileType, Mount, MountError, MountOptions, MountThreads, Operation, Unmounted, mount,
};
use rustix::mount::UnmountFlags;
use support::memory::Memory;
use support::{
    Mountpoint, Watchdog, descriptors, eventually, mountpoint, own_process, serving_threads,
    shared_process,
};

const SECOND: Duration = Duration::from_secs(1);

fn small() -> Memory {
    let memory = Memory::default();
    memory.put("file", FileType::Regular, b"content");
    memory.put("dir", FileType::Directory, b"");
    memory.put("dir/inner", FileType::Regular, b"inner");
    memory
}

fn mounted(memory: Memory, at: &Mountpoint) -> Mount<Memory> {
    mount(memory, at.path(), &MountOptions::default()).unwrap()
}

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

/// A gate at which a handler waits until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, usize)>, Condvar)>);

impl Gate {
    fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.1 += 1;
        self.0.1.notify_all();
        drop(self.0.1.wait_while(state, |state| !state.0).unwrap());
    }

    fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    fn wait_for(&self, count: usize) {
        let state = self.0.0.lock().unwrap();
        let waited =
            self.0.1.wait_timeout_while(state, 10 * SECOND, |state| state.1 < count).unwrap();
        assert!(waited.0.1 >= count, "nobody came to the gate");
    }
}

#[test]
fn it_is_there_when_mount_returns_and_gone_when_unmount_does() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let _watchdog = Watchdog::on(&mount);
    assert!(at.is_mounted());
    assert_eq!(fs::read(at.join("file")).unwrap(), b"content");
    assert_eq!(fs::read(at.join("dir/inner")).unwrap(), b"inner");
    let destroyed = mount.handler().destroyed.clone();
    let start = Instant::now();
    assert_eq!(mount.unmount().unwrap(), Unmounted::Now);
    assert!(start.elapsed() < SECOND, "{:?}", start.elapsed());
    assert!(!at.is_mounted());
    assert_eq!((mount.handler().inits.load(SeqCst), destroyed.load(SeqCst)), (1, 1));
    assert_eq!(mount.handler().opened.load(SeqCst), mount.handler().released.load(SeqCst));
    // Once more does no harm.
    assert_eq!(mount.unmount().unwrap(), Unmounted::Now);
    mount.unmounter().abort().unwrap();
    drop(mount);
    assert_eq!(destroyed.load(SeqCst), 1);
}

#[test]
fn it_ends_when_unmounted_from_outside() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let _watchdog = Watchdog::on(&mount);
    fs::read(at.join("file")).unwrap();
    rustix::mount::unmount(at.path(), UnmountFlags::empty()).unwrap();
    let start = Instant::now();
    mount.wait().unwrap();
    assert!(start.elapsed() < SECOND);
    assert!(mount.unmounter().has_ended());
    assert_eq!(mount.handler().destroyed.load(SeqCst), 1);
}

#[test]
fn dropping_it_unmounts() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let destroyed = mount.handler().destroyed.clone();
    let start = Instant::now();
    drop(mount);
    assert!(start.elapsed() < SECOND);
    assert!(!at.is_mounted());
    assert_eq!(destroyed.load(SeqCst), 1);
}

#[test]
fn another_thread_unmounts_it() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let _watchdog = Watchdog::on(&mount);
    let unmounter = mount.unmounter();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        unmounter.unmount().unwrap();
    });
    mount.wait().unwrap();
    thread.join().unwrap();
    assert!(!at.is_mounted());
}

#[test]
fn in_use_it_leaves_the_tree_and_serves_what_is_open() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let _watchdog = Watchdog::on(&mount);
    let file = fs::File::open(at.join("file")).unwrap();
    assert_eq!(mount.unmount().unwrap(), Unmounted::WhenIdle);
    assert!(!at.is_mounted());
    assert_eq!(io::read_to_string(&file).unwrap(), "content");
    assert!(!mount.unmounter().has_ended());
    drop(file);
    mount.wait().unwrap();
    assert_eq!(mount.handler().destroyed.load(SeqCst), 1);
}

#[test]
fn abort_ends_even_what_has_left_the_tree() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let _watchdog = Watchdog::on(&mount);
    let file = fs::File::open(at.join("file")).unwrap();
    assert_eq!(mount.unmount().unwrap(), Unmounted::WhenIdle);
    mount.unmounter().abort().unwrap();
    mount.wait().unwrap();
    assert!(io::read_to_string(&file).is_err());
}

#[test]
fn abort_frees_who_waits_for_a_stuck_handler() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let _watchdog = Watchdog::on(&mount);
    let gate = Gate::default();
    let stuck = gate.clone();
    mount.handler().set_hook(move |operation, _| {
        if operation == Operation::Read {
            stuck.pass();
        }
        Ok(())
    });
    let path = at.join("file");
    let reader = std::thread::spawn(move || fs::read(path));
    gate.wait_for(1);
    mount.unmounter().abort().unwrap();
    assert!(reader.join().unwrap().is_err());
    assert!(!at.is_mounted());
    gate.open();
    mount.wait().unwrap();
    assert_eq!(mount.handler().destroyed.load(SeqCst), 1);
}

#[test]
fn dropping_it_waits_a_second_for_a_stuck_handler_and_no_longer() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let gate = Gate::default();
    let stuck = gate.clone();
    mount.handler().set_hook(move |operation, _| {
        if operation == Operation::Read {
            stuck.pass();
        }
        Ok(())
    });
    let path = at.join("file");
    let reader = std::thread::spawn(move || fs::read(path));
    gate.wait_for(1);
    let destroyed = mount.handler().destroyed.clone();
    let start = Instant::now();
    drop(mount);
    assert!((SECOND / 2..3 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
    // What is under way is finished and answered all the same.
    gate.open();
    assert_eq!(reader.join().unwrap().unwrap(), b"content");
    eventually("destroy", 10 * SECOND, || destroyed.load(SeqCst) == 1);
}

#[test]
fn an_init_that_fails_leaves_nothing() {
    let Some(at) = mountpoint() else { return };
    let _own = own_process();
    for init in [|| Err(io::Error::from_raw_os_error(libc::ENOMEM)), || panic!("on purpose")]
        as [fn() -> _; 2]
    {
        let memory = Memory { init, ..small() };
        let destroyed = memory.destroyed.clone();
        let error = mount(memory, at.path(), &MountOptions::default()).unwrap_err();
        match error {
            MountError::Init(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOMEM)),
            MountError::InitPanicked => {}
            other => panic!("{other:?}"),
        }
        assert!(!at.is_mounted());
        assert_eq!(fs::read_dir(at.path()).unwrap().count(), 0, "and does not hang");
        assert_eq!(destroyed.load(SeqCst), 0, "what did not start does not end");
        assert_eq!(serving_threads(), Vec::<String>::new());
    }
}

#[test]
fn the_reason_why_it_can_not_be_mounted_is_said() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let options = MountOptions::default();
    let error = mount(small(), at.join("missing"), &options).unwrap_err();
    assert!(matches!(error, MountError::Missing(_)), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = mount(small(), file.path(), &options).unwrap_err();
    assert!(matches!(error, MountError::NotADirectory(_)), "{error}");
    let mut options = MountOptions::default();
    options.more = vec!["no_such_option".into()];
    let error = mount(small(), at.path(), &options).unwrap_err();
    assert!(matches!(error, MountError::Kernel(..)), "{error}");
    assert!(!at.is_mounted());
}

#[test]
fn a_handler_that_panics_fails_one_request_and_loses_no_thread() {
    let Some(at) = mountpoint() else { return };
    let _own = own_process();
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ())); // 120 panics on purpose
    for handlers in [0, 4] {
        let mut options = MountOptions::default();
        options.threads = MountThreads { handlers, ..options.threads };
        options.dispatch = pinpath_fuse::Dispatch::Pool;
        let mount = mount(small(), at.path(), &options).unwrap();
        let _watchdog = Watchdog::on(&mount);
        // The readers, who serves the mount, the reclaimer; the pool, its thread for closing, and
        // who watches them.
        let readers = options.threads.readers;
        let count = readers + 2 + if handlers > 0 { handlers + 2 } else { 0 };
        // A thread names itself a moment after it began.
        let all_named = |mut names: Vec<String>| {
            names.dedup();
            names.len() == count
        };
        eventually("all threads", 10 * SECOND, || all_named(serving_threads()));
        let threads = serving_threads();
        mount.handler().set_hook(|_, path| {
            assert!(!path.ends_with("boom"), "on purpose");
            Ok(())
        });
        for _ in 0..20 {
            assert_eq!(errno(fs::metadata(at.join("boom"))), Some(libc::EIO));
            assert_eq!(errno(fs::create_dir(at.join("dir/boom"))), Some(libc::EIO));
            assert_eq!(errno(fs::rename(at.join("boom"), at.join("other"))), Some(libc::EIO));
        }
        assert_eq!(fs::read(at.join("file")).unwrap(), b"content");
        assert_eq!(serving_threads(), threads);
        assert_eq!(mount.resolver().stats().leases, 0);
        mount.unmount().unwrap();
    }
    std::panic::set_hook(print);
}

#[test]
fn fifty_mounts_leave_no_descriptor_and_no_thread() {
    let Some(at) = mountpoint() else { return };
    let _own = own_process();
    let _watchdog = Watchdog::alone();
    let round = |plus| {
        let mount = mounted(Memory { plus, ..small() }, &at);
        // The first listing of a directory asks for attributes: an answer past fuser.
        assert_eq!(fs::read_dir(at.path()).unwrap().count(), 2);
        fs::read(at.join("dir/inner")).unwrap();
        mount.unmount().unwrap();
    };
    round(true);
    let before = descriptors();
    for i in 0..50 {
        round(i % 2 == 0);
    }
    assert_eq!(descriptors(), before);
    assert_eq!(serving_threads(), Vec::<String>::new());
}

#[test]
fn with_more_callers_than_threads_and_queue_everybody_is_answered() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = small();
    for i in 0..64 {
        memory.put(format!("slow{i}"), FileType::Regular, b"slow");
    }
    memory.set_hook(|operation, _| {
        if operation == Operation::Read {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    });
    let mut options = MountOptions::default();
    options.threads = MountThreads { readers: 2, handlers: 2, clone_fd: false };
    options.dispatch = pinpath_fuse::Dispatch::Pool;
    options.queue_length = 2;
    let mount = mount(memory, at.path(), &options).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let most = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..64)
            .map(|i| {
                let path = at.join(format!("slow{i}"));
                scope.spawn(move || fs::read(path).unwrap())
            })
            .collect();
        while !callers.iter().all(|caller| caller.is_finished()) {
            most.fetch_max(mount.stats().queued, SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        for caller in callers {
            assert_eq!(caller.join().unwrap(), b"slow");
        }
    });
    // The queue was full, and no longer than it may be (and so may be that of what closes files).
    assert!((2..=4).contains(&most.load(SeqCst)), "{most:?}");
    mount.unmount().unwrap();
}

#[test]
fn closing_a_file_does_not_wait_behind_blocked_reads() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let memory = small();
    let gate = Gate::default();
    let stuck = gate.clone();
    memory.put("other", FileType::Regular, b"content");
    memory.set_hook(move |operation, path| {
        if operation == Operation::Read && path != Path::new("dir/inner") {
            stuck.pass();
        }
        Ok(())
    });
    let mut options = MountOptions::default();
    options.threads = MountThreads { readers: 2, handlers: 2, clone_fd: false };
    let mount = mount(memory, at.path(), &options).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let inner = fs::File::open(at.join("dir/inner")).unwrap();
    let readers: Vec<_> = ["file", "other"]
        .map(|name| {
            let path = at.join(name);
            std::thread::spawn(move || fs::read(path))
        })
        .into();
    gate.wait_for(2); // both threads of the pool
    let released = mount.handler().released.load(SeqCst);
    drop(inner);
    eventually("release", 10 * SECOND, || mount.handler().released.load(SeqCst) > released);
    gate.open();
    for reader in readers {
        assert_eq!(reader.join().unwrap().unwrap(), b"content");
    }
}

/// fuser 0.18 by itself would unmount what it finds at the path when it ends.
#[test]
fn a_mount_over_a_mount_takes_away_only_itself() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let below = mounted(small(), &at);
    let _watchdog = Watchdog::on(&below);
    let above = Memory::default();
    above.put("above", FileType::Regular, b"");
    let above = mounted(above, &at);
    assert!(at.join("above").exists());
    assert_eq!(below.unmount().unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    // Unmounted from outside, so that the end finds it gone.
    rustix::mount::unmount(at.path(), UnmountFlags::empty()).unwrap();
    above.wait().unwrap();
    drop(above);
    assert_eq!(fs::read(at.join("file")).unwrap(), b"content");
    assert_eq!(below.unmount().unwrap(), Unmounted::Now);
    assert!(!at.is_mounted());
}

#[test]
fn every_kind_of_threads_works() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let threads = |readers, handlers, clone_fd| MountThreads { readers, handlers, clone_fd };
    for threads in
        [threads(1, 0, false), threads(1, 1, false), threads(4, 2, true), threads(3, 0, true)]
    {
        for dispatch in [pinpath_fuse::Dispatch::Pool, pinpath_fuse::Dispatch::Adaptive] {
            let mut options = MountOptions::default();
            options.threads = threads;
            options.dispatch = dispatch;
            let mount = mount(small(), at.path(), &options).unwrap();
            let _watchdog = Watchdog::on(&mount);
            let plus = mount.agreed().readdirplus;
            assert_eq!(plus == pinpath_fuse::ReadDirPlus::Off, threads.clone_fd);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..50 {
                            assert_eq!(fs::read(at.join("dir/inner")).unwrap(), b"inner");
                            assert_eq!(fs::read_dir(at.path()).unwrap().count(), 2);
                        }
                    });
                }
            });
            mount.unmount().unwrap();
        }
    }
}

#[test]
fn a_forgotten_tree_leaves_no_node() {
    let Some(at) = mountpoint() else { return };
    let _own = own_process(); // dropping caches helps nobody else
    let memory = Memory { lifetimes: pinpath_fuse::Lifetimes::ZERO, ..small() };
    for i in 0..500 {
        memory.put(format!("dir/{i}"), FileType::Regular, b"");
    }
    let mount = mounted(memory, &at);
    let _watchdog = Watchdog::on(&mount);
    for _ in 0..3 {
        for entry in fs::read_dir(at.join("dir")).unwrap() {
            entry.unwrap().metadata().unwrap();
        }
        assert!(mount.stats().resolver.nodes > 500);
        if fs::write("/proc/sys/vm/drop_caches", "2").is_err() {
            eprintln!("*** not root: whether all is forgotten is not checked ***");
            return;
        }
        eventually("only the root is left", 10 * SECOND, || mount.stats().resolver.nodes == 1);
        assert_eq!(mount.stats().resolver.retired, 0);
    }
}

/// The test program itself as a daemon, to be killed or starved.
fn child(test: &str, at: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env("PINPATH_TEST_MOUNTPOINT", at);
    command
}

#[test]
#[ignore = "run by a_dead_mount_is_recognised_and_cleared"]
fn daemon_to_be_killed() {
    let Some(at) = std::env::var_os("PINPATH_TEST_MOUNTPOINT") else { return };
    let mount = mount(small(), at, &MountOptions::default()).unwrap();
    let _ = mount.wait();
}

#[test]
fn a_dead_mount_is_recognised_and_cleared() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let _watchdog = Watchdog::alone();
    let mut daemon = child("daemon_to_be_killed", at.path()).stdout(Stdio::null()).spawn().unwrap();
    eventually("mounted", 10 * SECOND, || at.is_mounted());
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!(errno(fs::metadata(at.path())), Some(libc::ENOTCONN));
    let error = mount(small(), at.path(), &MountOptions::default()).unwrap_err();
    assert!(matches!(error, MountError::Stale(_)), "{error}");
    assert!(pinpath_fuse::clear_stale(at.path()).unwrap());
    assert!(!pinpath_fuse::clear_stale(at.path()).unwrap());
    assert!(!at.is_mounted());
    mounted(small(), &at).unmount().unwrap();
}

#[test]
#[ignore = "run by without_threads_nothing_is_mounted"]
fn mount_with_little_memory() {
    let Some(at) = std::env::var_os("PINPATH_TEST_MOUNTPOINT") else { return };
    // Each thread's stack takes 2 MiB of address space.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let size: u64 = size.trim().trim_end_matches(" kB").trim().parse().unwrap();
    let limit =
        rustix::process::Rlimit { current: Some((size << 10) + (128 << 20)), maximum: None };
    rustix::process::setrlimit(rustix::process::Resource::As, limit).unwrap();
    let mut options = MountOptions::default();
    options.threads = MountThreads { readers: 2, handlers: 500, clone_fd: false };
    options.dispatch = pinpath_fuse::Dispatch::Pool;
    let error = mount(small(), &at, &options).unwrap_err();
    assert!(matches!(error, MountError::Threads(_)), "{error}");
    assert_eq!(serving_threads(), Vec::<String>::new());
}

#[test]
fn without_threads_nothing_is_mounted() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let _watchdog = Watchdog::alone();
    let output = child("mount_with_little_memory", at.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!at.is_mounted());
}

#[test]
fn options_are_those_of_the_mount() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mut options = MountOptions::default();
    options.fs_name = "a source, with spaces".into();
    options.subtype = "kind".into();
    options.read_only = true;
    options.exec = false;
    options.more = vec!["dirsync".into(), "max_read=131072".into()];
    let mount = mount(small(), at.path(), &options).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().find(|line| line.split(' ').nth(4) == at.path().to_str()).unwrap();
    for part in [
        "fuse.kind",
        "a\\040source,\\040with\\040spaces",
        "ro,",
        "nosuid",
        "nodev",
        "noexec",
        "max_read=131072",
        "default_permissions",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert_eq!(errno(fs::write(at.join("new"), "")), Some(libc::EROFS));
    assert_eq!(fs::metadata(at.join("file")).unwrap().size(), 7);
    drop(mount);
}

#[test]
fn errors_of_the_handler_arrive() {
    let Some(at) = mountpoint() else { return };
    let _shared = shared_process();
    let mount = mounted(small(), &at);
    let _watchdog = Watchdog::on(&mount);
    mount.handler().set_hook(|operation, _| match operation {
        Operation::Open => Err(Errno::ETXTBSY),
        Operation::MkDir => Err(Errno::from_raw(libc::EDQUOT)),
        _ => Ok(()),
    });
    assert_eq!(errno(fs::File::open(at.join("file"))), Some(libc::ETXTBSY));
    assert_eq!(errno(fs::create_dir(at.join("new"))), Some(libc::EDQUOT));
}
