//! [`Identities`]: from what makes a file the same file to its node.
//!
//! Only nodes whose data give an identity are here, so a resolver without identities pays nothing.
//! An entry is removed before its node's data is dropped; under a shard's lock the data of the nodes
//! in it may be read.

use std::hash::BuildHasher;

use crossbeam_utils::CachePadded;
use hashbrown::HashTable;

use crate::data::NodeData;
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::table::Table;

/// A power of two.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: u32,
    hash: u32,
}

#[derive(Debug, Default)]
pub(crate) struct IdentityShard(HashTable<Entry>);

#[derive(Debug)]
pub(crate) struct Identities {
    shards: Box<[CachePadded<RwLock<IdentityShard>>]>,
    hasher: foldhash::fast::RandomState,
}

fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn same<D: NodeData>(table: &Table<D>, entry: &Entry, hash: u32, identity: &D::Identity) -> bool {
    // SAFETY: the entry is in a shard whose lock the caller holds, so its data isn't dropped.
    entry.hash == hash && unsafe { table.slot(entry.slot).data() }.identity() == Some(identity)
}

impl Identities {
    pub(crate) fn new() -> Self {
        Identities {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            hasher: foldhash::fast::RandomState::default(),
        }
    }

    pub(crate) fn hash<I: std::hash::Hash>(&self, identity: &I) -> u32 {
        let hash = self.hasher.hash_one(identity);
        (hash ^ (hash >> 32)) as u32
    }

    pub(crate) fn read(&self, hash: u32) -> RwLockReadGuard<'_, IdentityShard> {
        self.shards[hash as usize % SHARDS].read()
    }

    pub(crate) fn write(&self, hash: u32) -> RwLockWriteGuard<'_, IdentityShard> {
        self.shards[hash as usize % SHARDS].write()
    }

    pub(crate) fn bytes(&self) -> usize {
        let tables: usize = self.shards.iter().map(|shard| shard.read().0.allocation_size()).sum();
        tables + size_of_val(&*self.shards)
    }

    pub(crate) fn shrink(&self) {
        for shard in &self.shards {
            let table = &mut shard.write().0;
            if table.capacity() > 64 && table.len() < table.capacity() / 8 {
                table.shrink_to(table.len() * 2, |entry| spread(entry.hash));
            }
        }
    }
}

impl IdentityShard {
    /// The slot of the node with this identity.
    pub(crate) fn find<D: NodeData>(
        &self,
        table: &Table<D>,
        hash: u32,
        identity: &D::Identity,
    ) -> Option<u32> {
        self.0
            .find(spread(hash), |entry| same(table, entry, hash, identity))
            .map(|entry| entry.slot)
    }

    pub(crate) fn insert(&mut self, slot: u32, hash: u32) {
        self.0.insert_unique(spread(hash), Entry { slot, hash }, |entry| spread(entry.hash));
    }

    /// Takes the entry of this slot out, if it is there.
    pub(crate) fn remove(&mut self, slot: u32, hash: u32) {
        if let Ok(entry) = self.0.find_entry(spread(hash), |entry| entry.slot == slot) {
            entry.remove();
        }
    }
}
