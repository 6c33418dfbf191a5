//! [`Inode`]: the number by which the kernel names a node.

use std::fmt;

/// A node id: a slot of the table in the low 32 bits, that slot's generation in the high 32 bits.
///
/// A slot is used again after its node was forgotten; the generation tells the two apart, so an id
/// that outlived its node is refused as stale and never taken for another file. Ids are handed out
/// by a [`Resolver`](crate::Resolver); they are private to the conversation with the kernel. The
/// `st_ino` that programs see is the filesystem's business.
///
/// ```
/// use pinpath::Inode;
/// assert_eq!(Inode::ROOT.raw(), 1);
/// assert_eq!(Inode::from_raw(7 << 32 | 5).generation(), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode(u64);

impl Inode {
    /// The root of the mount, `FUSE_ROOT_ID`. It is never forgotten and never stale.
    pub const ROOT: Inode = Inode(1);

    /// The id with this raw value. Any value is allowed; one that no resolver handed out is stale.
    pub const fn from_raw(raw: u64) -> Self {
        Inode(raw)
    }

    /// The value that travels to the kernel.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// How often the slot had been used before this node: 0 for the first.
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) const fn new(slot: u32, generation: u32) -> Self {
        Inode((generation as u64) << 32 | slot as u64)
    }

    pub(crate) const fn slot(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for Inode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inode({}.{})", self.slot(), self.generation())
    }
}

impl fmt::Display for Inode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
