//! Changing the names of nodes: what `lookup`, `link`, `unlink`, `rename` and `exchange` have in common.
//!
//! A verb holds the shards of the names that it changes, decides, and then gives one or two nodes
//! other links at one moment (`relink`). The index is brought in line under the same shards' locks,
//! so whoever looks a name up sees all of the change or nothing.

use smallvec::SmallVec;

use crate::change::{self, Swap};
use crate::data::NodeData;
use crate::link::{Link, Links};
use crate::names::{Key, Shard};
use crate::shared::Shared;
use crate::sync::epoch;
use crate::tree::TreeLock;

/// Where a new name goes among a node's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    Last,
    /// Where the removed one was.
    Same,
}

/// A node that was to be changed has died meanwhile: nothing was changed, and the verb starts over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Died;

/// One node's part in a change of names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit {
    pub(crate) slot: Option<u32>,
    pub(crate) remove: Option<Link>,
    pub(crate) add: Option<(Link, Place)>,
    /// How many lookups the added name counts, where it is one more. They are seen with the name.
    pub(crate) count: Option<u64>,
}

impl Edit {
    pub(crate) fn remove(link: Option<Link>) -> Self {
        Edit { slot: link.map(Link::owner), remove: link, add: None, count: None }
    }

    fn apply(&self, links: &mut Vec<Link>) {
        let at = self.remove.and_then(|link| links.iter().position(|other| *other == link));
        if let Some(at) = at {
            links.remove(at);
        }
        if let Some((link, place)) = self.add {
            let at = match place {
                Place::First => 0,
                Place::Last => links.len(),
                Place::Same => at.unwrap_or(links.len()),
            };
            links.insert(at, link);
        }
    }
}

/// The links of a node with one more or one less.
pub(crate) fn edited(old: Links, edit: impl FnOnce(&mut Vec<Link>)) -> Links {
    // SAFETY: the caller holds the node's lock, under which the word can't be replaced or freed.
    let mut links = unsafe { old.as_slice() }.to_vec();
    edit(&mut links);
    Links::of(&links)
}

impl<D: NodeData> Shared<D> {
    /// The link of a name, if its node isn't dead. The name of a dead one is taken out.
    pub(crate) fn find_alive(&self, shard: &mut Shard, key: &Key<'_>) -> Option<Link> {
        let link = shard.find(key)?;
        if self.table.slot(link.owner()).state.load().alive() {
            return Some(link);
        }
        shard.remove(link);
        None
    }

    /// Changes the names of up to two nodes at one moment. With `tree` it counts as a change of
    /// directories' places. The index is the caller's, under the shards' locks that it holds.
    ///
    /// A node dies under its lock too (`reclaim.rs`), so what is found alive here stays so, and its
    /// links are those that the index knows, until the change is done.
    pub(crate) fn relink(
        &self,
        edits: &[Edit; 2],
        tree: Option<&TreeLock<'_>>,
        guard: &epoch::Guard,
    ) -> Result<(), Died> {
        let _locks = self.lock_nodes([edits[0].slot, edits[1].slot]);
        let alive = |slot| self.table.slot(slot).state.load().alive();
        if !edits.iter().filter_map(|edit| edit.slot).all(alive) {
            return Err(Died);
        }
        let swaps: SmallVec<[Swap<'_, D>; 2]> = edits
            .iter()
            .filter_map(|edit| {
                let node = self.table.slot(edit.slot?);
                let old = node.links(guard);
                let new = edited(old, |links| edit.apply(links));
                Some(Swap { node, old, new })
            })
            .collect();
        let counted = || edits.iter().filter_map(|edit| edit.slot.zip(edit.count));
        for (slot, count) in counted() {
            self.table.slot(slot).state.begin_naming(count);
        }
        match tree {
            Some(tree) => tree.change(|| change::apply(&swaps, guard)),
            None => change::apply(&swaps, guard),
        }
        for (slot, _) in counted() {
            self.enqueue(slot, self.table.slot(slot).state.end_naming());
        }
        Ok(())
    }

    /// Takes a name from its node and out of its shard.
    pub(crate) fn drop_link(
        &self,
        link: Link,
        shard: &mut Shard,
        tree: Option<&TreeLock<'_>>,
        guard: &epoch::Guard,
    ) -> Result<(), Died> {
        let tree = tree.filter(|_| self.may_have_children(link.owner()));
        self.relink(&[Edit::remove(Some(link)), Edit::remove(None)], tree, guard)?;
        shard.remove(link);
        self.finish_loser(link, guard);
        Ok(())
    }

    /// Takes back a link that nobody has seen and the child that its parent was promised.
    pub(crate) fn undo_gain(&self, fresh: Link) {
        self.lose_child(fresh.parent());
        // SAFETY: made by the caller, and neither index nor node has it; nothing was kept for it.
        unsafe { fresh.free() };
    }

    /// After a link was taken out of its node and its shard.
    pub(crate) fn finish_loser(&self, link: Link, guard: &epoch::Guard) {
        self.reconsider(link.owner());
        self.lose_child(link.parent());
        self.retire_link(link, guard);
    }
}
