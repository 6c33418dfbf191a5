//! The kernel's format of answers that carry attributes and entries (`linux/fuse.h`, since 7.9).
//!
//! Only these are written here; the rest is encoded by the transport's library.

use std::time::Duration;

use zerocopy::{Immutable, IntoBytes};

use crate::attr::{Attr, FileType, Lifetimes};

/// `struct fuse_attr`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct AttrPart {
    ino: u64,
    size: u64,
    blocks: u64,
    atime: i64,
    mtime: i64,
    ctime: i64,
    atime_nanos: u32,
    mtime_nanos: u32,
    ctime_nanos: u32,
    mode: u32,
    nlink: u32,
    uid: u32,
    gid: u32,
    rdev: u32,
    blksize: u32,
    flags: u32,
}

/// `struct fuse_attr_out`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct AttrOut {
    valid: u64,
    valid_nanos: u32,
    dummy: u32,
    attr: AttrPart,
}

/// `struct fuse_entry_out`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct EntryOut {
    node: u64,
    /// Always 0: node ids are not used again, or carry their own generation.
    generation: u64,
    entry_valid: u64,
    attr_valid: u64,
    entry_valid_nanos: u32,
    attr_valid_nanos: u32,
    attr: AttrPart,
}

/// `struct fuse_open_out`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct OpenOut {
    pub(crate) handle: u64,
    pub(crate) flags: u32,
    pub(crate) backing: u32,
}

/// What answers CREATE.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct CreateOut {
    pub(crate) entry: EntryOut,
    pub(crate) open: OpenOut,
}

/// `struct fuse_dirent`, before its name.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct DirentPart {
    ino: u64,
    next: u64,
    name_len: u32,
    file_type: u32,
}

/// `struct fuse_direntplus`, before its name.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct DirentPlusPart {
    entry: EntryOut,
    dirent: DirentPart,
}

/// `struct fuse_out_header`: before every answer and notification.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct OutHeader {
    pub(crate) len: u32,
    pub(crate) error: i32,
    pub(crate) unique: u64,
}

/// `struct fuse_notify_inval_inode_out`.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct InvalInode {
    pub(crate) node: u64,
    pub(crate) offset: i64,
    pub(crate) length: i64,
}

/// `struct fuse_notify_inval_entry_out`, before the name and its NUL.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct InvalEntry {
    pub(crate) parent: u64,
    pub(crate) name_len: u32,
    pub(crate) flags: u32,
}

/// What kind of notification it is stands where an answer has its error.
pub(crate) mod notification {
    /// `FUSE_NOTIFY_POLL`.
    pub(crate) const POLL: i32 = 1;
    /// `FUSE_NOTIFY_INVAL_INODE`.
    pub(crate) const INVAL_INODE: i32 = 2;
    /// `FUSE_NOTIFY_INVAL_ENTRY`.
    pub(crate) const INVAL_ENTRY: i32 = 3;
}

// The sizes that the kernel checks.
const _: () = {
    assert!(size_of::<AttrOut>() == 104);
    assert!(size_of::<EntryOut>() == 128);
    assert!(size_of::<OpenOut>() == 16);
    assert!(size_of::<CreateOut>() == 144);
    assert!(size_of::<DirentPart>() == 24);
    assert!(size_of::<DirentPlusPart>() == 152);
    assert!(size_of::<OutHeader>() == 16);
    assert!(size_of::<InvalInode>() == 24);
    assert!(size_of::<InvalEntry>() == 16);
};

impl AttrPart {
    const ZERO: AttrPart = AttrPart {
        ino: 0,
        size: 0,
        blocks: 0,
        atime: 0,
        mtime: 0,
        ctime: 0,
        atime_nanos: 0,
        mtime_nanos: 0,
        ctime_nanos: 0,
        mode: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    };

    fn new(attr: &Attr) -> Self {
        AttrPart {
            ino: attr.ino,
            size: attr.size,
            blocks: attr.blocks,
            atime: attr.atime.secs,
            mtime: attr.mtime.secs,
            ctime: attr.ctime.secs,
            atime_nanos: attr.atime.nanos,
            mtime_nanos: attr.mtime.nanos,
            ctime_nanos: attr.ctime.nanos,
            mode: attr.file_type.mode_bits() | u32::from(attr.perm & 0o7777),
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            rdev: attr.rdev,
            blksize: attr.blksize,
            flags: 0,
        }
    }
}

impl AttrOut {
    pub(crate) fn new(attr: &Attr, lifetime: Duration) -> Self {
        AttrOut {
            valid: lifetime.as_secs(),
            valid_nanos: lifetime.subsec_nanos(),
            dummy: 0,
            attr: AttrPart::new(attr),
        }
    }
}

impl EntryOut {
    /// In a listing: the name alone.
    pub(crate) const NAME_ONLY: EntryOut = EntryOut {
        node: 0,
        generation: 0,
        entry_valid: 0,
        attr_valid: 0,
        entry_valid_nanos: 0,
        attr_valid_nanos: 0,
        attr: AttrPart::ZERO,
    };

    pub(crate) fn new(node: u64, attr: &Attr, lifetimes: &Lifetimes) -> Self {
        EntryOut {
            node,
            generation: 0,
            entry_valid: lifetimes.entry.as_secs(),
            attr_valid: lifetimes.attr.as_secs(),
            entry_valid_nanos: lifetimes.entry.subsec_nanos(),
            attr_valid_nanos: lifetimes.attr.subsec_nanos(),
            attr: AttrPart::new(attr),
        }
    }

    /// There is nothing, and that may be remembered for so long.
    pub(crate) fn nothing(lifetime: Duration) -> Self {
        EntryOut {
            entry_valid: lifetime.as_secs(),
            entry_valid_nanos: lifetime.subsec_nanos(),
            ..EntryOut::NAME_ONLY
        }
    }
}

/// How much of an answer an entry with a name of `name_len` bytes takes.
pub(crate) const fn dir_entry_plus_size(name_len: usize) -> usize {
    (size_of::<DirentPlusPart>() + name_len).next_multiple_of(8)
}

/// Appends an entry of a listing with attributes.
pub(crate) fn push_dir_entry_plus(
    out: &mut Vec<u8>,
    entry: EntryOut,
    ino: u64,
    file_type: FileType,
    name: &[u8],
    next: u64,
) {
    let end = out.len() + dir_entry_plus_size(name.len());
    let dirent = DirentPart {
        ino,
        next,
        name_len: name.len() as u32,
        file_type: file_type.mode_bits() >> 12,
    };
    out.extend_from_slice(DirentPlusPart { entry, dirent }.as_bytes());
    out.extend_from_slice(name);
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Timestamp;

    const ATTR: Attr = Attr {
        ino: 0x11,
        file_type: FileType::Regular,
        perm: 0o4755,
        size: 0x22,
        blocks: 0x33,
        atime: Timestamp { secs: -2, nanos: 500_000_000 },
        mtime: Timestamp { secs: 5, nanos: 6 },
        ctime: Timestamp { secs: 7, nanos: 8 },
        nlink: 9,
        uid: 10,
        gid: 11,
        rdev: 12,
        blksize: 4096,
    };

    fn u64_at(bytes: &[u8], at: usize) -> u64 {
        u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// The offsets of `linux/fuse.h`.
    #[test]
    fn an_entry_is_laid_out_as_the_kernel_reads_it() {
        let lifetimes = Lifetimes { entry: Duration::new(1, 2), attr: Duration::new(3, 4) };
        let entry = EntryOut::new(0x99, &ATTR, &lifetimes);
        let bytes = entry.as_bytes();
        assert_eq!(u64_at(bytes, 0), 0x99, "nodeid");
        assert_eq!(u64_at(bytes, 8), 0, "generation");
        assert_eq!((u64_at(bytes, 16), u32_at(bytes, 32)), (1, 2), "entry_valid");
        assert_eq!((u64_at(bytes, 24), u32_at(bytes, 36)), (3, 4), "attr_valid");
        assert_eq!(u64_at(bytes, 40), 0x11, "attr.ino is the handler's, not the node id");
        assert_eq!(u64_at(bytes, 48), 0x22, "size");
        assert_eq!(u64_at(bytes, 56), 0x33, "blocks");
        assert_eq!(u64_at(bytes, 64) as i64, -2, "atime before 1970, rounded down");
        assert_eq!(u32_at(bytes, 88), 500_000_000, "atimensec counts forward");
        assert_eq!((u64_at(bytes, 72), u32_at(bytes, 92)), (5, 6), "mtime");
        assert_eq!((u64_at(bytes, 80), u32_at(bytes, 96)), (7, 8), "ctime");
        assert_eq!(u32_at(bytes, 100), libc::S_IFREG | 0o4755, "mode");
        let rest: Vec<u32> = (104..124).step_by(4).map(|at| u32_at(bytes, at)).collect();
        assert_eq!(rest, [9, 10, 11, 12, 4096], "nlink, uid, gid, rdev, blksize");
    }

    #[test]
    fn a_negative_entry_has_no_node_but_a_lifetime() {
        let bytes = EntryOut::nothing(Duration::new(5, 6));
        let bytes = bytes.as_bytes();
        assert_eq!((u64_at(bytes, 0), u64_at(bytes, 16), u32_at(bytes, 32)), (0, 5, 6));
    }

    #[test]
    fn listed_entries_are_padded_to_eight_bytes() {
        for len in [1, 7, 8, 9, 255] {
            let name = vec![b'n'; len];
            let mut out = vec![0xff; 8];
            push_dir_entry_plus(&mut out, EntryOut::NAME_ONLY, 3, FileType::Directory, &name, 77);
            assert_eq!(out.len(), 8 + dir_entry_plus_size(len));
            assert_eq!(out.len() % 8, 0);
            let dirent = &out[8 + 128..];
            assert_eq!((u64_at(dirent, 0), u64_at(dirent, 8)), (3, 77), "ino and offset");
            assert_eq!(
                (u32_at(dirent, 16) as usize, u32_at(dirent, 20)),
                (len, 4),
                "length, DT_DIR"
            );
            assert_eq!(&dirent[24..24 + len], &name[..]);
            assert!(dirent[24 + len..].iter().all(|&byte| byte == 0), "padding leaks nothing");
        }
    }
}
