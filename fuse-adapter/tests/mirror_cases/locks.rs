//! Locks: the kernel's own, and those that are taken in the source.
//!
//! An owner of POSIX locks is a process, so these cases have helpers: each is a Python program that
//! does one thing after the other as it is told, and says how it went.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::*;

const PROGRAM: &str = r#"
import fcntl, os, struct, sys
fd = None
for line in sys.stdin:
    words = line.split()
    try:
        if words[0] == "open":
            fd = os.open(words[1], os.O_RDWR)
        elif words[0] == "lockf":
            how = {"EX": fcntl.LOCK_EX | fcntl.LOCK_NB, "SH": fcntl.LOCK_SH | fcntl.LOCK_NB,
                   "UN": fcntl.LOCK_UN, "WAIT": fcntl.LOCK_EX}[words[1]]
            fcntl.lockf(fd, how, int(words[2]), int(words[3]))
        elif words[0] == "flock":
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB if words[1] == "EX" else fcntl.LOCK_UN)
        elif words[0] == "test":
            asked = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
            kind, _, start, length, _ = struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_GETLK, asked))
            print({fcntl.F_WRLCK: "W", fcntl.F_RDLCK: "R", fcntl.F_UNLCK: "-"}[kind], start, length, flush=True)
            continue
        elif words[0] == "close-another":
            os.close(os.open(words[1], os.O_RDONLY))
        print("ok", flush=True)
    except OSError as error:
        print(os.strerror(error.errno), flush=True)
"#;

struct Helper {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Helper {
    fn new(file: &Path) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut helper = Helper { child, stdin, stdout: BufReader::new(stdout) };
        assert_eq!(helper.does(&format!("open {}", file.display())), "ok");
        helper
    }

    fn does(&mut self, what: &str) -> String {
        self.begins(what);
        self.answers()
    }

    fn begins(&mut self, what: &str) {
        writeln!(self.stdin, "{what}").unwrap();
    }

    fn answers(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BUSY: &str = "Resource temporarily unavailable";

/// Two processes exclude each other, byte by byte (B04), and `flock` doesn't see it (B06).
fn two_processes(file: &Path) {
    let (mut one, mut other) = (Helper::new(file), Helper::new(file));
    assert_eq!(one.does("lockf EX 1 0"), "ok");
    assert_eq!(other.does("lockf EX 1 0"), BUSY);
    assert_eq!(other.does("test"), "W 0 1");
    assert_eq!(one.does("test"), "- 0 0", "its own is in nobody's way");
    assert_eq!(other.does("lockf EX 1 1"), "ok", "byte 1 is free");
    assert_eq!(other.does("flock EX"), "ok", "another kind");
    assert_eq!(one.does("flock EX"), BUSY);
    assert_eq!(one.does("lockf SH 1 0"), "ok");
    assert_eq!(other.does("lockf SH 1 0"), "ok", "both read");
    assert_eq!(one.does("lockf EX 1 0"), BUSY);
    assert_eq!(other.does("lockf UN 0 0"), "ok");
    assert_eq!(one.does("lockf EX 0 0"), "ok", "all of it");
    // Whoever waits gets it when the holder closes any descriptor of the file.
    other.begins("lockf WAIT 0 0");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(one.does(&format!("close-another {}", file.display())), "ok");
    assert_eq!(other.answers(), "ok");
    assert_eq!(one.does("lockf EX 1 0"), BUSY);
    drop(other);
    support::eventually("its end gives it up", LIMIT / 2, || one.does("lockf EX 1 0") == "ok");
}

#[test]
fn locks_among_the_users_of_a_mount() {
    everywhere(|dir| {
        write(dir.join("f"), "content");
        two_processes(&dir.join("f"));
    });
}

fn forwarding() -> Option<Mirrored> {
    let mut options = MirrorOptions::default();
    options.forward_locks = true;
    Mirrored::with(options)
}

#[test]
fn forwarded_locks_work_the_same() {
    let Some(mirrored) = forwarding() else { return };
    write(mirrored.at("f"), "content");
    assert!(mirrored.mount().agreed().posix_locks && !mirrored.mount().agreed().flock_locks);
    two_processes(&mirrored.at("f"));
    // A file of which only reading is permitted can be locked for reading.
    write(mirrored.at("other"), "");
    let file = std::fs::File::open(mirrored.at("other")).unwrap();
    let mut helper = Helper::new(&mirrored.at("other"));
    drop(file);
    assert_eq!(helper.does("lockf SH 0 0"), "ok");
}

/// Who uses the source directly is excluded as well, and excludes.
#[test]
fn forwarded_locks_are_seen_in_the_source() {
    let Some(mirrored) = forwarding() else { return };
    write(mirrored.at("f"), "content");
    let mut here = Helper::new(&mirrored.at("f"));
    let mut there = Helper::new(&mirrored.behind("f"));
    assert_eq!(here.does("lockf EX 3 2"), "ok");
    assert_eq!(there.does("lockf EX 0 0"), BUSY);
    assert_eq!(there.does("test"), "W 2 3");
    assert_eq!(there.does("lockf EX 2 0"), "ok");
    assert_eq!(here.does("lockf EX 0 0"), BUSY);
    assert_eq!(here.does("test"), "W 0 2");
    drop(here);
    support::eventually("its end gives it up", LIMIT / 2, || there.does("lockf EX 0 0") == "ok");
}

/// Left to the kernel, they are not.
#[test]
fn other_locks_are_not_seen_in_the_source() {
    let Some(mirrored) = Mirrored::new(Cache::Auto) else { return };
    write(mirrored.at("f"), "content");
    let mut here = Helper::new(&mirrored.at("f"));
    let mut there = Helper::new(&mirrored.behind("f"));
    assert_eq!(here.does("lockf EX 0 0"), "ok");
    assert_eq!(there.does("lockf EX 0 0"), "ok");
}
