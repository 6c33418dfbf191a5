//! What a handler is given with a request.

use super::Handler;
use crate::attr::Timestamp;
use crate::node::Node;
use crate::transport::backing::BackingFiles;

/// Who asks, and a number to follow the request by.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The kernel's number of this request.
    pub unique: u64,
    /// The caller's filesystem user id.
    pub uid: u32,
    /// The caller's filesystem group id.
    pub gid: u32,
    /// The caller's thread id, 0 where the kernel asks by itself (writing back its cache).
    pub pid: u32,
}

/// A time to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// This one.
    At(Timestamp),
    /// Now, by the filesystem's clock.
    Now,
}

/// What `setattr` shall change; `None` leaves a thing as it is.
#[derive(Debug)]
pub struct SetAttr<'a, F> {
    /// Permission bits, setuid, setgid and sticky included.
    pub perm: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last change of the content.
    pub mtime: Option<SetTime>,
    /// Last change of the attributes (only with the writeback cache).
    pub ctime: Option<Timestamp>,
    /// The open file through which it was asked, where there is one (`ftruncate`).
    pub file: Option<&'a F>,
}

/// The flags of a rename: those of `renameat2(2)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenameFlags {
    /// Fail with `EEXIST` rather than replace.
    pub no_replace: bool,
    /// Swap the two.
    pub exchange: bool,
    /// Leave a whiteout behind (overlayfs).
    pub whiteout: bool,
}

/// A byte range with a POSIX lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// First byte.
    pub start: u64,
    /// Last byte, inclusive; `i64::MAX as u64` for "to the end".
    pub end: u64,
    /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    pub typ: i32,
    /// The process that holds it.
    pub pid: u32,
}

/// What a handler is told of its mount.
#[derive(Debug)]
#[non_exhaustive]
pub struct Mounted {
    /// Major and minor of `st_dev` of everything in it, by which a handler can tell that what it
    /// meets elsewhere is its own mount.
    pub device: (u32, u32),
    /// For files that the kernel shall read and write itself.
    pub backing_files: BackingFiles,
}

/// One end of a copy.
#[derive(Debug)]
pub struct CopyEnd<'a, H: Handler> {
    /// The file's node.
    pub node: &'a Node<'a, H::Data>,
    /// The open file.
    pub file: &'a H::File,
    /// Where in it, in bytes.
    pub offset: u64,
}

/// Wakes who polls an open file.
pub trait PollNotifier: Send {
    /// The file's readiness changed.
    ///
    /// # Errors
    /// The mount has ended.
    fn notify(self: Box<Self>) -> std::io::Result<()>;
}
