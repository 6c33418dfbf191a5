//! Who waits while a rename is under way, and who doesn't hold one off.

mod support;

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use pinpath_fuse::{Dispatch, FileType, Lifetimes, MountOptions, Operation, mount};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, open, statx};
use support::memory::Memory;
use support::{Mountpoint, Watchdog, mountpoint};

const CLIENTS: usize = 32;
const SECOND: Duration = Duration::from_secs(1);

/// A directory `d` with files, of which the kernel remembers nothing.
fn memory() -> Memory {
    let memory = Memory { lifetimes: Lifetimes::ZERO, ..Memory::default() };
    memory.put("d", FileType::Directory, b"");
    for number in 0..CLIENTS {
        memory.put(format!("d/{number}"), FileType::Regular, b"content");
    }
    memory
}

fn descriptors(at: &Mountpoint) -> Vec<OwnedFd> {
    let path = |number| at.join(format!("d/{number}"));
    let open = |number| open(path(number), OFlags::PATH, Mode::empty()).unwrap();
    (0..CLIENTS).map(open).collect()
}

/// One request about a node that the kernel knows.
fn stat(file: &OwnedFd) -> rustix::io::Result<()> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    statx(file, "", flags, StatxFlags::BASIC_STATS).map(drop)
}

/// More requests than there are threads want the paths of what is below a directory, while a handler
/// renames it: they wait, and the rename ends all the same.
fn full_of_waiters(dispatch: Dispatch) {
    let Some(at) = mountpoint() else { return };
    let memory = memory();
    let (renaming, overtook) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (begin, begun) = channel();
    let (now, early) = (renaming.clone(), overtook.clone());
    memory.set_hook(move |operation, path| {
        if operation == Operation::Rename {
            now.store(true, SeqCst);
            begin.send(()).unwrap();
            // Long enough for all clients to have asked.
            thread::sleep(SECOND);
            now.store(false, SeqCst);
        } else if operation == Operation::GetAttr && path.components().count() == 2 {
            early.fetch_add(usize::from(now.load(SeqCst)), SeqCst);
        }
        Ok(())
    });
    let mut options = MountOptions::default();
    options.dispatch = dispatch;
    (options.threads.readers, options.threads.handlers) = (2, 2);
    let mount = mount(memory, at.path(), &options).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let files = descriptors(&at);
    thread::scope(|scope| {
        let rename = scope.spawn(|| fs::rename(at.join("d"), at.join("e")));
        begun.recv_timeout(10 * SECOND).expect("the rename begins");
        let clients: Vec<_> = files.iter().map(|file| scope.spawn(|| stat(file))).collect();
        thread::sleep(SECOND / 2);
        assert!(renaming.load(SeqCst), "it is still under way");
        assert!(!clients.iter().any(|client| client.is_finished()), "nobody has a path yet");
        rename.join().unwrap().expect("the rename ends");
        for client in clients {
            client.join().unwrap().expect("and then everybody goes on");
        }
    });
    assert_eq!(overtook.load(SeqCst), 0, "a path in a handler while it was being renamed");
    assert_eq!(mount.resolver().stats().leases, 0);
    mount.unmount().unwrap();
}

#[test]
fn a_pool_full_of_waiters_does_not_stop_the_rename() {
    full_of_waiters(Dispatch::Pool);
}

#[test]
fn readers_full_of_waiters_do_not_stop_the_rename() {
    full_of_waiters(Dispatch::Adaptive);
}

/// An operation on an open file needs no path; while it blocks, the directories above it can be
/// renamed and the name removed.
#[test]
fn a_blocked_read_of_an_open_file_holds_off_no_rename() {
    let Some(at) = mountpoint() else { return };
    let memory = memory();
    let (begin, begun) = channel();
    let (go_on, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    memory.set_hook(move |operation, _| {
        if operation == Operation::Read {
            begin.send(()).unwrap();
            let _ = wait.lock().unwrap().recv_timeout(20 * SECOND);
        }
        Ok(())
    });
    let mount = mount(memory, at.path(), &MountOptions::default()).unwrap();
    let _watchdog = Watchdog::on(&mount);
    let file = open(at.join("d/0"), OFlags::RDONLY, Mode::empty()).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| rustix::io::read(&file, &mut [0; 16]).unwrap());
        begun.recv_timeout(10 * SECOND).expect("the read begins");
        let start = Instant::now();
        fs::rename(at.join("d"), at.join("e")).unwrap();
        fs::remove_file(at.join("e/0")).unwrap();
        assert!(!reader.is_finished());
        assert!(start.elapsed() < 10 * SECOND, "they waited for the read");
        go_on.send(()).unwrap();
        assert_eq!(reader.join().unwrap(), b"content".len());
    });
    assert!(statx(CWD, at.join("e/1"), AtFlags::empty(), StatxFlags::BASIC_STATS).is_ok());
    drop(file);
    mount.unmount().unwrap();
}
