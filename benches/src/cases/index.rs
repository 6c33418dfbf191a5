//! Which table for the names? The candidates by themselves, under the churn that the index sees.
//!
//! Each thread adds a name, looks four up that are there, and removes one that it added a thousand names
//! ago, over a stock of 100,000 names. All candidates have the same hash and keys of 24 bytes that are
//! copied, so that no allocation of a key is measured. *Shards* is what `resolver/src/names.rs` does:
//! `hashbrown::HashTable` in 64 `RwLock`s.

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::sync::{Arc, RwLock};

use crossbeam_utils::CachePadded;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::alternate::Case;
use crate::threads;

type Key = (u64, [u8; 16]);

const STOCK: u64 = 100_000;
/// Names that a thread has added and not yet removed.
const WINDOW: u64 = 1000;

/// A map from names to links.
trait Index: Send + Sync + 'static {
    fn new() -> Self;
    fn insert(&self, key: Key, value: u64);
    fn get(&self, key: &Key) -> Option<u64>;
    fn remove(&self, key: &Key);
}

struct Shards(Vec<Shard>, FixedState);

type Shard = CachePadded<RwLock<HashTable<(Key, u64)>>>;

impl Shards {
    fn hash(&self, key: &Key) -> u64 {
        hash(&self.1, key)
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<(Key, u64)>> {
        // Not by the bits that find a place in the shard.
        &self.0[(hash >> 32) as usize % 64]
    }
}

fn hash(state: &FixedState, key: &Key) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write_u64(key.0);
    hasher.write(&key.1);
    hasher.finish()
}

impl Index for Shards {
    fn new() -> Self {
        Shards((0..64).map(|_| CachePadded::default()).collect(), FixedState::default())
    }

    fn insert(&self, key: Key, value: u64) {
        let hash = self.hash(&key);
        let mut shard = self.shard(hash).write().expect("not poisoned");
        shard.insert_unique(hash, (key, value), |entry| self.hash(&entry.0));
    }

    fn get(&self, key: &Key) -> Option<u64> {
        let hash = self.hash(key);
        let shard = self.shard(hash).read().expect("not poisoned");
        shard.find(hash, |entry| entry.0 == *key).map(|entry| entry.1)
    }

    fn remove(&self, key: &Key) {
        let hash = self.hash(key);
        let mut shard = self.shard(hash).write().expect("not poisoned");
        if let Ok(entry) = shard.find_entry(hash, |entry| entry.0 == *key) {
            entry.remove();
        }
    }
}

impl Index for dashmap::DashMap<Key, u64, FixedState> {
    fn new() -> Self {
        dashmap::DashMap::with_hasher(FixedState::default())
    }

    fn insert(&self, key: Key, value: u64) {
        dashmap::DashMap::insert(self, key, value);
    }

    fn get(&self, key: &Key) -> Option<u64> {
        dashmap::DashMap::get(self, key).map(|value| *value)
    }

    fn remove(&self, key: &Key) {
        dashmap::DashMap::remove(self, key);
    }
}

impl Index for papaya::HashMap<Key, u64, FixedState> {
    fn new() -> Self {
        papaya::HashMap::with_hasher(FixedState::default())
    }

    fn insert(&self, key: Key, value: u64) {
        self.pin().insert(key, value);
    }

    fn get(&self, key: &Key) -> Option<u64> {
        self.pin().get(key).copied()
    }

    fn remove(&self, key: &Key) {
        self.pin().remove(key);
    }
}

impl Index for scc::HashMap<Key, u64, FixedState> {
    fn new() -> Self {
        scc::HashMap::with_hasher(FixedState::default())
    }

    fn insert(&self, key: Key, value: u64) {
        // Names are added once.
        let _ = self.insert_sync(key, value);
    }

    fn get(&self, key: &Key) -> Option<u64> {
        self.read_sync(key, |_, value| *value)
    }

    fn remove(&self, key: &Key) {
        self.remove_sync(key);
    }
}

fn key(thread: u64, number: u64) -> Key {
    let mut name = [b'n'; 16];
    name[..8].copy_from_slice(&number.to_le_bytes());
    (thread, name)
}

fn case<I: Index>(name: &str) -> Case {
    let index = Arc::new(I::new());
    (0..STOCK).for_each(|number| index.insert(key(u64::MAX, number), number));
    Case::new(name, move |threads, iterations| {
        let index = &*index;
        let took = threads::time(threads, iterations, |thread| {
            let thread = thread as u64;
            move |number| {
                index.insert(key(thread, number), number);
                for look in 0..4 {
                    // Somewhere in the stock, without a pattern that a prefetcher knows.
                    let at = (number * 4 + look).wrapping_mul(0x9E37_79B9_7F4A_7C15) % STOCK;
                    black_box(index.get(&key(u64::MAX, at)));
                }
                if let Some(old) = number.checked_sub(WINDOW) {
                    index.remove(&key(thread, old));
                }
            }
        });
        for thread in 0..threads as u64 {
            let left = iterations.saturating_sub(WINDOW)..iterations;
            left.for_each(|number| index.remove(&key(thread, number)));
        }
        took
    })
}

/// The candidates.
pub fn cases() -> Vec<Case> {
    vec![
        case::<Shards>("shards of hashbrown"),
        case::<dashmap::DashMap<Key, u64, FixedState>>("dashmap"),
        case::<papaya::HashMap<Key, u64, FixedState>>("papaya"),
        case::<scc::HashMap<Key, u64, FixedState>>("scc"),
    ]
}
