//! Pinpath.

use std::ffi::OsStr;
use std::path::PathBuf;

use pinpath::{Inode, Kind, Name, RequestPin, Resolver};

use super::Table;

/// A [`Resolver`] without anything beside the nodes, as the peers have nothing there either.
#[derive(Clone, Debug)]
pub struct Ours(pub Resolver);

fn name(name: &OsStr) -> &Name {
    Name::from_os_str(name).expect("benchmarks use proper names")
}

impl Table for Ours {
    type Guard = RequestPin;

    fn new() -> Self {
        Ours(Resolver::new(()))
    }

    fn name() -> &'static str {
        "pinpath"
    }

    #[inline]
    fn enter(&self) -> RequestPin {
        self.0.pin()
    }

    fn lookup(&self, parent: u64, child: &OsStr, directory: bool) -> u64 {
        let kind = if directory { Kind::Directory } else { Kind::Leaf };
        let found = self.0.lookup(Inode::from_raw(parent), name(child), kind, ());
        found.expect("the parent is known").raw()
    }

    fn forget(&self, inode: u64) {
        self.0.forget(Inode::from_raw(inode), 1);
    }

    #[inline]
    fn path(&self, inode: u64) -> PathBuf {
        self.0.path(Inode::from_raw(inode)).expect("the node is known")
    }

    fn rename(&self, parent: u64, old: &OsStr, new_parent: u64, new: &OsStr) {
        let (parent, new_parent) = (Inode::from_raw(parent), Inode::from_raw(new_parent));
        self.0.rename(parent, name(old), new_parent, name(new)).expect("both parents are known");
    }
}
