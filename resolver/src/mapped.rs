//! [`MappedInode`]: an inode that can tell its paths, to be kept and passed around.

use std::ffi::OsString;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use crate::data::NodeData;
use crate::error::PathError;
use crate::inode::Inode;
use crate::resolver::Resolver;

/// An owned, cloneable handle of one node.
///
/// Its answers are those of easy_fuser 0.7.1's type of the same name: paths are relative and lead
/// from the root to the file, the root has one empty path, and a node without a name has none. Each
/// call looks anew. The handle doesn't keep the node alive; once it is reclaimed there are no paths.
///
/// Two handles are equal if their ids are. Unlike easy_fuser's they don't compare the table: don't mix
/// handles of two resolvers.
pub struct MappedInode<D: NodeData = ()> {
    resolver: Resolver<D>,
    inode: Inode,
}

impl<D: NodeData> MappedInode<D> {
    pub(crate) fn new(resolver: Resolver<D>, inode: Inode) -> Self {
        MappedInode { resolver, inode }
    }

    /// The node id.
    pub fn inode(&self) -> Inode {
        self.inode
    }

    /// The first path; see [`Resolver::path`].
    ///
    /// # Errors
    /// As [`Resolver::path`].
    pub fn path(&self) -> Result<PathBuf, PathError> {
        self.resolver.path(self.inode)
    }

    /// All paths; see [`Resolver::paths`].
    pub fn paths(&self) -> Vec<PathBuf> {
        self.resolver.paths(self.inode)
    }

    /// All paths as lists of names, root to leaf; see [`Resolver::parts_paths`].
    pub fn parts_paths(&self) -> Vec<Vec<OsString>> {
        self.resolver.parts_paths(self.inode)
    }
}

impl<D: NodeData> Clone for MappedInode<D> {
    fn clone(&self) -> Self {
        MappedInode { resolver: self.resolver.clone(), inode: self.inode }
    }
}

impl<D: NodeData> PartialEq for MappedInode<D> {
    fn eq(&self, other: &Self) -> bool {
        self.inode == other.inode
    }
}

impl<D: NodeData> Eq for MappedInode<D> {}

impl<D: NodeData> Hash for MappedInode<D> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inode.hash(state);
    }
}

impl<D: NodeData> fmt::Debug for MappedInode<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappedInode").field(&self.inode).finish()
    }
}
