//! [`Flavour`]: by what a handler knows a file.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;

use super::{DropIn, MappedInode};
use crate::{Inode, PathError};

/// By what a handler knows a file. Sealed: the three here are all.
pub trait Flavour: Sized + Debug + 'static + sealed::Sealed {
    /// What a handler is given in place of the inode.
    type Id;
    /// Are several names of one file known as one file?
    const LINKS: bool;
    /// Does a file without a name still have the path that it had last? Handlers that get one
    /// path have no other word for it.
    const REMEMBERS: bool;

    #[doc(hidden)]
    fn resolve(table: &DropIn<Self>, inode: Inode) -> Result<Self::Id, PathError>;
}

/// A list of names, from the file up to the root, which has none.
#[derive(Debug)]
pub enum Components {}

/// A path relative to the root, whose own is empty.
#[derive(Debug)]
pub enum Paths {}

/// An inode that can tell its paths.
#[derive(Debug)]
pub enum Mapped {}

impl Flavour for Components {
    type Id = Vec<OsString>;
    const LINKS: bool = false;
    const REMEMBERS: bool = true;

    fn resolve(table: &DropIn<Self>, inode: Inode) -> Result<Vec<OsString>, PathError> {
        let split = |path: &std::path::Path| path.iter().rev().map(OsString::from).collect();
        match table.resolver.with_path(inode, split) {
            Err(PathError::Unlinked(_)) => table.last_path(inode).map(|path| split(&path)),
            found => found,
        }
    }
}

impl Flavour for Paths {
    type Id = PathBuf;
    const LINKS: bool = false;
    const REMEMBERS: bool = true;

    #[inline]
    fn resolve(table: &DropIn<Self>, inode: Inode) -> Result<PathBuf, PathError> {
        match table.resolver.path(inode) {
            Err(PathError::Unlinked(_)) => table.last_path(inode),
            found => found,
        }
    }
}

impl Flavour for Mapped {
    type Id = MappedInode;
    const LINKS: bool = true;
    const REMEMBERS: bool = false;

    #[inline]
    fn resolve(table: &DropIn<Self>, inode: Inode) -> Result<MappedInode, PathError> {
        Ok(MappedInode::new(table.resolver.mapped(inode), &table.resolver))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Components {}
    impl Sealed for super::Paths {}
    impl Sealed for super::Mapped {}
}
