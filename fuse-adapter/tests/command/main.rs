//! The command `pinpath` as a user meets it: its messages, its signals, its way to the background.

mod background;
mod by_mount;
mod ending;
mod options;
mod paths;
mod refused;
#[path = "../running/mod.rs"]
mod running;
mod stats;
mod users;

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use running::{Finished, PINPATH, SOON, run};

/// An idle mount is gone within this.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Runs `pinpath mirror` with these arguments; for calls that return by themselves.
fn mirror<S: AsRef<OsStr>>(arguments: &[S]) -> Finished {
    run(Command::new(PINPATH).arg("mirror").args(arguments), SOON)
}

/// The command must have failed as a user can understand: with status 1, and these words.
#[track_caller]
fn assert_refused(finished: &Finished, words: &[&str]) {
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    for word in words {
        assert!(finished.stderr.contains(word), "no {word:?} in: {}", finished.stderr);
    }
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("backtrace"), "{}", finished.stderr);
}
