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

use crate::data::NodeData;
use crate::error::PathError;
use crate::inode::Inode;
use crate::link::{Link, Links};
use crate::node::Node;
use crate::path_buffer::{PathBuffer, Upwards};
use crate::path_cache::PathCache;
use crate::shared::Shared;
use crate::sync::epoch;
use crate::tree::TreeState;

/// How a climb ended.
enum Climb {
    /// It passed this link, if it went further up than the first.
    Root { parent: Option<Link> },
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
    #[inline(always)]
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
    #[inline]
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

/// A path in two parts, to be put together with a slash unless the first is empty.
pub(crate) struct Parts<'g> {
    pub(crate) prefix: &'g [u8],
    pub(crate) name: &'g [u8],
    /// The link whose own path is not kept.
    pub(crate) unkept: Option<Link>,
}

/// The commonest case: a node with one name whose path, or whose directory's, is kept. None if it
/// isn't that case, or something changes just now.
#[inline(always)]
pub(crate) fn kept_parts<'g, D: NodeData>(
    shared: &Shared<D>,
    start: &Start<'_, D>,
    guard: &'g epoch::Guard,
) -> Option<Parts<'g>> {
    let link = start.links.single()?;
    if let Some(kept) = start.cached(link, guard) {
        return Some(Parts { prefix: b"", name: kept, unkept: None });
    }
    let prefix: &[u8] = if link.parent() == Inode::ROOT {
        b""
    } else {
        // As a step of `climb`.
        let cache = shared.table.get(link.parent())?.links(guard).single()?.cached()?;
        // SAFETY: found under the guard, and retired by epoch when it is replaced.
        let (state, path) = unsafe { PathCache::read(cache.as_ptr()) };
        if state != start.tree || !state.settled() {
            return None;
        }
        path
    };
    let name = link.name().as_bytes();
    start.still(shared, guard).then_some(Parts { prefix, name, unkept: Some(link) })
}

/// How many names a node had when it was walked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Once,
    Often,
}

/// Where a walk went.
pub(crate) struct Walked {
    pub(crate) named: Named,
    /// The tree's state, if paths may be kept for it.
    pub(crate) settled: Option<TreeState>,
    /// The node's own link.
    pub(crate) own: Link,
    /// The parent's link, if the walk passed it (its path was not kept yet, and it isn't the root).
    pub(crate) parent: Option<Link>,
}

/// Writes the path of the node's name `wanted`; without one, or if the node hasn't that one any
/// more, of the first name that leads to the root. The root has no name: callers answer the empty
/// path for it.
pub(crate) fn walk<'a, D: NodeData>(
    shared: &'a Shared<D>,
    mut start: Start<'a, D>,
    wanted: Option<Link>,
    guard: &epoch::Guard,
    path: &mut PathBuffer,
) -> Result<Walked, PathError> {
    loop {
        let mut end = (Climb::Unlinked, None);
        // SAFETY: read under the guard.
        let links = unsafe { start.links.as_slice() };
        let wanted = wanted.filter(|wanted| links.contains(wanted));
        for link in wanted.as_ref().map_or(links, std::slice::from_ref) {
            end = (climb(shared, *link, start.tree, guard, path), Some(*link));
            if !matches!(end.0, Climb::Unlinked) {
                break;
            }
        }
        if start.still(shared, guard) {
            match end {
                (Climb::Root { parent }, Some(own)) => {
                    let named = if links.len() == 1 { Named::Once } else { Named::Often };
                    return Ok(Walked { named, settled: start.settled(), own, parent });
                }
                (Climb::Changed, _) => {}
                _ => return Err(PathError::Unlinked(start.inode)),
            }
        }
        start = Start::new(shared, start.inode, guard)?;
    }
}

/// What `collect` makes of every name that leads to the root, all as of one moment.
pub(crate) fn walk_all<'g, D: NodeData, U: Upwards<'g>, R>(
    shared: &Shared<D>,
    inode: Inode,
    guard: &'g epoch::Guard,
    upwards: &mut U,
    collect: impl Fn(&U) -> R,
) -> Result<Vec<R>, PathError> {
    'retry: loop {
        let start = Start::new(shared, inode, guard)?;
        // SAFETY: read under the guard.
        let links = unsafe { start.links.as_slice() };
        let mut all = Vec::with_capacity(links.len());
        for link in links {
            match climb(shared, *link, start.tree, guard, upwards) {
                Climb::Root { .. } => all.push(collect(upwards)),
                Climb::Unlinked => {}
                Climb::Changed => continue 'retry,
            }
        }
        if start.still(shared, guard) {
            return Ok(all);
        }
    }
}

/// Follows the parents of a link, up to the root or, where `upwards` takes that, to the first
/// directory whose path is kept.
#[inline]
fn climb<'g, D: NodeData, U: Upwards<'g>>(
    shared: &Shared<D>,
    own: Link,
    tree: TreeState,
    guard: &'g epoch::Guard,
    upwards: &mut U,
) -> Climb {
    upwards.clear();
    let use_kept = U::TAKES_PREFIX && tree.settled();
    let mut link = own;
    let mut passed = None;
    let mut steps = 0_u32;
    loop {
        upwards.name(link.name());
        let parent = link.parent();
        if parent == Inode::ROOT {
            return Climb::Root { parent: passed };
        }
        // A child keeps its parent, so a parent that is gone means that the child has been moved.
        let Some(node) = shared.table.get(parent) else { return Climb::Changed };
        let links = node.links(guard);
        // SAFETY: read under the guard.
        let Some(next) = (unsafe { links.as_slice() }).first().copied() else {
            return Climb::Unlinked;
        };
        if let Some(cache) = next.cached().filter(|_| use_kept) {
            // SAFETY: found under the guard, and retired by epoch when it is replaced.
            let (state, path) = unsafe { PathCache::read(cache.as_ptr()) };
            if state == tree {
                upwards.prefix(path);
                return Climb::Root { parent: passed };
            }
        }
        passed = passed.or(Some(next));
        link = next;
        steps += 1;
        // A walk through a tree that changes under it could go in circles.
        if steps % 64 == 0 && !shared.tree.state_after_reading().same_version(tree) {
            return Climb::Changed;
        }
    }
}
