//! The way to the background.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::{assert_refused, mirror};
use crate::running::{
    self, PINPATH, Places, SOON, Unmounts, can_mount, is_mounted, run, sh, until,
};

#[test]
fn it_returns_when_the_mount_answers() {
    if !can_mount("it_returns_when_the_mount_answers") {
        return;
    }
    let places = Places::new();
    let made = places.path().join("made");
    let _unmounts = Unmounts(made.clone());
    for _ in 0..5 {
        // A pipe, as `$(...)` makes one: it must see an end.
        let script = format!(
            "said=$({PINPATH} mirror --background {} {made} 2>&1) && ls {made} && echo \"$said\"",
            places.source().display(),
            made = made.display(),
        );
        let out = sh(&script, SOON).expect_success();
        assert!(out.starts_with("hello\n") && out.contains("is mounted on"), "{out}");
        let umount = run(Command::new("umount").arg(&made), SOON);
        assert!(umount.status.success(), "{umount:?}");
        assert!(until(SOON, || !made.exists()), "the mountpoint is still there");
    }
}

#[test]
fn it_holds_on_to_nothing_of_its_caller() {
    if !can_mount("it_holds_on_to_nothing_of_its_caller") {
        return;
    }
    let places = Places::new();
    let _unmounts = Unmounts(places.mountpoint());
    // A pipe, whose reader waits until everybody has let go of it.
    let script = "cd \"$1\" && \"$0\" mirror --background source \"$2\" 2>&1 | cat";
    let mut command = Command::new("sh");
    command.args(["-c", script, PINPATH]).arg(places.path()).arg(places.mountpoint());
    run(&mut command, SOON).expect_success();
    let pids = running::processes_with(&places.mountpoint());
    assert_eq!(pids.len(), 1, "{pids:?}");
    let proc = PathBuf::from(format!("/proc/{}", pids[0].as_raw_nonzero()));
    assert_eq!(fs::read_link(proc.join("cwd")).expect("a link"), Path::new("/"));
    for stream in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(
            fs::read_link(proc.join(stream)).expect("a link"),
            Path::new("/dev/null"),
            "{stream}"
        );
    }
    let stat = fs::read_to_string(proc.join("stat")).expect("stat");
    let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
    assert_eq!(
        session,
        Some(pids[0].as_raw_nonzero().to_string().as_str()),
        "not a session of its own"
    );
    assert!(run(Command::new("umount").arg(places.mountpoint()), SOON).status.success());
    assert!(until(SOON, || !proc.exists()), "the daemon is still there");
}

#[test]
fn what_goes_wrong_is_said_and_is_the_exit_status() {
    let places = Places::new();
    let file = places.path().join("file");
    fs::write(&file, "").expect("a file");
    let arguments = [OsStr::new("--background"), places.source().as_os_str(), file.as_os_str()]
        .map(OsString::from);
    assert_refused(&mirror(&arguments), &["mountpoint", "not a directory"]);
}

#[test]
fn signals_end_it_as_well() {
    if !can_mount("signals_end_it_as_well") {
        return;
    }
    let places = Places::new();
    let _unmounts = Unmounts(places.mountpoint());
    let mut command = Command::new(PINPATH);
    command.args(["mirror", "--background"]).arg(places.source()).arg(places.mountpoint());
    assert!(run(&mut command, SOON).status.success());
    let pid = running::processes_with(&places.mountpoint())[0];
    rustix::process::kill_process(pid, Signal::TERM).expect("a process");
    assert!(until(SOON, || running::processes_with(&places.mountpoint()).is_empty()));
    assert!(!is_mounted(&places.mountpoint()));
}

/// The log of a mirror in the background goes to the file that the caller gave, and nowhere else.
#[test]
fn a_log_in_a_file_is_kept_in_the_background() {
    if !can_mount("a_log_in_a_file_is_kept_in_the_background") {
        return;
    }
    let places = Places::new();
    let _unmounts = Unmounts(places.mountpoint());
    let log = places.path().join("log");
    let script = format!(
        "{PINPATH} mirror --background --log debug {} {} 2>{} && umount {1}",
        places.source().display(),
        places.mountpoint().display(),
        log.display(),
    );
    sh(&script, SOON).expect_success();
    assert!(until(SOON, || running::processes_with(&places.mountpoint()).is_empty()));
    let text = fs::read_to_string(&log).expect("a log");
    assert!(!text.is_empty() && !text.contains('\x1b'), "{text}");
}
