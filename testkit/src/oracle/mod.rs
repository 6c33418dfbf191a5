//! [`Oracle`]: what the resolver means, as the most naive tree that says it.
//!
//! One map from id to node; a node lists its names; everything else is a linear scan. No cache, no
//! index, no concurrency. It is slow and meant to be checked by eye, one verb at a time:
//!
//! - this file: the nodes, finding them, and reading them (`peek`, `path`, `paths`);
//! - `entries`: the verbs that make nodes known and count them (`lookup`, `list`, `forget`);
//! - `namespace`: the verbs that move names (`link`, `unlink`, `rename`, `exchange`, transactions);
//! - `life`: which nodes may be reclaimed.
//!
//! Two things the oracle does not decide. *Which number a new node gets*: a verb that may make a
//! node is handed the number to use (`fresh`), which the tests take from the resolver's answer.
//! *When an unreferenced node goes*: it only says that a node may go ([`Oracle::may_go`]).

mod entries;
mod life;
mod namespace;
#[cfg(test)]
mod tests;

use crate::{Identity, OwnedName};
use pinpath::{Error, Inode, Kind, PathError};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub use entries::NewEntry;
pub use namespace::{Begun, Change};

/// A place in the tree: a name in a directory.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The directory.
    pub parent: Inode,
    /// The name in it.
    pub name: OwnedName,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}/{:?}", self.parent, self.name)
    }
}

/// One node of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// May it have children?
    pub kind: Kind,
    /// What makes it the same file under another name.
    pub identity: Option<Identity>,
    /// How often the kernel was told of it, less what the kernel forgot.
    pub lookups: u64,
    /// Where it stands in the tree, in the order in which its paths are told; empty: unlinked.
    pub names: Vec<Place>,
}

/// The naive tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Oracle {
    nodes: BTreeMap<Inode, Node>,
}

impl Oracle {
    /// A tree with nothing but its root.
    pub fn new(root: Option<Identity>) -> Self {
        // Counted once for good: the kernel knows it without a lookup, and never forgets it.
        let root = Node { kind: Kind::Directory, identity: root, lookups: 1, names: Vec::new() };
        Oracle { nodes: BTreeMap::from([(Inode::ROOT, root)]) }
    }

    /// The node with this id, if there is one.
    pub fn node(&self, inode: Inode) -> Option<&Node> {
        self.nodes.get(&inode)
    }

    /// Every node, in the order of their ids.
    pub fn nodes(&self) -> impl Iterator<Item = (Inode, &Node)> {
        self.nodes.iter().map(|(&inode, node)| (inode, node))
    }

    /// How many names there are.
    pub fn links(&self) -> usize {
        self.nodes.values().map(|node| node.names.len()).sum()
    }

    /// The node at `place`, if one is known there.
    pub fn at(&self, place: &Place) -> Option<Inode> {
        self.nodes().find(|(_, node)| node.names.contains(place)).map(|(inode, _)| inode)
    }

    /// The node of a name. Counts nothing.
    ///
    /// # Errors
    /// `Stale`, `NotADirectory`: of `place.parent`.
    pub fn peek(&self, place: &Place) -> Result<Option<Inode>, Error> {
        self.directory(place.parent)?;
        Ok(self.at(place))
    }

    /// The lookup count. `None` if stale.
    pub fn lookup_count(&self, inode: Inode) -> Option<u64> {
        self.node(inode).map(|node| node.lookups)
    }

    /// The components of all paths of `inode`, root first, in the order of its names. The root has
    /// one path, of no components. A name in a directory that has no path itself is left out.
    pub fn parts_paths(&self, inode: Inode) -> Vec<Vec<OsString>> {
        if inode == Inode::ROOT {
            return vec![Vec::new()];
        }
        let names = self.node(inode).map_or(&[][..], |node| &node.names);
        names.iter().filter_map(|place| self.parts_of(place)).collect()
    }

    /// The names from the root to `place`; of directories the first (they have only one).
    fn parts_of(&self, place: &Place) -> Option<Vec<OsString>> {
        let mut parts = match place.parent {
            Inode::ROOT => Vec::new(),
            parent => self.parts_of(self.node(parent)?.names.first()?)?,
        };
        parts.push(OsStr::from_bytes(place.name.as_bytes()).to_owned());
        Some(parts)
    }

    /// All paths of `inode`: root: one, empty; unlinked or stale: none.
    pub fn paths(&self, inode: Inode) -> Vec<PathBuf> {
        self.parts_paths(inode).iter().map(PathBuf::from_iter).collect()
    }

    /// The path of `inode`: the first of all its paths.
    ///
    /// # Errors
    /// `Stale`: there is no such node. `Unlinked`: none of its names leads to the root.
    pub fn path(&self, inode: Inode) -> Result<PathBuf, PathError> {
        self.node(inode).ok_or(PathError::Stale(inode))?;
        self.paths(inode).into_iter().next().ok_or(PathError::Unlinked(inode))
    }

    fn node_mut(&mut self, inode: Inode) -> &mut Node {
        self.nodes.get_mut(&inode).expect("the verb has looked that the node is there")
    }

    fn exists(&self, inode: Inode) -> Result<&Node, Error> {
        self.node(inode).ok_or(Error::Stale(inode))
    }

    /// `inode` as what may hold names.
    fn directory(&self, inode: Inode) -> Result<(), Error> {
        match self.exists(inode)?.kind {
            Kind::Directory | Kind::Unknown => Ok(()),
            Kind::Leaf => Err(Error::NotADirectory(inode)),
        }
    }

    /// A node of unknown kind has turned out to be of this one.
    fn settle_kind(&mut self, inode: Inode, kind: Kind) {
        let node = self.node_mut(inode);
        if node.kind == Kind::Unknown {
            node.kind = kind;
        }
    }

    fn has_children(&self, inode: Inode) -> bool {
        let mut places = self.nodes().flat_map(|(_, node)| &node.names);
        places.any(|place| place.parent == inode)
    }

    /// Is `upper` the same node as `lower`, or somewhere above it, by whatever names?
    fn at_or_above(&self, upper: Inode, lower: Inode) -> bool {
        upper == lower
            || self.node(lower).is_some_and(|node| {
                node.names.iter().any(|place| self.at_or_above(upper, place.parent))
            })
    }

    /// The name is gone, if it was known. Its node stays.
    fn remove_name(&mut self, place: &Place) {
        for node in self.nodes.values_mut() {
            node.names.retain(|name| name != place);
        }
    }
}
