//! [`Names`]: from a parent and a name to the link.
//!
//! A hash table of pointers to links, cut into shards with a lock each. A link holds its own parent,
//! name and hash, so the table stores nothing twice. All changes of one (parent, name) happen under
//! its shard's lock, together with the change of the node's links: who looks a name up sees all of a
//! change or nothing of it.
//!
//! An entry is removed before its link is retired, so a link found under the lock may be read there.

use std::hash::BuildHasher;

use crossbeam_utils::CachePadded;
use hashbrown::HashTable;

use crate::inode::Inode;
use crate::link::Link;
use crate::name::Name;
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A power of two.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// A parent and a name, with their hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'n> {
    pub(crate) parent: Inode,
    pub(crate) name: &'n Name,
    pub(crate) hash: u32,
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.parent == other.parent && self.name == other.name
    }
}

/// One shard's links, while its lock is held.
#[derive(Debug, Default)]
pub(crate) struct Shard(HashTable<Link>);

#[derive(Debug)]
pub(crate) struct Names {
    shards: Box<[CachePadded<RwLock<Shard>>]>,
    hasher: foldhash::fast::RandomState,
}

/// A link stores 32 bits of its hash. The table wants 64, the upper ones well mixed.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn shard_of(hash: u32) -> usize {
    hash as usize % SHARDS
}

impl Names {
    pub(crate) fn new() -> Self {
        Names {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            hasher: foldhash::fast::RandomState::default(),
        }
    }

    pub(crate) fn key<'n>(&self, parent: Inode, name: &'n Name) -> Key<'n> {
        let hash = self.hasher.hash_one((parent.raw(), name.as_bytes()));
        Key { parent, name, hash: (hash ^ (hash >> 32)) as u32 }
    }

    /// The number of the shard that has the names of this hash.
    pub(crate) fn shard_of(hash: u32) -> usize {
        shard_of(hash)
    }

    /// For looking up all names of one shard.
    pub(crate) fn read_shard(&self, shard: usize) -> RwLockReadGuard<'_, Shard> {
        self.shards[shard].read()
    }

    /// For changing all names of one shard.
    pub(crate) fn write_shard(&self, shard: usize) -> RwLockWriteGuard<'_, Shard> {
        self.shards[shard].write()
    }

    /// For looking up.
    pub(crate) fn read(&self, key: &Key<'_>) -> RwLockReadGuard<'_, Shard> {
        self.shards[shard_of(key.hash)].read()
    }

    /// For changing this one name.
    pub(crate) fn write(&self, hash: u32) -> RwLockWriteGuard<'_, Shard> {
        self.shards[shard_of(hash)].write()
    }

    /// For changing two names in one step. Locks are taken in the order of the shards.
    pub(crate) fn write_two(&self, first: &Key<'_>, second: &Key<'_>) -> TwoShards<'_> {
        let (a, b) = (shard_of(first.hash), shard_of(second.hash));
        if a == b {
            return TwoShards { first: self.shards[a].write(), second: None, first_index: a };
        }
        let low = self.shards[a.min(b)].write();
        let high = self.shards[a.max(b)].write();
        TwoShards { first: low, second: Some(high), first_index: a.min(b) }
    }

    pub(crate) fn bytes(&self) -> usize {
        let tables: usize = self.shards.iter().map(|shard| shard.read().0.allocation_size()).sum();
        tables + size_of_val(&*self.shards)
    }

    /// Gives memory back where a shard has become much emptier than it was.
    pub(crate) fn shrink(&self) {
        for shard in &self.shards {
            let table = &mut shard.write().0;
            if table.capacity() > 64 && table.len() < table.capacity() / 8 {
                table.shrink_to(table.len() * 2, |link| spread(link.hash()));
            }
        }
    }

    /// Shows every link, shard by shard.
    pub(crate) fn for_each(&self, mut f: impl FnMut(Link)) {
        for shard in &self.shards {
            shard.read().0.iter().copied().for_each(&mut f);
        }
    }
}

impl Shard {
    pub(crate) fn find(&self, key: &Key<'_>) -> Option<Link> {
        self.0
            .find(spread(key.hash), |link| link.hash() == key.hash && link.is(key.parent, key.name))
            .copied()
    }

    /// Adds a link whose name is not there.
    pub(crate) fn insert(&mut self, link: Link) {
        self.0.insert_unique(spread(link.hash()), link, |link| spread(link.hash()));
    }

    /// Takes this very link out; false if it isn't there.
    pub(crate) fn remove(&mut self, link: Link) -> bool {
        match self.0.find_entry(spread(link.hash()), |other| *other == link) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }
}

/// The locks of one or two shards.
#[derive(Debug)]
pub(crate) struct TwoShards<'a> {
    first: RwLockWriteGuard<'a, Shard>,
    second: Option<RwLockWriteGuard<'a, Shard>>,
    first_index: usize,
}

impl TwoShards<'_> {
    /// The shard of this hash, which must be one of the two.
    pub(crate) fn of(&mut self, hash: u32) -> &mut Shard {
        match &mut self.second {
            Some(second) if shard_of(hash) != self.first_index => second,
            _ => &mut self.first,
        }
    }
}
