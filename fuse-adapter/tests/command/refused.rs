//! What the command refuses, with words that help.

use std::fs;
use std::process::Command;

use super::{assert_refused, mirror};
use crate::running::{Daemon, PINPATH, Places, SOON, can_mount, run};

#[test]
fn no_such_source() {
    let places = Places::new();
    let refused = mirror(&[places.path().join("none"), places.path().join("new")]);
    assert_refused(&refused, &["source", "none", "does not exist"]);
    assert!(!places.path().join("new").exists(), "a mountpoint was left behind");
}

#[test]
fn a_source_that_is_a_file() {
    let places = Places::new();
    let refused = mirror(&[places.source().join("hello"), places.path().join("new")]);
    assert_refused(&refused, &["hello", "not a directory"]);
    assert!(!places.path().join("new").exists(), "a mountpoint was left behind");
}

#[test]
fn a_mountpoint_that_is_a_file() {
    let places = Places::new();
    let file = places.path().join("file");
    fs::write(&file, "").expect("a file");
    let refused = mirror(&[places.source(), file]);
    assert_refused(&refused, &["mountpoint", "file", "not a directory"]);
}

#[test]
fn a_mountpoint_without_a_parent() {
    let places = Places::new();
    let refused = mirror(&[places.source(), places.path().join("a/b")]);
    assert_refused(&refused, &["mountpoint", "parent"]);
}

#[test]
fn missing_and_unknown_arguments() {
    assert_refused(&mirror(&["/"]), &["MOUNTPOINT"]);
    assert_refused(&mirror(&["/", "/mnt", "--shiny"]), &["--shiny"]);
    assert_refused(&mirror(&["/", "/mnt", "--readers", "0"]), &["readers", "from 1"]);
    assert_refused(&mirror(&["/", "/mnt", "-o", "rw,shiny"]), &["unknown mount option", "shiny"]);
    assert_refused(&run(Command::new(PINPATH).arg("miror"), SOON), &["miror", "mirror"]);
}

#[test]
fn help_is_no_error() {
    let help = mirror(&["--help"]);
    assert!(help.status.success() && help.stderr.is_empty());
    for word in ["SOURCE", "MOUNTPOINT", "--clear-stale", "Examples", "fstab"] {
        assert!(help.out().contains(word), "no {word} in {}", help.out());
    }
    assert!(run(Command::new(PINPATH).arg("--version"), SOON).status.success());
}

#[test]
fn mounted_twice_is_refused_and_the_first_lives_on() {
    if !can_mount("mounted_twice_is_refused_and_the_first_lives_on") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    let refused = mirror(&[places.source(), places.mountpoint()]);
    assert_refused(&refused, &["mounted there already", "umount"]);
    assert_eq!(fs::read(places.mountpoint().join("hello")).expect("a file"), b"hello\n");
    daemon.stop();
}
