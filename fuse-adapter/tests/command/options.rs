//! What can be asked for, and that it is so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::running::{Daemon, PINPATH, Places, SOON, can_mount, mount_line, run, sh};

/// The kernel's view of a mount made with these options after `-o`.
fn seen(list: &str) -> String {
    let places = Places::new();
    let daemon = Daemon::start(
        &[
            places.source().as_os_str(),
            places.mountpoint().as_os_str(),
            "-o".as_ref(),
            list.as_ref(),
        ],
        &places.mountpoint(),
    );
    let (options, ..) = mount_line(&places.mountpoint()).expect("a mount");
    daemon.stop();
    format!(",{options},")
}

#[test]
fn each_option_reaches_the_kernel() {
    if !can_mount("each_option_reaches_the_kernel") {
        return;
    }
    let default = seen("defaults,_netdev,nofail,x-any=1");
    assert!(
        default.contains(",rw,") && default.contains(",nosuid,") && default.contains(",nodev,"),
        "{default}"
    );
    let open = seen("suid,dev");
    assert!(!open.contains(",nosuid,") && !open.contains(",nodev,"), "{open}");
    for option in ["ro", "noexec", "noatime", "nodiratime"] {
        assert!(seen(option).contains(&format!(",{option},")), "{option}");
    }
}

#[test]
fn read_only_refuses_every_change() {
    if !can_mount("read_only_refuses_every_change") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(
        &[places.source().as_os_str(), places.mountpoint().as_os_str(), "--read-only".as_ref()],
        &places.mountpoint(),
    );
    let mountpoint = places.mountpoint();
    let read_only = Some(libc::EROFS);
    assert_eq!(
        fs::write(mountpoint.join("new"), "").expect_err("refused").raw_os_error(),
        read_only
    );
    assert_eq!(
        fs::write(mountpoint.join("hello"), "x").expect_err("refused").raw_os_error(),
        read_only
    );
    assert_eq!(
        fs::remove_file(mountpoint.join("hello")).expect_err("refused").raw_os_error(),
        read_only
    );
    assert_eq!(
        fs::create_dir(mountpoint.join("dir")).expect_err("refused").raw_os_error(),
        read_only
    );
    daemon.stop();
}

#[test]
fn other_users_are_let_in_only_when_asked_and_checked_then() {
    if !can_mount("other_users_are_let_in_only_when_asked_and_checked_then") {
        return;
    }
    let places = Places::new();
    let secret = places.source().join("secret");
    fs::write(&secret, "secret\n").expect("a file");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("a mode");
    let as_nobody = |file: &str| {
        let mut cat = Command::new("cat");
        cat.arg(places.mountpoint().join(file)).uid(65534).gid(65534);
        run(&mut cat, SOON).status.success()
    };
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    assert!(!as_nobody("hello"));
    daemon.stop();
    let daemon = Daemon::start(
        &[places.source().as_os_str(), places.mountpoint().as_os_str(), "--allow-other".as_ref()],
        &places.mountpoint(),
    );
    assert!(as_nobody("hello"));
    assert!(!as_nobody("secret"));
    daemon.stop();
}

#[test]
fn modes_and_limits_are_the_callers_and_the_machines() {
    if !can_mount("modes_and_limits_are_the_callers_and_the_machines") {
        return;
    }
    let places = Places::new();
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 077; ulimit -Sn 64; exec \"$@\"", "sh", PINPATH, "mirror"])
        .arg(places.source())
        .arg(places.mountpoint());
    let daemon = Daemon::start_command(&mut command, &places.mountpoint());
    let made = places.mountpoint().join("open");
    let touch = format!("umask 0; touch {}", made.display());
    sh(&touch, SOON).expect_success();
    assert_eq!(fs::metadata(places.source().join("open")).expect("a file").mode() & 0o7777, 0o666);
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.pid().as_raw_nonzero()))
        .expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let fields: Vec<_> = line.split_whitespace().collect();
    assert_eq!(fields[3], fields[4], "soft and hard differ");
    daemon.stop();
}

#[test]
fn the_log_reports_what_was_asked_for() {
    if !can_mount("the_log_reports_what_was_asked_for") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(
        &[
            places.source().as_os_str(),
            places.mountpoint().as_os_str(),
            "--log".as_ref(),
            "debug".as_ref(),
        ],
        &places.mountpoint(),
    );
    assert!(places.mountpoint().join("hello").exists());
    let log = daemon.complained();
    assert!(log.contains("DEBUG") || log.contains("INFO"), "{log}");
    daemon.stop();
}
