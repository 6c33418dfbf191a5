//! What makes a file of the source the same file, whatever its name: [`Identity`].

use pinpath::NodeData;

use super::kept::Kept;

/// Device, inode number and time of birth of a file.
///
/// Inode numbers are used again; the time of birth tells the new file from the old one. It is 0
/// where the filesystem doesn't know it, or where it isn't constant (overlayfs: it changes when a
/// file is copied up).
///
/// Packed because there is one for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(Rust, packed(4))]
pub struct Identity {
    pub(super) ino: u64,
    /// Nanoseconds since 1970; it may wrap, as it is only ever compared.
    pub(super) birth: i64,
    pub(super) device: u32,
}

/// What the mirror keeps beside each inode.
#[derive(Debug)]
pub struct MirrorNode {
    identity: Identity,
    pub(super) kept: Kept,
    /// A directory that a bind mount shows in two places; here each is a node of its own.
    seen_twice: bool,
}

impl MirrorNode {
    pub(super) fn new(identity: Identity, kept: Kept) -> Self {
        MirrorNode { identity, kept, seen_twice: false }
    }

    pub(super) fn seen_twice(self) -> Self {
        MirrorNode { seen_twice: true, ..self }
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }
}

impl NodeData for MirrorNode {
    type Identity = Identity;

    fn identity(&self) -> Option<&Identity> {
        (!self.seen_twice).then_some(&self.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_costs_28_bytes() {
        assert_eq!(size_of::<MirrorNode>(), 28);
    }
}
