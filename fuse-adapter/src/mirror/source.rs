//! [`Source`]: the directory behind the mirror, and the only place where its paths become files.
//!
//! The source is one descriptor, opened before the mount. Everything is reached relative to it, and
//! nothing that is done to the source can make the mirror reach outside it:
//!
//! - paths are walked by `openat2` beneath the descriptor, and no symbolic link is followed, be it
//!   on the way (`RESOLVE_NO_SYMLINKS`) or at the end (`O_NOFOLLOW`);
//! - what is done by name is done with a single name, relative to a descriptor reached that way;
//! - all else is done to a descriptor of the thing itself.
//!
//! Other filesystems mounted below the source are part of it. One is not: the mirror's own mount,
//! where the mountpoint lies inside the source or a bind mount brings it there, at any moment. A
//! handler that asked it for something would wait for a handler. So no walk leads through a
//! mountpoint (`RESOLVE_NO_XDEV`) before it was looked at; the mount is recognised by its device
//! number, which the kernel tells without asking whoever serves the filesystem: `statx` with
//! `AT_STATX_DONT_SYNC`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};

use super::identity::Identity;
use super::stat::{Stat, WANTED, device_number};
use crate::errno::Errno;

type Result<T> = std::result::Result<T, Errno>;

/// The thing itself, whatever it is, without opening it for reading or writing: a pipe doesn't
/// block, a device doesn't notice.
const AS_IT_IS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// A path given to one system call must be shorter than this, with its NUL.
const PATH_MAX: usize = 4096;

/// No device has this number: 12 bits of major and 20 of minor, all set.
const UNKNOWN: u32 = u32::MAX;

/// What is under a name.
pub(super) enum Seen {
    /// A file of the source.
    File(Stat),
    /// The mountpoint of the mirror itself.
    OwnMount,
}

/// The directory behind the mirror.
#[derive(Debug)]
pub(super) struct Source {
    root: OwnedFd,
    root_identity: Identity,
    /// What the kernel remembers of a file on the root's device is true: no server changes it.
    local: bool,
    /// Times of birth are known to be constant.
    births: bool,
    /// The device number of the mirror's own mount.
    own_mount: AtomicU32,
}

impl Source {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self::new(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
    }

    pub(super) fn new(root: OwnedFd) -> io::Result<Self> {
        check_system(root.as_fd())?;
        let stat = rustix::fs::statx(&root, c"", AtFlags::EMPTY_PATH, WANTED)
            .map(|statx| Stat::new(&statx))?;
        if stat.file_type() != Ok(crate::FileType::Directory) {
            return Err(rustix::io::Errno::NOTDIR.into());
        }
        // The numbers have 32 bits, in a type that differs from one architecture to the next.
        let fs_type = rustix::fs::fstatfs(&root)?.f_type as u32;
        let births = fs_type != OVERLAYFS;
        Ok(Source {
            root_identity: identity(&stat, births),
            local: LOCAL.contains(&fs_type),
            births,
            own_mount: AtomicU32::new(UNKNOWN),
            root,
        })
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(super) fn root_identity(&self) -> Identity {
        self.root_identity
    }

    /// Is what the kernel remembers of the source true?
    pub(super) fn is_local(&self) -> bool {
        self.local
    }

    /// Remembers the device of the mirror's own mount: major and minor.
    pub(super) fn learn_own_mount(&self, (major, minor): (u32, u32)) {
        // Relaxed: the threads that serve requests are started after it.
        self.own_mount.store(device_number(major, minor), Ordering::Relaxed);
    }

    /// Does the identity belong to the mirror's own mount?
    pub(super) fn is_own_mount(&self, identity: &Identity) -> bool {
        identity.device == self.own_mount.load(Ordering::Relaxed)
    }

    /// The identity of what was seen at the mountpoint of the mirror itself.
    pub(super) fn own_mount_identity(&self) -> Identity {
        Identity { ino: 1, birth: 0, device: self.own_mount.load(Ordering::Relaxed) }
    }

    pub(super) fn identity(&self, stat: &Stat) -> Identity {
        identity(stat, self.births)
    }

    /// The inode number that programs see: the source's own. A mount has a single device number,
    /// so files of other filesystems below the source get a number that is unlikely to meet
    /// another: both hashed, and the highest bit set, which no common filesystem uses. It is the
    /// same every time.
    pub(super) fn ino(&self, device: u32, ino: u64) -> u64 {
        if device == self.root_identity.device && ino != 0 {
            return ino;
        }
        mix(ino ^ mix(u64::from(device) + 1)) | 1 << 63
    }

    /// Opens what a path relative to the root leads to, as it is. The empty path is the root.
    ///
    /// # Errors
    /// `ENOENT` if there is nothing; `ESTALE` if something on the way is no directory, or is the
    /// mirror's own mount.
    pub(super) fn open_as_it_is(&self, path: &Path) -> Result<OwnedFd> {
        use std::os::unix::ffi::OsStrExt;
        let mut at = None;
        for part in short_parts(path.as_os_str().as_bytes()) {
            at = Some(self.walk(at.as_ref(), part?)?);
        }
        match at {
            Some(fd) => Ok(fd),
            None => Ok(step(self.root(), b".", ResolveFlags::NO_XDEV)?),
        }
    }

    /// Walks a path that is short enough for one call; in one call, unless it leads through the
    /// mountpoint of another filesystem: that could be the mirror's own. So mountpoints are entered
    /// one by one, and looked at before going on.
    fn walk(&self, from: Option<&OwnedFd>, path: &[u8]) -> Result<OwnedFd> {
        let mut rest = path;
        let mut at: Option<OwnedFd> = None;
        loop {
            let here = at.as_ref().or(from).map_or(self.root(), OwnedFd::as_fd);
            match step(here, rest, ResolveFlags::NO_XDEV) {
                Err(rustix::io::Errno::XDEV) => {}
                other => return other.map_err(way_lost),
            }
            let (name, after) = split_first(rest);
            at = Some(self.enter(here, name)?);
            match after {
                Some(after) => rest = after,
                None => return at.ok_or(Errno::ENOENT),
            }
        }
    }

    /// Opens a single name, which may be a mountpoint.
    fn enter(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd> {
        let fd = step(dir, name, ResolveFlags::empty()).map_err(way_lost)?;
        match self.see_fd(fd.as_fd())? {
            Seen::File(_) => Ok(fd),
            // What was known there is covered.
            Seen::OwnMount => Err(Errno::ESTALE),
        }
    }

    /// What is under a single name of a directory.
    pub(super) fn see(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<Seen> {
        self.statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
    }

    /// What a descriptor leads to.
    pub(super) fn see_fd(&self, fd: BorrowedFd<'_>) -> Result<Seen> {
        self.statx(fd, b"", AtFlags::EMPTY_PATH)
    }

    /// The attributes of what a descriptor leads to.
    pub(super) fn stat(&self, fd: BorrowedFd<'_>) -> Result<Stat> {
        match self.see_fd(fd)? {
            Seen::File(stat) => Ok(stat),
            Seen::OwnMount => Err(Errno::EXDEV),
        }
    }

    /// The attributes of what a path leads to, if it is the file with this identity.
    ///
    /// # Errors
    /// `ESTALE` if it is another.
    pub(super) fn stat_path(&self, path: &Path, identity: &Identity) -> Result<Stat> {
        use std::os::unix::ffi::OsStrExt;
        let bytes = path.as_os_str().as_bytes();
        // With one name there is no way on which a link could be followed: one call does it.
        let stat = if !bytes.is_empty() && !bytes.contains(&b'/') {
            match self.see(self.root(), bytes)? {
                Seen::File(stat) => stat,
                Seen::OwnMount => return Err(Errno::ESTALE),
            }
        } else {
            self.stat(self.open_as_it_is(path)?.as_fd())?
        };
        if self.identity(&stat) == *identity { Ok(stat) } else { Err(Errno::ESTALE) }
    }

    /// The first call asks only the kernel's memory, which is all there is to a local filesystem,
    /// and which says to whom the file belongs otherwise.
    fn statx(&self, at: BorrowedFd<'_>, path: &[u8], flags: AtFlags) -> Result<Seen> {
        let stat = rustix::fs::statx(at, path, flags | AtFlags::STATX_DONT_SYNC, WANTED)
            .map(|statx| Stat::new(&statx))?;
        let device = stat.device;
        if device == self.root_identity.device && self.local {
            return Ok(Seen::File(stat));
        }
        if device == self.own_mount.load(Ordering::Relaxed) {
            return Ok(Seen::OwnMount);
        }
        Ok(Seen::File(rustix::fs::statx(at, path, flags, WANTED).map(|statx| Stat::new(&statx))?))
    }
}

fn step(from: BorrowedFd<'_>, path: &[u8], how: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(from, path, AS_IT_IS, Mode::empty(), BENEATH | how)
}

/// The resolver knew directories where there are none any more.
fn way_lost(error: rustix::io::Errno) -> Errno {
    match error {
        rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP | rustix::io::Errno::XDEV => {
            Errno::ESTALE
        }
        other => other.into(),
    }
}

/// A path in parts that are short enough for a system call, cut at slashes.
fn short_parts(path: &[u8]) -> impl Iterator<Item = Result<&[u8]>> {
    let mut rest = path;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if rest.len() < PATH_MAX {
            return Some(Ok(std::mem::take(&mut rest)));
        }
        // No name has more than 255 bytes, so there is a slash in the first 4095.
        let Some(cut) = rest[..PATH_MAX].iter().rposition(|byte| *byte == b'/') else {
            rest = &[];
            return Some(Err(Errno::ENAMETOOLONG));
        };
        let part = &rest[..cut];
        rest = &rest[cut + 1..];
        Some(Ok(part))
    })
}

/// The first name of a path, and what follows its slash.
fn split_first(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
        None => (path, None),
    }
}

fn identity(stat: &Stat, births: bool) -> Identity {
    let birth = if births { stat.birth } else { 0 };
    Identity { ino: stat.ino, birth, device: stat.device }
}

/// What the mirror can't do without, asked for once, so that it doesn't fail request by request.
fn check_system(root: BorrowedFd<'_>) -> io::Result<()> {
    if let Err(rustix::io::Errno::NOSYS) =
        rustix::fs::openat2(root, c".", AS_IT_IS, Mode::empty(), BENEATH)
    {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a mirror needs Linux 5.8 or later (openat2)",
        ));
    }
    rustix::fs::statx(CWD, c"/proc/self/fd", AtFlags::empty(), WANTED).map_err(|_| {
        io::Error::new(io::ErrorKind::NotFound, "a mirror needs /proc to be mounted")
    })?;
    Ok(())
}

/// A permutation of the 64-bit numbers under which close ones end up far apart (the last step of
/// SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

const OVERLAYFS: u32 = 0x794c_7630;

/// Filesystems that no other machine and no other program can change behind this kernel.
const LOCAL: &[u32] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    0x2fc1_2fc1, // zfs
    0x4d44,      // fat
    0x2011_bab0, // exfat
    0x7366_746e, // ntfs3
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0x9660,      // iso9660
    OVERLAYFS,
];
