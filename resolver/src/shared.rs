//! [`Shared`]: everything that the clones of one resolver share, and the order of its locks.
//!
//! Locks are taken in this order, each kind at most once by a thread, and none is held while a
//! caller's code runs:
//!
//! 1. `topology` (`transaction.rs`): one directory at a time moves between directories.
//! 2. `tree`: one change of a directory's place at a time.
//! 3. shards of `names`, in the order of their numbers.
//! 4. a shard of `identities`.
//! 5. `nodes`: the right to change the links of nodes, in the order of their numbers.
//! 6. the stacks of `table` and of `retired`: leaves, under which nothing else is taken.

use crossbeam_utils::CachePadded;

use crate::data::NodeData;
use crate::domain::{self, Domain};
use crate::error::Error;
use crate::identities::Identities;
use crate::inode::Inode;
use crate::link::Link;
use crate::names::Names;
use crate::node::Node;
use crate::parking::Parking;
use crate::reclaim::Retired;
use crate::state::Kind;
use crate::sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering, epoch, fence, spin_loop};
use crate::table::{ROOT_SLOT, Table};
use crate::tree::Tree;

/// A power of two.
const NODE_LOCKS: usize = if cfg!(loom) { 2 } else { 64 };

#[derive(Debug)]
pub(crate) struct Shared<D: NodeData> {
    /// Shared with what waits in the epochs to free slots.
    pub(crate) table: Arc<Table<D>>,
    pub(crate) names: Names,
    pub(crate) identities: Identities,
    pub(crate) tree: Tree,
    pub(crate) domain: &'static Domain,
    pub(crate) retired: Retired,
    pub(crate) parking: Parking,
    pub(crate) topology: Topology,
    node_locks: Box<[CachePadded<Mutex<()>>]>,
    /// Bytes of the paths that are kept, and how many may be.
    pub(crate) cached: AtomicUsize,
    pub(crate) cache_limit: usize,
    /// The slot from which on kept paths are taken out next, when there is no room.
    pub(crate) hand: AtomicUsize,
}

/// One directory at a time moves between directories. A flag, because who has it may go on on
/// another thread; who wants it sleeps in `parking`.
#[derive(Debug, Default)]
pub(crate) struct Topology(AtomicUsize);

impl Topology {
    pub(crate) fn try_take(&self) -> bool {
        // Acquire: pairs with the Release in `give_back`, as a lock does.
        self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn give_back(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// The right to change the links of one or two nodes.
pub(crate) struct NodeLocks<'a>(#[allow(dead_code)] [Option<MutexGuard<'a, ()>>; 2]);

impl<D: NodeData> Shared<D> {
    pub(crate) fn new(root: D, cache_limit: usize) -> Self {
        let domain = domain::pool::take();
        let shared = Shared {
            table: Arc::new(Table::new()),
            names: Names::new(),
            identities: Identities::new(),
            tree: Tree::default(),
            domain,
            retired: Retired::new(domain),
            parking: Parking::new(),
            topology: Topology::default(),
            node_locks: (0..NODE_LOCKS).map(|_| CachePadded::default()).collect(),
            cached: AtomicUsize::new(0),
            cache_limit,
            hand: AtomicUsize::new(0),
        };
        let hash = root.identity().map(|identity| shared.identities.hash(identity));
        let node = shared.table.slot(ROOT_SLOT);
        node.init(root);
        node.state.init(Kind::Directory, 1);
        if let Some(hash) = hash {
            shared.identities.write(hash).insert(ROOT_SLOT, hash);
        }
        shared
    }

    /// The parent of a name that is to be added or changed.
    pub(crate) fn directory(&self, inode: Inode) -> Result<&Node<D>, Error> {
        let node = self.table.slot_of(inode).ok_or(Error::Stale(inode))?;
        match node.check(inode) {
            None => Err(Error::Stale(inode)),
            Some(state) if state.kind() == Kind::Leaf => Err(Error::NotADirectory(inode)),
            Some(_) => Ok(node),
        }
    }

    /// One more link names this node as its parent: it can't be reclaimed until `lose_child`.
    pub(crate) fn gain_child(&self, parent: Inode) -> Result<(), Error> {
        let node = self.directory(parent)?;
        // What has a child is a directory, and can't get a second name any more.
        if node.state.settle(Kind::Directory) == Kind::Leaf {
            return Err(Error::NotADirectory(parent));
        }
        loop {
            node.children.fetch_add(1, Ordering::Relaxed);
            // Pairs with the fence in `reclaim::close`: the reclaimer closes the node and then
            // looks for children, we add a child and then look whether it is closing. At least one
            // of us sees the other. Weaker: a child under a reclaimed parent.
            fence(Ordering::SeqCst);
            match node.check(parent) {
                Some(state) if !state.closing() => return Ok(()),
                closing_or_dead => {
                    node.children.fetch_sub(1, Ordering::Relaxed);
                    if closing_or_dead.is_none() {
                        return Err(Error::Stale(parent));
                    }
                    // The reclaimer decides within a few instructions. This happens only to a
                    // parent that the kernel has forgotten.
                    spin_loop();
                }
            }
        }
    }

    /// A link that named this node as its parent is gone.
    pub(crate) fn lose_child(&self, parent: Inode) {
        let node = self.table.slot(parent.slot());
        node.state.lose_child();
        // AcqRel: what was done with the child happened before the parent is reclaimed, the mark
        // just made too: who finds no child finds the mark.
        if node.children.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.reconsider(parent.slot());
        }
    }

    /// The node lost a name or a child. If nothing refers to it now, it waits to be reclaimed.
    pub(crate) fn reconsider(&self, slot: u32) {
        if slot != ROOT_SLOT {
            self.enqueue(slot, self.table.slot(slot).state.reconsider());
        }
    }

    pub(crate) fn lock_nodes(&self, slots: [Option<u32>; 2]) -> NodeLocks<'_> {
        let [mut a, mut b] = slots.map(|slot| slot.map(|slot| slot as usize % NODE_LOCKS));
        if a > b {
            std::mem::swap(&mut a, &mut b);
        }
        if a == b {
            a = None;
        }
        NodeLocks([a, b].map(|lock| lock.map(|lock| self.node_locks[lock].lock())))
    }

    /// Is `inode` the node `above`, or below it, by any of its names?
    pub(crate) fn is_below(&self, inode: Inode, above: Inode, guard: &epoch::Guard) -> bool {
        if inode == above {
            return true;
        }
        let Some(node) = self.table.get(inode) else { return false };
        let links = node.links(guard);
        // SAFETY: under the guard.
        let links = unsafe { links.as_slice() };
        links.iter().any(|link| self.climbs_to(link.parent(), above, guard))
    }

    /// Is the directory `inode` the node `above`, or below it?
    fn climbs_to(&self, mut inode: Inode, above: Inode, guard: &epoch::Guard) -> bool {
        // Directories have one name, so there is one way up. A walk that meets changes may go
        // astray; the callers exclude those changes or repeat the question (`transaction.rs`).
        let mut steps = 0_u64;
        while inode != above {
            let Some(node) = self.table.get(inode) else { return false };
            let links = node.links(guard);
            // SAFETY: under the guard.
            let Some(link) = (unsafe { links.as_slice() }).first().copied() else { return false };
            inode = link.parent();
            steps += 1;
            if steps > u64::from(u32::MAX) {
                return false;
            }
        }
        true
    }

    /// Frees a link that stands in no index and no node any more, once no guard can see it.
    pub(crate) fn retire_link(&self, link: Link, guard: &epoch::Guard) {
        if let Some(cache) = link.close_cache() {
            self.retire_cache(cache, guard);
        }
        // SAFETY: taken out of both by the caller, who retires it once; the cache is closed.
        unsafe { link.retire(guard) };
    }
}

impl<D: NodeData> Drop for Shared<D> {
    fn drop(&mut self) {
        // Nobody else has the resolver, and what waits in the epochs has been unlinked before: what
        // hangs in the nodes is ours to free.
        let guard = epoch::pin();
        for (slot, node) in self.table.iter() {
            if !node.state.load().alive() {
                continue;
            }
            let links = node.links(&guard);
            // SAFETY: see above; each link hangs in one node, and data is dropped once.
            unsafe {
                for link in links.as_slice() {
                    if let Some(cache) = link.close_cache() {
                        crate::path_cache::PathCache::free(cache.as_ptr());
                    }
                    link.free();
                }
                links.free_set();
                node.drop_data();
            }
            debug_assert!(slot >= ROOT_SLOT);
        }
        guard.flush();
        domain::pool::give_back(self.domain);
    }
}
