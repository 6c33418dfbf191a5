//! The walk from a node up to the root, as if the whole tree had stood still.
//!
//! A walk reads one node after the other, and the tree may change in between. It is accepted if
//!
//! 1. the tree's version was the same before and after, so that at most one directory changed its
//!    place meanwhile; and
//! 2. the links of the node where it began were the same before and after.
//!
//! Then there was a moment at which all that it read was true at once. If no directory changed, any
//! moment of the walk is one, because (2) fixes the first step and every further one is a directory.
//! If one did, the walk passes it at most once (a directory isn't above itself), and saw it before
//! or after: the moment at which it was read is one. (2) is not idle: a file renamed *before* its
//! directory is, both during the walk, could else give the old name under the new directory, a path
//! that never was.
//!
//! A walk is repeated only when another change has been completed: readers are lock-free.

use smallvec::SmallVec;

use crate::data::NodeData;
use crate::error::PathError;
use crate::inode::Inode;
use crate::link::{Link, Links};
use crate::node::Node;
use crate::path_cache::PathCache;
use crate::shared::Shared;
use crate::sync::epoch;
use crate::tree::TreeState;

/// The links from a node up, the node's own first, and the path of the last one's parent.
#[derive(Debug, Default)]
pub(crate) struct Chain<'g> {
    links: SmallVec<[Link; 24]>,
    /// Empty where the parent is the root.
    prefix: &'g [u8],
}

impl Chain<'_> {
    /// Length of the path in bytes.
    pub(crate) fn length(&self) -> usize {
        let names: usize = self.links.iter().map(|link| link.name().as_bytes().len() + 1).sum();
        if self.prefix.is_empty() { names - 1 } else { self.prefix.len() + names }
    }

    /// Appends the path.
    pub(crate) fn write(&self, path: &mut Vec<u8>) {
        path.reserve_exact(self.length());
        let start = path.len();
        path.extend_from_slice(self.prefix);
        for link in self.links.iter().rev() {
            if path.len() > start {
                path.push(b'/');
            }
            path.extend_from_slice(link.name().as_bytes());
        }
    }

    /// The names from the root down, where the chain goes up to the root.
    pub(crate) fn names(&self) -> impl Iterator<Item = &crate::name::Name> {
        debug_assert!(self.prefix.is_empty());
        self.links.iter().rev().map(|link| link.name())
    }

    /// The node's own link: the path may be kept there.
    pub(crate) fn own_to_keep(&self) -> Option<Link> {
        self.links.first().copied()
    }

    /// The parent's link, if the walk passed it (its path was not kept yet, and it isn't the root).
    pub(crate) fn parent_to_keep(&self) -> Option<Link> {
        self.links.get(1).copied()
    }

    fn clear(&mut self) {
        self.links.clear();
        self.prefix = &[];
    }
}

/// How a climb ended.
enum Climb {
    Root,
    /// A directory on the way has no name.
    Unlinked,
    /// The tree changed under it in a way that shows already.
    Changed,
}

/// A node, and the tree's state, at the beginning of a walk.
pub(crate) struct Start<'a, D> {
    inode: Inode,
    node: &'a Node<D>,
    tree: TreeState,
    pub(crate) links: Links,
}

impl<'a, D: NodeData> Start<'a, D> {
    pub(crate) fn new(
        shared: &'a Shared<D>,
        inode: Inode,
        guard: &epoch::Guard,
    ) -> Result<Self, PathError> {
        let tree = shared.tree.state();
        let node = shared.table.get(inode).ok_or(PathError::Stale(inode))?;
        let links = node.links(guard);
        // The generation once more, after the links: they are of this node, not of the slot's next.
        if !node.is(inode) {
            return Err(PathError::Stale(inode));
        }
        Ok(Start { inode, node, tree, links })
    }

    /// Was all that was read since `new` true at one moment?
    pub(crate) fn still(&self, shared: &Shared<D>, guard: &epoch::Guard) -> bool {
        shared.tree.state_after_reading().same_version(self.tree)
            && self.node.links(guard) == self.links
            && self.node.is(self.inode)
    }

    /// The name to go by: `wanted` while the node has it, else the first.
    #[inline]
    pub(crate) fn link(&self, wanted: Option<Link>) -> Option<Link> {
        // SAFETY: `links` was read under the guard that `new` was given, which its callers hold on.
        let links = unsafe { self.links.as_slice() };
        wanted.filter(|wanted| links.contains(wanted)).or_else(|| links.first().copied())
    }

    /// The tree's state, if paths may be kept for it.
    pub(crate) fn settled(&self) -> Option<TreeState> {
        self.tree.settled().then_some(self.tree)
    }

    /// The path kept for one of its links, if it is true now.
    #[inline]
    pub(crate) fn cached<'g>(&self, link: Link, _guard: &'g epoch::Guard) -> Option<&'g [u8]> {
        let cache = link.cached()?;
        // SAFETY: found under the guard, and retired by epoch when it is replaced.
        let (tree, path) = unsafe { PathCache::read(cache.as_ptr()) };
        // The path was built at a moment when the link stood in its node and the tree was in the
        // (settled) state `tree`. A link stands in its node once, without gaps, so it stood there
        // from that moment on until `new` read it. If that moment was before `new` read the tree's
        // state, the path was true when the state was read; else it was true at that moment, which
        // then lies within this call.
        (tree == self.tree).then_some(path)
    }
}

/// Runs `f` with the chain of the node's name `wanted`; without one, or if the node hasn't that one
/// any more, of the first name that leads to the root. The root's chain doesn't exist: callers answer
/// the empty path for it.
pub(crate) fn walk<'g, D: NodeData, R>(
    shared: &Shared<D>,
    inode: Inode,
    wanted: Option<Link>,
    guard: &'g epoch::Guard,
    f: impl FnOnce(&Start<'_, D>, &Chain<'g>) -> R,
) -> Result<R, PathError> {
    let mut chain = Chain::default();
    loop {
        let start = Start::new(shared, inode, guard)?;
        // SAFETY: read under the guard.
        let links = unsafe { start.links.as_slice() };
        let wanted = wanted.filter(|wanted| links.contains(wanted));
        let candidates = wanted.as_ref().map_or(links, std::slice::from_ref);
        let mut end = Climb::Unlinked;
        for link in candidates {
            end = climb(shared, *link, start.tree, true, guard, &mut chain);
            if !matches!(end, Climb::Unlinked) {
                break;
            }
        }
        if start.still(shared, guard) {
            match end {
                Climb::Root => return Ok(f(&start, &chain)),
                Climb::Unlinked => return Err(PathError::Unlinked(inode)),
                Climb::Changed => {}
            }
        }
    }
}

/// Shows the chain of every name that leads to the root, all as of one moment, by way of `collect`.
pub(crate) fn walk_all<D: NodeData, R>(
    shared: &Shared<D>,
    inode: Inode,
    guard: &epoch::Guard,
    collect: impl Fn(&Chain<'_>) -> R,
) -> Result<Vec<R>, PathError> {
    let mut chain = Chain::default();
    'retry: loop {
        let start = Start::new(shared, inode, guard)?;
        // SAFETY: read under the guard.
        let links = unsafe { start.links.as_slice() };
        let mut all = Vec::with_capacity(links.len());
        for link in links {
            match climb(shared, *link, start.tree, false, guard, &mut chain) {
                Climb::Root => all.push(collect(&chain)),
                Climb::Unlinked => {}
                Climb::Changed => continue 'retry,
            }
        }
        if start.still(shared, guard) {
            return Ok(all);
        }
    }
}

/// Follows the parents of a link. With `use_cache` it ends at the first one whose path is kept.
fn climb<'g, D: NodeData>(
    shared: &Shared<D>,
    mut link: Link,
    tree: TreeState,
    use_cache: bool,
    guard: &'g epoch::Guard,
    chain: &mut Chain<'g>,
) -> Climb {
    chain.clear();
    let use_cache = use_cache && tree.settled();
    loop {
        chain.links.push(link);
        let parent = link.parent();
        if parent == Inode::ROOT {
            return Climb::Root;
        }
        // A child keeps its parent, so a parent that is gone means that the child has been moved.
        let Some(node) = shared.table.get(parent) else { return Climb::Changed };
        let links = node.links(guard);
        // SAFETY: read under the guard.
        let Some(next) = (unsafe { links.as_slice() }).first().copied() else {
            return Climb::Unlinked;
        };
        if let Some(cache) = next.cached().filter(|_| use_cache) {
            // SAFETY: found under the guard, and retired by epoch when it is replaced.
            let (state, path) = unsafe { PathCache::read(cache.as_ptr()) };
            if state == tree {
                chain.prefix = path;
                return Climb::Root;
            }
        }
        link = next;
        // A walk through a tree that changes under it could go in circles.
        if chain.links.len() % 64 == 0 && !shared.tree.state_after_reading().same_version(tree) {
            return Climb::Changed;
        }
    }
}
