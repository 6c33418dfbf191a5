//! What a handler says of a file: [`Attr`], and the lifetimes of an [`Entry`].

use std::time::Duration;

/// A point in time: seconds since 1970, negative before it, and the nanoseconds that follow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01 00:00 UTC, rounded down.
    pub secs: i64,
    /// 0 to 999,999,999, counted forward also before 1970.
    pub nanos: u32,
}

/// The type of a file (the `S_IFMT` part of its mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix domain socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl FileType {
    /// From the `S_IFMT` bits of a mode; `None` for bits that name no type.
    pub const fn from_mode(mode: u32) -> Option<Self> {
        Some(match mode & libc::S_IFMT {
            libc::S_IFREG => FileType::Regular,
            libc::S_IFDIR => FileType::Directory,
            libc::S_IFLNK => FileType::Symlink,
            libc::S_IFIFO => FileType::Fifo,
            libc::S_IFSOCK => FileType::Socket,
            libc::S_IFCHR => FileType::CharDevice,
            libc::S_IFBLK => FileType::BlockDevice,
            _ => return None,
        })
    }

    /// The `S_IFMT` bits.
    pub const fn mode_bits(self) -> u32 {
        match self {
            FileType::Regular => libc::S_IFREG,
            FileType::Directory => libc::S_IFDIR,
            FileType::Symlink => libc::S_IFLNK,
            FileType::Fifo => libc::S_IFIFO,
            FileType::Socket => libc::S_IFSOCK,
            FileType::CharDevice => libc::S_IFCHR,
            FileType::BlockDevice => libc::S_IFBLK,
        }
    }

    /// What the resolver wants to know: may the node have children?
    pub const fn kind(self) -> pinpath::Kind {
        match self {
            FileType::Directory => pinpath::Kind::Directory,
            _ => pinpath::Kind::Leaf,
        }
    }
}

/// The attributes of a file, as `stat` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The inode number that programs see (`st_ino`). Not the node id: that one is the adapter's.
    /// Must not be 0, and must not change while the file lives. With
    /// [`Numbering::Handler`](crate::Numbering) it is the node id too.
    pub ino: u64,
    /// The type of the file.
    pub file_type: FileType,
    /// Permission bits with setuid, setgid and sticky: 0 to 0o7777.
    pub perm: u16,
    /// Bytes.
    pub size: u64,
    /// Allocated blocks of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of the content.
    pub mtime: Timestamp,
    /// Last change of the attributes.
    pub ctime: Timestamp,
    /// Number of hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device file, in the kernel's 32-bit encoding
    /// (minor & 0xff | major << 8 | (minor & !0xff) << 12).
    pub rdev: u32,
    /// Preferred I/O size in bytes.
    pub blksize: u32,
}

impl Attr {
    /// The least that can be said of a file: one link, owned by root, never changed, empty.
    pub const fn new(ino: u64, file_type: FileType, perm: u16) -> Self {
        const EPOCH: Timestamp = Timestamp { secs: 0, nanos: 0 };
        Attr {
            ino,
            file_type,
            perm,
            size: 0,
            blocks: 0,
            atime: EPOCH,
            mtime: EPOCH,
            ctime: EPOCH,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
        }
    }

    /// The same with a size, and the blocks that it takes.
    pub const fn with_size(self, size: u64) -> Self {
        Attr { size, blocks: size.div_ceil(512), ..self }
    }
}

/// How long the kernel may answer from memory without asking. Zero: not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// How long the name is known to lead to this inode.
    pub entry: Duration,
    /// How long the attributes are known to be these.
    pub attr: Duration,
}

impl Lifetimes {
    /// Nothing is remembered.
    pub const ZERO: Lifetimes = Lifetimes { entry: Duration::ZERO, attr: Duration::ZERO };
    /// One second each, the usual compromise.
    pub const SECOND: Lifetimes =
        Lifetimes { entry: Duration::from_secs(1), attr: Duration::from_secs(1) };
}
