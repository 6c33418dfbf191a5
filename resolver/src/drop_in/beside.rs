//! [`Beside`]: what a [`DropIn`](super::DropIn) keeps beside each node, and the nodes that are held.
//!
//! A listing that isn't counted (READDIR) shows the program an inode number. If the program asks for
//! the file next, it should see the same number, so the node is *held*: it has one lookup count that
//! isn't the kernel's, and its parent has it on a list. It is let go of when
//!
//! * a counted lookup finds it: from then on it lives as long as the kernel knows it;
//! * it loses its last name;
//! * the kernel forgets the parent, or the user prunes.
//!
//! Whoever clears the flag takes the count back, so it is taken back once.

use std::path::PathBuf;

use crate::sync::{AtomicU8, Mutex, Ordering};
use crate::{Inode, NodeData, Resolver};

/// Lists shorter than this aren't looked through for nodes that are held no more.
const SHORT: usize = 64;

/// What is kept beside each node; nothing of it is for callers.
#[derive(Debug, Default)]
pub struct Beside {
    rare: Mutex<Option<Box<Rare>>>,
    held: AtomicU8,
}

/// What few nodes have.
#[derive(Debug, Default)]
struct Rare {
    /// The path it had when it was last about to lose a name.
    last_path: Option<PathBuf>,
    /// Nodes that are held until this one is forgotten; some are held no more.
    children: Vec<Inode>,
}

impl NodeData for Beside {
    type Identity = std::convert::Infallible;
}

impl Beside {
    pub(super) fn remember(&self, path: PathBuf) {
        self.rare.lock().get_or_insert_default().last_path = Some(path);
    }

    pub(super) fn last_path(&self) -> Option<PathBuf> {
        self.rare.lock().as_ref()?.last_path.clone()
    }

    fn take_children(&self) -> Vec<Inode> {
        self.rare.lock().as_mut().map_or_else(Vec::new, |rare| std::mem::take(&mut rare.children))
    }

    fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) != 0
    }

    /// Sets or clears the flag; answers whether it was set.
    fn set_held(&self, held: bool) -> bool {
        self.held.swap(u8::from(held), Ordering::AcqRel) != 0
    }
}

/// A node has just been counted one lookup that isn't the kernel's. Keeps that count if nobody else
/// counts the node, else takes it back. True if the caller is to put it on the parent's list.
pub(super) fn hold(resolver: &Resolver<Beside>, inode: Inode) -> bool {
    // A count that comes at the same time may go unseen here. The node is held then although the
    // kernel knows it, and lives until the kernel forgets the parent too.
    let alone = resolver.lookup_count(inode) == Some(1);
    let held = alone && resolver.with_data(inode, |beside| beside.set_held(true)) == Some(false);
    if !held {
        resolver.forget(inode, 1);
    }
    held
}

/// If the node is held, lets go of it.
#[inline]
pub(super) fn let_go(resolver: &Resolver<Beside>, inode: Inode) {
    let held = resolver.with_data(inode, |beside| beside.is_held() && beside.set_held(false));
    if held == Some(true) {
        resolver.forget(inode, 1);
    }
}

pub(super) fn let_go_if_nameless(resolver: &Resolver<Beside>, inode: Inode) {
    if super::upwards::first_name(resolver, inode).is_none() {
        let_go(resolver, inode);
    }
}

/// Puts nodes that are held on the list of their parent.
pub(super) fn keep_until_forgotten(
    resolver: &Resolver<Beside>,
    parent: Inode,
    held: impl IntoIterator<Item = Inode, IntoIter: ExactSizeIterator>,
) {
    let held = held.into_iter();
    if held.len() == 0 {
        return;
    }
    resolver.with_data(parent, |beside| {
        let mut rare = beside.rare.lock();
        let children = &mut rare.get_or_insert_default().children;
        if children.len() >= SHORT && children.len() + held.len() > children.capacity() {
            // About to grow: not for the sake of those that are held no more.
            children.retain(|child| resolver.with_data(*child, Beside::is_held) == Some(true));
        }
        children.extend(held);
    });
    // The parent may have been forgotten meanwhile. Who forgets it counts down and then takes the
    // list; we add to the list and then look at the count. The list's lock is between, so one of us
    // sees the other.
    if resolver.lookup_count(parent) == Some(0) {
        let_go_of_children(resolver, parent);
    }
}

/// The node is forgotten: what was held for its sake goes too.
pub(super) fn let_go_of_children(resolver: &Resolver<Beside>, parent: Inode) {
    for child in resolver.with_data(parent, Beside::take_children).unwrap_or_default() {
        let_go(resolver, child);
    }
}

/// Lets go of every held node but those that `keep` wants.
pub(super) fn let_go_of_all(resolver: &Resolver<Beside>, keep: impl Fn(Inode) -> bool) {
    let mut held = Vec::new();
    for (slot, node) in resolver.shared().table.iter() {
        let inode = node.inode(slot);
        if resolver.with_data(inode, Beside::is_held) == Some(true) {
            held.push(inode);
        }
    }
    for inode in held {
        if !keep(inode) {
            let_go(resolver, inode);
        }
    }
}
