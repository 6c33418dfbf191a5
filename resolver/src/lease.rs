//! [`PathLease`]: a path that stays true while it is held.
//!
//! A hazard pointer for a place in the tree. The lease publishes its inode in a cell of the calling
//! thread, then looks whether the node or a directory above it is marked as moving. A transaction
//! (`transaction.rs`) marks what it moves, then looks through the cells. Between the two looks stand
//! a light and a heavy fence, so at least one sees the other: a lease that finds a mark steps back
//! and sleeps until it is gone, a transaction that finds a lease sleeps until it has ended.
//!
//! As long as the tree's state says that no directory moves, a look at the node's own mark is all:
//! no walk, no path.

use std::path::{Path, PathBuf};

use crate::data::NodeData;
use crate::domain::Cell;
use crate::error::PathError;
use crate::inode::Inode;
use crate::link::Link;
use crate::resolver::Resolver;
use crate::shared::Shared;
use crate::sync::epoch;
use crate::table::ROOT_SLOT;
use crate::walk::Start;

/// While this is held, no transaction changes the path of the node: none that renames, exchanges or
/// removes the node or a directory above it gets past its beginning.
///
/// Made by [`Resolver::lease`] and [`Resolver::lease_all`]. It may be sent to and dropped on
/// another thread. It keeps the path true, not the bytes of it: ask for them as often as needed.
/// Verbs that change the table at once ([`Resolver::rename`] and its like) don't look at leases.
///
/// Who holds a lease must not wait for something that waits for a transaction; least of all take a
/// second one alone (use [`Resolver::lease_all`]) or begin a transaction.
#[must_use = "the path is true only while the lease is held"]
#[derive(Debug)]
pub struct PathLease<'r, D: NodeData = ()> {
    resolver: &'r Resolver<D>,
    cell: &'static Cell,
    inode: Inode,
    /// The name by which the path goes, of which there may be several. Compared with the node's
    /// links and never followed: verbs that don't look at leases may have freed it.
    link: Option<Link>,
}

impl<'r, D: NodeData> PathLease<'r, D> {
    /// The node.
    pub fn inode(&self) -> Inode {
        self.inode
    }

    /// The path; see [`Resolver::path`].
    ///
    /// # Errors
    /// `Unlinked` if the node, or a directory above it, had lost its name before the lease began.
    pub fn path(&self) -> Result<PathBuf, PathError> {
        self.resolver.shared().path(self.inode, self.link)
    }

    /// The path in a buffer of the caller's; see [`Resolver::path_into`].
    ///
    /// # Errors
    /// As [`path`](Self::path).
    pub fn path_into(&self, path: &mut Vec<u8>) -> Result<(), PathError> {
        self.resolver.shared().path_into(self.inode, self.link, path)
    }

    /// The path, borrowed; see [`Resolver::with_path`].
    ///
    /// # Errors
    /// As [`path`](Self::path).
    pub fn with_path<R>(&self, f: impl FnOnce(&Path) -> R) -> Result<R, PathError> {
        self.resolver.shared().with_path(self.inode, self.link, f)
    }

    pub(crate) fn cell(&self) -> &'static Cell {
        self.cell
    }
}

impl<D: NodeData> Drop for PathLease<'_, D> {
    #[inline]
    fn drop(&mut self) {
        self.resolver.shared().unpublish(self.cell);
    }
}

/// Why a lease can't be had at this moment.
pub(crate) enum Refusal {
    Error(PathError),
    /// This node is marked: a transaction moves it, and the path goes through it.
    Moving(Inode),
}

/// What stands between a name and the root.
enum Way {
    Clear,
    /// This directory is marked.
    Moving(Inode),
    /// A directory without a name.
    Unlinked,
}

pub(crate) fn lease<D: NodeData>(
    resolver: &Resolver<D>,
    inode: Inode,
) -> Result<PathLease<'_, D>, PathError> {
    loop {
        match try_lease(resolver, inode) {
            Ok(lease) => return Ok(lease),
            Err(Refusal::Error(error)) => return Err(error),
            Err(Refusal::Moving(moving)) => resolver.shared().sleep_while_moving(moving),
        }
    }
}

/// All of them or none: nothing is held while waiting.
pub(crate) fn lease_all<D: NodeData, const N: usize>(
    resolver: &Resolver<D>,
    inodes: [Inode; N],
) -> Result<[PathLease<'_, D>; N], PathError> {
    'retry: loop {
        let mut leases: [Option<PathLease<'_, D>>; N] = [const { None }; N];
        for (place, inode) in leases.iter_mut().zip(inodes) {
            match try_lease(resolver, inode) {
                Ok(lease) => *place = Some(lease),
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::Moving(moving)) => {
                    drop(leases);
                    resolver.shared().sleep_while_moving(moving);
                    continue 'retry;
                }
            }
        }
        return Ok(leases.map(|lease| lease.expect("each place was filled above")));
    }
}

#[inline]
fn try_lease<D: NodeData>(
    resolver: &Resolver<D>,
    inode: Inode,
) -> Result<PathLease<'_, D>, Refusal> {
    let shared = resolver.shared();
    // Before the cell, because 0 is an empty one: no node has this id.
    if inode.slot() < ROOT_SLOT {
        return Err(Refusal::Error(PathError::Stale(inode)));
    }
    let cell = shared.domain.publish(inode.raw());
    // From here on the cell is emptied by the lease's drop, on every way out.
    let mut lease = PathLease { resolver, cell, inode, link: None };
    lease.link = shared.check_lease(inode)?;
    Ok(lease)
}

impl<D: NodeData> Shared<D> {
    /// After the inode was published: is anything on its way up marked? If not, answers the name by
    /// which the way goes.
    #[inline]
    fn check_lease(&self, inode: Inode) -> Result<Option<Link>, Refusal> {
        let stale = Refusal::Error(PathError::Stale(inode));
        let Some(node) = self.table.slot_of(inode) else { return Err(stale) };
        let Some(state) = node.check(inode) else { return Err(stale) };
        if state.moving() {
            return Err(Refusal::Moving(inode));
        }
        if inode == Inode::ROOT {
            return Ok(None);
        }
        match node.single_link() {
            Some(link) if !self.tree.state().moving() => Ok(Some(link)),
            _ => self.check_ancestors(inode),
        }
    }

    /// The same for a node with several names or none, and while directories move.
    #[cold]
    fn check_ancestors(&self, inode: Inode) -> Result<Option<Link>, Refusal> {
        let guard = epoch::pin();
        loop {
            let start = Start::new(self, inode, &guard).map_err(Refusal::Error)?;
            // SAFETY: read under the guard.
            let links = unsafe { start.links.as_slice() };
            let ways = links.iter().map(|link| (*link, self.way_up(*link, &guard)));
            let way = ways.into_iter().find(|(_, way)| !matches!(way, Way::Unlinked));
            if !start.still(self, &guard) {
                continue;
            }
            return match way {
                Some((link, Way::Clear)) => Ok(Some(link)),
                Some((_, Way::Moving(moving))) => Err(Refusal::Moving(moving)),
                // No name leads to the root. That is the path's to say, unless there is no name.
                _ if links.is_empty() => Err(Refusal::Error(PathError::Unlinked(inode))),
                _ => Ok(links.first().copied()),
            };
        }
    }

    fn way_up(&self, link: Link, guard: &epoch::Guard) -> Way {
        let version = self.tree.state();
        let mut parent = link.parent();
        let mut steps = 0_u32;
        while parent != Inode::ROOT {
            let Some(node) = self.table.get(parent) else { return Way::Unlinked };
            if node.state.load().moving() {
                return Way::Moving(parent);
            }
            let links = node.links(guard);
            // SAFETY: read under the guard.
            let Some(link) = (unsafe { links.as_slice() }).first() else { return Way::Unlinked };
            parent = link.parent();
            steps += 1;
            // As in `climb`: no circles. What is answered here is thrown away by `still`.
            if steps % 64 == 0 && !self.tree.state_after_reading().same_version(version) {
                return Way::Unlinked;
            }
        }
        Way::Clear
    }

    /// Sleeps until no transaction has this node, holding nothing.
    #[cold]
    pub(crate) fn sleep_while_moving(&self, inode: Inode) {
        self.parking
            .sleep_until(|| !self.table.get(inode).is_some_and(|node| node.state.load().moving()));
    }

    #[inline]
    pub(crate) fn unpublish(&self, cell: &Cell) {
        if self.domain.unpublish(cell) {
            self.parking.wake_all();
        }
    }
}
