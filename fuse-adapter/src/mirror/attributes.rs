//! Attributes: what a file's are, and changing them.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::process::{Gid, Uid};

use super::Mirror;
use super::credentials::is_in_group;
use super::files::MirrorFile;
use super::identity::{Identity, MirrorNode};
use super::kept::Kept;
use super::reach::Reached;
use super::stat::Stat;
use crate::attr::{Attr, FileType, Timestamp};
use crate::errno::Errno;
use crate::handler::{Entry, Request, SetAttr, SetTime, StatFs};
use crate::node::Node;

type Result<T> = std::result::Result<T, Errno>;

impl Mirror {
    pub(super) fn attr(&self, stat: &Stat) -> Result<Attr> {
        Ok(Attr {
            ino: self.source.ino(stat.device, stat.ino),
            file_type: stat.file_type()?,
            perm: (stat.mode & 0o7777) as u16,
            size: stat.size,
            blocks: stat.blocks,
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
            nlink: stat.nlink,
            uid: stat.uid,
            gid: stat.gid,
            rdev: stat.rdev,
            blksize: stat.blksize,
        })
    }

    pub(super) fn entry(&self, stat: &Stat) -> Result<Entry<MirrorNode>> {
        let attr = self.attr(stat)?;
        let kept = match attr.file_type {
            FileType::Regular | FileType::Symlink => Kept::never(),
            _ => Kept::nothing_yet(),
        };
        let data = MirrorNode::new(self.source.identity(stat), kept);
        Ok(Entry { attr, data, lifetimes: self.options.cache.lifetimes() })
    }

    /// What stands where the mirror's own mount lies inside the source: an empty directory.
    pub(super) fn own_mount_entry(&self) -> Entry<MirrorNode> {
        let identity = self.source.own_mount_identity();
        Entry {
            attr: self.own_mount_attr(&identity),
            data: MirrorNode::new(identity, Kept::never()),
            lifetimes: self.options.cache.lifetimes(),
        }
    }

    pub(super) fn own_mount_attr(&self, identity: &Identity) -> Attr {
        Attr {
            ino: self.source.ino(identity.device, identity.ino),
            file_type: FileType::Directory,
            perm: 0o555,
            size: 0,
            blocks: 0,
            atime: Timestamp::default(),
            mtime: Timestamp::default(),
            ctime: Timestamp::default(),
            nlink: 2,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
        }
    }

    pub(super) fn get_attributes(
        &self,
        node: &Node<'_, MirrorNode>,
        file: Option<&MirrorFile>,
    ) -> Result<(Attr, Duration)> {
        let lifetime = self.options.cache.lifetimes().attr;
        if let Some(file) = file {
            return Ok((self.attr(&self.source.stat(file.as_fd())?)?, lifetime));
        }
        if node.is_root() {
            return Ok((self.attr(&self.source.stat(self.source.root())?)?, lifetime));
        }
        let identity = node.with_data(MirrorNode::identity)?;
        if self.source.is_own_mount(&identity) {
            return Ok((self.own_mount_attr(&identity), lifetime));
        }
        Ok((self.attr(&self.stat_node(node, &identity)?)?, lifetime))
    }

    /// As [`reach`](Mirror::reach), without opening anything where that isn't needed.
    fn stat_node(&self, node: &Node<'_, MirrorNode>, identity: &Identity) -> Result<Stat> {
        if let Some(open) = self.open_files.find(identity) {
            return self.source.stat(open.as_fd());
        }
        if let Ok(path) = node.path() {
            if let Ok(stat) = self.source.stat_path(&path, identity) {
                return Ok(stat);
            }
        }
        // Not there: the long way knows more ways.
        self.reach(node)?.stat(&self.source)
    }

    pub(super) fn set_attributes(
        &self,
        req: &Request,
        node: &Node<'_, MirrorNode>,
        set: &SetAttr<'_, MirrorFile>,
    ) -> Result<(Attr, Duration)> {
        self.check_writable()?;
        let reached = match set.file {
            Some(file) => Reached::Registered(file.descriptor()),
            None => self.reach(node)?,
        };
        if let Some(size) = set.size {
            truncate(&reached, size, set.file.is_some())?;
        }
        if set.uid.is_some() || set.gid.is_some() {
            change_owner(&reached, set.uid, set.gid)?;
        }
        // After the owner, whose change clears setuid and setgid.
        if let Some(perm) = set.perm {
            change_mode(&reached, self.without_foreign_setgid(req, &reached, perm)?)?;
        }
        if set.atime.is_some() || set.mtime.is_some() {
            change_times(&reached, set.atime, set.mtime)?;
        }
        let stat = self.source.stat(reached.as_fd())?;
        Ok((self.attr(&stat)?, self.options.cache.lifetimes().attr))
    }

    /// Who isn't in a file's group can't leave it setgid, and loses that by writing to it, too. The
    /// kernel sees to it, except that it sends back the setgid bit of a file that the group may not
    /// run, when it takes away the others because of a write.
    fn without_foreign_setgid(
        &self,
        req: &Request,
        reached: &Reached<'_>,
        perm: u32,
    ) -> Result<u32> {
        let sent_back = perm & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID;
        if !sent_back || req.uid == 0 {
            return Ok(perm);
        }
        let stat = reached.stat(&self.source)?;
        let keeps = stat.file_type()? == FileType::Directory || is_in_group(req, stat.gid);
        Ok(if keeps { perm } else { perm & !libc::S_ISGID })
    }

    pub(super) fn sizes(&self, node: &Node<'_, MirrorNode>) -> Result<StatFs> {
        let reached = match self.reach(node) {
            Err(Errno::EXDEV) => Reached::Root(self.source.root()),
            other => other?,
        };
        let sizes = rustix::fs::fstatvfs(reached.as_fd())?;
        Ok(StatFs {
            blocks: sizes.f_blocks,
            free: sizes.f_bfree,
            available: sizes.f_bavail,
            files: sizes.f_files,
            files_free: sizes.f_ffree,
            block_size: sizes.f_bsize as u32,
            name_max: sizes.f_namemax as u32,
            fragment_size: sizes.f_frsize as u32,
        })
    }
}

/// Through the caller's own open file its own right to write counts (the file may be read-only by
/// now); otherwise that of the mirror, the caller's having been checked by the kernel.
fn truncate(reached: &Reached<'_>, size: u64, through_file: bool) -> Result<()> {
    if let (true, Some(fd)) = (through_file, reached.open_fd()) {
        return Ok(rustix::fs::ftruncate(fd, size)?);
    }
    let size = libc::off_t::try_from(size).map_err(|_| Errno::EFBIG)?;
    // SAFETY: the path is a C string that lives until the call returns.
    let result = unsafe { libc::truncate(reached.proc_path().as_c_str().as_ptr(), size) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

fn change_owner(reached: &Reached<'_>, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    Ok(rustix::fs::chownat(reached.as_fd(), c"", uid, gid, AtFlags::EMPTY_PATH)?)
}

pub(super) fn change_mode(reached: &Reached<'_>, perm: u32) -> Result<()> {
    let mode = Mode::from_raw_mode(perm & 0o7777);
    match reached.open_fd() {
        Some(fd) => Ok(rustix::fs::fchmod(fd, mode)?),
        None => {
            Ok(rustix::fs::chmodat(CWD, reached.proc_path().as_c_str(), mode, AtFlags::empty())?)
        }
    }
}

fn change_times(
    reached: &Reached<'_>,
    atime: Option<SetTime>,
    mtime: Option<SetTime>,
) -> Result<()> {
    let times = Timestamps { last_access: time(atime), last_modification: time(mtime) };
    Ok(rustix::fs::utimensat(reached.as_fd(), c"", &times, AtFlags::EMPTY_PATH)?)
}

fn time(set: Option<SetTime>) -> Timespec {
    match set {
        Some(SetTime::At(time)) => Timespec { tv_sec: time.secs, tv_nsec: time.nanos.into() },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    }
}
