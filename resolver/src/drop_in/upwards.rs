//! From a node to the directory it is in.

use std::ffi::OsString;

use super::Beside;
use crate::sync::epoch;
use crate::{Inode, Resolver};

/// No tree is deeper: a walk that gets here goes in circles, because the tree changes under it.
pub(super) const DEEPEST: usize = 1 << 20;

/// The parent and name of a node's first link.
pub(super) fn first_name(resolver: &Resolver<Beside>, inode: Inode) -> Option<(Inode, OsString)> {
    let guard = epoch::pin();
    let node = resolver.shared().table.get(inode)?;
    let links = node.links(&guard);
    // SAFETY: read under the guard.
    let link = unsafe { links.as_slice() }.first()?;
    // The generation once more, after the links: they are of this node, not of the slot's next.
    node.is(inode).then(|| (link.parent(), link.name().as_os_str().to_os_string()))
}

/// What `..` means in a directory: the root's is the root, and one without a name is its own.
pub(super) fn parent(resolver: &Resolver<Beside>, directory: Inode) -> Inode {
    first_name(resolver, directory).map_or(directory, |(parent, _)| parent)
}
