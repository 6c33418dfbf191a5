//! Going to the background: a child serves the mount, and the parent waits until it answers.
//!
//! Until then the child keeps the terminal, so that whatever goes wrong is said to the user and is
//! the exit status of the command; `pinpath mirror --background S M && ls M` never sees an empty
//! directory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::failure::Failure;

/// What is left of the command after [`split`].
#[derive(Debug)]
pub(crate) enum Side {
    /// The command itself, which is done: the exit status says how.
    Parent(ExitCode),
    /// The process that serves.
    Child(Announcement),
}

/// The child's end of the pipe that the parent waits at.
#[derive(Debug)]
pub(crate) struct Announcement(File);

/// Makes the child. No thread may have been started before, and none has: this is the first thing
/// that a plan does.
pub(crate) fn split() -> Result<Side, Failure> {
    let (reading, writing) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(background)?;
    // SAFETY: the process has one thread, so the child finds no lock held and nothing half done,
    // and may go on like any process.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::Background(io::Error::last_os_error())),
        0 => Ok(Side::Child(Announcement(writing.into()))),
        child => {
            drop(writing);
            Ok(Side::Parent(wait(reading.into(), child)?))
        }
    }
}

/// Waits until the child says that the mount answers, or ends.
fn wait(mut pipe: File, child: i32) -> Result<ExitCode, Failure> {
    if pipe.read_exact(&mut [0]).is_ok() {
        return Ok(ExitCode::SUCCESS);
    }
    let status = match Pid::from_raw(child) {
        Some(pid) => {
            rustix::process::waitpid(Some(pid), WaitOptions::empty()).map_err(background)?
        }
        None => None,
    };
    match status.map(|(_, status)| status) {
        // It has said why.
        Some(status) if status.exit_status().is_some() => Ok(ExitCode::FAILURE),
        status => Err(Failure::BackgroundDied(describe(status))),
    }
}

fn describe(status: Option<WaitStatus>) -> String {
    match status.and_then(|status| status.terminating_signal()) {
        Some(signal) => format!("signal {signal}"),
        None => "no reason given".into(),
    }
}

impl Announcement {
    /// The mount answers: leaves the terminal, then lets the parent return.
    pub(crate) fn mounted(mut self) -> Result<(), Failure> {
        rustix::process::setsid().map_err(background)?;
        leave_streams().map_err(Failure::Background)?;
        // If the parent is gone, nobody waits.
        let _ = self.0.write_all(&[1]);
        Ok(())
    }
}

/// Standard input, output and error become /dev/null, so that whoever reads from the command sees
/// its end. Only a file keeps getting the log: `pinpath mirror --background S M 2>log`.
fn leave_streams() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    if !is_file(rustix::stdio::stderr()) {
        rustix::stdio::dup2_stderr(&null)?;
    }
    Ok(())
}

fn is_file(stream: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(stream.as_fd())
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn background(error: rustix::io::Errno) -> Failure {
    Failure::Background(error.into())
}
