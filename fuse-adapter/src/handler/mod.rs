//! [`Handler`]: what the author of a filesystem writes, with the types of its
//! [arguments] and [answers].

mod answers;
mod arguments;

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use pinpath::{Name, NodeData};

use crate::attr::Attr;
use crate::errno::Errno;
use crate::listing::{DirPlusSink, DirSink};
use crate::negotiation::Negotiation;
use crate::node::Node;
use crate::operation::{Class, Operation};

pub use answers::{Entry, Found, OpenOptions, Opened, StatFs};
pub use arguments::{CopyEnd, Lock, Mounted, PollNotifier, RenameFlags, Request, SetAttr, SetTime};

/// Who chooses the node ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// The resolver: nodes have paths, and [`Attr::ino`] is only what programs see.
    #[default]
    Resolver,
    /// The handler: [`Attr::ino`] of every [`Entry`] is the node id as well (the root's is 1),
    /// nodes have no paths, and [`Handler::forget`] is told what the kernel forgot.
    Handler,
}

/// What a handler's methods return.
pub type Result<T, E = Errno> = std::result::Result<T, E>;

/// A filesystem: one trait, all operations, neutral to how requests come and who runs them.
///
/// Methods are synchronous and called from several threads at once. Arguments are borrowed, bulk
/// answers written into a buffer that is given. An author who thinks in paths asks the [`Node`] for
/// its [path](Node::path); one who keeps inodes of his own uses [`Node::inode`] and says so with
/// [`Handler::numbering`].
///
/// Every method that is not required has a default that is right for a filesystem without that
/// operation: mostly `ENOSYS`, upon which the kernel falls back and stops asking.
///
/// One that panics answers `EIO` for its request; the mount lives on.
pub trait Handler: Send + Sync + Sized + 'static {
    /// What is kept beside each inode; `()` for nothing.
    type Data: NodeData;
    /// The state of an open file.
    type File: Send + Sync + 'static;
    /// The state of an open directory.
    type Dir: Send + Sync + 'static;

    /// Who chooses the node ids.
    fn numbering(&self) -> Numbering {
        Numbering::Resolver
    }

    /// What to keep beside the root.
    fn root_data(&self) -> Self::Data;

    /// Does this operation need a thread of its own? Asked once per operation when the mount starts.
    fn class(&self, operation: Operation) -> Class {
        operation.class()
    }

    /// What the filesystem wants of the kernel. Comes with what the mount's options say; asked
    /// once, before anything is mounted.
    fn wishes(&self, _wishes: &mut Negotiation) {}

    /// The kernel has agreed to this, and the mount is about to answer. An error unmounts it again
    /// and is what mounting returns.
    fn init(&self, _agreed: &Negotiation) -> std::io::Result<()> {
        Ok(())
    }

    /// The filesystem is mounted, and nothing was asked of it yet.
    fn mounted(&self, _mount: &Mounted) {}

    /// The mount has ended; nothing is called after this.
    fn destroy(&self) {}

    /// The object under a name.
    fn lookup(
        &self,
        req: &Request,
        parent: &Node<'_, Self::Data>,
        name: &Name,
    ) -> Result<Found<Self::Data>>;

    /// Does the name under which this directory was known still lead to it? Asked when its identity
    /// turns up under another name: no means that it was moved behind the mount, and it keeps its
    /// node under the new name; yes, that it is seen twice (a bind mount), and each sight is a node
    /// of its own. The node's path is the old name. Only for data with an identity.
    fn still_there(&self, _node: &Node<'_, Self::Data>) -> bool {
        false
    }

    /// The same data with no identity, for a directory that is seen twice.
    fn without_identity(&self, data: Self::Data) -> Self::Data {
        data
    }

    /// The kernel forgot this inode `count` times. Only with [`Numbering::Handler`]; the resolver
    /// counts by itself.
    fn forget(&self, _inode: pinpath::Inode, _count: u64) {}

    /// Attributes. `file` is an open file through which the kernel asks, where it says so.
    fn getattr(
        &self,
        req: &Request,
        node: &Node<'_, Self::Data>,
        file: Option<&Self::File>,
    ) -> Result<(Attr, Duration)>;

    /// Changes attributes and answers the new ones.
    fn setattr(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _set: &SetAttr<'_, Self::File>,
    ) -> Result<(Attr, Duration)> {
        Err(Errno::ENOSYS)
    }

    /// The target of a symbolic link.
    fn readlink(&self, _req: &Request, _node: &Node<'_, Self::Data>) -> Result<OsString> {
        Err(Errno::ENOSYS)
    }

    /// Makes a file, fifo, socket or device. `mode` has the type bits; `umask` is the caller's and
    /// is already applied to `mode` unless `DONT_MASK` was negotiated.
    fn mknod(
        &self,
        _req: &Request,
        _parent: &Node<'_, Self::Data>,
        _name: &Name,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
    ) -> Result<Entry<Self::Data>> {
        Err(Errno::ENOSYS)
    }

    /// Makes a directory.
    fn mkdir(
        &self,
        _req: &Request,
        _parent: &Node<'_, Self::Data>,
        _name: &Name,
        _mode: u32,
        _umask: u32,
    ) -> Result<Entry<Self::Data>> {
        Err(Errno::ENOSYS)
    }

    /// Removes a name of something that is no directory. Runs in a transaction: nobody works
    /// below the name meanwhile.
    fn unlink(&self, _req: &Request, _parent: &Node<'_, Self::Data>, _name: &Name) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Removes an empty directory. Runs in a transaction.
    fn rmdir(&self, _req: &Request, _parent: &Node<'_, Self::Data>, _name: &Name) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Makes a symbolic link.
    fn symlink(
        &self,
        _req: &Request,
        _parent: &Node<'_, Self::Data>,
        _name: &Name,
        _target: &OsStr,
    ) -> Result<Entry<Self::Data>> {
        Err(Errno::EPERM)
    }

    /// Renames. Runs in a transaction around both names.
    fn rename(
        &self,
        _req: &Request,
        _parent: &Node<'_, Self::Data>,
        _name: &Name,
        _newparent: &Node<'_, Self::Data>,
        _newname: &Name,
        _flags: RenameFlags,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Gives a node one more name. The entry describes the node, under either name.
    fn link(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _newparent: &Node<'_, Self::Data>,
        _newname: &Name,
    ) -> Result<Entry<Self::Data>> {
        Err(Errno::EPERM)
    }

    /// Opens a file. `flags` are those of `open(2)`, without `O_CREAT`, `O_EXCL`, `O_NOCTTY`.
    fn open(
        &self,
        req: &Request,
        node: &Node<'_, Self::Data>,
        flags: i32,
    ) -> Result<Opened<Self::File>>;

    /// Makes and opens a file.
    #[allow(clippy::type_complexity)] // two answers, and each is one type
    fn create(
        &self,
        _req: &Request,
        _parent: &Node<'_, Self::Data>,
        _name: &Name,
        _mode: u32,
        _umask: u32,
        _flags: i32,
    ) -> Result<(Entry<Self::Data>, Opened<Self::File>)> {
        Err(Errno::ENOSYS)
    }

    /// Reads into `buf`; fewer bytes than it holds mean the end of the file.
    fn read(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _offset: u64,
        _buf: &mut [u8],
    ) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Writes. `cached` is true where the kernel writes back its cache and the caller's ids mean nothing.
    fn write(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _offset: u64,
        _data: &[u8],
        _cached: bool,
    ) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Writes at the end, wherever that is: the file is open with `O_APPEND`, and the program itself
    /// writes. `offset` is where the kernel takes the end to be; the default believes it.
    fn append(
        &self,
        req: &Request,
        node: &Node<'_, Self::Data>,
        file: &Self::File,
        offset: u64,
        data: &[u8],
    ) -> Result<usize> {
        self.write(req, node, file, offset, data, false)
    }

    /// A descriptor was closed (there may be others). The last chance to report an error to `close`.
    /// Must not sync. `lock_owner` is whose POSIX locks go now, if locks come here at all.
    fn flush(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _lock_owner: u64,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The last descriptor was closed. `file` is dropped after this, when its last operation ended.
    fn release(&self, _req: &Request, _node: &Node<'_, Self::Data>, _file: &Self::File) {}

    /// Makes the content durable.
    fn fsync(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _data_only: bool,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Opens a directory.
    fn opendir(
        &self,
        req: &Request,
        node: &Node<'_, Self::Data>,
        flags: i32,
    ) -> Result<Opened<Self::Dir>>;

    /// Lists from `offset` on (0: from the start, read anew) until the sink is full or the end.
    /// Offsets are the handler's own: that of an entry is where the next one begins.
    fn readdir(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _dir: &Self::Dir,
        _offset: u64,
        _sink: &mut DirSink<'_>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The same with the entries' attributes. With `ENOSYS` (the default) the adapter answers with
    /// the names that `readdir` gives; [`Handler::wishes`] can turn it off altogether.
    fn readdirplus(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _dir: &Self::Dir,
        _offset: u64,
        _sink: &mut DirPlusSink<'_, Self::Data>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The directory was closed.
    fn releasedir(&self, _req: &Request, _node: &Node<'_, Self::Data>, _dir: &Self::Dir) {}

    /// Makes the directory's entries durable.
    fn fsyncdir(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _dir: &Self::Dir,
        _data_only: bool,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Sizes of the filesystem.
    fn statfs(&self, _req: &Request, _node: &Node<'_, Self::Data>) -> Result<StatFs> {
        Ok(StatFs { block_size: 4096, fragment_size: 4096, name_max: 255, ..StatFs::default() })
    }

    /// Sets an extended attribute. `flags`: `XATTR_CREATE`, `XATTR_REPLACE`.
    fn setxattr(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _name: &OsStr,
        _value: &[u8],
        _flags: i32,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Writes the value into `buf` and answers its size; with an empty `buf` only the size.
    /// `ERANGE` where it doesn't fit.
    fn getxattr(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _name: &OsStr,
        _buf: &mut [u8],
    ) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Writes the names, each ended by a NUL; otherwise as `getxattr`.
    fn listxattr(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _buf: &mut [u8],
    ) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Removes an extended attribute.
    fn removexattr(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _name: &OsStr,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// May the caller? Not called with `default_permissions`.
    fn access(&self, _req: &Request, _node: &Node<'_, Self::Data>, _mask: i32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The lock that stands in the way of this one; `typ` `F_UNLCK` if none.
    fn getlk(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _owner: u64,
        _lock: Lock,
    ) -> Result<Lock> {
        Err(Errno::ENOSYS)
    }

    /// Sets or removes a lock; `EAGAIN` if another owner's is in the way.
    ///
    /// On a mount with a pool `wait` is always false, even for a caller who wants to wait: `EAGAIN`
    /// makes him wait on no thread, and this is called again when a lock of the file is released
    /// (here, or by a flush or release) and every 50 ms, for whoever else may have it. A waiter that is
    /// killed is gone by then too.
    ///
    /// Without a pool ([`Dispatch::Inline`](crate::Dispatch::Inline)) `wait` means: wait here.
    fn setlk(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _owner: u64,
        _lock: Lock,
        _wait: bool,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The device block behind a block of the file.
    fn bmap(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _block_size: u32,
        _index: u64,
    ) -> Result<u64> {
        Err(Errno::ENOSYS)
    }

    /// A restricted ioctl: writes at most `out.len()` bytes and answers (result, bytes written).
    fn ioctl(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _cmd: u32,
        _input: &[u8],
        _out: &mut [u8],
    ) -> Result<(i32, usize)> {
        Err(Errno::ENOTTY)
    }

    /// Which of `events` are ready. A handler that keeps `notifier` calls it when that changes.
    fn poll(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _events: u32,
        _notifier: Option<Box<dyn PollNotifier>>,
    ) -> Result<u32> {
        Err(Errno::ENOSYS)
    }

    /// Allocates, punches holes, ...: `fallocate(2)`.
    fn fallocate(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _offset: u64,
        _length: u64,
        _mode: i32,
    ) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `SEEK_DATA` and `SEEK_HOLE`.
    fn lseek(
        &self,
        _req: &Request,
        _node: &Node<'_, Self::Data>,
        _file: &Self::File,
        _offset: i64,
        _whence: i32,
    ) -> Result<i64> {
        Err(Errno::ENOSYS)
    }

    /// Copies within the filesystem; answers the bytes copied.
    fn copy_file_range(
        &self,
        _req: &Request,
        _from: CopyEnd<'_, Self>,
        _to: CopyEnd<'_, Self>,
        _length: u64,
    ) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
}
