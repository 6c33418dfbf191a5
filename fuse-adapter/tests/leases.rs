//! Paths stay true while they are used: programs work below a directory that is renamed to and fro,
//! or replaced by another tree, without an error that ext4 would not give and without ever touching
//! the wrong file.
//!
//! `PINPATH_LEASE_SECONDS` says how long each test runs (default 5; `.ci/run` sets 30).

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinpath_fuse::mirror::{Cache, MirrorOptions};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, StatxFlags, XattrFlags, chmodat, openat,
    renameat_with, setxattr, statx,
};
use rustix::io::{Errno, pread, pwrite};

mod running;

use running::can_mount;
use running::mirrored::Mirrored;

const FILES: usize = 8;
const THREADS: usize = 8;
const SIZE: usize = 4096;

fn length() -> Duration {
    let seconds = std::env::var("PINPATH_LEASE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

/// Nothing is cached, so that every call is a request.
fn uncached() -> Mirrored {
    let mut options = MirrorOptions::default();
    options.cache = Cache::None;
    Mirrored::with_options(options, length() + Duration::from_secs(60))
}

/// A directory of files that are full of one byte.
fn make_tree(path: &Path, byte: u8) {
    fs::create_dir_all(path.join("sub")).unwrap();
    for name in names() {
        fs::write(path.join(name), [byte; SIZE]).unwrap();
    }
}

fn names() -> impl Iterator<Item = String> {
    (0..FILES).flat_map(|file| [format!("f{file}"), format!("sub/f{file}")])
}

fn open_directory(path: &Path) -> OwnedFd {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
}

/// Runs `worker` on several threads and `mover` on this one until the time is over, or something
/// fails. Answers how often each side went round.
fn run(worker: impl Fn(usize) -> Result<(), String> + Sync, mut mover: impl FnMut()) -> (u64, u64) {
    let (over, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut moves = 0;
    let work = |thread: usize| {
        let mut turn = thread;
        while !over.load(Ordering::Relaxed) {
            worker(turn).inspect_err(|_| over.store(true, Ordering::Relaxed))?;
            turn += 1;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<_, String>(())
    };
    let failure = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let work = &work;
                    move || work(thread)
                })
            })
            .collect();
        let end = Instant::now() + length();
        while Instant::now() < end && !over.load(Ordering::Relaxed) {
            mover();
            moves += 1;
        }
        over.store(true, Ordering::Relaxed);
        threads.into_iter().find_map(|thread| thread.join().unwrap().err())
    });
    let rounds = rounds.into_inner();
    if let Some(failure) = failure {
        panic!("{failure} (after {moves} moves and {rounds} rounds)");
    }
    assert!(moves > 100 && rounds > 100, "only {moves} moves and {rounds} rounds");
    (moves, rounds)
}

/// All that a program does to a file below an open directory, by name.
fn work_below(directory: &OwnedFd, byte: u8, turn: usize) -> Result<(), String> {
    let name = names().nth(turn % (2 * FILES)).unwrap();
    let failed = |call: &'static str| {
        let name = name.clone();
        move |error: Errno| format!("{call} {name}: {error}")
    };
    statx(directory, &name, AtFlags::empty(), StatxFlags::BASIC_STATS).map_err(failed("statx"))?;

    let file = openat(directory, &name, OFlags::RDONLY, Mode::empty()).map_err(failed("open"))?;
    let mut content = [0; SIZE];
    let read = pread(&file, &mut content, 0).map_err(failed("read"))?;
    if content[..read].iter().any(|found| *found != byte && *found != 0) {
        return Err(format!("{name}: content of another file"));
    }
    drop(file);

    let mode = Mode::from_raw_mode(0o600 + (turn % 64) as u32);
    chmodat(directory, &name, mode, AtFlags::empty()).map_err(failed("chmod"))?;

    let by_path = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    setxattr(&by_path, "user.byte", &[byte], XattrFlags::empty()).map_err(failed("setxattr"))?;

    let flags = OFlags::WRONLY | OFlags::TRUNC;
    let file = openat(directory, &name, flags, Mode::empty()).map_err(failed("truncate"))?;
    pwrite(&file, &[byte; SIZE][..1 + turn % SIZE], 0).map_err(failed("write"))?;
    Ok(())
}

/// Nobody has touched a tree that `make_tree` made.
fn assert_untouched(path: &Path, byte: u8) {
    for name in names() {
        let file = path.join(&name);
        assert!(fs::read(&file).unwrap() == [byte; SIZE], "{name} was changed");
        let error = rustix::fs::getxattr(&file, "user.byte", &mut [0; 8]).unwrap_err();
        assert_eq!(error, Errno::NODATA, "{name} has an attribute");
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644, "{name}");
    }
}

#[test]
fn work_below_a_directory_that_is_renamed_to_and_fro() {
    if !can_mount("work_below_a_directory_that_is_renamed_to_and_fro") {
        return;
    }
    let mut mirrored = uncached();
    let top = mirrored.places.mountpoint();
    make_tree(&mirrored.places.source().join("a"), b'A');
    let directory = open_directory(&top.join("a"));
    let mut names = [top.join("a"), top.join("b")];
    let (moves, rounds) = run(
        |turn| work_below(&directory, b'A', turn),
        || {
            fs::rename(&names[0], &names[1]).unwrap();
            names.swap(0, 1);
        },
    );
    println!("{moves} renames against {rounds} rounds");
    drop(directory);
    mirrored.unmount();
}

#[test]
fn work_below_a_directory_that_is_replaced_by_another_tree() {
    if !can_mount("work_below_a_directory_that_is_replaced_by_another_tree") {
        return;
    }
    let mut mirrored = uncached();
    let top = mirrored.places.mountpoint();
    let source = mirrored.places.source();
    make_tree(&source.join("one/d"), b'A');
    make_tree(&source.join("two/other"), b'B');
    let directory = open_directory(&top.join("one/d"));
    let (here, there) = (top.join("one/d"), top.join("two/other"));
    let moves = std::cell::Cell::new(0_u32);
    let (swaps, rounds) = run(
        |turn| work_below(&directory, b'A', turn),
        || {
            if moves.get() % 2 == 0 {
                renameat_with(CWD, &here, CWD, &there, RenameFlags::EXCHANGE).unwrap();
            } else {
                // The same by three renames, with a moment at which nothing is there.
                let aside = top.join("aside");
                fs::rename(&here, &aside).unwrap();
                fs::rename(&there, &here).unwrap();
                fs::rename(&aside, &there).unwrap();
            }
            moves.set(moves.get() + 1);
        },
    );
    println!("{swaps} swaps against {rounds} rounds");
    drop(directory);
    let other = if moves.get() % 2 == 0 { "two/other" } else { "one/d" };
    assert_untouched(&source.join(other), b'B');
    mirrored.unmount();
}

/// The usual way to save a file: write another one, rename it over. Readers find the old or the new,
/// whole.
#[test]
fn readers_of_a_file_that_is_replaced_by_rename() {
    if !can_mount("readers_of_a_file_that_is_replaced_by_rename") {
        return;
    }
    for cache in [Cache::None, Cache::Auto] {
        let mut options = MirrorOptions::default();
        options.cache = cache;
        let mut mirrored = Mirrored::with_options(options, length() + Duration::from_secs(60));
        let top = mirrored.places.mountpoint();
        let (name, temporary) = (top.join("t"), top.join("t.tmp"));
        fs::write(&name, [b'0'; SIZE]).unwrap();
        let mut version = 0_u8;
        let (moves, rounds) = run(
            |_| read_whole(&name),
            || {
                version = (version + 1) % 10;
                fs::write(&temporary, [b'0' + version; SIZE]).unwrap();
                fs::rename(&temporary, &name).unwrap();
            },
        );
        println!("{cache:?}: {moves} replacements against {rounds} reads");
        mirrored.unmount();
    }
}

fn read_whole(name: &PathBuf) -> Result<(), String> {
    let content = fs::read(name).map_err(|error| format!("open and read: {error}"))?;
    let first = content.first().copied().unwrap_or_default();
    if content.len() != SIZE || content.iter().any(|byte| *byte != first) {
        return Err(format!("a torn read: {} bytes", content.len()));
    }
    Ok(())
}
