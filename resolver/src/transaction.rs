//! [`Transaction`]: a change of the namespace around the work of a handler.
//!
//! What it does, in this order:
//!
//! 1. If a directory is to move from one directory to another: take the topology lock, of which
//!    there is one.
//! 2. Take the leases of the parents, all or none.
//! 3. Mark the nodes that will change (source and target), all or none. If another transaction has
//!    one of them, give everything back, sleep until it hasn't, and start over.
//! 4. Heavy fence; look through the cells of all leases; sleep until none of them is on or below a
//!    marked node.
//! 5. The handler works.
//! 6. Commit to the table, or not. Clear the marks, end the leases, wake who sleeps.
//!
//! Why nobody sleeps for ever. A lease that waits for a mark holds nothing. A transaction that waits
//! in step 1, 2 or 3 holds no lease and no mark (in 2 and 3 possibly the topology lock). So what
//! others can wait for is held only by transactions in step 4 or later, and by handlers, which end
//! by themselves. A transaction T in step 4 waits for leases on or below what it marked. Those of
//! ordinary requests end by themselves. Those of another transaction S are on its parents; S is past
//! step 3, so it waits in step 4 itself at most, for leases on or below a child of a parent that is
//! on or below T's mark: strictly deeper. The tree has a bottom, so following who waits for whom ends,
//! unless a parent of S is not above what S marked, but elsewhere: that is so only for the two
//! parents of a move of a directory between directories, and the topology lock admits one such S. A
//! circle through that one S would need a parent of S on or below what S marked: the target's parent
//! below the source, which step 3 refuses as a cycle, or the source's parent below the target, whose
//! removal would orphan the source and which step 3 refuses too.
//!
//! A leaf has nothing below it: T waits only for ordinary requests on the leaf.

use crate::data::NodeData;
use crate::error::{Error, PathError};
use crate::inode::Inode;
use crate::lease::{PathLease, lease, lease_all};
use crate::name::Name;
use crate::resolver::Resolver;
use crate::shared::Shared;
use crate::sync::epoch;

/// What a rename does with what has the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// It loses the name, as with `rename(2)`.
    Replace,
    /// It gets the old name, as with `RENAME_EXCHANGE`.
    Exchange,
}

/// Why a transaction could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// The change itself is refused.
    #[error(transparent)]
    Table(#[from] Error),
    /// A parent has no path.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// A change that has been prepared: nobody has a lease on or below what it moves, and nobody gets
/// one until it ends.
///
/// Made by [`Resolver::begin_rename`] and [`Resolver::begin_unlink`]. It has a claim on the nodes that
/// have its names, not on the names: until it ends, the caller sees to it that nobody else looks up or
/// changes the same names, as the kernel does by locking their directories. The caller does the backend's
/// work and calls [`commit`](Transaction::commit) if that succeeded. Dropping it without leaves the
/// table as it was. It may be sent to another thread.
#[must_use = "a transaction that is dropped changes nothing"]
#[derive(Debug)]
pub struct Transaction<'r, D: NodeData = ()> {
    // The order of the fields is that of the ends: marks first, so that who wakes up finds them gone.
    marks: Marks<'r, D>,
    parent: PathLease<'r, D>,
    new_parent: Option<PathLease<'r, D>>,
    _topology: Option<Topology<'r, D>>,
    change: Change,
    source: Option<Inode>,
    target: Option<Inode>,
}

#[derive(Debug)]
enum Change {
    Unlink { name: Box<[u8]> },
    Rename { name: Box<[u8]>, new_name: Box<[u8]>, mode: RenameMode },
}

/// The marks of one transaction; cleared on drop.
#[derive(Debug)]
struct Marks<'r, D: NodeData> {
    shared: &'r Shared<D>,
    nodes: [Option<Mark>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    inode: Inode,
    /// Counted in the tree's state: everything below it is affected.
    may_have_children: bool,
}

/// The topology lock, held. (A flag and not a guard, so that a transaction can be sent.)
#[derive(Debug)]
struct Topology<'r, D: NodeData>(&'r Shared<D>);

impl<'r, D: NodeData> Transaction<'r, D> {
    /// The lease of the parent of the (old) name.
    pub fn parent(&self) -> &PathLease<'r, D> {
        &self.parent
    }

    /// The lease of the parent of the new name: the same as [`parent`](Self::parent) for an unlink,
    /// and for a rename within one directory.
    pub fn new_parent(&self) -> &PathLease<'r, D> {
        self.new_parent.as_ref().unwrap_or(&self.parent)
    }

    /// The node that has the (old) name, if it is known.
    pub fn source(&self) -> Option<Inode> {
        self.source
    }

    /// The node that has the new name, if there is one and it is known.
    pub fn target(&self) -> Option<Inode> {
        self.target
    }

    /// The backend has done it: the table follows, and the transaction ends.
    ///
    /// # Errors
    /// As the verb itself ([`Resolver::unlink`], [`Resolver::rename`], [`Resolver::exchange`]). It
    /// can fail only if verbs that don't look at leases have changed the same names meanwhile.
    pub fn commit(self) -> Result<(), Error> {
        let shared = self.marks.shared;
        let parent = self.parent.inode();
        match &self.change {
            Change::Unlink { name } => shared.unlink(parent, Name::trusted(name)).map(drop),
            Change::Rename { name, new_name, mode } => {
                let from = shared.names.key(parent, Name::trusted(name));
                let to = shared.names.key(self.new_parent().inode(), Name::trusted(new_name));
                match mode {
                    RenameMode::Replace => shared.rename(from, to),
                    RenameMode::Exchange => shared.exchange(from, to),
                }
            }
        }
    }
}

pub(crate) fn begin_unlink<'r, D: NodeData>(
    resolver: &'r Resolver<D>,
    parent: Inode,
    name: &Name,
) -> Result<Transaction<'r, D>, TransactionError> {
    let shared = resolver.shared();
    loop {
        let lease = lease(resolver, parent)?;
        let source = shared.peek(parent, name)?;
        let marks = match Marks::set(shared, [source, None]) {
            Ok(marks) => marks,
            Err(taken) => {
                drop(lease);
                shared.sleep_while_taken(taken);
                continue;
            }
        };
        if shared.peek(parent, name)? != source {
            continue;
        }
        marks.wait_for_leases(&[&lease]);
        return Ok(Transaction {
            marks,
            parent: lease,
            new_parent: None,
            _topology: None,
            change: Change::Unlink { name: name.as_bytes().into() },
            source,
            target: None,
        });
    }
}

pub(crate) fn begin_rename<'r, D: NodeData>(
    resolver: &'r Resolver<D>,
    (parent, name): (Inode, &Name),
    (new_parent, new_name): (Inode, &Name),
    mode: RenameMode,
) -> Result<Transaction<'r, D>, TransactionError> {
    let shared = resolver.shared();
    let find = || Ok::<_, Error>((shared.peek(parent, name)?, shared.peek(new_parent, new_name)?));
    let mut topology = None;
    loop {
        let (source, target) = find()?;
        let directories =
            [source, target].iter().flatten().any(|inode| shared.may_have_children(inode.slot()));
        if directories && parent != new_parent && topology.is_none() {
            topology = Some(Topology::lock(shared));
            continue;
        }
        let (lease, new_lease) = parent_leases(resolver, parent, new_parent)?;
        let nodes = [source, target.filter(|target| Some(*target) != source)];
        let marks = match Marks::set(shared, nodes) {
            Ok(marks) => marks,
            Err(taken) => {
                drop((lease, new_lease));
                shared.sleep_while_taken(taken);
                continue;
            }
        };
        if find()? != (source, target) {
            continue;
        }
        // Waiting for a lease of our own would be for ever.
        for (node, place) in [(source, new_parent), (target, parent)] {
            if let Some(node) = node.filter(|node| shared.may_have_children(node.slot())) {
                if shared.is_below(place, node, &epoch::pin()) {
                    return Err(Error::Cycle(node).into());
                }
            }
        }
        let mut own = vec![&lease];
        own.extend(&new_lease);
        marks.wait_for_leases(&own);
        let (name, new_name) = (name.as_bytes().into(), new_name.as_bytes().into());
        return Ok(Transaction {
            marks,
            parent: lease,
            new_parent: new_lease,
            _topology: topology,
            change: Change::Rename { name, new_name, mode },
            source,
            target,
        });
    }
}

type Leases<'r, D> = (PathLease<'r, D>, Option<PathLease<'r, D>>);

fn parent_leases<D: NodeData>(
    resolver: &Resolver<D>,
    parent: Inode,
    new_parent: Inode,
) -> Result<Leases<'_, D>, PathError> {
    if parent == new_parent {
        return Ok((lease(resolver, parent)?, None));
    }
    let [old, new] = lease_all(resolver, [parent, new_parent])?;
    Ok((old, Some(new)))
}

impl<'r, D: NodeData> Marks<'r, D> {
    /// Marks all of them, or answers one that another transaction has.
    fn set(shared: &'r Shared<D>, nodes: [Option<Inode>; 2]) -> Result<Self, Inode> {
        let mut marks = Marks { shared, nodes: [None; 2] };
        for (place, inode) in nodes.into_iter().enumerate() {
            let Some(inode) = inode else { continue };
            let Some(node) = shared.table.get(inode) else { continue };
            let may_have_children = node.state.load().may_have_children();
            if may_have_children {
                // Before the mark: a lease that finds nothing moving looks no further.
                shared.tree.begin_moving();
            }
            if !node.state.begin_moving() {
                if may_have_children {
                    shared.tree.end_moving();
                }
                return Err(inode);
            }
            marks.nodes[place] = Some(Mark { inode, may_have_children });
        }
        Ok(marks)
    }

    /// Sleeps until no lease but the transaction's own is on or below a marked node.
    fn wait_for_leases(&self, own: &[&PathLease<'_, D>]) {
        if self.nodes.iter().all(Option::is_none) {
            return;
        }
        let shared = self.shared;
        shared.domain.begin_waiting();
        // Pairs with the light fences in `Domain::publish` and `Domain::unpublish`: a lease that is
        // not found below finds the marks above; one that ends unseen finds that we wait.
        shared.domain.fences().heavy();
        if self.leased(own) {
            shared.parking.sleep_until(|| !self.leased(own));
        }
        shared.domain.end_waiting();
    }

    fn leased(&self, own: &[&PathLease<'_, D>]) -> bool {
        let shared = self.shared;
        let guard = epoch::pin();
        loop {
            let before = shared.tree.state();
            let mut found = false;
            shared.domain.for_each_published(|value, cell| {
                let inode = Inode::from_raw(value);
                found |= !own.iter().any(|lease| std::ptr::eq(lease.cell(), cell))
                    && self.nodes.iter().flatten().any(|mark| {
                        inode == mark.inode
                            || mark.may_have_children && shared.is_below(inode, mark.inode, &guard)
                    });
            });
            // A directory that another transaction moves meanwhile, from a place that we have not
            // looked at yet to one that we have, is no way past us: look again.
            if found || shared.tree.state_after_reading().same_version(before) {
                return found;
            }
        }
    }
}

impl<D: NodeData> Drop for Marks<'_, D> {
    fn drop(&mut self) {
        for mark in self.nodes.into_iter().flatten() {
            let node = self.shared.table.slot(mark.inode.slot());
            node.state.end_moving();
            if mark.may_have_children {
                self.shared.tree.end_moving();
            }
            // The reclaimer passes over what is marked.
            if node.state.load().count() == 0 {
                self.shared.reconsider(mark.inode.slot());
            }
        }
        self.shared.parking.wake();
    }
}

impl<'r, D: NodeData> Topology<'r, D> {
    fn lock(shared: &'r Shared<D>) -> Self {
        shared.parking.sleep_until(|| shared.topology.try_take());
        Topology(shared)
    }
}

impl<D: NodeData> Drop for Topology<'_, D> {
    fn drop(&mut self) {
        self.0.topology.give_back();
        self.0.parking.wake();
    }
}

impl<D: NodeData> Shared<D> {
    /// Sleeps until no transaction and no reclaimer has this node.
    fn sleep_while_taken(&self, inode: Inode) {
        let taken = |inode| self.table.get(inode).is_some_and(|node| node.state.load().closing());
        while taken(inode) {
            // The reclaimer decides within a few instructions.
            crate::sync::spin_loop();
        }
        self.sleep_while_moving(inode);
    }
}
