//! How a mount ends, and what is left of one that was killed.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{AT_ONCE, assert_refused, mirror};
use crate::running::{Daemon, Places, SOON, can_mount, is_mounted, run, until};

#[test]
fn one_line_says_what_is_mounted_where_and_how_to_stop_it() {
    if !can_mount("one_line_says_what_is_mounted_where_and_how_to_stop_it") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    let said = daemon.said();
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in [
        places.source().display().to_string(),
        format!("umount {}", places.mountpoint().display()),
        "Ctrl-C".into(),
    ] {
        assert!(said.contains(&word), "{said}");
    }
    assert_eq!(daemon.complained(), "");
    daemon.stop();
}

#[test]
fn signals_unmount_and_end_well() {
    if !can_mount("signals_unmount_and_end_well") {
        return;
    }
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let places = Places::new();
        let made = places.path().join("made");
        let mut daemon = Daemon::start(&[places.source(), made.clone()], &made);
        assert!(made.join("hello").exists());
        let begun = Instant::now();
        daemon.signal(signal);
        let status = daemon.wait(SOON);
        assert!(status.success(), "{signal:?}: {status}: {}", daemon.complained());
        assert!(begun.elapsed() < AT_ONCE, "{signal:?}: {:?}", begun.elapsed());
        assert!(!is_mounted(&made), "{signal:?}");
        assert!(!made.exists(), "{signal:?}: the mountpoint that was made is still there");
        assert_eq!(daemon.complained(), "", "{signal:?}");
    }
}

#[test]
fn a_mountpoint_that_was_there_stays() {
    if !can_mount("a_mountpoint_that_was_there_stays") {
        return;
    }
    let places = Places::new();
    fs::write(places.mountpoint().join("below"), "").expect("a file");
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    assert!(!places.mountpoint().join("below").exists());
    daemon.stop();
    assert!(places.mountpoint().join("below").exists());
}

#[test]
fn a_busy_mount_goes_out_of_sight_and_ends_with_its_last_user() {
    if !can_mount("a_busy_mount_goes_out_of_sight_and_ends_with_its_last_user") {
        return;
    }
    let places = Places::new();
    let made = places.path().join("made");
    let mut daemon = Daemon::start(&[places.source(), made.clone()], &made);
    let mut file =
        fs::File::options().read(true).append(true).open(made.join("hello")).expect("a file");
    daemon.signal(Signal::TERM);
    assert!(until(SOON, || !is_mounted(&made)), "still in sight");
    assert!(
        until(SOON, || daemon.complained().contains("second signal")),
        "{}",
        daemon.complained()
    );
    assert!(daemon.complained().contains("still in use"), "{}", daemon.complained());
    // The open file works until it is closed.
    file.write_all(b"more\n").expect("a write");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("a read");
    drop(file);
    let status = daemon.wait(SOON);
    assert!(status.success(), "{status}: {}", daemon.complained());
    assert_eq!(fs::read(places.source().join("hello")).expect("a file"), b"hello\nmore\n");
    assert!(!made.exists());
}

#[test]
fn a_second_signal_ends_a_busy_mount_at_once() {
    if !can_mount("a_second_signal_ends_a_busy_mount_at_once") {
        return;
    }
    let places = Places::new();
    let made = places.path().join("made");
    let mut daemon = Daemon::start(&[places.source(), made.clone()], &made);
    let file = fs::File::open(made.join("hello")).expect("a file");
    daemon.signal(Signal::INT);
    assert!(
        until(SOON, || daemon.complained().contains("second signal")),
        "{}",
        daemon.complained()
    );
    let begun = Instant::now();
    daemon.signal(Signal::INT);
    let status = daemon.wait(SOON);
    assert!(begun.elapsed() < 3 * AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(status.code(), Some(1), "{}", daemon.complained());
    assert!(file.metadata().is_err(), "the connection is still there");
    assert!(!is_mounted(&made) && !made.exists());
}

/// Also if the handlers are stuck: here their source is a mirror whose daemon stands still.
#[test]
fn a_second_signal_ends_a_stuck_mount_at_once() {
    if !can_mount("a_second_signal_ends_a_stuck_mount_at_once") {
        return;
    }
    let places = Places::new();
    let made = places.path().join("made");
    let below = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    let mut stuck = Daemon::start(&[places.mountpoint(), made.clone()], &made);
    below.signal(Signal::STOP);
    let file = made.join("hello");
    let waits = std::thread::spawn(move || fs::read(file));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!waits.is_finished(), "nobody waits");
    stuck.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    stuck.signal(Signal::TERM);
    let status = stuck.wait(SOON);
    assert!(begun.elapsed() < 4 * AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(status.code(), Some(1), "{}", stuck.complained());
    waits.join().expect("a thread that ends").expect_err("an answer from nowhere");
    assert!(!is_mounted(&made) && !made.exists());
    below.signal(Signal::CONT);
    below.stop();
}

#[test]
fn unmounted_from_outside_it_ends_well() {
    if !can_mount("unmounted_from_outside_it_ends_well") {
        return;
    }
    for flag in [None, Some("-l")] {
        let places = Places::new();
        let mut daemon =
            Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
        let mut umount = Command::new("umount");
        umount.args(flag).arg(places.mountpoint());
        assert!(run(&mut umount, SOON).status.success());
        let status = daemon.wait(SOON);
        assert!(status.success(), "{status}: {}", daemon.complained());
        assert_eq!(daemon.complained(), "");
    }
}

#[test]
fn a_dead_mount_is_recognised_and_cleared() {
    if !can_mount("a_dead_mount_is_recognised_and_cleared") {
        return;
    }
    for cache in ["none", "always"] {
        let places = Places::new();
        let arguments = [places.source(), places.mountpoint()];
        let mut daemon = Daemon::start(
            &[
                arguments[0].as_os_str(),
                arguments[1].as_os_str(),
                "--cache".as_ref(),
                cache.as_ref(),
            ],
            &places.mountpoint(),
        );
        // What the kernel remembers of it must not make it look alive.
        assert!(places.mountpoint().join("hello").exists());
        daemon.signal(Signal::KILL);
        daemon.wait(SOON);
        assert!(fs::read(places.mountpoint().join("hello")).is_err());

        let refused = mirror(&arguments);
        assert_refused(
            &refused,
            &["transport endpoint is not connected", "--clear-stale", "umount -l"],
        );
        let again = Daemon::start(
            &[arguments[0].as_os_str(), arguments[1].as_os_str(), "--clear-stale".as_ref()],
            &places.mountpoint(),
        );
        assert_eq!(fs::read(places.mountpoint().join("hello")).expect("a file"), b"hello\n");
        again.stop();
        assert!(!is_mounted(&places.mountpoint()), "{cache}: the dead mount is still below");
    }
}

#[test]
fn clearing_leaves_living_mounts_alone() {
    if !can_mount("clearing_leaves_living_mounts_alone") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    let arguments =
        [places.source().as_os_str(), places.mountpoint().as_os_str(), "--clear-stale".as_ref()]
            .map(OsString::from);
    assert_refused(&mirror(&arguments), &["mounted there already"]);
    assert!(places.mountpoint().join("hello").exists());
    daemon.stop();
}
