//! The verbs that make nodes known, and count what the kernel knows.

use super::{Node, Oracle, Place};
use crate::{Identity, OwnedName};
use pinpath::{Counting, Error, Inode, Kind};

/// One entry of a listing, with the number for its node should it be new.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Its name in the directory.
    pub name: OwnedName,
    /// May it have children?
    pub kind: Kind,
    /// The identity that its data carries.
    pub identity: Option<Identity>,
    /// The id for a new node.
    pub fresh: Inode,
}

impl Oracle {
    /// Gets or makes the node of a name, and counts one lookup of it.
    ///
    /// # Errors
    /// As `Oracle::meet`; nothing was changed.
    pub fn lookup(&mut self, parent: Inode, entry: &NewEntry) -> Result<Inode, Error> {
        let inode = self.meet(parent, entry)?;
        self.node_mut(inode).lookups += 1;
        Ok(inode)
    }

    /// A listing: `lookup` for each entry in turn, or, uncounted, only getting or making the nodes.
    ///
    /// # Errors
    /// For the whole: `Stale`, `NotADirectory`, of `parent`. For an entry: as `Oracle::meet`.
    pub fn list(
        &mut self,
        parent: Inode,
        entries: &[NewEntry],
        counting: Counting,
    ) -> Result<Vec<Result<Inode, Error>>, Error> {
        self.directory(parent)?;
        let each = |entry| match counting {
            Counting::Counted => self.lookup(parent, entry),
            Counting::Uncounted => self.meet(parent, entry),
        };
        Ok(entries.iter().map(each).collect())
    }

    /// The backend says: there is something called `entry.name` in `parent`. Which node is it?
    ///
    /// 1. The node that the name is known for, unless that is another file ([`is_other_file`]). If
    ///    an identity was given, the name has been confirmed, and it is the node's first from now on.
    /// 2. Else, the node with this identity: a leaf has one more name, and it comes first; a
    ///    directory that lost its name has a name again; a directory that has another name can't.
    /// 3. Else a new one.
    ///
    /// In cases 2 and 3 the name is taken from the node that it was known for.
    fn meet(&mut self, parent: Inode, entry: &NewEntry) -> Result<Inode, Error> {
        self.directory(parent)?;
        let place = Place { parent, name: entry.name.clone() };
        if let Some(known) = self.at(&place) {
            let node = self.node_mut(known);
            if !is_other_file(node, entry) {
                if entry.identity.is_some() {
                    node.names.retain(|name| *name != place);
                    node.names.insert(0, place);
                }
                return Ok(known);
            }
        }
        let Some(other) = self.identified(entry.identity) else {
            self.remove_name(&place);
            return Ok(self.insert(place, entry));
        };
        self.can_be_met_at(other, parent)?;
        self.gains_name(other, parent);
        self.remove_name(&place);
        self.node_mut(other).names.insert(0, place);
        Ok(other)
    }

    fn can_be_met_at(&self, inode: Inode, parent: Inode) -> Result<(), Error> {
        let node = self.exists(inode)?;
        let has_its_name = inode == Inode::ROOT || !node.names.is_empty();
        if node.kind == Kind::Directory && has_its_name {
            return Err(Error::KnownElsewhere(inode));
        }
        if self.at_or_above(inode, parent) {
            return Err(Error::Cycle(inode));
        }
        Ok(())
    }

    fn identified(&self, identity: Option<Identity>) -> Option<Inode> {
        let identity = identity?;
        self.nodes().find(|(_, node)| node.identity == Some(identity)).map(|(inode, _)| inode)
    }

    fn insert(&mut self, place: Place, entry: &NewEntry) -> Inode {
        let node =
            Node { kind: entry.kind, identity: entry.identity, lookups: 0, names: vec![place] };
        self.settle_kind(node.names[0].parent, Kind::Directory);
        self.nodes.insert(entry.fresh, node);
        entry.fresh
    }

    /// Takes back `count` lookups. Unknown ids, the root, and too-large counts do no harm.
    pub fn forget(&mut self, inode: Inode, count: u64) {
        if inode == Inode::ROOT {
            return;
        }
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.lookups = node.lookups.saturating_sub(count);
        }
    }
}

/// Is what was found under a name another file than the node that the name is known for? Two
/// identities say so if they differ; without two, what is no directory can't have become one, nor
/// the other way round.
fn is_other_file(node: &Node, entry: &NewEntry) -> bool {
    match (node.identity, entry.identity) {
        (Some(known), Some(found)) => known != found,
        _ => matches!(
            (node.kind, entry.kind),
            (Kind::Directory, Kind::Leaf) | (Kind::Leaf, Kind::Directory)
        ),
    }
}
