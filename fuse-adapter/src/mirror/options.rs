//! [`MirrorOptions`]: what can be chosen about a mirror.

use std::time::Duration;

use crate::attr::Lifetimes;
use crate::handler::OpenOptions;

/// How much the kernel may remember of the source.
///
/// What is changed through the mount is right at once in every mode. The modes differ in when a
/// change is seen that was made in the source itself, behind the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// At once: names and attributes are asked for each time. The slowest.
    None,
    /// Names and attributes within a second, content when the file is opened again or, in an open
    /// file, once its changed size or mtime was noticed. That a name is missing isn't remembered.
    #[default]
    Auto,
    /// Perhaps not at all. Only for a source that nobody else changes.
    Always,
}

impl Cache {
    /// How long names and attributes are good.
    pub(super) const fn lifetimes(self) -> Lifetimes {
        match self {
            Cache::None => Lifetimes::ZERO,
            Cache::Auto => Lifetimes::SECOND,
            Cache::Always => Lifetimes { entry: FOR_EVER, attr: FOR_EVER },
        }
    }

    /// How long it is good that a name leads nowhere; `None`: not to be remembered.
    pub(super) const fn missing(self) -> Option<Duration> {
        match self {
            Cache::None | Cache::Auto => None,
            Cache::Always => Some(FOR_EVER),
        }
    }

    pub(super) const fn open_options(self) -> OpenOptions {
        OpenOptions {
            keep_cache: matches!(self, Cache::Always),
            direct_io: false,
            cache_dir: false,
            nonseekable: false,
            stream: false,
            no_flush: false,
            parallel_direct_writes: false,
            backing: None,
        }
    }
}

/// Long enough; the kernel counts in ticks, and must not overflow.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// What can be chosen about a mirror.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MirrorOptions {
    /// How much the kernel may remember.
    pub cache: Cache,
    /// Every change is refused with `EROFS`, also where the mount itself isn't read-only.
    pub read_only: bool,
    /// The kernel gathers writes before it sends them. Fast for small writes, but then size and
    /// mtime are the kernel's, and the source must not be changed behind the mount.
    pub writeback_cache: bool,
    /// The kernel checks the source's POSIX ACLs. Takes effect only where the mirror runs as root
    /// (others are checked by the source itself) and the source has ACLs. On by default.
    pub posix_acl: bool,
    /// `fcntl` locks are taken in the source, so that programs which use it directly see them too.
    /// (`flock` stays among the programs of the mount: the transport can't tell the two apart.)
    pub forward_locks: bool,
    /// The kernel reads and writes regular files itself, where it can (`FUSE_PASSTHROUGH`: as root,
    /// Linux 6.9 or later, a source that is on no other filesystem). Not with the writeback cache.
    pub passthrough: bool,
    /// Reading leaves the source's times of access alone, where the mirror may (as root, or for its
    /// own files).
    pub no_atime: bool,
}

impl Default for MirrorOptions {
    fn default() -> Self {
        MirrorOptions {
            cache: Cache::default(),
            read_only: false,
            writeback_cache: false,
            posix_acl: true,
            forward_locks: false,
            passthrough: false,
            no_atime: false,
        }
    }
}
