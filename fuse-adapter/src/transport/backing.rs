//! Files that the kernel reads and writes by itself, without asking (`FUSE_PASSTHROUGH`).

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Weak;

use rustix::ioctl::{Opcode, opcode};

use super::device::Device;

/// `struct fuse_backing_map`.
#[repr(C)]
struct BackingMap {
    fd: i32,
    flags: u32,
    padding: u64,
}

/// The kernel's `FUSE_DEV_IOC_MAGIC`.
const MAGIC: u8 = 229;
const BACKING_OPEN: Opcode = opcode::write::<BackingMap>(MAGIC, 1);
const BACKING_CLOSE: Opcode = opcode::write::<u32>(MAGIC, 2);

/// Gives files to the kernel of a mount. Cheap to clone; works until the mount ends, and only where
/// [`Negotiation::passthrough`](crate::Negotiation::passthrough) was agreed.
#[derive(Clone, Debug)]
pub struct BackingFiles(Weak<Device>);

impl BackingFiles {
    pub(crate) fn new(device: Weak<Device>) -> Self {
        BackingFiles(device)
    }

    /// Gives it a regular file, open for anything. The kernel opens it once more for each open file
    /// that is passed through, with the rights of the calling process.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `ELOOP` for a file of a filesystem that itself lies on
    /// others (overlayfs); the mount has ended.
    pub fn open(&self, file: BorrowedFd<'_>) -> io::Result<BackingFile> {
        let device = self.0.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        let map = BackingMap { fd: file.as_raw_fd(), flags: 0, padding: 0 };
        // SAFETY: this call reads one `BackingMap`, which lives until it returns.
        let id = unsafe { libc::ioctl(device.raw(), BACKING_OPEN as _, &raw const map) };
        match u32::try_from(id).ok().and_then(NonZeroU32::new) {
            Some(id) => Ok(BackingFile { device: self.0.clone(), id: BackingId(id) }),
            None => Err(io::Error::last_os_error()),
        }
    }
}

/// A file that the kernel has. Dropping it takes it back; what is open goes on.
#[derive(Debug)]
pub struct BackingFile {
    device: Weak<Device>,
    id: BackingId,
}

/// The kernel's number of a [`BackingFile`], for [`OpenOptions`](crate::OpenOptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackingId(NonZeroU32);

impl BackingFile {
    /// Its number, good as long as this is held.
    pub fn id(&self) -> BackingId {
        self.id
    }
}

impl Drop for BackingFile {
    fn drop(&mut self) {
        let Some(device) = self.device.upgrade() else { return };
        let id = self.id.raw();
        // SAFETY: this call reads one `u32`, which lives until it returns.
        let result = unsafe { libc::ioctl(device.raw(), BACKING_CLOSE as _, &raw const id) };
        if result != 0 {
            tracing::debug!(error = %io::Error::last_os_error(), "a backing file could not be closed");
        }
    }
}

impl BackingId {
    pub(crate) fn raw(self) -> u32 {
        self.0.get()
    }
}
