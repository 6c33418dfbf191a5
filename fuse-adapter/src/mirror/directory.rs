//! Open directories: listings with and without attributes.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags};

use super::Mirror;
use super::dirents::{Dirent, Dirents};
use super::identity::{Identity, MirrorNode};
use super::open_files::Registered;
use super::options::Cache;
use super::source::Seen;
use crate::attr::FileType;
use crate::errno::Errno;
use crate::handler::{OpenOptions, Opened};
use crate::listing::{DirPlusSink, DirSink, Fit};
use crate::node::Node;

type Result<T> = std::result::Result<T, Errno>;

/// An open directory of a mirror.
#[derive(Debug)]
pub struct MirrorDir(Opendir);

#[derive(Debug)]
enum Opendir {
    Source {
        registered: Registered,
        identity: Identity,
        is_root: bool,
        /// The kernel lists one open directory for one caller at a time, so nobody waits for this.
        stream: Mutex<Dirents>,
    },
    /// The mirror's own mount inside the source, which shows as an empty directory.
    OwnMount(Identity),
}

impl MirrorDir {
    /// The descriptor, if it is a directory of the source.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Opendir::Source { registered, .. } => Some(registered.as_fd()),
            Opendir::OwnMount(_) => None,
        }
    }
}

impl Mirror {
    pub(super) fn open_directory(&self, node: &Node<'_, MirrorNode>) -> Result<Opened<MirrorDir>> {
        let always = self.options.cache == Cache::Always;
        let options =
            OpenOptions { keep_cache: always, cache_dir: always, ..OpenOptions::default() };
        let reached = match self.reach(node) {
            Err(Errno::EXDEV) => {
                let identity = self.source.own_mount_identity();
                return Ok(Opened { file: MirrorDir(Opendir::OwnMount(identity)), options });
            }
            other => other?,
        };
        let identity = match node.is_root() {
            true => self.source.root_identity(),
            false => node.with_data(MirrorNode::identity)?,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // From the descriptor to itself: nothing is looked up, and each open has its own position.
        let open = |flags| rustix::fs::openat(reached.as_fd(), c".", flags, Mode::empty());
        let fd = match self.options.no_atime {
            true => open(flags | OFlags::NOATIME).or_else(|_| open(flags))?,
            false => open(flags)?,
        };
        let registered = self.open_files.register(identity, fd);
        let stream = Mutex::default();
        let dir = Opendir::Source { registered, identity, is_root: node.is_root(), stream };
        Ok(Opened { file: MirrorDir(dir), options })
    }

    pub(super) fn list(&self, dir: &MirrorDir, offset: u64, sink: &mut DirSink<'_>) -> Result<()> {
        self.each_entry(dir, offset, |at, dirent| {
            let ino = self.source.ino(at.device, dirent.ino);
            let file_type = match (dirent.file_type, at.fd) {
                (Some(file_type), _) => file_type,
                (None, fd) => match self.source.see(fd, dirent.name) {
                    Ok(Seen::File(stat)) => stat.file_type()?,
                    Ok(Seen::OwnMount) => FileType::Directory,
                    // It vanished in between.
                    Err(_) => return Ok(Fit::Taken),
                },
            };
            Ok(sink.add(ino, file_type, dirent.name, dirent.next))
        })
    }

    pub(super) fn list_plus(
        &self,
        dir: &MirrorDir,
        offset: u64,
        sink: &mut DirPlusSink<'_, MirrorNode>,
    ) -> Result<()> {
        self.each_entry(dir, offset, |at, dirent| {
            let Dirent { name, next, .. } = dirent;
            let ino = self.source.ino(at.device, dirent.ino);
            if name == b"." || name == b".." {
                return Ok(sink.add_name(ino, FileType::Directory, name, next));
            }
            match self.source.see(at.fd, name) {
                Ok(Seen::File(stat)) => Ok(sink.add(name, next, self.entry(&stat)?)),
                Ok(Seen::OwnMount) => Ok(sink.add(name, next, self.own_mount_entry())),
                // It vanished in between.
                Err(Errno::ENOENT) => Ok(Fit::Taken),
                // Somebody may want to know why; who looks it up will be told.
                Err(_) => Ok(match dirent.file_type {
                    Some(file_type) => sink.add_name(ino, file_type, name, next),
                    None => Fit::Taken,
                }),
            }
        })
    }

    /// Shows the entries from an offset on to `take`, until it is full.
    fn each_entry(
        &self,
        dir: &MirrorDir,
        offset: u64,
        mut take: impl FnMut(&At<'_>, Dirent<'_>) -> Result<Fit>,
    ) -> Result<()> {
        let (registered, identity, is_root, stream) = match &dir.0 {
            Opendir::Source { registered, identity, is_root, stream } => {
                (registered, identity, *is_root, stream)
            }
            Opendir::OwnMount(identity) => return self.each_dot(identity, offset, take),
        };
        let at = At { fd: registered.as_fd(), device: identity.device };
        let mut stream = lock(stream);
        stream.seek(registered, offset)?;
        let mut taken = false;
        loop {
            let mut dirent = match stream.peek(registered) {
                Ok(Some(dirent)) => dirent,
                Ok(None) => return Ok(()),
                // What was taken is good; the error comes again with the next request.
                Err(_) if taken => return Ok(()),
                Err(error) => return Err(error),
            };
            if is_root && dirent.name == b".." {
                // Outside of the mount. As on any filesystem, the root is its own parent.
                dirent.ino = identity.ino;
            }
            match take(&at, dirent)? {
                Fit::Taken => taken = true,
                Fit::Full => return Ok(()),
            }
            stream.advance()?;
        }
    }

    fn each_dot(
        &self,
        identity: &Identity,
        offset: u64,
        mut take: impl FnMut(&At<'_>, Dirent<'_>) -> Result<Fit>,
    ) -> Result<()> {
        let at = At { fd: self.source.root(), device: identity.device };
        for (index, name) in
            [&b"."[..], b".."].into_iter().enumerate().skip(offset.try_into().unwrap_or(2))
        {
            let next = index as u64 + 1;
            let dirent =
                Dirent { ino: identity.ino, file_type: Some(FileType::Directory), name, next };
            if take(&at, dirent)? == Fit::Full {
                break;
            }
        }
        Ok(())
    }
}

/// The directory that is listed.
struct At<'a> {
    fd: BorrowedFd<'a>,
    device: u32,
}

/// A listing that panicked has left the stream between two entries.
fn lock(stream: &Mutex<Dirents>) -> MutexGuard<'_, Dirents> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
