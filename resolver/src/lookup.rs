//! Getting or making the node of a name, and counting the lookup.
//!
//! The common case, a name that is known, takes its shard's lock for reading and adds to the node's
//! count. Everything else takes the locks for writing and looks again.

use crate::change::{self, Swap};
use crate::data::NodeData;
use crate::error::Error;
use crate::inode::Inode;
use crate::link::{Link, Links};
use crate::name::Name;
use crate::names::{Key, Shard};
use crate::node::Node;
use crate::relink::{Died, Edit, Place, edited};
use crate::shared::Shared;
use crate::state::Kind;
use crate::sync::{epoch, spin_loop};
use crate::table::ROOT_SLOT;
use crate::tree::TreeLock;

/// How many lookups to count: 0 only makes the id known.
type Count = u64;

/// A name that is looked up, and what the filesystem found under it.
pub(crate) struct Sighting<'n, D> {
    pub(crate) key: Key<'n>,
    pub(crate) kind: Kind,
    pub(crate) data: D,
    pub(crate) count: Count,
}

/// What a first look at a name said.
pub(crate) enum Known {
    /// This node, counted.
    Counted(Inode),
    /// Not known, or something must be changed first.
    Look,
}

/// What a look under the locks for writing said.
pub(crate) enum Made {
    Inode(Inode),
    /// Directories change their places: come again with the tree's lock.
    NeedsTree,
    /// A node died meanwhile: come again.
    Died,
}

impl<D: NodeData> Shared<D> {
    pub(crate) fn lookup(&self, sighting: Sighting<'_, D>) -> Result<Inode, Error> {
        self.directory(sighting.key.parent)?;
        let guard = epoch::pin();
        if !hint::last_was_new() {
            if let Known::Counted(inode) = self.look(&sighting, &guard) {
                return Ok(inode);
            }
        }
        let mut sighting = Some(sighting);
        let mut tree = None;
        loop {
            match self.make(&mut sighting, tree.as_ref(), &guard)? {
                Made::Inode(inode) => return Ok(inode),
                Made::NeedsTree => tree = Some(self.tree.lock()),
                Made::Died => {}
            }
        }
    }

    /// The node that has this name, counting nothing.
    pub(crate) fn peek(&self, parent: Inode, name: &Name) -> Result<Option<Inode>, Error> {
        self.directory(parent)?;
        let key = self.names.key(parent, name);
        let shard = self.names.read(&key);
        Ok(shard.find(&key).and_then(|link| {
            let node = self.table.slot(link.owner());
            node.state.touch().then(|| node.inode(link.owner()))
        }))
    }

    fn look(&self, sighting: &Sighting<'_, D>, guard: &epoch::Guard) -> Known {
        self.look_in(&self.names.read(&sighting.key), sighting, guard)
    }

    /// The same in the shard of the name.
    pub(crate) fn look_in(
        &self,
        shard: &Shard,
        sighting: &Sighting<'_, D>,
        guard: &epoch::Guard,
    ) -> Known {
        let Some(link) = shard.find(&sighting.key) else { return Known::Look };
        let node = self.table.slot(link.owner());
        if self.is_confirmed(link, sighting, guard) && count_or_touch(node, sighting.count) {
            return Known::Counted(node.inode(link.owner()));
        }
        Known::Look
    }

    /// Is this link, found under its shard's lock, already all that the sighting says?
    pub(crate) fn is_confirmed(
        &self,
        link: Link,
        sighting: &Sighting<'_, D>,
        guard: &epoch::Guard,
    ) -> bool {
        let node = self.table.slot(link.owner());
        let links = node.links(guard);
        // SAFETY: read under the guard.
        let first = unsafe { links.as_slice() }.first() == Some(&link);
        // SAFETY: the link is in the index and its shard is locked, so its node isn't buried.
        let other_file = unsafe { is_other_file(node, sighting) };
        (first || sighting.data.identity().is_none()) && !other_file
    }

    /// The same with all locks, ready to change what must be changed.
    fn make(
        &self,
        sighting: &mut Option<Sighting<'_, D>>,
        tree: Option<&TreeLock<'_>>,
        guard: &epoch::Guard,
    ) -> Result<Made, Error> {
        let Some(seen) = sighting.as_ref() else { unreachable!("taken only when it was used") };
        let mut shard = self.names.write(seen.key.hash);
        self.make_in(&mut shard, sighting, tree, guard)
    }

    /// The same in the shard of the name. The sighting is taken only if a node is made of it.
    pub(crate) fn make_in(
        &self,
        shard: &mut Shard,
        sighting: &mut Option<Sighting<'_, D>>,
        tree: Option<&TreeLock<'_>>,
        guard: &epoch::Guard,
    ) -> Result<Made, Error> {
        let Some(seen) = sighting.as_ref() else { unreachable!("taken only when it was used") };
        let (key, count) = (seen.key, seen.count);
        let mut link = self.find_alive(shard, &key);
        let identity = seen.data.identity();
        let hash = identity.map(|identity| self.identities.hash(identity));
        let mut identities = hash.map(|hash| (hash, self.identities.write(hash)));

        // The name is known, for this file (or nobody can say that it isn't).
        if let Some(known) = link {
            let node = self.table.slot(known.owner());
            // SAFETY: as in `look`.
            if !unsafe { is_other_file(node, seen) } {
                if identity.is_some() {
                    self.confirm(known, node, guard);
                }
                // An uncounted sighting may have to wait until the reclaimer has decided.
                while node.state.load().alive() {
                    if count_or_touch(node, count) {
                        hint::set(false);
                        return Ok(Made::Inode(node.inode(known.owner())));
                    }
                    spin_loop();
                }
                // It died under us: its name is free.
                shard.remove(known);
                link = None;
            }
        }

        // The file is known under another name.
        let twin = match (&mut identities, identity) {
            (Some((hash, shard)), Some(identity)) => {
                shard.find(&self.table, *hash, identity).filter(|twin| {
                    let alive = self.table.slot(*twin).state.load().alive();
                    if !alive {
                        shard.remove(*twin, *hash);
                    }
                    alive
                })
            }
            _ => None,
        };
        if let Some(twin) = twin {
            return self.name_twin(&key, twin, count, link, shard, tree, guard);
        }

        // The name is known for another file, which has lost it behind our back.
        if link.is_some_and(|link| self.may_have_children(link.owner())) && tree.is_none() {
            return Ok(Made::NeedsTree);
        }
        self.gain_child(key.parent)?;
        let Some(slot) = self.table.take() else {
            self.lose_child(key.parent);
            return Err(Error::Full);
        };
        if let Some(Err(Died)) = link.map(|link| self.drop_link(link, shard, tree, guard)) {
            self.table.count_dead(1);
            self.table.give_back([slot]);
            self.lose_child(key.parent);
            return Ok(Made::Died);
        }
        let Some(seen) = sighting.take() else { unreachable!("checked above") };
        let inode = self.fill(slot, seen, shard);
        if let Some((hash, identities)) = &mut identities {
            identities.insert(slot, *hash);
        }
        if count == 0 {
            self.enqueue(slot, self.table.slot(slot).state.reconsider());
        }
        Ok(Made::Inode(inode))
    }

    /// Makes a name that was just confirmed the node's first.
    fn confirm(&self, link: Link, node: &Node<D>, guard: &epoch::Guard) {
        if node.single_link() == Some(link) {
            return;
        }
        let _lock = self.lock_nodes([Some(link.owner()), None]);
        let old = node.links(guard);
        // SAFETY: under the guard and the node's lock.
        let links = unsafe { old.as_slice() };
        if links.first() == Some(&link) || !links.contains(&link) {
            return;
        }
        let new = edited(old, |links| {
            links.retain(|other| *other != link);
            links.insert(0, link);
        });
        change::apply(&[Swap { node, old, new }], guard);
    }

    /// The file found under this name is the node `twin`: one more name for it, the first.
    fn name_twin(
        &self,
        key: &Key<'_>,
        twin: u32,
        count: u64,
        loser: Option<Link>,
        shard: &mut Shard,
        tree: Option<&TreeLock<'_>>,
        guard: &epoch::Guard,
    ) -> Result<Made, Error> {
        let node = self.table.slot(twin);
        let inode = node.inode(twin);
        let named = twin == ROOT_SLOT || !node.links(guard).is_none();
        if node.state.load().kind() == Kind::Directory && named {
            return Err(Error::KnownElsewhere(inode));
        }
        let may_have_children = self.may_have_children(twin);
        let moves_directory =
            may_have_children || loser.is_some_and(|link| self.may_have_children(link.owner()));
        if moves_directory && tree.is_none() {
            return Ok(Made::NeedsTree);
        }
        if may_have_children && self.is_below(key.parent, inode, guard) {
            return Err(Error::Cycle(inode));
        }
        if named && node.state.settle(Kind::Leaf) == Kind::Directory {
            return Err(Error::KnownElsewhere(inode));
        }
        self.gain_child(key.parent)?;
        let fresh = Link::new(key.parent, key.name, key.hash, twin);
        let gain = Edit {
            slot: Some(twin),
            remove: None,
            add: Some((fresh, Place::First)),
            count: Some(count),
        };
        let tree = tree.filter(|_| moves_directory);
        if let Err(Died) = self.relink(&[Edit::remove(loser), gain], tree, guard) {
            self.undo_gain(fresh);
            return Ok(Made::Died);
        }
        if let Some(loser) = loser {
            shard.remove(loser);
            self.finish_loser(loser, guard);
        }
        shard.insert(fresh);
        Ok(Made::Inode(inode))
    }

    /// A new node in a slot that is ours, reachable by its name when this returns.
    fn fill(&self, slot: u32, seen: Sighting<'_, D>, shard: &mut Shard) -> Inode {
        let link = Link::new(seen.key.parent, seen.key.name, seen.key.hash, slot);
        let node = self.table.slot(slot);
        node.init(seen.data);
        node.set_links(Links::of(&[link]));
        node.state.init(seen.kind, seen.count);
        shard.insert(link);
        hint::set(true);
        node.inode(slot)
    }
}

/// New names come one after the other (a listing, a build), and known ones too. Where the thread's
/// last name was a new one it takes the lock for writing at once, which serves both.
mod hint {
    #[cfg(not(any(loom, shuttle)))]
    mod own {
        use std::cell::Cell;

        thread_local! {
            static LAST_WAS_NEW: Cell<bool> = const { Cell::new(false) };
        }

        pub(crate) fn last_was_new() -> bool {
            LAST_WAS_NEW.get()
        }

        pub(crate) fn set(new: bool) {
            LAST_WAS_NEW.set(new);
        }
    }

    /// In a model both ways are gone, in every state that it reaches.
    #[cfg(any(loom, shuttle))]
    mod own {
        pub(crate) fn last_was_new() -> bool {
            false
        }

        pub(crate) fn set(_new: bool) {}
    }

    pub(super) use own::{last_was_new, set};
}

/// Is the file that was seen under a name another one than the node's?
///
/// Identities decide where both are known, else the kinds.
///
/// # Safety
/// As [`Node::data`].
unsafe fn is_other_file<D: NodeData>(node: &Node<D>, seen: &Sighting<'_, D>) -> bool {
    // SAFETY: the caller's promise.
    match (unsafe { node.data() }.identity(), seen.data.identity()) {
        (Some(known), Some(identity)) => known != identity,
        _ => match (node.state.load().kind(), seen.kind) {
            (Kind::Unknown, _) | (_, Kind::Unknown) => false,
            (known, kind) => known != kind,
        },
    }
}

/// Counts lookups; for none, only sees to it that the node isn't reclaimed under who asks.
fn count_or_touch<D>(node: &Node<D>, count: Count) -> bool {
    if count == 0 { node.state.touch() } else { node.state.count_up(count) }
}
