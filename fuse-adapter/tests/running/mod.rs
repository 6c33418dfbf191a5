//! Running the command `pinpath` and other programs: every one with a time limit, every mount with
//! a guard that ends it also when a test fails.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

pub(crate) mod mirrored;
pub(crate) mod tree;

/// The command under test.
pub(crate) const PINPATH: &str = env!("CARGO_BIN_EXE_pinpath");

/// Longer than anything short takes, also on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// What a program did.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Finished {
    /// What it printed; the test fails if the program did.
    #[track_caller]
    pub(crate) fn expect_success(self) -> String {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.out(), self.stderr);
        self.out()
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Runs a program to its end, or to the end of the time it has: then it is killed with all that it
/// started, and the test fails.
#[track_caller]
pub(crate) fn run(command: &mut Command, limit: Duration) -> Finished {
    // Files, not pipes: nobody has to read while it runs, and a daemon it leaves behind keeps
    // nothing waiting.
    let mut stdout = tempfile::tempfile().expect("a file for the output");
    let mut stderr = tempfile::tempfile().expect("a file for the errors");
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().expect("a descriptor"))
        .stderr(stderr.try_clone().expect("a descriptor"))
        .process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let status = wait(&mut child, limit);
    if status.is_none() {
        let _ = kill_process_group(pid(&child), Signal::KILL);
        // It may hang in a dead mount, which the guard of that mount ends.
        let _ = wait(&mut child, Duration::from_secs(2));
    }
    let (stdout, stderr) = (contents(&mut stdout), contents(&mut stderr));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    match status {
        Some(status) => Finished { status, stdout, stderr },
        None => panic!(
            "{command:?} did not end within {limit:?}\n{}\n{stderr}",
            String::from_utf8_lossy(&stdout)
        ),
    }
}

/// Runs a program and expects it to succeed; answers what it printed.
#[track_caller]
pub(crate) fn run_ok(command: &mut Command, limit: Duration) -> String {
    let finished = run(command, limit);
    assert!(finished.status.success(), "{command:?}: {finished:?}");
    finished.out()
}

/// Runs a line of shell.
#[track_caller]
pub(crate) fn sh(script: &str, limit: Duration) -> Finished {
    run(Command::new("sh").arg("-c").arg(script), limit)
}

fn contents(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("the output");
    bytes
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Waits until the child has ended, but no longer than that.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let mut status = None;
    until(limit, || {
        status = child.try_wait().expect("a child to wait for");
        status.is_some()
    });
    status
}

/// Waits until something is so; false if it still isn't when the time is over.
pub(crate) fn until(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Must this machine be able to mount and have all programs? `.ci/run` says so.
fn all_required() -> bool {
    std::env::var_os("PINPATH_REQUIRE_FUSE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Says loudly that a test didn't run; fails where it must.
pub(crate) fn skip(test: &str, why: &str) {
    assert!(!all_required(), "{test}: {why}, and PINPATH_REQUIRE_FUSE is set");
    eprintln!("SKIPPED {test}: {why}");
}

/// Can a FUSE filesystem be mounted here? As root with a device for it.
pub(crate) fn can_mount(test: &str) -> bool {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    match device {
        Ok(_) if rustix::process::geteuid().is_root() => true,
        Ok(_) => {
            skip(test, "only root can mount without asking");
            false
        }
        Err(error) => {
            skip(test, &format!("/dev/fuse: {error}"));
            false
        }
    }
}

/// Is this program here?
pub(crate) fn has_program(test: &str, program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    if !found {
        skip(test, &format!("the program {program} is not installed"));
    }
    found
}

/// A folder with a source and a place for a mountpoint.
#[derive(Debug)]
pub(crate) struct Places {
    folder: tempfile::TempDir,
}

impl Places {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("pinpath-").tempdir().expect("a folder");
        // Other users have to come through here in some tests.
        open_to_all(folder.path());
        std::fs::create_dir(folder.path().join("source")).expect("a source");
        std::fs::create_dir(folder.path().join("mnt")).expect("a mountpoint");
        std::fs::write(folder.path().join("source/hello"), "hello\n").expect("a file");
        Places { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    pub(crate) fn mountpoint(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }
}

pub(crate) fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
}

/// Takes a mount out of sight when it goes.
#[derive(Debug)]
pub(crate) struct Unmounts(pub(crate) PathBuf);

impl Drop for Unmounts {
    fn drop(&mut self) {
        // Whatever was mounted twice goes twice.
        while is_mounted(&self.0) {
            if rustix::mount::unmount(&self.0, UnmountFlags::DETACH).is_err() {
                break;
            }
        }
    }
}

/// A `pinpath mirror` in the foreground. Dropping it kills it and unmounts.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    stdout: File,
    stderr: File,
    mountpoint: PathBuf,
    _unmounts: Unmounts,
}

impl Daemon {
    /// Starts it with these arguments after `mirror`, and waits until it says that it is mounted.
    #[track_caller]
    pub(crate) fn start<S: AsRef<OsStr>>(arguments: &[S], mountpoint: &Path) -> Self {
        let mut command = Command::new(PINPATH);
        command.arg("mirror").args(arguments);
        Self::start_command(&mut command, mountpoint)
    }

    /// The same for a command that ends in running it.
    #[track_caller]
    pub(crate) fn start_command(command: &mut Command, mountpoint: &Path) -> Self {
        let stdout = tempfile::tempfile().expect("a file");
        let stderr = tempfile::tempfile().expect("a file");
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout.try_clone().expect("a descriptor"))
            .stderr(stderr.try_clone().expect("a descriptor"))
            .process_group(0)
            .spawn()
            .expect("a daemon");
        let mut daemon = Daemon {
            child,
            stdout,
            stderr,
            mountpoint: mountpoint.to_owned(),
            _unmounts: Unmounts(mountpoint.to_owned()),
        };
        let mut ended = false;
        let mounted = until(SOON, || {
            ended = daemon.child.try_wait().expect("a child").is_some();
            ended || daemon.said().contains("is mounted on")
        });
        assert!(mounted && !ended, "not mounted: {}{}", daemon.said(), daemon.complained());
        daemon
    }

    pub(crate) fn pid(&self) -> Pid {
        pid(&self.child)
    }

    /// Its standard output so far.
    pub(crate) fn said(&self) -> String {
        so_far(&self.stdout)
    }

    /// Its standard error so far.
    pub(crate) fn complained(&self) -> String {
        so_far(&self.stderr)
    }

    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a process to signal");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self, limit: Duration) -> ExitStatus {
        match wait(&mut self.child, limit) {
            Some(status) => status,
            None => panic!("the daemon did not end within {limit:?}: {}", self.complained()),
        }
    }

    /// Ends it as a user would, and fails unless it ends well.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.wait(SOON);
        assert!(status.success(), "{status}: {}", self.complained());
        assert!(!is_mounted(&self.mountpoint));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Killing it frees whoever waits for an answer; the mount goes after it.
        let _ = self.child.kill();
        let _ = wait(&mut self.child, Duration::from_secs(5));
    }
}

fn so_far(file: &File) -> String {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; 1 << 16];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// The fields of `/proc/self/mountinfo` for the mount seen at a place: options, type, source.
pub(crate) fn mount_line(mountpoint: &Path) -> Option<(String, String, OsString)> {
    let table = std::fs::read("/proc/self/mountinfo").expect("a mount table");
    let mut lines = table.rsplit(|&byte| byte == b'\n').filter_map(|line| {
        let fields: Vec<_> = line.split(|&byte| byte == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-")?;
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        let at = unescape(fields.get(4)?);
        (at == mountpoint.as_os_str())
            .then(|| (text(fields[5]), text(fields[dash + 1]), unescape(fields[dash + 2])))
    });
    // The last one is seen, where several lie on each other.
    lines.next()
}

pub(crate) fn is_mounted(mountpoint: &Path) -> bool {
    mount_line(mountpoint).is_some()
}

fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (byte, octal) {
            (b'\\', Some(value)) => {
                bytes.push(value);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// The processes whose command line has this text in it.
pub(crate) fn processes_with(text: &Path) -> Vec<Pid> {
    let has_text = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = text.as_os_str().as_bytes();
        line.windows(text.len()).any(|window| window == text)
    };
    let numbers = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(has_text).filter_map(Pid::from_raw).collect()
}
