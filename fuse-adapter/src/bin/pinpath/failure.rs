//! Everything that can end the command, with what is wrong and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use pinpath_fuse::MountError;

use crate::say::quoted;

/// Why the command ends with exit status 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the source {} does not exist: name a directory that does", quoted(.0))]
    SourceMissing(PathBuf),
    #[error("the source {} is not a directory: a mirror shows a directory", quoted(.0))]
    SourceNotADirectory(PathBuf),
    #[error("the source {} cannot be opened: {}", quoted(.0), .1)]
    Source(PathBuf, io::Error),

    #[error("the mountpoint {} is not a directory: choose one, or a name that does not exist yet", quoted(.0))]
    MountpointNotADirectory(PathBuf),
    #[error("the mountpoint {} cannot be made, its parent directory does not exist: make that first", quoted(.0))]
    MountpointWithoutParent(PathBuf),
    #[error("the mountpoint {} cannot be used: {}", quoted(.0), .1)]
    Mountpoint(PathBuf, io::Error),
    #[error("{} is mounted there already, on {}: unmount it first with\n    {}", quoted(.source_path), quoted(.mountpoint), unmount_command(.mountpoint))]
    AlreadyMounted { source_path: PathBuf, mountpoint: PathBuf },
    #[error(
        "the mountpoint {} is what a killed daemon left behind (\"transport endpoint is not connected\"): \
         clear it with --clear-stale, or with\n    {}",
        quoted(.0), lazy_unmount_command(.0)
    )]
    StaleMount(PathBuf),
    #[error("the dead mount on {} cannot be cleared: {}", quoted(.0), .1)]
    ClearStale(PathBuf, io::Error),

    #[error("mounting on {} is not permitted: {}: use a directory of your own, or run as root", quoted(.0), .1)]
    NotPermitted(PathBuf, String),
    #[error("{option} is for root: leave it out, or run as root")]
    OnlyRoot { option: &'static str },
    #[error("{0}")]
    Mount(MountError),

    #[error("unknown mount option {0}: see pinpath mirror --help for those that are known")]
    UnknownOption(String),
    #[error("mount option {option}: {reason}")]
    OptionValue { option: String, reason: String },

    #[error("remounting {} failed: {}", quoted(.0), .1)]
    Remount(PathBuf, io::Error),

    #[error("going to the background failed: {0}")]
    Background(io::Error),
    #[error("the mount ended before it answered, with {0}")]
    BackgroundDied(String),
    #[error("signals cannot be handled: {0}")]
    Signals(io::Error),
    #[error("the mount on {} ended with an error: {}", quoted(.0), .1)]
    Serving(PathBuf, io::Error),
}

/// How the user at hand unmounts.
pub(crate) fn unmount_command(mountpoint: &Path) -> String {
    if is_root() {
        format!("umount {}", quoted(mountpoint))
    } else {
        format!("fusermount3 -u {}", quoted(mountpoint))
    }
}

fn lazy_unmount_command(mountpoint: &Path) -> String {
    if is_root() {
        format!("umount -l {}", quoted(mountpoint))
    } else {
        format!("fusermount3 -u -z {}", quoted(mountpoint))
    }
}

/// May this process mount by itself?
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Adds to the library's reasons what the user of the command can do.
pub(crate) fn explain(error: MountError, mountpoint: &Path) -> Failure {
    match error {
        MountError::Fusermount(reason) => Failure::NotPermitted(mountpoint.to_owned(), reason),
        MountError::Kernel(_, reason) if reason.kind() == io::ErrorKind::PermissionDenied => {
            Failure::NotPermitted(mountpoint.to_owned(), reason.to_string())
        }
        other => Failure::Mount(other),
    }
}
