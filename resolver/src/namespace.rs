//! The verbs that change the namespace at once: `link`, `unlink`, `rename`, `exchange`.
//!
//! Each looks what is there, takes the locks that a change of it needs, looks again, and starts over
//! if something else is there now. They follow what the backend has done already, so they don't
//! judge whether it was sensible, but for what would break the tree: a directory below itself, or
//! with two names.

use crate::data::NodeData;
use crate::error::Error;
use crate::inode::Inode;
use crate::link::Link;
use crate::name::Name;
use crate::names::{Key, Shard};
use crate::relink::{Died, Edit, Place};
use crate::shared::Shared;
use crate::state::Kind;
use crate::sync::epoch;
use crate::tree::TreeLock;

impl<D: NodeData> Shared<D> {
    /// One more name for a node, the last; counts one lookup.
    pub(crate) fn link(&self, inode: Inode, parent: Inode, name: &Name) -> Result<(), Error> {
        if inode == Inode::ROOT {
            return Err(Error::Root);
        }
        self.directory(parent)?;
        let guard = epoch::pin();
        let node = self.table.get(inode).ok_or(Error::Stale(inode))?;
        if node.state.load().kind() == Kind::Directory {
            return Err(Error::DirectoryLink(inode));
        }
        let key = self.names.key(parent, name);
        let mut tree = None;
        loop {
            // Under the guard: the slot isn't another node's.
            if !node.state.load().alive() {
                return Err(Error::Stale(inode));
            }
            let mut shard = self.names.write(key.hash);
            let loser = self.find_alive(&mut shard, &key);
            if loser.is_some_and(|link| link.owner() == inode.slot()) {
                return if node.state.count_up(1) { Ok(()) } else { Err(Error::Stale(inode)) };
            }
            // A node of unknown kind might be a directory, as might the one that loses the name.
            let may_have_children = node.state.load().may_have_children();
            let moves_directory =
                may_have_children || loser.is_some_and(|link| self.may_have_children(link.owner()));
            if moves_directory && tree.is_none() {
                drop(shard);
                tree = Some(self.tree.lock());
                continue;
            }
            if may_have_children && self.is_below(parent, inode, &guard) {
                return Err(Error::Cycle(inode));
            }
            let has_name = !node.links(&guard).is_none();
            if has_name && node.state.settle(Kind::Leaf) == Kind::Directory {
                return Err(Error::DirectoryLink(inode));
            }
            self.gain_child(parent)?;
            let fresh = Link::new(parent, name, key.hash, inode.slot());
            let gain = Edit {
                slot: Some(inode.slot()),
                remove: None,
                add: Some((fresh, Place::Last)),
                count: Some(1),
            };
            let tree = tree.as_ref().filter(|_| moves_directory);
            if let Err(Died) = self.relink(&[Edit::remove(loser), gain], tree, &guard) {
                self.undo_gain(fresh);
                continue;
            }
            if let Some(loser) = loser {
                shard.remove(loser);
                self.finish_loser(loser, &guard);
            }
            shard.insert(fresh);
            return Ok(());
        }
    }

    /// The name is gone; answers the node that had it.
    pub(crate) fn unlink(&self, parent: Inode, name: &Name) -> Result<Option<Inode>, Error> {
        self.directory(parent)?;
        let guard = epoch::pin();
        let key = self.names.key(parent, name);
        let mut tree = None;
        loop {
            let mut shard = self.names.write(key.hash);
            let Some(link) = self.find_alive(&mut shard, &key) else { return Ok(None) };
            if self.may_have_children(link.owner()) && tree.is_none() {
                drop(shard);
                tree = Some(self.tree.lock());
                continue;
            }
            let inode = self.table.slot(link.owner()).inode(link.owner());
            if let Ok(()) = self.drop_link(link, &mut shard, tree.as_ref(), &guard) {
                return Ok(Some(inode));
            }
        }
    }

    /// What has the first name has the second one now, and what had the second has lost it.
    pub(crate) fn rename(&self, from: Key<'_>, to: Key<'_>) -> Result<(), Error> {
        self.with_both(from, to, |moving| self.rename_locked(moving))
    }

    /// What has either name has the other one now.
    pub(crate) fn exchange(&self, a: Key<'_>, b: Key<'_>) -> Result<(), Error> {
        self.with_both(a, b, |moving| self.exchange_locked(moving))
    }

    /// Finds what has the two names and runs `act` with all the locks that a change of them needs.
    fn with_both(
        &self,
        from: Key<'_>,
        to: Key<'_>,
        act: impl Fn(&mut Both<'_, '_>) -> Result<Result<(), Died>, Error>,
    ) -> Result<(), Error> {
        self.directory(from.parent)?;
        self.directory(to.parent)?;
        let guard = epoch::pin();
        let mut tree = None;
        loop {
            let mut shards = self.names.write_two(&from, &to);
            let source = self.find_alive(shards.of(from.hash), &from);
            let target = self.find_alive(shards.of(to.hash), &to);
            let moves_directory =
                [source, target].iter().flatten().any(|link| self.may_have_children(link.owner()));
            if moves_directory && tree.is_none() {
                drop(shards);
                tree = Some(self.tree.lock());
                continue;
            }
            let tree = tree.as_ref().filter(|_| moves_directory);
            let guard = &guard;
            let mut both = Both { from, to, source, target, shards, tree, guard };
            if let Ok(()) = act(&mut both)? {
                return Ok(());
            }
        }
    }

    fn rename_locked(&self, both: &mut Both<'_, '_>) -> Result<Result<(), Died>, Error> {
        let Some(source) = both.source else {
            // The backend has put something that we don't know in the target's place.
            let Some(target) = both.target else { return Ok(Ok(())) };
            let shard = both.shards.of(both.to.hash);
            return Ok(self.drop_link(target, shard, both.tree, both.guard));
        };
        if both.target.is_some_and(|target| target.owner() == source.owner()) {
            // Two names of one file: rename(2) does nothing, and leaves both.
            return Ok(Ok(()));
        }
        self.check_cycle(source, both.to.parent, both.guard)?;
        // Within a directory the old link's place among its parent's children passes to the new one:
        // the link keeps the parent from being reclaimed while its name is locked, and a rename
        // writes nothing that requests on the directory's other files read.
        let stays = source.parent() == both.to.parent;
        if !stays {
            self.gain_child(both.to.parent)?;
        }
        let fresh = Link::new(both.to.parent, both.to.name, both.to.hash, source.owner());
        let moved = Edit {
            slot: Some(source.owner()),
            remove: Some(source),
            add: Some((fresh, Place::Same)),
            count: None,
        };
        let edits = [moved, Edit::remove(both.target)];
        if let Err(Died) = self.relink(&edits, both.tree, both.guard) {
            if !stays {
                self.lose_child(fresh.parent());
            }
            // SAFETY: made above, and neither index nor node has it; nothing was kept for it.
            unsafe { fresh.free() };
            return Ok(Err(Died));
        }
        both.remove(source);
        if let Some(target) = both.target {
            both.remove(target);
        }
        both.shards.of(fresh.hash()).insert(fresh);
        if !stays {
            self.lose_child(source.parent());
        }
        self.retire_link(source, both.guard);
        if let Some(target) = both.target {
            self.finish_loser(target, both.guard);
        }
        Ok(Ok(()))
    }

    fn exchange_locked(&self, both: &mut Both<'_, '_>) -> Result<Result<(), Died>, Error> {
        let moves = [(both.source, both.to), (both.target, both.from)];
        let same = |a: Link, b: Link| a.owner() == b.owner();
        if both.source.zip(both.target).is_some_and(|(a, b)| same(a, b)) {
            return Ok(Ok(()));
        }
        for (link, place) in moves {
            if let Some(link) = link {
                self.check_cycle(link, place.parent, both.guard)?;
            }
        }
        let mut fresh: [Option<(Link, Link)>; 2] = [None; 2];
        for (fresh, (link, place)) in fresh.iter_mut().zip(moves) {
            let Some(link) = link else { continue };
            // Can't fail for the second only: the parents were there when the names were locked,
            // and the other name's node, if there is one, keeps its parent.
            self.gain_child(place.parent)?;
            *fresh = Some((link, Link::new(place.parent, place.name, place.hash, link.owner())));
        }
        let edits = fresh.map(|moved| Edit {
            slot: moved.map(|(old, _)| old.owner()),
            remove: moved.map(|(old, _)| old),
            add: moved.map(|(_, new)| (new, Place::Same)),
            count: None,
        });
        if let Err(Died) = self.relink(&edits, both.tree, both.guard) {
            for (_, new) in fresh.into_iter().flatten() {
                self.undo_gain(new);
            }
            return Ok(Err(Died));
        }
        for (old, _) in fresh.iter().flatten() {
            both.remove(*old);
        }
        for (old, new) in fresh.iter().flatten() {
            both.shards.of(new.hash()).insert(*new);
            self.lose_child(old.parent());
            self.retire_link(*old, both.guard);
        }
        Ok(Ok(()))
    }

    /// May the node of this link be put into `parent`?
    fn check_cycle(&self, link: Link, parent: Inode, guard: &epoch::Guard) -> Result<(), Error> {
        let inode = self.table.slot(link.owner()).inode(link.owner());
        // What has no children can't be above anything. Else the tree's lock is held, so nothing
        // moves while this looks.
        if self.may_have_children(link.owner()) && self.is_below(parent, inode, guard) {
            return Err(Error::Cycle(inode));
        }
        Ok(())
    }

    pub(crate) fn may_have_children(&self, slot: u32) -> bool {
        self.table.slot(slot).state.load().may_have_children()
    }
}

/// Two names and what has them, with the locks to change that.
struct Both<'a, 'n> {
    from: Key<'n>,
    to: Key<'n>,
    source: Option<Link>,
    target: Option<Link>,
    shards: crate::names::TwoShards<'a>,
    /// Held where a directory changes its place.
    tree: Option<&'a TreeLock<'a>>,
    guard: &'a epoch::Guard,
}

impl Both<'_, '_> {
    fn remove(&mut self, link: Link) {
        let shard: &mut Shard = self.shards.of(link.hash());
        shard.remove(link);
    }
}
