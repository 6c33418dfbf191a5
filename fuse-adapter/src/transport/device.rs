//! [`Device`]: the connection to the kernel, for what the transport's library can't send itself.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Weak;

use pinpath::{Inode, Name};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::IntoBytes;

use super::wire::{InvalEntry, InvalInode, OutHeader, notification};
use crate::handler::PollNotifier;

/// A descriptor of `/dev/fuse` that shares the open file of the session's own. Everything sent is
/// one `writev`, which the kernel takes as a whole, so threads need not agree on who sends.
#[derive(Debug)]
pub(crate) struct Device(OwnedFd);

impl Device {
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Device(descriptor)
    }

    /// The descriptor's number, for `ioctl`; open as long as `self` lives.
    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Answers a request.
    pub(crate) fn answer(&self, unique: u64, payload: &[u8]) -> io::Result<()> {
        self.send(0, unique, [payload, &[]])
    }

    /// Tells the kernel something that it didn't ask for.
    fn notify(&self, code: i32, parts: [&[u8]; 2]) -> io::Result<()> {
        self.send(code, 0, parts)
    }

    /// Is the filesystem still mounted, here or elsewhere?
    fn is_connected(&self) -> bool {
        // The kernel reports an error when the connection has ended, and nothing else unasked.
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
    }

    fn send(&self, error: i32, unique: u64, parts: [&[u8]; 2]) -> io::Result<()> {
        let len = size_of::<OutHeader>() + parts[0].len() + parts[1].len();
        let len = u32::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let header = OutHeader { len, error, unique };
        let [first, second] = parts.map(IoSlice::new);
        rustix::io::writev(&self.0, &[IoSlice::new(header.as_bytes()), first, second])?;
        Ok(())
    }
}

/// Tells the kernel what changed behind its back. Cheap to clone; works until the mount ends.
///
/// Never call it on a thread that serves a request, nor while holding what a handler might wait
/// for: the kernel may wait for requests under way on the same file or directory before it answers,
/// and these would wait for the caller. Send from a thread of your own, after the change.
#[derive(Clone, Debug)]
pub struct Notifier(Weak<Device>);

impl Notifier {
    pub(crate) fn new(device: Weak<Device>) -> Self {
        Notifier(device)
    }

    /// The name may lead elsewhere by now, or nowhere: the kernel forgets what it knew of it.
    ///
    /// # Errors
    /// The mount has ended.
    pub fn inval_entry(&self, parent: Inode, name: &Name) -> io::Result<()> {
        let name = name.as_bytes();
        // The kernel's copy of the name ends with a NUL, which the length doesn't count.
        let mut bytes = [0; pinpath::NAME_MAX + 1];
        bytes[..name.len()].copy_from_slice(name);
        let head = InvalEntry { parent: parent.raw(), name_len: name.len() as u32, flags: 0 };
        self.send(notification::INVAL_ENTRY, head.as_bytes(), &bytes[..=name.len()])
    }

    /// The attributes may have changed, and the content from `offset` on for `length` bytes (0: to
    /// the end). A negative offset leaves the content as it is.
    ///
    /// # Errors
    /// The mount has ended.
    pub fn inval_inode(&self, inode: Inode, offset: i64, length: i64) -> io::Result<()> {
        let head = InvalInode { node: inode.raw(), offset, length };
        self.send(notification::INVAL_INODE, head.as_bytes(), &[])
    }

    /// Is the filesystem still mounted, here or elsewhere?
    pub(crate) fn is_connected(&self) -> bool {
        self.0.upgrade().is_some_and(|device| device.is_connected())
    }

    fn send(&self, code: i32, head: &[u8], tail: &[u8]) -> io::Result<()> {
        let device = self.0.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        match device.notify(code, [head, tail]) {
            // The kernel knows nothing of it, so there is nothing to forget.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // The kernel's "no such device" of a connection that has ended.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                Err(io::ErrorKind::NotConnected.into())
            }
            other => other,
        }
    }
}

/// Wakes who polls one open file.
pub(crate) struct PollWaker {
    pub(crate) device: Weak<Device>,
    /// The kernel's name for it.
    pub(crate) handle: u64,
}

impl PollNotifier for PollWaker {
    fn notify(self: Box<Self>) -> io::Result<()> {
        let device = self.device.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        device.notify(notification::POLL, [self.handle.as_bytes(), &[]])
    }
}
