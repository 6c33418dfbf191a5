//! A mirror under load: nothing is kept that nobody uses, and nothing goes wrong between threads.
//!
//! The mount lives in this process, so that the resolver's figures can be read. `.ci/run` sets
//! `PINPATH_LOAD_FILES` and `PINPATH_LOAD_SECONDS` to larger values than the defaults.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

mod running;

use running::mirrored::Mirrored;
use running::tree::assert_equal;
use running::{SOON, can_mount, run_ok, until};

/// Descriptors, threads and memory are counted of the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")),
        Err(_) => default,
    }
}

/// Lets the kernel forget every name and inode that nobody uses, and waits until the resolver has
/// come down to so many nodes.
fn forget_all_but(nodes: usize, mirrored: &Mirrored) {
    let came_down = until(SOON, || {
        fs::write("/proc/sys/vm/drop_caches", "2").expect("root may drop caches");
        mirrored.nodes() <= nodes
    });
    let stats = mirrored.mount().resolver().stats();
    assert!(came_down, "{stats:?} after the kernel forgot all but {nodes}");
    assert_eq!(stats.nodes, nodes, "{stats:?}");
    assert_eq!(stats.links, nodes - 1, "{stats:?}");
    assert!(until(SOON, || {
        mirrored.nodes();
        mirrored.mount().resolver().stats().retired == 0
    }));
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = text.split(' ').nth(1).and_then(|field| field.parse().ok()).expect("a number");
    pages * rustix::param::page_size() as u64
}

/// `find` over many files, again and again: what the kernel has forgotten, the resolver forgets,
/// and the memory of one round serves the next.
#[test]
fn a_forgotten_tree_leaves_nothing_behind() {
    if !can_mount("a_forgotten_tree_leaves_nothing_behind") {
        return;
    }
    let _alone = alone();
    // As the command does: memory that one thread frees serves the others.
    // SAFETY: `mallopt` takes two numbers.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
    let files = setting("PINPATH_LOAD_FILES", 20_000);
    let mut mirrored = Mirrored::new(Duration::from_secs(120 + files / 200));
    let source = mirrored.places.source();
    let mountpoint = mirrored.places.mountpoint();
    for number in 0..files {
        let folder = source.join(format!("d{}", number / 500));
        if number % 500 == 0 {
            fs::create_dir(&folder).expect("a folder");
        }
        fs::File::create(folder.join(format!("file{number}"))).expect("a file");
    }
    // Held open all the time: it, its folder and the root stay.
    let open = fs::File::open(mountpoint.join("d0/file7")).expect("a file");
    let kept = 3;

    let mut after_round = Vec::new();
    for round in 1..=5 {
        let begun = Instant::now();
        // Asks for the attributes of each, so that the kernel knows each.
        let mut find = Command::new("find");
        find.arg(&mountpoint).args(["-type", "f", "-printf", "%s\n"]);
        let lines = run_ok(&mut find, Duration::from_secs(60 + files / 500)).lines().count() as u64;
        assert_eq!(lines, files + 1, "with the one called hello");
        let full = resident();
        let known = mirrored.nodes();
        assert!(known as u64 > files, "{known} nodes: find did not make them known");
        forget_all_but(kept, &mirrored);
        after_round.push(resident());
        eprintln!(
            "round {round}: {lines} files in {:?}, {known} nodes, then {kept}; resident {} KiB, then {} KiB, {:?}",
            begun.elapsed(),
            full / 1024,
            resident() / 1024,
            mirrored.mount().resolver().stats(),
        );
    }
    // The smallest allocation, leaked for every file in each of three rounds, would be six times that.
    let allowance = (2 << 20).max(files * 16);
    assert!(after_round[4] <= after_round[1] + allowance, "resident memory grows: {after_round:?}");

    open.read_at(&mut [0; 1], 0).expect("the open file works");
    drop(open);
    forget_all_but(1, &mirrored);
    mirrored.unmount();
}

/// A generator of numbers that is the same for the same seed (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }

    /// One of a few names in one of a few folders, so that threads meet.
    fn path(&mut self, root: &Path) -> PathBuf {
        let mut path = root.join(format!("d{}", self.below(4)));
        // Folders that come and go, and files where folders were.
        for _ in 0..self.below(3) {
            path.push(format!("n{}", self.below(4)));
        }
        path.join(format!("n{}", self.below(12)))
    }
}

/// What another thread may have made of the names meanwhile. Nothing else is excused: no `EIO`, no
/// `ESTALE`, no `EINVAL` but from moving a folder below itself.
const EXPECTED: [i32; 8] = [
    libc::ENOENT,
    libc::EEXIST,
    libc::ENOTDIR,
    libc::EISDIR,
    libc::ENOTEMPTY,
    libc::ELOOP, // a symbolic link that leads to itself
    libc::EPERM, // a link to a directory
    libc::EINVAL,
];

fn one_operation(root: &Path, random: &mut Random) -> io::Result<()> {
    let path = random.path(root);
    match random.below(16) {
        0..=3 => {
            let length = random.below(20_000) as usize;
            fs::File::create(&path)?.write_all(&vec![length as u8; length])
        }
        4 => fs::create_dir(&path),
        5 => fs::remove_dir(&path),
        6 | 7 => fs::remove_file(&path),
        8 | 9 => fs::rename(&path, random.path(root)),
        10 => Ok(renameat_with(CWD, &path, CWD, random.path(root), RenameFlags::EXCHANGE)?),
        11 => fs::hard_link(&path, random.path(root)),
        12 => std::os::unix::fs::symlink("n1", &path),
        13 => path.symlink_metadata().map(drop),
        14 => fs::read_dir(&path)?.try_for_each(|entry| entry?.metadata().map(drop)),
        _ => check_content(&fs::read(&path)?),
    }
}

/// A file is written by one thread while others truncate it, but each byte is one that was written.
fn check_content(bytes: &[u8]) -> io::Result<()> {
    let mut distinct = bytes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    // A few writers at once at the most; a file of noise is somebody else's memory.
    assert!(distinct.len() <= 9, "{} different bytes in one file", distinct.len());
    Ok(())
}

#[test]
fn eight_threads_leave_mount_and_source_the_same() {
    if !can_mount("eight_threads_leave_mount_and_source_the_same") {
        return;
    }
    let _alone = alone();
    let before = (descriptors(), threads());
    let duration = Duration::from_secs(setting("PINPATH_LOAD_SECONDS", 10));
    let mut mirrored = Mirrored::new(duration + Duration::from_secs(120));
    let root = mirrored.places.mountpoint();
    for number in 0..4 {
        fs::create_dir(root.join(format!("d{number}"))).expect("a folder");
    }
    let seed = setting("PINPATH_LOAD_SEED", u64::from(std::process::id()));
    eprintln!("PINPATH_LOAD_SEED={seed}");
    let done = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let (root, done) = (root.clone(), Arc::clone(&done));
            let mut random = Random((seed << 8) + worker + 1);
            thread::spawn(move || {
                let end = Instant::now() + duration;
                while Instant::now() < end {
                    match one_operation(&root, &mut random) {
                        Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                        Err(error)
                            if error.raw_os_error().is_some_and(|raw| EXPECTED.contains(&raw)) =>
                        {
                            0
                        }
                        Err(error) => panic!("{error}"),
                    };
                }
            })
        })
        .collect();
    let results: Vec<_> = workers.into_iter().map(thread::JoinHandle::join).collect();
    assert!(results.iter().all(Result::is_ok), "an operation failed as it never should");
    let done = done.load(Ordering::Relaxed);
    eprintln!("{done} operations that succeeded in {duration:?}");
    assert!(done > 100 * duration.as_secs(), "hardly anything was done");

    // With what the kernel remembers, and without.
    assert_equal(&root, &mirrored.places.source());
    forget_all_but(1, &mirrored);
    assert_equal(&root, &mirrored.places.source());
    forget_all_but(1, &mirrored);

    mirrored.unmount();
    drop(mirrored);
    let ended = until(SOON, || (descriptors(), threads()) == before);
    assert!(
        ended,
        "descriptors and threads: {before:?} before, {:?} after",
        (descriptors(), threads())
    );
}

fn descriptors() -> usize {
    // The directory that is read here is one of them, both times.
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}

/// The names of all threads but those that run tests, which come and go.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let is_test = |name: &String| TESTS.iter().any(|test| test.starts_with(name.trim_end()));
    let mut names: Vec<_> = names.filter(|name| !is_test(name)).collect();
    names.sort_unstable();
    names
}

const TESTS: [&str; 2] =
    ["a_forgotten_tree_leaves_nothing_behind", "eight_threads_leave_mount_and_source_the_same"];
