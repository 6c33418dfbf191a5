//! What a handler answers.

use std::time::Duration;

use crate::attr::{Attr, Lifetimes};
use crate::transport::backing::BackingId;

/// An object that the kernel may know from now on: the answer to `lookup` and to all that create.
#[derive(Clone, Debug)]
pub struct Entry<D> {
    /// Its attributes.
    pub attr: Attr,
    /// What the resolver shall keep beside the inode. Dropped where the node exists already.
    pub data: D,
    /// How long the kernel may remember this.
    pub lifetimes: Lifetimes,
}

impl<D> Entry<D> {
    /// An object with these attributes, remembered for a second.
    pub const fn new(attr: Attr, data: D) -> Self {
        Entry { attr, data, lifetimes: Lifetimes::SECOND }
    }
}

/// What a handler found under a name.
#[derive(Clone, Debug)]
pub enum Found<D> {
    /// The object.
    Entry(Entry<D>),
    /// There is nothing, and the kernel may remember that for so long. (`Err(ENOENT)` says that
    /// there is nothing without letting it remember.)
    Nothing(Duration),
}

/// How the kernel shall treat an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Every read and write comes to the handler; nothing is cached (`FOPEN_DIRECT_IO`).
    pub direct_io: bool,
    /// What is cached of the file stays valid across this open (`FOPEN_KEEP_CACHE`). For a
    /// directory: as well.
    pub keep_cache: bool,
    /// A directory's listing may be cached (`FOPEN_CACHE_DIR`).
    pub cache_dir: bool,
    /// Not seekable (`FOPEN_NONSEEKABLE`).
    pub nonseekable: bool,
    /// A stream: no position at all (`FOPEN_STREAM`).
    pub stream: bool,
    /// No flush request at close (`FOPEN_NOFLUSH`).
    pub no_flush: bool,
    /// Direct writes to one file may run at once (`FOPEN_PARALLEL_DIRECT_WRITES`).
    pub parallel_direct_writes: bool,
    /// The kernel reads and writes this file itself, without asking (`FOPEN_PASSTHROUGH`). It must
    /// be the same for all open files of an inode, from the first to be opened until the last is
    /// released, and excludes `keep_cache`.
    pub backing: Option<BackingId>,
}

/// An open file or directory: the author's own state and how the kernel shall treat it.
#[derive(Clone, Copy, Debug)]
pub struct Opened<F> {
    /// Kept until release, shared by reference with every operation on the open file.
    pub file: F,
    /// How the kernel shall treat it.
    pub options: OpenOptions,
}

impl<F> Opened<F> {
    /// An open file that the kernel treats in no special way.
    pub fn new(file: F) -> Self {
        Opened { file, options: OpenOptions::default() }
    }
}

/// Sizes of the filesystem, as `statfs` reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatFs {
    /// Blocks of `fragment_size` bytes.
    pub blocks: u64,
    /// Free blocks.
    pub free: u64,
    /// Free blocks for others than root.
    pub available: u64,
    /// Inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
    /// Preferred I/O size in bytes.
    pub block_size: u32,
    /// The longest name in bytes.
    pub name_max: u32,
    /// The unit of the block counts in bytes.
    pub fragment_size: u32,
}
