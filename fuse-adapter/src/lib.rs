//! Path-based FUSE filesystems.
//!
//! The author of a filesystem writes a [`Handler`]; [`mount()`] mounts it and answers the kernel.
//! What a handler is given for an inode is a [`Node`], and what most of them ask it for is its
//! [path](Node::path): one that is true, and stays true while it is held, whatever other threads
//! rename meanwhile. `examples/hello.rs` is a whole filesystem in some fifty lines.
//!
//! | | |
//! | --- | --- |
//! | [`Handler`] | the operations; every one that is not implemented has an answer that the kernel or the program can live with |
//! | [`Node`], [`LeasedPath`] | an inode in a request, and its path; the crate [`pinpath`] does the work |
//! | [`Entry`], [`Attr`], [`Errno`], ... | what a handler answers |
//! | [`MountOptions`], [`Negotiation`] | how to mount, and what to agree on with the kernel |
//! | [`Mount`], [`Unmounter`], [`Notifier`] | a mount while it lives |
//! | [`dispatch`] | how a request travels, and an [engine](dispatch::Engine) that needs no mount, for tests |
//! | [`mirror`](https://docs.rs/pinpath-fuse/latest/pinpath_fuse/mirror/) | with the feature of that name: a directory, seen again somewhere else |
//!
//! # What a handler may rely on
//!
//! - Methods are called from several threads at once, with everything by reference; an open file is
//!   dropped when its last operation has ended.
//! - Renames and removals run alone: nobody holds a path at or below what is being moved. A handler
//!   that wants a path may wait for such a change, and gets the path after it.
//! - A panic answers `EIO` for its request, and nothing else.
//! - The kernel gets an inode's id only with an entry, and each entry is counted once, so a
//!   handler never counts.
//! - `ENOENT` for an inode (not for a name) reaches the kernel as `ESTALE`: it looks the name up
//!   again before it tells a program that the file is missing.
//!
//! # What can't be had yet
//!
//! The transport is the crate `fuser` 0.18. With it a request can't be interrupted: whoever waits
//! for a handler that is blocked waits until it is done, even when killed. There is no `O_TMPFILE`
//! (programs fall back) and no birth time; and with both kinds of locks asked for, a handler can't
//! tell `flock` from `fcntl`.

mod attr;
pub mod dispatch;
mod errno;
mod handler;
mod handles;
mod listing;
#[cfg(feature = "mirror")]
pub mod mirror;
mod mount;
mod negotiation;
mod node;
mod operation;
mod transport;

pub use pinpath::{self, Inode, Name, NodeData};

pub use attr::{Attr, FileType, Lifetimes, Timestamp};
pub use dispatch::{Dispatch, DispatchStats, Latency, OperationStats, ReaderStats};
pub use errno::Errno;
pub use handler::{
    CopyEnd, Entry, Found, Handler, Lock, Mounted, Numbering, OpenOptions, Opened, PollNotifier,
    RenameFlags, Request, Result, SetAttr, SetTime, StatFs,
};
pub use listing::{DirEntry, DirPlusSink, DirSink, Fit};
pub use mount::{
    Mount, MountError, MountOptions, MountStats, MountThreads, Unmounted, Unmounter, clear_stale,
    mount,
};
pub use negotiation::{Negotiation, ReadDirPlus};
pub use node::{LeasedPath, Node};
pub use operation::{Class, Operation};
pub use transport::backing::{BackingFile, BackingFiles, BackingId};
pub use transport::device::Notifier;
