//! Which nodes may be reclaimed.

use super::Oracle;
use pinpath::Inode;
use std::collections::BTreeSet;

impl Oracle {
    /// May this node be reclaimed? Not the root; not while the kernel knows it, or a child names it
    /// as parent; nor while it has two or more names and no identity, by which alone it could be
    /// seen that they are names of one file.
    ///
    /// Pins keep nodes too; that is for the caller to know.
    pub fn may_go(&self, inode: Inode) -> bool {
        let Some(node) = self.node(inode) else { return false };
        let known_hard_link = node.names.len() >= 2 && node.identity.is_none();
        node.lookups == 0 && !self.has_children(inode) && !known_hard_link
    }

    /// Reclaims exactly these nodes, children before their parents. `false`, and the oracle is
    /// spoilt, if one of them may not go.
    pub fn reclaim(&mut self, inodes: &[Inode]) -> bool {
        let mut left = inodes.to_vec();
        while let Some(at) = left.iter().position(|&inode| self.may_go(inode)) {
            self.nodes.remove(&left.swap_remove(at));
        }
        left.is_empty()
    }

    /// Reclaims everything that may go.
    pub fn settle(&mut self) {
        while let Some(inode) = self.nodes.keys().copied().find(|&inode| self.may_go(inode)) {
            self.nodes.remove(&inode);
        }
    }

    /// What [`Oracle::settle`] would reclaim.
    pub fn unreferenced(&self) -> BTreeSet<Inode> {
        let mut settled = self.clone();
        settled.settle();
        self.nodes.keys().copied().filter(|inode| !settled.nodes.contains_key(inode)).collect()
    }

    /// All sets of nodes that may go together, the empty one included.
    ///
    /// There are as many as subsets of what may go, so it is for small trees.
    pub fn reclaimable_sets(&self) -> Vec<Vec<Inode>> {
        let mut sets = vec![Vec::new()];
        let mut next = 0;
        while next < sets.len() {
            let mut rest = self.clone();
            assert!(rest.reclaim(&sets[next]), "the sets are built of what may go");
            for inode in rest.nodes.keys().copied().filter(|&inode| rest.may_go(inode)) {
                let mut larger = sets[next].clone();
                larger.push(inode);
                larger.sort();
                if !sets.contains(&larger) {
                    sets.push(larger);
                }
            }
            next += 1;
        }
        sets
    }
}
