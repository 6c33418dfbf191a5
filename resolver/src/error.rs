//! What a resolver refuses, and why. A verb that fails has changed nothing.

use crate::Inode;

/// Why a verb that changes the table was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The id names no node: it never did, or the node was forgotten and reclaimed.
    #[error("inode {0:?} is stale")]
    Stale(Inode),
    /// The node is no directory, so it can't hold a name.
    #[error("inode {0:?} is not a directory")]
    NotADirectory(Inode),
    /// A directory has one name; a second link to it was asked for.
    #[error("inode {0:?} is a directory and can't have a second name")]
    DirectoryLink(Inode),
    /// The move would put a directory below itself.
    #[error("inode {0:?} can't be moved below itself")]
    Cycle(Inode),
    /// A directory with this identity is known under another name. Either it was moved behind the
    /// mount (then rename it and look again) or it is seen twice, by a bind mount for example
    /// (then look it up without an identity).
    #[error("the directory is known under another name, as inode {0:?}")]
    KnownElsewhere(Inode),
    /// The root has no name, and can't be linked, unlinked or renamed.
    #[error("the root has no name")]
    Root,
    /// The table holds as many nodes as an id can tell apart (2^32).
    #[error("the table is full")]
    Full,
}

/// Why an inode has no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The node is there, but its last name, or that of a directory above it, was removed.
    #[error("inode {0:?} has no name any more")]
    Unlinked(Inode),
    /// The id names no node: it never did, or the node was forgotten and reclaimed.
    #[error("inode {0:?} is stale")]
    Stale(Inode),
}
