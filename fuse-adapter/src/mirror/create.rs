//! Making things: files, directories, links, pipes, sockets and devices, as the caller's own.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};

use pinpath::Name;
use rustix::fs::OFlags;

use super::Mirror;
use super::credentials::ActingAs;
use super::files::MirrorFile;
use super::identity::MirrorNode;
use super::names::open_as_it_is;
use super::reach::Reached;
use super::source::Seen;
use super::stat::split_rdev;
use crate::attr::FileType;
use crate::errno::Errno;
use crate::handler::{Entry, Opened, Request};
use crate::node::Node;

type Result<T> = std::result::Result<T, Errno>;

impl Mirror {
    pub(super) fn make_node(
        &self,
        req: &Request,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        mode: u32,
        umask: u32,
        rdev: u32,
    ) -> Result<Entry<MirrorNode>> {
        let file_type = FileType::from_mode(mode).ok_or(Errno::EINVAL)?;
        let (major, minor) = split_rdev(rdev);
        self.make(parent, name, |dir| {
            let acting = ActingAs::caller(req, umask);
            let file_type = rustix::fs::FileType::from_raw_mode(file_type.mode_bits());
            let device = rustix::fs::makedev(major, minor);
            rustix::fs::mknodat(dir, name.as_bytes(), file_type, acting.mode(mode), device)
        })
    }

    pub(super) fn make_directory(
        &self,
        req: &Request,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        mode: u32,
        umask: u32,
    ) -> Result<Entry<MirrorNode>> {
        self.make(parent, name, |dir| {
            let acting = ActingAs::caller(req, umask);
            rustix::fs::mkdirat(dir, name.as_bytes(), acting.mode(mode))
        })
    }

    pub(super) fn make_symlink(
        &self,
        req: &Request,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        target: &OsStr,
    ) -> Result<Entry<MirrorNode>> {
        self.make(parent, name, |dir| {
            let _acting = ActingAs::caller(req, 0);
            rustix::fs::symlinkat(target, dir, name.as_bytes())
        })
    }

    fn make(
        &self,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        work: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<()>,
    ) -> Result<Entry<MirrorNode>> {
        self.check_writable()?;
        let dir = self.reach(parent)?;
        work(dir.as_fd())?;
        match self.source.see(dir.as_fd(), name.as_bytes())? {
            Seen::File(stat) => self.entry(&stat),
            Seen::OwnMount => Err(Errno::EXDEV),
        }
    }

    pub(super) fn make_file(
        &self,
        req: &Request,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        mode: u32,
        umask: u32,
        flags: i32,
    ) -> Result<(Entry<MirrorNode>, Opened<MirrorFile>)> {
        self.check_writable()?;
        let wanted = OFlags::from_bits_retain(flags as u32);
        let dir = self.reach(parent)?;
        // Always a new file: what stands there already may be anything, and is opened with care.
        let how = self.backing_flags(wanted - OFlags::TRUNC)
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::CLOEXEC;
        let made = {
            let acting = ActingAs::caller(req, umask);
            rustix::fs::openat(dir.as_fd(), name.as_bytes(), how, acting.mode(mode))
        };
        match made {
            Ok(fd) => {
                let stat = self.source.stat(fd.as_fd())?;
                let opened = self.opened(self.source.identity(&stat), fd);
                Ok((self.entry(&stat)?, opened))
            }
            Err(rustix::io::Errno::EXIST) if !wanted.contains(OFlags::EXCL) => {
                self.open_existing(req, dir.as_fd(), name, wanted)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Somebody made it behind the mount, after the kernel had asked and heard that there is
    /// nothing. Something else than a regular file the kernel must look at anew.
    fn open_existing(
        &self,
        req: &Request,
        dir: BorrowedFd<'_>,
        name: &Name,
        wanted: OFlags,
    ) -> Result<(Entry<MirrorNode>, Opened<MirrorFile>)> {
        let fd = open_as_it_is(dir, name)?;
        let stat = self.source.stat(fd.as_fd())?;
        if stat.file_type()? != FileType::Regular {
            return Err(Errno::ESTALE);
        }
        let reached = Reached::AsItIs(fd, stat);
        let opened = self.open_reached(req, &reached, wanted)?;
        let now = self.source.stat(opened.file.as_fd())?;
        Ok((self.entry(&now)?, opened))
    }
}
