//! Every invariant of the table, checked in both directions. For tests; nothing may change meanwhile.
//!
//! The numbers are those of DESIGN.md.

use std::collections::HashMap;

use crate::data::NodeData;
use crate::inode::Inode;
use crate::link::Link;
use crate::shared::Shared;
use crate::state::Kind;
use crate::sync::{Ordering, epoch};
use crate::table::ROOT_SLOT;

macro_rules! ensure {
    ($holds:expr, $($message:tt)*) => {
        if !$holds {
            return Err(format!($($message)*));
        }
    };
}

pub(crate) fn validate<D: NodeData>(shared: &Shared<D>) -> Result<(), String> {
    let guard = epoch::pin();
    let mut indexed: Vec<Link> = Vec::new();
    shared.names.for_each(|link| indexed.push(link));
    let mut children: HashMap<u32, u32> = HashMap::new();
    let mut links_of_nodes = 0;
    let mut nodes = 0;
    for (slot, node) in shared.table.iter() {
        let state = node.state.load();
        if !state.alive() {
            continue;
        }
        nodes += 1;
        let inode = node.inode(slot);
        let links = node.links(&guard);
        // SAFETY: read under the guard.
        let links = unsafe { links.as_slice() };
        links_of_nodes += links.len();
        ensure!(!state.closing(), "I1: {inode:?} is closing, and nobody is at it");
        ensure!(slot != ROOT_SLOT || links.is_empty(), "I2: the root has a name");
        ensure!(
            state.kind() != Kind::Directory || links.len() <= 1,
            "I3: the directory {inode:?} has {} names",
            links.len()
        );
        for link in links {
            check_link(shared, inode, *link)?;
            *children.entry(link.parent().slot()).or_default() += 1;
        }
        let referenced = slot == ROOT_SLOT
            || state.count() > 0
            || state.queued()
            || state.moving()
            || node.children.load(Ordering::Relaxed) > 0
            // SAFETY: alive, under the guard.
            || links.len() >= 2 && unsafe { node.data() }.identity().is_none();
        ensure!(referenced, "I8: nothing refers to {inode:?}, and it isn't queued");
        check_identity(shared, slot, inode)?;
    }
    for (slot, node) in shared.table.iter().filter(|(_, node)| node.state.load().alive()) {
        let counted = node.children.load(Ordering::Relaxed);
        let real = children.get(&slot).copied().unwrap_or(0);
        ensure!(
            counted == real,
            "I6: {:?} counts {counted} children and has {real}",
            node.inode(slot)
        );
    }
    // Index to node. With the counts equal and every node's link found in the index above, each
    // entry of the index is a link of a node.
    ensure!(
        indexed.len() == links_of_nodes,
        "I4: {} names in the index, {links_of_nodes} at nodes",
        indexed.len()
    );
    for link in &indexed {
        let owner = shared.table.slot(link.owner());
        ensure!(owner.state.load().alive(), "I5: {:?} leads to a dead node", link.name());
    }
    let counted = shared.table.nodes() + 1;
    ensure!(nodes == counted, "I9: {nodes} nodes, and {counted} are counted");
    check_acyclic(shared, &guard)
}

fn check_link<D: NodeData>(shared: &Shared<D>, inode: Inode, link: Link) -> Result<(), String> {
    let name = link.name();
    ensure!(link.owner() == inode.slot(), "I5: {name:?} of {inode:?} says {}", link.owner());
    let key = shared.names.key(link.parent(), name);
    let found = shared.names.read(&key).find(&key);
    ensure!(found == Some(link), "I4: {name:?} of {inode:?} is not what the index finds");
    let parent = shared.table.get(link.parent());
    ensure!(parent.is_some(), "I7: {name:?} of {inode:?} has a stale parent {:?}", link.parent());
    let leaf = parent.is_some_and(|parent| parent.state.load().kind() == Kind::Leaf);
    ensure!(!leaf, "I7: {name:?} of {inode:?} has a parent that is no directory");
    Ok(())
}

fn check_identity<D: NodeData>(shared: &Shared<D>, slot: u32, inode: Inode) -> Result<(), String> {
    // SAFETY: the node is alive and nothing changes.
    let Some(identity) = unsafe { shared.table.slot(slot).data() }.identity() else {
        return Ok(());
    };
    let hash = shared.identities.hash(identity);
    let found = shared.identities.read(hash).find(&shared.table, hash, identity);
    ensure!(found == Some(slot), "I10: the identity of {inode:?} leads to slot {found:?}");
    Ok(())
}

/// Every chain of parents ends, at the root or at a node without a name.
fn check_acyclic<D: NodeData>(shared: &Shared<D>, guard: &epoch::Guard) -> Result<(), String> {
    let nodes = shared.table.iter().filter(|(_, node)| node.state.load().alive()).count();
    for (slot, node) in shared.table.iter().filter(|(_, node)| node.state.load().alive()) {
        let mut at = node;
        let mut steps = 0;
        loop {
            let links = at.links(guard);
            // SAFETY: read under the guard.
            let Some(link) = (unsafe { links.as_slice() }).first() else { break };
            at = shared.table.slot(link.parent().slot());
            steps += 1;
            ensure!(steps <= nodes, "I11: {:?} is above itself", node.inode(slot));
        }
    }
    Ok(())
}
