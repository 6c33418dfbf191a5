//! Path-based FUSE filesystems: a handler trait, its dispatch, and a mount.
mod attr;
pub mod dispatch;
mod errno;
mod handler;
mod handles;
mod listing;
mod mount;
mod negotiation;
mod node;
mod operation;
mod transport;

#[cfg(feature = "mirror")]
pub mod mirror;

pub use attr::{Attr, FileType, Lifetimes, Timestamp};
pub use errno::Errno;
pub use handler::*;
pub use listing::{DirEntry, DirPlusSink, DirSink, Fit};
pub use dispatch::Dispatch;
pub use mount::{
    Mount, MountError, MountOptions, MountStats, MountThreads, Unmounted, Unmounter, clear_stale,
    mount,
};
pub use negotiation::{Negotiation, ReadDirPlus};
pub use transport::device::Notifier;
pub use pinpath::{Inode, Name, NodeData};
pub use node::{LeasedPath, Node};
pub use operation::{Class, Operation};
