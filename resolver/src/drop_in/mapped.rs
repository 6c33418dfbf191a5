//! [`MappedInode`]: the handle that a handler of the mapped flavour is given.

use std::ffi::OsString;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use super::Beside;
use crate::{Inode, Resolver};

/// An inode of one mount that can tell its paths. It doesn't keep the node alive.
///
/// Two are equal if they are the same inode of the same mount.
#[derive(Clone)]
pub struct MappedInode {
    mapped: crate::MappedInode<Beside>,
    /// Where the table is, to tell mounts apart; the handle above keeps it there.
    table: usize,
}

impl MappedInode {
    #[inline]
    pub(super) fn new(mapped: crate::MappedInode<Beside>, resolver: &Resolver<Beside>) -> Self {
        let table = std::ptr::from_ref(resolver.shared()).addr();
        MappedInode { mapped, table }
    }

    /// The node id.
    pub fn inode(&self) -> Inode {
        self.mapped.inode()
    }

    /// All names' paths, relative to the root, as of one moment. The root has the empty one; a
    /// file without a name has none.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.mapped.paths()
    }

    /// The same as lists of names from the root down.
    pub fn parts_paths(&self) -> Vec<Vec<OsString>> {
        self.mapped.parts_paths()
    }
}

impl PartialEq for MappedInode {
    fn eq(&self, other: &Self) -> bool {
        self.inode() == other.inode() && self.table == other.table
    }
}

impl Eq for MappedInode {}

impl Hash for MappedInode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.inode(), self.table).hash(state);
    }
}

impl fmt::Debug for MappedInode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inode, paths) = (self.inode(), self.paths());
        f.debug_struct("MappedInode").field("inode", &inode).field("paths", &paths).finish()
    }
}
