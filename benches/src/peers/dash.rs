//! Two `DashMap`s: the usual way out of one lock.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

use super::Table;

/// From names to inodes, and back. A path is not of one moment: each step takes another lock.
#[derive(Debug)]
pub struct Dash {
    nodes: DashMap<u64, Node>,
    names: DashMap<(u64, OsString), u64>,
    last: AtomicU64,
}

#[derive(Debug)]
struct Node {
    parent: u64,
    name: OsString,
    count: u64,
}

impl Table for Dash {
    /// It frees what is forgotten at once: a request that is queued loses its file.
    type Guard = ();

    fn new() -> Self {
        Dash { nodes: DashMap::new(), names: DashMap::new(), last: AtomicU64::new(1) }
    }

    fn name() -> &'static str {
        "dashmap"
    }

    fn enter(&self) {}

    fn lookup(&self, parent: u64, name: &OsStr, _directory: bool) -> u64 {
        let key = (parent, name.to_os_string());
        if let Some(inode) = self.names.get(&key).map(|inode| *inode) {
            if let Some(mut node) = self.nodes.get_mut(&inode) {
                node.count += 1;
                return inode;
            }
        }
        *self.names.entry(key).or_insert_with(|| {
            let inode = self.last.fetch_add(1, Ordering::Relaxed) + 1;
            self.nodes.insert(inode, Node { parent, name: name.to_os_string(), count: 1 });
            inode
        })
    }

    fn forget(&self, inode: u64) {
        let gone = self.nodes.remove_if_mut(&inode, |_, node| {
            node.count -= 1;
            node.count == 0
        });
        if let Some((_, node)) = gone {
            self.names.remove(&(node.parent, node.name));
        }
    }

    fn path(&self, mut inode: u64) -> PathBuf {
        let mut names = Vec::new();
        while let Some(node) = self.nodes.get(&inode) {
            names.push(node.name.clone());
            inode = node.parent;
        }
        names.iter().rev().collect()
    }

    fn rename(&self, parent: u64, name: &OsStr, new_parent: u64, new_name: &OsStr) {
        let (_, inode) = self.names.remove(&(parent, name.to_os_string())).expect("known");
        self.names.insert((new_parent, new_name.to_os_string()), inode);
        if let Some(mut node) = self.nodes.get_mut(&inode) {
            (node.parent, node.name) = (new_parent, new_name.to_os_string());
        }
    }
}
