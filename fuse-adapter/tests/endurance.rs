//! The command under hard conditions: killed under load, stopped, with hardly any descriptors.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::io::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{Signal, kill_process};

mod running;

use running::{Daemon, PINPATH, Places, SOON, can_mount, run_ok, until};

fn arguments(places: &Places, options: &[&str]) -> Vec<OsString> {
    let mut all: Vec<OsString> = options.iter().map(OsString::from).collect();
    all.extend([places.source().into(), places.mountpoint().into()]);
    all
}

/// Writes numbered lines, syncs each, and says so. Ends with the first error.
fn write_and_sync(path: &Path, acknowledged: &mpsc::Sender<u64>) {
    let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) else { return };
    for number in 0.. {
        let line = format!("{number:015}\n");
        if file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        let _ = acknowledged.send(number);
    }
}

/// Makes files in directories, under a name that shows only when they are complete.
fn make_and_move(folder: &Path) {
    for number in 0_u64.. {
        let (new, done) = (folder.join("new"), folder.join(format!("done-{}", number % 50)));
        let written = fs::write(&new, number.to_string().repeat(100));
        if written.and_then(|()| fs::rename(&new, &done)).is_err() {
            return;
        }
    }
}

/// Killed at any moment, the daemon has lost nothing that was synced, whoever waits for it gets an
/// error, and the next one starts.
#[test]
fn killed_under_load() {
    if !can_mount("killed_under_load") {
        return;
    }
    let places = Places::new();
    let mut lost_before = Vec::new();
    for round in 0..5 {
        let options: &[&str] = if round == 0 { &[] } else { &["--clear-stale"] };
        let mut daemon = Daemon::start(&arguments(&places, options), &places.mountpoint());
        for number in &lost_before {
            let path = places.mountpoint().join(format!("log-{number}"));
            fs::remove_file(path).expect("what is left can be removed");
        }
        fs::create_dir_all(places.mountpoint().join("folder")).expect("a folder");
        let acknowledged: Vec<(u64, Option<u64>)> = thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|number| {
                    let path = places.mountpoint().join(format!("log-{number}"));
                    let (sender, receiver) = mpsc::channel();
                    scope.spawn(move || write_and_sync(&path, &sender));
                    (number, receiver)
                })
                .collect();
            let folder = places.mountpoint().join("folder");
            scope.spawn(move || make_and_move(&folder));
            thread::sleep(Duration::from_millis(200 + 70 * round));
            daemon.signal(Signal::KILL);
            // Nobody hangs: the scope ends when all have got their errors.
            let began = Instant::now();
            let last = |receiver: mpsc::Receiver<u64>| receiver.into_iter().last();
            let all =
                writers.into_iter().map(|(number, receiver)| (number, last(receiver))).collect();
            assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
            all
        });
        daemon.wait(SOON);
        for (number, last) in &acknowledged {
            let last = last.expect("something was synced");
            let log =
                fs::read_to_string(places.source().join(format!("log-{number}"))).expect("a log");
            for (line, expected) in log.lines().zip(0..=last) {
                assert_eq!(line.parse(), Ok(expected), "line {expected} of log {number}");
            }
            assert!(log.lines().count() as u64 > last, "{last} was synced in log {number}");
        }
        lost_before = acknowledged.into_iter().map(|(number, _)| number).collect();
        for entry in fs::read_dir(places.source().join("folder")).expect("a folder") {
            let entry = entry.expect("an entry");
            let complete = fs::read(entry.path()).expect("content").len() % 100 == 0;
            assert!(complete || entry.file_name() == "new", "{entry:?} shows half a file");
        }
    }
    let daemon = Daemon::start(&arguments(&places, &["--clear-stale"]), &places.mountpoint());
    assert_eq!(fs::read(places.mountpoint().join("hello")).expect("a file"), b"hello\n");
    daemon.stop();
}

/// What is passed through, the kernel reads without the daemon, which is stopped meanwhile.
#[test]
fn passed_through() {
    if !can_mount("passed_through") {
        return;
    }
    let places = Places::new();
    fs::write(places.source().join("file"), "content").expect("a file");
    let daemon = Daemon::start(&arguments(&places, &["--passthrough"]), &places.mountpoint());
    let file = File::open(places.mountpoint().join("file")).expect("an open file");
    // The first access may ask for attributes.
    file.read_at(&mut [0; 3], 0).expect("to read");
    daemon.signal(Signal::STOP);
    let (sender, receiver) = mpsc::channel();
    let read = thread::spawn(move || {
        let mut buf = [0; 7];
        let size = file.read_at(&mut buf, 0);
        let _ = sender.send((size, buf));
    });
    let answer = receiver.recv_timeout(Duration::from_secs(5));
    daemon.signal(Signal::CONT);
    read.join().expect("a reader");
    let (size, buf) = answer.expect("an answer without the daemon");
    assert_eq!((size.expect("to read"), &buf), (7, b"content"));

    // Its numbers for the kernel come back when files are closed: of a file that many open at once
    // there is one, and ten thousand opens one after the other leave none behind.
    let descriptors = || {
        fs::read_dir(format!("/proc/{}/fd", daemon.pid().as_raw_nonzero())).expect("fds").count()
    };
    let before = descriptors();
    for _ in 0..10_000 {
        File::open(places.mountpoint().join("hello")).expect("an open file");
    }
    assert!(until(SOON, || descriptors() <= before + 2), "{} of {before}", descriptors());
    daemon.stop();
}

/// `find` over many more files than the daemon may open (B32). `PINPATH_MANY_FILES` says how many.
#[test]
fn many_files_and_few_descriptors() {
    if !can_mount("many_files_and_few_descriptors") {
        return;
    }
    let files: usize =
        std::env::var("PINPATH_MANY_FILES").map_or(20_000, |text| text.parse().expect("a number"));
    let places = Places::new();
    let folders = files / 500;
    for folder in 0..folders {
        let folder = places.source().join(format!("folder-{folder}"));
        fs::create_dir(&folder).expect("a folder");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty()).expect("a descriptor");
        (0..500).for_each(|number| touch(&folder, number));
    }
    let mut command = Command::new("sh");
    let script = "ulimit -n 1024 && exec \"$0\" mirror \"$1\" \"$2\"";
    command.args(["-c", script, PINPATH]).arg(places.source()).arg(places.mountpoint());
    let daemon = Daemon::start_command(&mut command, &places.mountpoint());
    let opened = || {
        fs::read_dir(format!("/proc/{}/fd", daemon.pid().as_raw_nonzero())).expect("fds").count()
    };
    let over = AtomicBool::new(false);
    let most = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                most = most.max(opened());
                thread::sleep(Duration::from_millis(10));
            }
            most
        });
        let limit = Duration::from_secs(60 + files as u64 / 2000);
        for _ in 0..2 {
            // %s asks for the attributes of each.
            let mut find = Command::new("find");
            find.arg(places.mountpoint()).args(["-type", "f", "-printf", "%s\n"]);
            assert_eq!(run_ok(&mut find, limit).lines().count(), folders * 500 + 1);
        }
        over.store(true, Ordering::Relaxed);
        watch.join().expect("a watcher")
    });
    assert!(most < 200, "{most} descriptors for {files} files");
    assert_eq!(daemon.complained(), "");
    daemon.stop();
}

fn touch(folder: &OwnedFd, number: usize) {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o644);
    rustix::fs::openat(folder.as_fd(), format!("file-{number}"), flags, mode).expect("a file");
}

/// A process that is killed while it waits for the daemon dies as soon as that answers.
#[test]
fn a_stopped_daemon_goes_on_where_it_was() {
    if !can_mount("a_stopped_daemon_goes_on_where_it_was") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&arguments(&places, &["--cache", "none"]), &places.mountpoint());
    daemon.signal(Signal::STOP);
    let mut waiting =
        Command::new("cat").arg(places.mountpoint().join("hello")).spawn().expect("cat");
    thread::sleep(Duration::from_millis(100));
    assert!(waiting.try_wait().expect("a child").is_none(), "it waits");
    kill_process(rustix::process::Pid::from_child(&waiting), Signal::KILL).expect("a process");
    daemon.signal(Signal::CONT);
    assert!(running::wait(&mut waiting, SOON).is_some());
    assert_eq!(fs::read(places.mountpoint().join("hello")).expect("a file"), b"hello\n");
    daemon.stop();
}
