//! [`MountError`]: why nothing was mounted, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why nothing was mounted. The text of each says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// There is no `/dev/fuse`, or no driver behind it.
    #[error(
        "there is no /dev/fuse: load the kernel's module (modprobe fuse), or start the container \
         with the device and the right to mount (--device /dev/fuse --cap-add SYS_ADMIN)"
    )]
    NoDevice,
    /// `/dev/fuse` can't be opened.
    #[error("/dev/fuse can't be opened: {0}: ask root for access to it")]
    Device(#[source] io::Error),
    /// The mountpoint doesn't exist.
    #[error("the mountpoint {0:?} does not exist: make the directory first")]
    Missing(PathBuf),
    /// The mountpoint is no directory.
    #[error("the mountpoint {0:?} is not a directory: choose one")]
    NotADirectory(PathBuf),
    /// A daemon was killed and left its mount behind.
    #[error(
        "the mountpoint {0:?} is what a killed daemon left behind (\"transport endpoint is not \
         connected\"): clear it with fusermount3 -u -z, as root with umount -l"
    )]
    Stale(PathBuf),
    /// The mountpoint can't be looked at.
    #[error("the mountpoint {0:?} can't be used: {1}")]
    Mountpoint(PathBuf, #[source] io::Error),
    /// Only root may mount without it.
    #[error(
        "who is not root needs the program fusermount3 to mount (or to unmount by itself), and it \
         is not here: install it (the package is called fuse3), or mount as root"
    )]
    NoFusermount,
    /// `fusermount3` refused.
    #[error("fusermount3 refused: {0}")]
    Fusermount(String),
    /// `allow_other` is not allowed.
    #[error(
        "user_allow_other is not set in /etc/fuse.conf, so only root may let other users in: set it, \
         or mount without allow_other"
    )]
    AllowOther,
    /// The kernel refused.
    #[error("the kernel refused to mount on {0:?}: {1}")]
    Kernel(PathBuf, #[source] io::Error),
    /// The handler's `init` refused.
    #[error("the filesystem could not start: {0}")]
    Init(#[source] io::Error),
    /// The handler's `init` panicked.
    #[error("the filesystem panicked when it started")]
    InitPanicked,
    /// A thread could not be started.
    #[error(
        "a thread could not be started: {0}: ask for fewer threads, or raise the limit (ulimit -u)"
    )]
    Threads(#[source] io::Error),
    /// The connection to the kernel failed.
    #[error("the connection to the kernel failed: {0}")]
    Connection(#[source] io::Error),
}

impl MountError {
    /// What a failure to look at the mountpoint means.
    pub(super) fn of_mountpoint(mountpoint: &Path, error: io::Error) -> Self {
        let mountpoint = mountpoint.to_owned();
        match error.raw_os_error() {
            Some(libc::ENOENT) => MountError::Missing(mountpoint),
            Some(libc::ENOTDIR) => MountError::NotADirectory(mountpoint),
            Some(libc::ENOTCONN) => MountError::Stale(mountpoint),
            _ => MountError::Mountpoint(mountpoint, error),
        }
    }

    /// What a failure to open `/dev/fuse` means.
    pub(super) fn of_device(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => MountError::NoDevice,
            _ => MountError::Device(error),
        }
    }
}

impl From<MountError> for io::Error {
    fn from(error: MountError) -> Self {
        io::Error::other(error)
    }
}
