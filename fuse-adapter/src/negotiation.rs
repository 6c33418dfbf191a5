//! [`Negotiation`]: what a filesystem wants of the kernel, and what the kernel agreed to.

/// How directory listings may carry the attributes of their entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadDirPlus {
    /// Never: a listing is names, and who wants attributes asks for each.
    Off,
    /// Where the kernel expects that the attributes are wanted (`ls -l`, not `ls`).
    #[default]
    Auto,
    /// In every listing.
    Always,
}

/// What a filesystem wants of the kernel before the mount, and what was agreed after it.
///
/// Begins with [`MountOptions::negotiation`](crate::MountOptions::negotiation), passes through
/// [`Handler::wishes`](crate::Handler::wishes), is reduced to what the running kernel offers and
/// what the transport can decode, and is then shown to [`Handler::init`](crate::Handler::init).
///
/// Locks are the kernel's own affair unless asked for: it keeps them among the processes of this
/// machine, wakes waiters and lets them be killed. A handler that takes them over gets none of
/// that for free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiation {
    /// Listings with attributes.
    pub readdirplus: ReadDirPlus,
    /// Look-ups and listings of one directory may run at once (`FUSE_PARALLEL_DIROPS`).
    pub parallel_dirops: bool,
    /// `O_TRUNC` comes with `open` instead of a `setattr` after it (`FUSE_ATOMIC_O_TRUNC`).
    pub atomic_o_trunc: bool,
    /// The caller's umask is not applied by the kernel; the handler does (`FUSE_DONT_MASK`).
    pub dont_mask: bool,
    /// The kernel checks and caches POSIX ACLs (`FUSE_POSIX_ACL`).
    pub posix_acl: bool,
    /// Writes gather in the kernel's cache, which then decides about size and times
    /// (`FUSE_WRITEBACK_CACHE`).
    pub writeback_cache: bool,
    /// A changed size or mtime invalidates what is cached of a file (`FUSE_AUTO_INVAL_DATA`).
    pub auto_inval_data: bool,
    /// Only [`Notifier`](crate::Notifier) invalidates what is cached of a file
    /// (`FUSE_EXPLICIT_INVAL_DATA`).
    pub explicit_inval_data: bool,
    /// Targets of symbolic links are cached (`FUSE_CACHE_SYMLINKS`).
    pub cache_symlinks: bool,
    /// Direct I/O of one caller may be several requests at once (`FUSE_ASYNC_DIO`).
    pub async_direct_io: bool,
    /// Files opened with `direct_io` may be mapped shared (`FUSE_DIRECT_IO_ALLOW_MMAP`).
    pub direct_io_mmap: bool,
    /// Open files may be read and written by the kernel itself
    /// ([`OpenOptions::backing`](crate::OpenOptions), `FUSE_PASSTHROUGH`). Not with the writeback
    /// cache.
    pub passthrough: bool,
    /// `fcntl` locks come to the handler (`FUSE_POSIX_LOCKS`).
    pub posix_locks: bool,
    /// `flock` locks come to the handler too (`FUSE_FLOCK_LOCKS`). With both, this transport
    /// cannot tell the two apart.
    pub flock_locks: bool,
    /// The longest write request in bytes.
    pub max_write: u32,
    /// The longest readahead in bytes; 0 for what the kernel proposes.
    pub max_readahead: u32,
    /// How many background requests (readahead, write-back, release) may be under way.
    pub max_background: u16,
}

impl Default for Negotiation {
    fn default() -> Self {
        Negotiation {
            readdirplus: ReadDirPlus::Auto,
            parallel_dirops: true,
            atomic_o_trunc: false,
            dont_mask: false,
            posix_acl: false,
            writeback_cache: false,
            auto_inval_data: true,
            explicit_inval_data: false,
            cache_symlinks: false,
            async_direct_io: true,
            direct_io_mmap: true,
            passthrough: false,
            posix_locks: false,
            flock_locks: false,
            max_write: 1 << 20,
            max_readahead: 0,
            max_background: 64,
        }
    }
}
