//! Open files: reading, writing, and all else that is done through a descriptor.
//!
//! None of this needs a path, and none of it holds a lease.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::ReadWriteFlags;

use super::Mirror;
use super::attributes::change_mode;
use super::credentials::is_in_group;
use super::identity::{Identity, MirrorNode};
use super::of_inode::OfInode;
use super::open_files::{Descriptor, Registered};
use super::reach::{ProcPath, Reached};
use super::stat::Stat;
use crate::attr::FileType;
use crate::errno::Errno;
use crate::handler::{Lock, OpenOptions, Opened, Request};
use crate::node::Node;

type Result<T> = std::result::Result<T, Errno>;

/// The flags of an open that are passed on to the source. Not among them:
/// - `O_DIRECT`: the kernel aligns requests for the mount's sake, not for the source's; reads and
///   writes pass the page cache of the source, which is as direct as the mount can see;
/// - `O_APPEND`: on Linux each write through such a descriptor appends, but those of the kernel's own
///   page cache must go where it says, and a program may give the flag up again. See [`append`];
/// - `O_NONBLOCK`, `O_NOCTTY`, `O_NOFOLLOW`, `O_DIRECTORY`: only regular files are opened.
const PASSED_ON: OFlags = OFlags::RWMODE
    .union(OFlags::TRUNC)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::NOATIME);

/// An open file of a mirror.
#[derive(Debug)]
pub struct MirrorFile {
    registered: Registered,
    /// Only where the open files of an inode have something in common.
    of_inode: Option<Arc<OfInode>>,
}

impl MirrorFile {
    pub(super) fn set_lock(&self, owner: u64, lock: Lock, wait: bool) -> Result<()> {
        let of_inode = self.of_inode.as_ref().ok_or(Errno::ENOSYS)?;
        of_inode.locks.set(owner, lock, wait, || self.open_for_locks())
    }

    pub(super) fn test_lock(&self, owner: u64, lock: Lock) -> Result<Lock> {
        let of_inode = self.of_inode.as_ref().ok_or(Errno::ENOSYS)?;
        of_inode.locks.test(owner, lock, || self.open_for_locks())
    }

    /// Whoever closes a file gives up all his locks on it, however many times he has it open.
    pub(super) fn unlock_all(&self, owner: u64) {
        if let Some(of_inode) = &self.of_inode {
            of_inode.locks.release(owner);
        }
    }

    /// For both kinds of lock, if possible; what the program may, the kernel has checked.
    fn open_for_locks(&self) -> Result<OwnedFd> {
        let path = ProcPath::new(self.as_fd());
        let open =
            |how| rustix::fs::openat(CWD, path.as_c_str(), how | OFlags::CLOEXEC, Mode::empty());
        let fd = open(OFlags::RDWR).or_else(|_| open(OFlags::RDONLY));
        Ok(fd.or_else(|_| open(OFlags::WRONLY))?)
    }

    pub(super) fn descriptor(&self) -> Arc<Descriptor> {
        Arc::clone(self.registered.descriptor())
    }
}

impl AsFd for MirrorFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.registered.as_fd()
    }
}

impl Mirror {
    pub(super) fn open_node(
        &self,
        req: &Request,
        node: &Node<'_, MirrorNode>,
        flags: i32,
    ) -> Result<Opened<MirrorFile>> {
        let wanted = OFlags::from_bits_retain(flags as u32);
        if writes(wanted) {
            self.check_writable()?;
        }
        self.open_reached(req, &self.reach(node)?, wanted)
    }

    /// Opens what was reached, which must be a regular file: the kernel opens all others itself.
    pub(super) fn open_reached(
        &self,
        req: &Request,
        reached: &Reached<'_>,
        wanted: OFlags,
    ) -> Result<Opened<MirrorFile>> {
        let stat = reached.stat(&self.source)?;
        match stat.file_type()? {
            FileType::Regular => {}
            FileType::Directory => return Err(Errno::EISDIR),
            FileType::Symlink => return Err(Errno::ELOOP),
            _ => return Err(Errno::ENXIO),
        }
        let fd = self.open_again(reached, wanted)?;
        if wanted.contains(OFlags::TRUNC) {
            clear_privileges(req, reached, &stat)?;
        }
        Ok(self.opened(self.source.identity(&stat), fd))
    }

    /// With the writeback cache the kernel also reads through a descriptor that was opened only
    /// for writing: it needs the rest of a page that is written in part. Where the mirror may not
    /// read, writing alone must do.
    fn open_again(&self, reached: &Reached<'_>, wanted: OFlags) -> Result<OwnedFd> {
        let flags = self.backing_flags(wanted);
        let path = reached.proc_path();
        let open = |flags| {
            rustix::fs::openat(CWD, path.as_c_str(), flags | OFlags::CLOEXEC, Mode::empty())
        };
        let plain = wanted & PASSED_ON;
        match open(flags) {
            // Somebody else's file, whose time of access the mirror may not spare.
            Err(rustix::io::Errno::PERM) if flags != plain => Ok(open(plain)?),
            Err(rustix::io::Errno::ACCESS) if flags & OFlags::RWMODE != plain & OFlags::RWMODE => {
                Ok(open(plain)?)
            }
            other => Ok(other?),
        }
    }

    /// The flags with which a file of the source is opened.
    pub(super) fn backing_flags(&self, wanted: OFlags) -> OFlags {
        let mut flags = wanted & PASSED_ON;
        flags.set(OFlags::NOATIME, flags.contains(OFlags::NOATIME) || self.options.no_atime);
        if self.has_writeback_cache() && flags & OFlags::RWMODE == OFlags::WRONLY {
            return (flags - OFlags::RWMODE) | OFlags::RDWR;
        }
        flags
    }

    pub(super) fn opened(&self, identity: Identity, fd: OwnedFd) -> Opened<MirrorFile> {
        let backing_files = self.backing_files.get();
        let in_common = backing_files.is_some() || self.options.forward_locks;
        let of_inode = in_common.then(|| self.of_inodes.get(identity));
        let backing = match (&of_inode, backing_files) {
            (Some(of_inode), Some(files)) => of_inode.backing(files, fd.as_fd()),
            _ => None,
        };
        let usual = self.options.cache.open_options();
        let options = OpenOptions {
            // Closing a file of a local filesystem reports nothing, so nobody need ask.
            no_flush: self.source.is_local()
                && !self.has_writeback_cache()
                && !self.options.forward_locks,
            backing,
            // There is no cache but the source's own.
            keep_cache: usual.keep_cache && backing.is_none(),
            ..usual
        };
        let registered = self.open_files.register(identity, fd);
        let file = MirrorFile { registered, of_inode };
        Opened { file, options }
    }
}

pub(super) fn writes(wanted: OFlags) -> bool {
    wanted & OFlags::RWMODE != OFlags::RDONLY || wanted.contains(OFlags::TRUNC)
}

/// Truncating a file takes away its setuid and setgid bits unless the caller is privileged. The
/// kernel does it by a request of its own, but not where `O_TRUNC` travels with the open, and the
/// source doesn't know that the caller isn't the mirror.
fn clear_privileges(req: &Request, reached: &Reached<'_>, stat: &Stat) -> Result<()> {
    let privileges = libc::S_ISUID | libc::S_ISGID;
    if req.uid == 0 || stat.mode & privileges == 0 {
        return Ok(());
    }
    change_mode(reached, without_privileges(stat.mode, || is_in_group(req, stat.gid)))
}

/// Setgid where the group may not run the file is kept for members of the group.
fn without_privileges(mode: u32, is_member: impl FnOnce() -> bool) -> u32 {
    let keeps_setgid = mode & libc::S_IXGRP == 0 && is_member();
    mode & !(libc::S_ISUID | if keeps_setgid { 0 } else { libc::S_ISGID })
}

/// Fills the buffer as far as the file goes.
pub(super) fn read(file: &MirrorFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match rustix::io::pread(file, &mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(rustix::io::Errno::INTR) => {}
            // What was read is good; the error comes again with the next request.
            Err(_) if done > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Writes it all, or as much as fits.
pub(super) fn write(file: &MirrorFile, offset: u64, data: &[u8]) -> Result<usize> {
    write_all(data, |rest| {
        rustix::io::pwrite(file, rest, offset + (data.len() - rest.len()) as u64)
    })
}

/// The same at the end, also where the file grew behind the mount.
pub(super) fn append(file: &MirrorFile, data: &[u8]) -> Result<usize> {
    write_all(data, |rest| {
        rustix::io::pwritev2(file, &[IoSlice::new(rest)], 0, ReadWriteFlags::APPEND)
    })
}

fn write_all(data: &[u8], some: impl Fn(&[u8]) -> rustix::io::Result<usize>) -> Result<usize> {
    let mut done = 0;
    while done < data.len() {
        match some(&data[done..]) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) if done > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// What `close` would report: a copy of the descriptor is closed. Doesn't sync.
pub(super) fn flush(file: &MirrorFile) -> Result<()> {
    let copy = rustix::io::fcntl_dupfd_cloexec(file, 0)?;
    // SAFETY: the number belongs to `copy` alone, which has just given it up.
    let result = unsafe { libc::close(copy.into_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

pub(super) fn sync(fd: impl AsFd, data_only: bool) -> Result<()> {
    Ok(if data_only { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) }?)
}

pub(super) fn allocate(file: &MirrorFile, offset: u64, length: u64, mode: i32) -> Result<()> {
    let flags = FallocateFlags::from_bits_retain(mode as u32);
    match rustix::fs::fallocate(file, flags, offset, length) {
        // To the kernel it would mean "never ask again".
        Err(rustix::io::Errno::NOSYS) => Err(Errno::EOPNOTSUPP),
        other => Ok(other?),
    }
}

/// Only where data and holes are: all other positions are the kernel's.
pub(super) fn seek(file: &MirrorFile, offset: i64, whence: i32) -> Result<i64> {
    let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
    let wanted = match whence {
        libc::SEEK_DATA => SeekFrom::Data(offset),
        libc::SEEK_HOLE => SeekFrom::Hole(offset),
        _ => return Err(Errno::EINVAL),
    };
    // The descriptor's own position moves, which nobody uses.
    let found = rustix::fs::seek(file, wanted)?;
    i64::try_from(found).map_err(|_| Errno::EOVERFLOW)
}

pub(super) fn copy_range(
    from: &MirrorFile,
    at: u64,
    to: &MirrorFile,
    to_at: u64,
    length: u64,
) -> Result<usize> {
    // More than fits into a reply is never copied in one go.
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(0x7fff_f000);
    let (mut at, mut to_at) = (at, to_at);
    Ok(rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut to_at), length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setgid_stays_for_members_of_a_group_that_may_not_run_it() {
        assert_eq!(without_privileges(0o106_777, || true), 0o100_777);
        assert_eq!(without_privileges(0o106_767, || true), 0o102_767);
        assert_eq!(without_privileges(0o106_767, || false), 0o100_767);
        assert_eq!(without_privileges(0o101_644, || false), 0o101_644);
    }
}
