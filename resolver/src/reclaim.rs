//! Reclamation: forgotten nodes wait until no request can need them, then their slots are free.
//!
//! A node whose lookup count is found at zero is *queued*. The queue is emptied in batches: a batch
//! may be reclaimed once both parities of the domain were seen drained after it was taken from the
//! queue, because by then every request that was inside at that moment has ended. (One parity is not
//! enough: a request may have read the current parity, been delayed, and counted itself in the old
//! one after it was seen drained.)
//!
//! Then each node of the batch is judged: if it is referenced again it stays; if its count went to
//! zero again meanwhile it waits once more, because a request may have come in between. Otherwise it
//! is *closed*, its children are counted, and it dies. Its name leaves the index, and its parent, if
//! that was only kept for its sake, is judged in turn: a parent that isn't queued has had a count of
//! zero for a whole grace period.
//!
//! Nobody waits for any of this. Whoever retires a node, or begins a request while enough nodes wait,
//! tries to advance by one step; who doesn't get the lock leaves it to who has it.

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use crate::data::NodeData;
use crate::domain::{Domain, GracePeriod};
use crate::inode::Inode;
use crate::link::{Link, Links};
use crate::names::Key;
use crate::node::Node;
use crate::shared::Shared;
use crate::state::{Queueing, Verdict};
use crate::sync::{Arc, Mutex, Ordering, epoch, fence};
use crate::table::{ROOT_SLOT, Table};
use crate::threads;

/// A power of two.
const STACKS: usize = if cfg!(loom) { 1 } else { 16 };
/// Nodes that wait before requests try to advance: that costs two heavy fences, which interrupt all
/// threads of the process, so many nodes should share them. (With 64, forgetting on several threads
/// spends more time on fences than on all else.)
const ENOUGH: usize = if cfg!(loom) { 1 } else { 1024 };

#[derive(Debug)]
pub(crate) struct Retired {
    stacks: Box<[CachePadded<Mutex<Vec<u32>>>]>,
    reclaimer: Mutex<Reclaimer>,
    /// Has the flag that requests should try to advance, once a stack holds enough.
    domain: &'static Domain,
}

#[derive(Debug, Default)]
struct Reclaimer {
    batch: Vec<u32>,
    grace: GracePeriod,
}

impl Retired {
    pub(crate) fn new(domain: &'static Domain) -> Self {
        Retired {
            stacks: (0..STACKS).map(|_| CachePadded::default()).collect(),
            reclaimer: Mutex::new(Reclaimer::default()),
            domain,
        }
    }

    fn push(&self, slot: u32) {
        self.extend(&[slot]);
    }

    fn extend(&self, slots: &[u32]) {
        let length = threads::with_number(|number| {
            let mut stack = self.stacks[number % STACKS].lock();
            stack.extend_from_slice(slots);
            stack.len()
        });
        if length >= ENOUGH && !self.domain.pressing() {
            self.domain.press(true);
        }
    }

    /// Gathers what a batch retires, and puts it on a stack at once.
    pub(crate) fn queue(&self) -> Queue<'_> {
        Queue { retired: self, slots: SmallVec::new() }
    }

    fn take_all(&self) -> Vec<u32> {
        self.domain.press(false);
        let mut all = Vec::new();
        for stack in &self.stacks {
            all.append(&mut stack.lock());
        }
        all
    }

    /// Nodes that wait to be reclaimed.
    pub(crate) fn waiting(&self) -> usize {
        let batch = self.reclaimer.lock().batch.len();
        self.stacks.iter().map(|stack| stack.lock().len()).sum::<usize>() + batch
    }

    pub(crate) fn bytes(&self) -> usize {
        let batch = self.reclaimer.lock().batch.capacity();
        let stacks: usize = self.stacks.iter().map(|stack| stack.lock().capacity()).sum();
        (stacks + batch) * size_of::<u32>()
    }
}

/// Nodes that were retired and are not yet on a stack. They get there even if the caller's iterator
/// panics: a node that says that it is queued must be.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    retired: &'a Retired,
    slots: SmallVec<[u32; 16]>,
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        if !self.slots.is_empty() {
            self.retired.extend(&self.slots);
        }
    }
}

impl<D: NodeData> Shared<D> {
    pub(crate) fn enqueue(&self, slot: u32, queueing: Queueing) {
        if queueing == Queueing::Enter {
            self.retired.push(slot);
        }
    }

    /// Takes back lookups; the node may wait for reclamation afterwards.
    pub(crate) fn forget(
        &self,
        inode: Inode,
        count: u64,
        queue: &mut Queue<'_>,
        _guard: &epoch::Guard,
    ) {
        if inode == Inode::ROOT || count == 0 {
            return;
        }
        // Under the guard: a slot whose generation is the id's isn't given to another node, so what
        // is counted down is this node or a dead one (which refuses).
        if let Some(node) = self.table.get(inode) {
            if node.state.count_down(count) == Queueing::Enter {
                queue.slots.push(inode.slot());
            }
        }
    }
}

/// Tries to reclaim what waits; answers how many nodes were. Never blocks.
pub(crate) fn advance<D: NodeData>(shared: &Shared<D>) -> usize {
    let Some(mut reclaimer) = shared.retired.reclaimer.try_lock() else { return 0 };
    let mut reclaimed = 0;
    loop {
        if reclaimer.batch.is_empty() {
            reclaimer.batch = shared.retired.take_all();
            reclaimer.grace = GracePeriod::default();
        }
        if reclaimer.batch.is_empty() || !reclaimer.grace.over(shared.domain) {
            return reclaimed;
        }
        let batch = std::mem::take(&mut reclaimer.batch);
        let now = reclaim(shared, &batch);
        reclaimed += now;
        // A round that reclaimed nothing only queued again what waits for something else.
        if now == 0 {
            return reclaimed;
        }
    }
}

fn reclaim<D: NodeData>(shared: &Shared<D>, batch: &[u32]) -> usize {
    let guard = epoch::pin();
    let mut buried = Buried::default();
    for slot in batch {
        match shared.table.slot(*slot).state.judge() {
            Verdict::Again => shared.retired.push(*slot),
            Verdict::Keep => {}
            Verdict::Close => bury_upwards(shared, *slot, &mut buried, &guard),
        }
    }
    let reclaimed = buried.slots.len();
    if reclaimed > 0 {
        shared.table.count_dead(reclaimed);
        release(Arc::clone(&shared.table), buried, &guard);
    }
    reclaimed
}

/// What a batch leaves behind, to be freed together.
#[derive(Debug, Default)]
struct Buried {
    /// Slots, and whether they can be used again.
    slots: Vec<(u32, bool)>,
    links: Vec<Link>,
}

/// Buries a closed node, and the ancestors that were kept only for its sake: a loop, because trees
/// are deep.
fn bury_upwards<D: NodeData>(
    shared: &Shared<D>,
    slot: u32,
    buried: &mut Buried,
    guard: &epoch::Guard,
) {
    let mut closed = vec![slot];
    while let Some(slot) = closed.pop() {
        let node = shared.table.slot(slot);
        let Some(links) = take_links_of_dead(shared, slot, node, guard) else { continue };
        take_out_of_indexes(shared, slot, node, links);
        // SAFETY: taken out of the node, and retired below.
        for link in unsafe { links.as_slice() } {
            let parent = link.parent().slot();
            let node = shared.table.slot(parent);
            // AcqRel: as in `lose_child`.
            if node.children.fetch_sub(1, Ordering::AcqRel) == 1 && parent != ROOT_SLOT {
                match node.state.judge_unqueued() {
                    Verdict::Close => closed.push(parent),
                    Verdict::Again => shared.retired.push(parent),
                    Verdict::Keep => {}
                }
            }
            if let Some(cache) = link.close_cache() {
                shared.retire_cache(cache, guard);
            }
            buried.links.push(*link);
        }
        // SAFETY: taken out of the node, and retired once.
        unsafe { links.retire_set(guard) };
        buried.slots.push((slot, node.retire()));
    }
}

/// Decides over a closed node: dead if it has no children and isn't to be kept. Answers the links
/// that it had then.
///
/// Under the node's lock, so that who changes its names (`Shared::relink`) finds it either alive
/// with all its links or dead with none.
fn take_links_of_dead<D: NodeData>(
    shared: &Shared<D>,
    slot: u32,
    node: &Node<D>,
    guard: &epoch::Guard,
) -> Option<Links> {
    let _lock = shared.lock_nodes([Some(slot), None]);
    // Pairs with the fence in `Shared::gain_child` (see there).
    fence(Ordering::SeqCst);
    if node.children.load(Ordering::Acquire) != 0 || has_known_hard_links(node, guard) {
        node.state.reopen();
        return None;
    }
    if !node.state.kill() {
        return None;
    }
    let links = node.links(guard);
    node.set_links(Links::NONE);
    Some(links)
}

/// Two names or more, and no identity by which they could be found to be one file again.
fn has_known_hard_links<D: NodeData>(node: &Node<D>, guard: &epoch::Guard) -> bool {
    let links = node.links(guard);
    // SAFETY: read under the guard; the node is closed, so its data is there.
    unsafe { links.as_slice().len() >= 2 && node.data().identity().is_none() }
}

fn take_out_of_indexes<D: NodeData>(shared: &Shared<D>, slot: u32, node: &Node<D>, links: Links) {
    // SAFETY: taken out of the node, and retired by the caller after this.
    for link in unsafe { links.as_slice() } {
        // It may be gone already: who finds the name of a dead node takes it out.
        shared.names.write(link.hash()).remove(*link);
    }
    // SAFETY: we bury the node, and its data is dropped later than this (`release`).
    if let Some(identity) = unsafe { node.data() }.identity() {
        let hash = shared.identities.hash(identity);
        shared.identities.write(hash).remove(slot, hash);
    }
}

/// Drops the data and frees links and slots, once no guard can see them.
fn release<D: NodeData>(table: Arc<Table<D>>, buried: Buried, guard: &epoch::Guard) {
    // SAFETY: the ids of these nodes are stale (`retire`), their links are in no index and their
    // caches closed, and who saw any of it holds a guard that ends first. The closure owns what it
    // uses. Data is dropped and links are freed once.
    unsafe {
        guard.defer_unchecked(move || {
            for link in buried.links {
                link.free();
            }
            for (slot, _) in &buried.slots {
                table.slot(*slot).drop_data();
            }
            // A slot whose generations are used up stays unused.
            let slots = buried.slots.into_iter();
            table.give_back(slots.filter_map(|(slot, again)| again.then_some(slot)));
        });
    }
    guard.flush();
}

/// Lets go of forgotten nodes that are kept for their several names; answers how many. All their
/// names but the first are dropped, and then nothing keeps them.
pub(crate) fn prune<D: NodeData>(shared: &Shared<D>) -> usize {
    let guard = epoch::pin();
    let mut pruned = 0;
    for (_, node) in shared.table.iter() {
        let state = node.state.load();
        let links = node.links(&guard);
        // SAFETY: read under the guard.
        let links = unsafe { links.as_slice() };
        if !state.alive() || state.count() > 0 || links.len() < 2 || state.may_have_children() {
            continue;
        }
        pruned += 1;
        for link in &links[1..] {
            let mut shard = shared.names.write(link.hash());
            // It may have lost the name meanwhile, and another node may have it.
            let key = Key { parent: link.parent(), name: link.name(), hash: link.hash() };
            if shard.find(&key) == Some(*link) {
                // A node that died meanwhile has lost all its names.
                let _ = shared.drop_link(*link, &mut shard, None, &guard);
            }
        }
    }
    pruned
}
