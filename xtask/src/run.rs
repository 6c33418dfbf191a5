//! Runs cargo on a copy, with a limit of time: mounts are involved.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};

/// Which of easy_fuser's features are on.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    features: &'static [&'static str],
}

impl Mode {
    pub(crate) const SERIAL: Mode = Mode::only("serial", &["--features", "serial"]);
    pub(crate) const PARALLEL: Mode = Mode::only("parallel", &["--features", "parallel"]);
    pub(crate) const ASYNC: Mode = Mode::only("async", &["--features", "async"]);
    /// What a user gets who asks for nothing: all three.
    pub(crate) const ALL: Mode = Mode::only("all", &["--features", "serial,parallel,async"]);

    const fn only(name: &'static str, features: &'static [&'static str]) -> Self {
        Mode { name, features }
    }
}

/// `cargo test` on a copy; what it printed is in the answer.
pub(crate) fn cargo_test(
    crate_: &Path,
    mode: Mode,
    minutes: u32,
    arguments: &[&str],
) -> Result<Output> {
    // `timeout` ends the test processes with cargo, which no handle of ours could.
    Command::new("timeout")
        .args(["--kill-after=10", &format!("{minutes}m"), "cargo", "test", "--quiet"])
        .args(["--no-default-features"])
        .args(mode.features)
        .args(arguments)
        .current_dir(crate_)
        // A folder for each copy: cargo tells packages apart by their place in the workspace, and
        // both are their workspace's root.
        .env("CARGO_TARGET_DIR", crate_.with_extension("build"))
        .env("CARGO_TERM_COLOR", "never")
        .stdin(Stdio::null())
        .output()
        .context("timeout(1) or cargo can't be run")
}
