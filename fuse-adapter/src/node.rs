//! [`Node`]: what a handler is given for an inode; its path is resolved only when asked for.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use pinpath::{Inode, MappedInode, Name, NodeData, PathLease, Resolver};

use crate::errno::Errno;

/// An inode in a request. Costs nothing until something is asked of it.
#[derive(Debug)]
pub struct Node<'a, D: NodeData = ()> {
    inode: Inode,
    /// `None` where the handler chooses the node ids.
    resolver: Option<&'a Resolver<D>>,
    /// A lease that the dispatcher took for this request, as for the parents of a rename.
    lease: Option<&'a PathLease<'a, D>>,
}

impl<'a, D: NodeData> Node<'a, D> {
    pub(crate) fn new(inode: Inode, resolver: Option<&'a Resolver<D>>) -> Self {
        Node { inode, resolver, lease: None }
    }

    pub(crate) fn leased(lease: &'a PathLease<'a, D>, resolver: &'a Resolver<D>) -> Self {
        Node { inode: lease.inode(), resolver: Some(resolver), lease: Some(lease) }
    }

    /// The node id.
    pub fn inode(&self) -> Inode {
        self.inode
    }

    /// Is it the root of the mount?
    pub fn is_root(&self) -> bool {
        self.inode == Inode::ROOT
    }

    /// The path of the node relative to the root of the mount (the root's is empty). It stays true
    /// until the answer is dropped: nobody renames or removes the file or a directory above it
    /// through this mount meanwhile. Drop it before anything that may take long.
    ///
    /// May wait for a rename or removal under way, for as long as that one's handler takes.
    ///
    /// # Errors
    /// `ENOENT` if its last name is gone (use an open file), `ESTALE` if the node is not known any
    /// more, `ENOSYS` with [`Numbering::Handler`](crate::Numbering).
    pub fn path(&self) -> Result<LeasedPath<'_, D>, Errno> {
        let mut bytes = Vec::new();
        match self.lease {
            Some(lease) => {
                lease.path_into(&mut bytes)?;
                Ok(LeasedPath::new(bytes, None))
            }
            None => {
                let lease = self.resolver()?.lease(self.inode)?;
                lease.path_into(&mut bytes)?;
                Ok(LeasedPath::new(bytes, Some(lease)))
            }
        }
    }

    /// Every known path of the node; empty once the last name is gone. Not leased: each may be
    /// outdated by the time it is used.
    ///
    /// # Errors
    /// `ENOSYS` with [`Numbering::Handler`](crate::Numbering).
    pub fn paths(&self) -> Result<Vec<PathBuf>, Errno> {
        Ok(self.resolver()?.paths(self.inode))
    }

    /// The node under a name of this directory, if one is known. Counts as no lookup.
    ///
    /// # Errors
    /// `ESTALE` if this node is not known any more, `ENOSYS` with
    /// [`Numbering::Handler`](crate::Numbering).
    pub fn child(&self, name: &Name) -> Result<Option<Node<'a, D>>, Errno> {
        let resolver = self.resolver()?;
        Ok(resolver.peek(self.inode, name)?.map(|child| Node::new(child, Some(resolver))))
    }

    /// An owned handle that can be kept.
    ///
    /// # Errors
    /// `ENOSYS` with [`Numbering::Handler`](crate::Numbering).
    pub fn mapped(&self) -> Result<MappedInode<D>, Errno> {
        Ok(self.resolver()?.mapped(self.inode))
    }

    /// What is kept beside the node. `f` must not block.
    ///
    /// # Errors
    /// `ESTALE` if the node is not known any more, `ENOSYS` with
    /// [`Numbering::Handler`](crate::Numbering).
    pub fn with_data<R>(&self, f: impl FnOnce(&D) -> R) -> Result<R, Errno> {
        self.resolver()?.with_data(self.inode, f).ok_or(Errno::ESTALE)
    }

    fn resolver(&self) -> Result<&'a Resolver<D>, Errno> {
        self.resolver.ok_or(Errno::ENOSYS)
    }
}

/// A path that stays true while this is held. Derefs to [`Path`]; relative, the root's is empty.
#[derive(Debug)]
pub struct LeasedPath<'a, D: NodeData = ()> {
    path: PathBuf,
    _lease: Option<PathLease<'a, D>>,
}

impl<'a, D: NodeData> LeasedPath<'a, D> {
    fn new(bytes: Vec<u8>, lease: Option<PathLease<'a, D>>) -> Self {
        use std::os::unix::ffi::OsStringExt;
        LeasedPath { path: std::ffi::OsString::from_vec(bytes).into(), _lease: lease }
    }

    /// The path itself.
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}

impl<D: NodeData> Deref for LeasedPath<'_, D> {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
