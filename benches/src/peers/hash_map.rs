//! Two hash maps behind one `RwLock`: what one writes first.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::RwLock;

use super::Table;

/// From names to inodes, and back.
#[derive(Debug)]
pub struct HashMaps(RwLock<Maps>);

#[derive(Debug, Default)]
struct Maps {
    nodes: HashMap<u64, Node>,
    names: HashMap<(u64, OsString), u64>,
    last: u64,
}

#[derive(Debug)]
struct Node {
    parent: u64,
    name: OsString,
    count: u64,
}

impl Table for HashMaps {
    /// It frees what is forgotten at once: a request that is queued loses its file.
    type Guard = ();

    fn new() -> Self {
        HashMaps(RwLock::new(Maps { last: 1, ..Maps::default() }))
    }

    fn name() -> &'static str {
        "RwLock<HashMap>"
    }

    fn enter(&self) {}

    fn lookup(&self, parent: u64, name: &OsStr, _directory: bool) -> u64 {
        let maps = &mut *self.0.write().expect("not poisoned");
        let key = (parent, name.to_os_string());
        if let Some(inode) = maps.names.get(&key) {
            maps.nodes.get_mut(inode).expect("as many as names").count += 1;
            return *inode;
        }
        maps.last += 1;
        maps.nodes.insert(maps.last, Node { parent, name: key.1.clone(), count: 1 });
        maps.names.insert(key, maps.last);
        maps.last
    }

    fn forget(&self, inode: u64) {
        let maps = &mut *self.0.write().expect("not poisoned");
        let Some(node) = maps.nodes.get_mut(&inode) else { return };
        node.count -= 1;
        if node.count == 0 {
            let node = maps.nodes.remove(&inode).expect("found above");
            maps.names.remove(&(node.parent, node.name));
        }
    }

    fn path(&self, mut inode: u64) -> PathBuf {
        let maps = self.0.read().expect("not poisoned");
        let mut names = Vec::new();
        while let Some(node) = maps.nodes.get(&inode) {
            names.push(&node.name);
            inode = node.parent;
        }
        names.iter().rev().collect()
    }

    fn rename(&self, parent: u64, name: &OsStr, new_parent: u64, new_name: &OsStr) {
        let maps = &mut *self.0.write().expect("not poisoned");
        let inode = maps.names.remove(&(parent, name.to_os_string())).expect("known");
        maps.names.insert((new_parent, new_name.to_os_string()), inode);
        let node = maps.nodes.get_mut(&inode).expect("as many as names");
        (node.parent, node.name) = (new_parent, new_name.to_os_string());
    }
}
