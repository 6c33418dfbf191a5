//! The verbs that move names, after the backend did.

use super::{Oracle, Place};
use pinpath::{Error, Inode, Kind, PathError, RenameMode, TransactionError};
use std::path::PathBuf;

/// What a namespace transaction is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Rename or exchange.
    Rename(Place, Place, RenameMode),
    /// Unlink or rmdir.
    Unlink(Place),
}

/// What a transaction that has begun tells of itself.
///
/// A parent that has a name can still have no path: a directory above it was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The node of the source name.
    pub source: Option<Inode>,
    /// The node of the target name.
    pub target: Option<Inode>,
    /// The path of the source's parent.
    pub parent: Result<PathBuf, PathError>,
    /// The path of the target's parent; the same as `parent` for an unlink.
    pub new_parent: Result<PathBuf, PathError>,
}

impl Oracle {
    /// One more name for a node, the last of its names, and one more lookup.
    ///
    /// The backend made the link, so if the name was known for another node, that one lost it. If
    /// it was known for this node, only the lookup is counted.
    ///
    /// # Errors
    /// `Root`, `Stale`, `NotADirectory`; `DirectoryLink` of a directory; `Cycle` if it would be its
    /// own child.
    pub fn link(&mut self, inode: Inode, place: &Place) -> Result<(), Error> {
        if inode == Inode::ROOT {
            return Err(Error::Root);
        }
        self.directory(place.parent)?;
        if self.exists(inode)?.kind == Kind::Directory {
            return Err(Error::DirectoryLink(inode));
        }
        if self.at(place) != Some(inode) {
            if self.at_or_above(inode, place.parent) {
                return Err(Error::Cycle(inode));
            }
            self.gains_name(inode, place.parent);
            self.remove_name(place);
            self.node_mut(inode).names.push(place.clone());
        }
        self.node_mut(inode).lookups += 1;
        Ok(())
    }

    /// A node is about to get one more name. Its new parent is a directory, and what has two names
    /// is none.
    pub(super) fn gains_name(&mut self, inode: Inode, parent: Inode) {
        self.settle_kind(parent, Kind::Directory);
        if !self.node_mut(inode).names.is_empty() {
            self.settle_kind(inode, Kind::Leaf);
        }
    }

    /// The name is gone. Tells whose it was.
    ///
    /// # Errors
    /// `Stale`, `NotADirectory`.
    pub fn unlink(&mut self, place: &Place) -> Result<Option<Inode>, Error> {
        self.directory(place.parent)?;
        let inode = self.at(place);
        self.remove_name(place);
        Ok(inode)
    }

    /// What was called `from` is called `to` now, in the same position among the node's names; what
    /// was called `to` has lost that name.
    ///
    /// If `from` is not known, `to` is not known any more either: the backend put something there
    /// that the table has not met. If both are names of one node, the backend has done nothing
    /// (rename(2) says so), and neither does the table.
    ///
    /// # Errors
    /// `Stale`, `NotADirectory`, `Cycle`.
    pub fn rename(&mut self, from: &Place, to: &Place) -> Result<(), Error> {
        self.directory(from.parent)?;
        self.directory(to.parent)?;
        let source = self.at(from);
        self.can_move(source, to)?;
        if source.is_some() && source == self.at(to) {
            return Ok(());
        }
        self.remove_name(to);
        if source.is_some() {
            self.settle_kind(to.parent, Kind::Directory);
        }
        self.replace_name(source, from, to);
        Ok(())
    }

    /// What was called `a` is called `b` and the other way round. What is not known of the two is
    /// not known afterwards, at its new place.
    ///
    /// # Errors
    /// `Stale`, `NotADirectory`, `Cycle`.
    pub fn exchange(&mut self, a: &Place, b: &Place) -> Result<(), Error> {
        self.directory(a.parent)?;
        self.directory(b.parent)?;
        let (at_a, at_b) = (self.at(a), self.at(b));
        self.can_move(at_a, b)?;
        self.can_move(at_b, a)?;
        if at_a == at_b {
            return Ok(());
        }
        for (moved, parent) in [(at_a, b.parent), (at_b, a.parent)] {
            if moved.is_some() {
                self.settle_kind(parent, Kind::Directory);
            }
        }
        self.replace_name(at_a, a, b);
        self.replace_name(at_b, b, a);
        Ok(())
    }

    /// Begins a transaction. A lease is taken on each parent, so each must have a name.
    ///
    /// # Errors
    /// `Stale`, `Unlinked`, `NotADirectory`: of a parent. `Cycle`, if one of the two nodes is above
    /// the place of the other, or is that place.
    pub fn begin(&self, change: &Change) -> Result<Begun, TransactionError> {
        let begun = |source, target, parent, new_parent| Begun {
            source,
            target,
            parent: self.path(parent),
            new_parent: self.path(new_parent),
        };
        match change {
            Change::Unlink(place) => {
                self.can_be_leased(place.parent)?;
                self.directory(place.parent)?;
                Ok(begun(self.at(place), None, place.parent, place.parent))
            }
            Change::Rename(from, to, _) => {
                self.directory(from.parent)?;
                self.directory(to.parent)?;
                self.can_be_leased(from.parent)?;
                self.can_be_leased(to.parent)?;
                let (source, target) = (self.at(from), self.at(to));
                self.can_move(source, to)?;
                self.can_move(target, from)?;
                Ok(begun(source, target, from.parent, to.parent))
            }
        }
    }

    fn can_be_leased(&self, inode: Inode) -> Result<(), PathError> {
        match self.node(inode) {
            None => Err(PathError::Stale(inode)),
            Some(node) if node.names.is_empty() && inode != Inode::ROOT => {
                Err(PathError::Unlinked(inode))
            }
            Some(_) => Ok(()),
        }
    }

    /// Commits a transaction.
    ///
    /// # Errors
    /// Those of the verb.
    pub fn apply(&mut self, change: &Change) -> Result<(), Error> {
        match change {
            Change::Rename(from, to, RenameMode::Replace) => self.rename(from, to),
            Change::Rename(from, to, RenameMode::Exchange) => self.exchange(from, to),
            Change::Unlink(place) => self.unlink(place).map(drop),
        }
    }

    fn can_move(&self, inode: Option<Inode>, to: &Place) -> Result<(), Error> {
        match inode {
            Some(inode) if self.at_or_above(inode, to.parent) => Err(Error::Cycle(inode)),
            _ => Ok(()),
        }
    }

    fn replace_name(&mut self, inode: Option<Inode>, old: &Place, new: &Place) {
        let Some(inode) = inode else { return };
        for place in &mut self.node_mut(inode).names {
            if place == old {
                *place = new.clone();
                return;
            }
        }
    }
}
