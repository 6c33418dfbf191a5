//! Names in directories: looking them up, taking them away, moving and adding them.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use pinpath::Name;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::Mirror;
use super::identity::MirrorNode;
use super::source::Seen;
use crate::attr::FileType;
use crate::errno::Errno;
use crate::handler::{Entry, Found, RenameFlags};
use crate::node::Node;

type Result<T> = std::result::Result<T, Errno>;

impl Mirror {
    pub(super) fn look_up(
        &self,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
    ) -> Result<Found<MirrorNode>> {
        let dir = match self.reach(parent) {
            // The mirror's own mount shows as an empty directory.
            Err(Errno::EXDEV) => return Err(Errno::ENOENT),
            other => other?,
        };
        match self.see_name(dir.as_fd(), name) {
            Ok(Seen::File(stat)) => Ok(Found::Entry(self.entry(&stat)?)),
            Ok(Seen::OwnMount) => Ok(Found::Entry(self.own_mount_entry())),
            Err(Errno::ENOENT) => match self.options.cache.missing() {
                Some(lifetime) => Ok(Found::Nothing(lifetime)),
                None => Err(Errno::ENOENT),
            },
            Err(error) => Err(error),
        }
    }

    /// What is under the name; held for the next request where such were seen to come too late.
    fn see_name(&self, dir: BorrowedFd<'_>, name: &Name) -> Result<Seen> {
        if !self.recent.is_suspect() {
            return self.source.see(dir, name.as_bytes());
        }
        let fd = open_as_it_is(dir, name)?;
        let seen = self.source.see_fd(fd.as_fd())?;
        if let Seen::File(stat) = &seen {
            self.recent.hold(&self.open_files, self.source.identity(stat), fd);
        }
        Ok(seen)
    }

    pub(super) fn remove(
        &self,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        flags: AtFlags,
    ) -> Result<()> {
        self.check_writable()?;
        let dir = self.reach(parent)?;
        self.losing(parent, name, dir.as_fd(), || {
            Ok(rustix::fs::unlinkat(dir.as_fd(), name.as_bytes(), flags)?)
        })
    }

    pub(super) fn move_name(
        &self,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        newparent: &Node<'_, MirrorNode>,
        newname: &Name,
        flags: RenameFlags,
    ) -> Result<()> {
        self.check_writable()?;
        let from = self.reach(parent)?;
        let to = self.reach(newparent)?;
        let work = || {
            let (name, newname) = (name.as_bytes(), newname.as_bytes());
            Ok(rustix::fs::renameat_with(
                from.as_fd(),
                name,
                to.as_fd(),
                newname,
                rename_flags(flags),
            )?)
        };
        if flags.exchange || flags.no_replace {
            return work();
        }
        self.losing(newparent, newname, to.as_fd(), work)
    }

    /// Does something by which what is under the name may lose its last name. Where that can be in
    /// use without being open here, a descriptor of it is kept with its node.
    fn losing(
        &self,
        parent: &Node<'_, MirrorNode>,
        name: &Name,
        dir: BorrowedFd<'_>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let known = parent.child(name)?;
        let wanted = |node: &Node<'_, MirrorNode>| {
            node.with_data(|data| data.kept.is_wanted()).unwrap_or(false)
        };
        let Some(node) = known.filter(wanted) else {
            return work();
        };
        let fd = open_as_it_is(dir, name);
        work()?;
        // It is done; what fails from here on, the caller can't do anything about.
        if let Ok(fd) = fd {
            self.keep_if_lost(&node, fd);
        }
        Ok(())
    }

    fn keep_if_lost(&self, node: &Node<'_, MirrorNode>, fd: OwnedFd) {
        let Ok(stat) = self.source.stat(fd.as_fd()) else {
            return;
        };
        // A directory's link count is not 0 everywhere once it is removed.
        let is_directory = stat.file_type() == Ok(FileType::Directory);
        let is_meant = |data: &MirrorNode| data.identity() == self.source.identity(&stat);
        if (stat.nlink == 0 || is_directory) && node.with_data(is_meant).unwrap_or(false) {
            let _ = node.with_data(|data| data.kept.keep(fd));
        }
    }

    pub(super) fn add_name(
        &self,
        node: &Node<'_, MirrorNode>,
        newparent: &Node<'_, MirrorNode>,
        newname: &Name,
    ) -> Result<Entry<MirrorNode>> {
        self.check_writable()?;
        // One after the other: with a descriptor in hand neither path is needed any more.
        let file = self.reach(node)?;
        let dir = self.reach(newparent)?;
        let path = file.proc_path();
        rustix::fs::linkat(
            CWD,
            path.as_c_str(),
            dir.as_fd(),
            newname.as_bytes(),
            AtFlags::SYMLINK_FOLLOW,
        )?;
        self.entry(&self.source.stat(file.as_fd())?)
    }

    pub(super) fn link_target(&self, node: &Node<'_, MirrorNode>) -> Result<OsString> {
        let link = self.reach(node)?;
        let target = rustix::fs::readlinkat(link.as_fd(), c"", Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }
}

/// What is under a name, whatever it is, without opening it for anything.
pub(super) fn open_as_it_is(dir: BorrowedFd<'_>, name: &Name) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name.as_bytes(), flags, Mode::empty())?)
}

fn rename_flags(flags: RenameFlags) -> rustix::fs::RenameFlags {
    let mut all = rustix::fs::RenameFlags::empty();
    all.set(rustix::fs::RenameFlags::NOREPLACE, flags.no_replace);
    all.set(rustix::fs::RenameFlags::EXCHANGE, flags.exchange);
    all.set(rustix::fs::RenameFlags::WHITEOUT, flags.whiteout);
    all
}
