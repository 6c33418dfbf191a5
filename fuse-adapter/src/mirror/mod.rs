//! The mirror: a directory, seen again somewhere else.
//!
//! [`Mirror`] is a whole filesystem, and the handler that shows what one on top of paths looks
//! like. What a plain directory would answer is the right answer.
//!
//! | file | what it is about |
//! | --- | --- |
//! | `source` | the one descriptor behind everything, and paths beneath it |
//! | `reach` | from a node to a descriptor of the very file |
//! | `identity`, `kept`, `stat` | what a file is, apart from its names |
//! | `open_files`, `recent` | descriptors, found by what they are of |
//! | `of_inode`, `locks` | what all open files of one inode share |
//! | `attributes`, `xattr` | what is known of a file |
//! | `names`, `create`, `credentials` | names, new files, and whose they are |
//! | `files`, `directory`, `dirents` | what is open |
//!
//! Four rules hold everywhere:
//! - No symbolic link of the source is ever followed, and nothing outside of it is reached.
//! - A path is only a way to a descriptor. What was opened is compared with what was meant; if
//!   it is another file by now, the answer is `ESTALE`, upon which the kernel looks again.
//! - No lease is held while anything is done to the file.
//! - Pipes, sockets and devices are never opened.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pinpath::Name;
use rustix::fs::{Access, AtFlags, CWD};

mod attributes;
mod create;
mod credentials;
mod directory;
mod dirents;
mod files;
mod identity;
mod kept;
mod locks;
mod names;
mod of_inode;
mod open_files;
mod options;
mod reach;
mod recent;
mod source;
mod stat;
mod xattr;

pub use directory::MirrorDir;
pub use files::MirrorFile;
pub use identity::{Identity, MirrorNode};
pub use options::{Cache, MirrorOptions};

use crate::attr::Attr;
use crate::errno::Errno;
use crate::handler::{
    CopyEnd, Entry, Found, Handler, Lock, Mounted, Opened, RenameFlags, Request, SetAttr, StatFs,
};
use crate::listing::{DirPlusSink, DirSink};
use crate::negotiation::Negotiation;
use crate::node::Node;
use crate::transport::backing::BackingFiles;
use of_inode::OfInodes;
use open_files::OpenFiles;
use recent::Recent;
use source::Source;

type Result<T> = std::result::Result<T, Errno>;
type MirrorRef<'a> = Node<'a, MirrorNode>;

/// A directory as a filesystem: mount it, and it is seen again at the mountpoint.
///
/// The mountpoint may lie inside the source, or be brought there by a bind mount. The mirror would
/// meet itself there and wait for its own answers; it shows an empty directory instead, in which
/// nothing can be made.
///
/// ```no_run
/// use pinpath_fuse::mirror::{Mirror, MirrorOptions};
/// use pinpath_fuse::{MountOptions, mount};
///
/// let mirror = Mirror::open("/srv/data", MirrorOptions::default())?;
/// let mount = mount(mirror, "/mnt/data", &MountOptions::default())?;
/// mount.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mirror {
    source: Source,
    options: MirrorOptions,
    open_files: Arc<OpenFiles>,
    recent: Recent,
    of_inodes: Arc<OfInodes>,
    /// Where the kernel takes files to read and write them itself.
    backing_files: OnceLock<BackingFiles>,
    /// Agreed with the kernel when the mount starts, constant from then on.
    writeback_cache: AtomicBool,
    passthrough: AtomicBool,
}

impl Mirror {
    /// A mirror of the directory at `source`. It is opened now, and stays the one that is mirrored
    /// wherever it is moved, and also if the mount covers it.
    ///
    /// # Errors
    /// It can't be opened, is no directory, or the system lacks something: Linux 5.8, `/proc`.
    pub fn open(source: impl AsRef<Path>, options: MirrorOptions) -> io::Result<Self> {
        Ok(Self::with_source(Source::open(source.as_ref())?, options))
    }

    /// A mirror of the directory behind a descriptor (which may be an `O_PATH` one).
    ///
    /// # Errors
    /// As [`open`](Mirror::open).
    pub fn from_fd(source: OwnedFd, options: MirrorOptions) -> io::Result<Self> {
        Ok(Self::with_source(Source::new(source)?, options))
    }

    fn with_source(source: Source, options: MirrorOptions) -> Self {
        Mirror {
            source,
            options,
            open_files: OpenFiles::new(),
            recent: Recent::new(),
            of_inodes: Arc::default(),
            backing_files: OnceLock::new(),
            writeback_cache: AtomicBool::new(false),
            passthrough: AtomicBool::new(false),
        }
    }

    fn check_writable(&self) -> Result<()> {
        if self.options.read_only { Err(Errno::EROFS) } else { Ok(()) }
    }

    fn has_writeback_cache(&self) -> bool {
        self.writeback_cache.load(Ordering::Relaxed)
    }
}

/// Each operation is one line here and stands in the file of its subject.
impl Handler for Mirror {
    type Data = MirrorNode;
    type File = MirrorFile;
    type Dir = MirrorDir;

    fn root_data(&self) -> MirrorNode {
        // It never changes: the descriptor is open.
        let identity = self.source.root_identity();
        MirrorNode::new(identity, kept::Kept::never())
    }

    fn wishes(&self, wishes: &mut Negotiation) {
        // The source knows where the umask doesn't count (default ACLs).
        wishes.dont_mask = true;
        let root = rustix::process::geteuid().is_root();
        wishes.posix_acl |= self.options.posix_acl && root && self.source_has_acls();
        wishes.writeback_cache |= self.options.writeback_cache;
        wishes.passthrough |= self.options.passthrough && !wishes.writeback_cache;
        wishes.posix_locks |= self.options.forward_locks;
        // A symbolic link with another target is another file.
        wishes.cache_symlinks = true;
    }

    fn init(&self, agreed: &Negotiation) -> io::Result<()> {
        self.writeback_cache.store(agreed.writeback_cache, Ordering::Relaxed);
        self.passthrough.store(agreed.passthrough, Ordering::Relaxed);
        Ok(())
    }

    fn mounted(&self, mount: &Mounted) {
        self.source.learn_own_mount(mount.device);
        if self.passthrough.load(Ordering::Relaxed) {
            // Told once.
            let _ = self.backing_files.set(mount.backing_files.clone());
        }
    }

    fn lookup(
        &self,
        _req: &Request,
        parent: &MirrorRef<'_>,
        name: &Name,
    ) -> Result<Found<MirrorNode>> {
        self.look_up(parent, name)
    }

    fn still_there(&self, node: &MirrorRef<'_>) -> bool {
        let identity = node.with_data(MirrorNode::identity);
        let there = |path: &Path| {
            identity.is_ok_and(|identity| self.source.stat_path(path, &identity).is_ok())
        };
        node.path().is_ok_and(|path| there(&path))
    }

    fn without_identity(&self, data: MirrorNode) -> MirrorNode {
        data.seen_twice()
    }

    fn getattr(
        &self,
        _req: &Request,
        node: &MirrorRef<'_>,
        file: Option<&MirrorFile>,
    ) -> Result<(Attr, Duration)> {
        self.get_attributes(node, file)
    }

    fn setattr(
        &self,
        req: &Request,
        node: &MirrorRef<'_>,
        set: &SetAttr<'_, MirrorFile>,
    ) -> Result<(Attr, Duration)> {
        self.set_attributes(req, node, set)
    }

    fn readlink(&self, _req: &Request, node: &MirrorRef<'_>) -> Result<OsString> {
        self.link_target(node)
    }

    fn mknod(
        &self,
        req: &Request,
        parent: &MirrorRef<'_>,
        name: &Name,
        mode: u32,
        umask: u32,
        rdev: u32,
    ) -> Result<Entry<MirrorNode>> {
        self.make_node(req, parent, name, mode, umask, rdev)
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: &MirrorRef<'_>,
        name: &Name,
        mode: u32,
        umask: u32,
    ) -> Result<Entry<MirrorNode>> {
        self.make_directory(req, parent, name, mode, umask)
    }

    fn unlink(&self, _req: &Request, parent: &MirrorRef<'_>, name: &Name) -> Result<()> {
        self.remove(parent, name, AtFlags::empty())
    }

    fn rmdir(&self, _req: &Request, parent: &MirrorRef<'_>, name: &Name) -> Result<()> {
        self.remove(parent, name, AtFlags::REMOVEDIR)
    }

    fn symlink(
        &self,
        req: &Request,
        parent: &MirrorRef<'_>,
        name: &Name,
        target: &OsStr,
    ) -> Result<Entry<MirrorNode>> {
        self.make_symlink(req, parent, name, target)
    }

    fn rename(
        &self,
        _req: &Request,
        parent: &MirrorRef<'_>,
        name: &Name,
        newparent: &MirrorRef<'_>,
        newname: &Name,
        flags: RenameFlags,
    ) -> Result<()> {
        self.move_name(parent, name, newparent, newname, flags)
    }

    fn link(
        &self,
        _req: &Request,
        node: &MirrorRef<'_>,
        newparent: &MirrorRef<'_>,
        newname: &Name,
    ) -> Result<Entry<MirrorNode>> {
        self.add_name(node, newparent, newname)
    }

    fn open(&self, req: &Request, node: &MirrorRef<'_>, flags: i32) -> Result<Opened<MirrorFile>> {
        self.open_node(req, node, flags)
    }

    fn create(
        &self,
        req: &Request,
        parent: &MirrorRef<'_>,
        name: &Name,
        mode: u32,
        umask: u32,
        flags: i32,
    ) -> Result<(Entry<MirrorNode>, Opened<MirrorFile>)> {
        self.make_file(req, parent, name, mode, umask, flags)
    }

    fn read(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        files::read(file, offset, buf)
    }

    fn write(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        offset: u64,
        data: &[u8],
        _cached: bool,
    ) -> Result<usize> {
        files::write(file, offset, data)
    }

    fn append(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        _offset: u64,
        data: &[u8],
    ) -> Result<usize> {
        files::append(file, data)
    }

    fn flush(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        lock_owner: u64,
    ) -> Result<()> {
        file.unlock_all(lock_owner);
        files::flush(file)
    }

    fn fsync(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        data_only: bool,
    ) -> Result<()> {
        files::sync(file, data_only)
    }

    fn getlk(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        owner: u64,
        lock: Lock,
    ) -> Result<Lock> {
        file.test_lock(owner, lock)
    }

    fn setlk(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        owner: u64,
        lock: Lock,
        wait: bool,
    ) -> Result<()> {
        file.set_lock(owner, lock, wait)
    }

    fn opendir(
        &self,
        _req: &Request,
        node: &MirrorRef<'_>,
        _flags: i32,
    ) -> Result<Opened<MirrorDir>> {
        self.open_directory(node)
    }

    fn readdir(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        dir: &MirrorDir,
        offset: u64,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        self.list(dir, offset, sink)
    }

    fn readdirplus(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        dir: &MirrorDir,
        offset: u64,
        sink: &mut DirPlusSink<'_, MirrorNode>,
    ) -> Result<()> {
        self.list_plus(dir, offset, sink)
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        dir: &MirrorDir,
        data_only: bool,
    ) -> Result<()> {
        dir.fd().map_or(Ok(()), |fd| files::sync(fd, data_only))
    }

    fn statfs(&self, _req: &Request, node: &MirrorRef<'_>) -> Result<StatFs> {
        self.sizes(node)
    }

    fn setxattr(
        &self,
        req: &Request,
        node: &MirrorRef<'_>,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Result<()> {
        self.set_xattr(req, node, name, value, flags)
    }

    fn getxattr(
        &self,
        _req: &Request,
        node: &MirrorRef<'_>,
        name: &OsStr,
        buf: &mut [u8],
    ) -> Result<usize> {
        self.get_xattr(node, name, buf)
    }

    fn listxattr(&self, req: &Request, node: &MirrorRef<'_>, buf: &mut [u8]) -> Result<usize> {
        self.list_xattr(req, node, buf)
    }

    fn removexattr(&self, _req: &Request, node: &MirrorRef<'_>, name: &OsStr) -> Result<()> {
        self.remove_xattr(node, name)
    }

    /// Without `default_permissions` a mount serves its owner, so what the mirror may is what the
    /// caller may.
    fn access(&self, _req: &Request, node: &MirrorRef<'_>, mask: i32) -> Result<()> {
        let access = Access::from_bits_truncate(mask as u32);
        if access.contains(Access::WRITE_OK) {
            self.check_writable()?;
        }
        let reached = self.reach(node)?;
        Ok(rustix::fs::accessat(CWD, reached.proc_path().as_c_str(), access, AtFlags::EACCESS)?)
    }

    fn fallocate(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        offset: u64,
        length: u64,
        mode: i32,
    ) -> Result<()> {
        files::allocate(file, offset, length, mode)
    }

    fn lseek(
        &self,
        _req: &Request,
        _node: &MirrorRef<'_>,
        file: &MirrorFile,
        offset: i64,
        whence: i32,
    ) -> Result<i64> {
        files::seek(file, offset, whence)
    }

    fn copy_file_range(
        &self,
        _req: &Request,
        from: CopyEnd<'_, Self>,
        to: CopyEnd<'_, Self>,
        length: u64,
    ) -> Result<usize> {
        files::copy_range(from.file, from.offset, to.file, to.offset, length)
    }
}

#[cfg(test)]
mod tests;
