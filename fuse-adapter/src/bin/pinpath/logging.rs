//! What is logged, and where to: standard error, from this program and from the libraries below it.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

/// How much to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Only what went wrong
    Error,
    /// And what looks odd
    Warn,
    /// And what happens now and then: mounting, unmounting
    Info,
    /// And details of interest to developers
    Debug,
    /// And every request
    Trace,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        }
    }
}

/// Starts logging. fuser logs through the crate `log`; `init` builds that bridge as well.
pub(crate) fn start(level: Level) {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::from(level))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // A log that cannot be written is given up; complaining about it would write there again.
        .log_internal_errors(false)
        .init();
}
