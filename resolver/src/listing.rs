//! Many names of one directory at once.
//!
//! The names of a directory are all over the shards of the index, so a listing that locked a shard for
//! each of them would take as many locks as there are names. Here they are put in the order of their
//! shards, and each shard is locked once to see what is there, and once to count or to make nodes.
//!
//! In that order only what commutes may be done: names that are known for the file that was seen, and
//! names and files that are new, all of them different. If a look at all of them finds anything else (a
//! file under another name than before, say), they are looked up one after the other.

use crate::data::NodeData;
use crate::error::Error;
use crate::inode::Inode;
use crate::lookup::{Known, Made, Sighting};
use crate::name::Name;
use crate::names::Names;
use crate::shared::Shared;
use crate::state::Kind;
use crate::sync::epoch;

/// A name, and what became of it. None while it isn't known yet.
struct Entry<'n, D> {
    /// Used up when a node is made of it.
    sighting: Option<Sighting<'n, D>>,
    result: Option<Result<Inode, Error>>,
}

/// Where an entry belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    shard: usize,
    hash: u32,
    at: usize,
}

impl<D: NodeData> Shared<D> {
    /// As many lookups, each with so many counts; answers in the order of the entries.
    pub(crate) fn list<'n>(
        &self,
        parent: Inode,
        entries: impl IntoIterator<Item = (&'n Name, Kind, D)>,
        count: u64,
    ) -> Result<Vec<Result<Inode, Error>>, Error> {
        self.directory(parent)?;
        // All that is the caller's runs before the first lock is taken, and what is left of the
        // sightings is dropped after the last.
        let mut entries: Vec<Entry<'n, D>> = entries
            .into_iter()
            .map(|(name, kind, data)| {
                let key = self.names.key(parent, name);
                Entry { sighting: Some(Sighting { key, kind, data, count }), result: None }
            })
            .collect();
        let order = self.order(&entries);
        let guard = epoch::pin();
        let groups = || order.chunk_by(|a, b| a.shard == b.shard);
        if !self.has_file_twice(&entries)
            && groups().all(|group| self.is_simple(group, &entries, &guard))
        {
            groups().for_each(|group| self.list_shard(group, &mut entries, &guard));
        }
        drop(guard);
        Ok(entries.into_iter().map(|entry| self.result(entry)).collect())
    }

    /// The entries in the order of their shards, each with what shows that it is there twice.
    fn order(&self, entries: &[Entry<'_, D>]) -> Vec<Place> {
        let mut order: Vec<Place> = entries
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| {
                let hash = entry.sighting.as_ref()?.key.hash;
                Some(Place { shard: Names::shard_of(hash), hash, at })
            })
            .collect();
        order.sort_unstable();
        order
    }

    /// Can these be done before or after any others?
    fn is_simple(&self, group: &[Place], entries: &[Entry<'_, D>], guard: &epoch::Guard) -> bool {
        // Two with one hash are taken for one name, which costs nothing but the order.
        if group.windows(2).any(|pair| pair[0].hash == pair[1].hash) {
            return false;
        }
        let shard = self.names.read_shard(group[0].shard);
        group.iter().all(|place| {
            let sighting = entries[place.at].sighting.as_ref();
            sighting.is_some_and(|sighting| match shard.find(&sighting.key) {
                Some(link) => self.is_confirmed(link, sighting, guard),
                None => self.is_new_file(sighting),
            })
        })
    }

    /// Are two entries (perhaps) one file?
    fn has_file_twice(&self, entries: &[Entry<'_, D>]) -> bool {
        let sightings = entries.iter().filter_map(|entry| entry.sighting.as_ref());
        let identities = sightings.filter_map(|sighting| sighting.data.identity());
        let mut hashes: Vec<u32> =
            identities.map(|identity| self.identities.hash(identity)).collect();
        hashes.sort_unstable();
        hashes.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn is_new_file(&self, sighting: &Sighting<'_, D>) -> bool {
        sighting.data.identity().is_none_or(|identity| {
            let hash = self.identities.hash(identity);
            self.identities.read(hash).find(&self.table, hash, identity).is_none()
        })
    }

    fn list_shard(&self, group: &[Place], entries: &mut [Entry<'_, D>], guard: &epoch::Guard) {
        let shard = self.names.read_shard(group[0].shard);
        let mut missing = 0;
        for Place { at, .. } in group {
            let Entry { sighting: Some(sighting), result } = &mut entries[*at] else { continue };
            match self.look_in(&shard, sighting, guard) {
                Known::Counted(inode) => *result = Some(Ok(inode)),
                Known::Look => missing += 1,
            }
        }
        drop(shard);
        if missing == 0 {
            return;
        }
        let mut shard = self.names.write_shard(group[0].shard);
        for Place { at, .. } in group {
            let entry = &mut entries[*at];
            if entry.result.is_none() {
                match self.make_in(&mut shard, &mut entry.sighting, None, guard) {
                    Ok(Made::Inode(inode)) => entry.result = Some(Ok(inode)),
                    Err(error) => entry.result = Some(Err(error)),
                    // Something has changed since the look: by itself, later.
                    Ok(Made::NeedsTree | Made::Died) => {}
                }
            }
        }
    }

    fn result(&self, entry: Entry<'_, D>) -> Result<Inode, Error> {
        match (entry.result, entry.sighting) {
            (Some(result), _) => result,
            (None, Some(sighting)) => self.lookup(sighting),
            (None, None) => unreachable!("a sighting that was used has a result"),
        }
    }
}
