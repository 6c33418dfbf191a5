//! A filesystem in memory, by paths, for the tests: it can be told to fail, panic or wait, its
//! content can be changed behind the mount, and it sees what it is asked.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pinpath_fuse::{
    Attr, DirPlusSink, DirSink, Entry, Errno, FileType, Fit, Found, Handler, Lifetimes, Lock, Name,
    Negotiation, Node, NodeData, Numbering, Opened, Operation, RenameFlags, Request, SetAttr,
    SetTime,
};

use super::namespace::{self, Tree};

type Result<T> = std::result::Result<T, Errno>;

/// The first inode number: far from the small node ids.
pub(crate) const FIRST_INO: u64 = 1 << 40;

/// How large a file may be, in bytes.
const LARGEST: u64 = 1 << 24;

/// What is kept beside a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) Option<u64>);

impl NodeData for Id {
    type Identity = u64;

    fn identity(&self) -> Option<&u64> {
        self.0.as_ref()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) attr: Attr,
    pub(crate) content: Arc<Mutex<Vec<u8>>>,
}

type Hook = Box<dyn Fn(Operation, &Path) -> Result<()> + Send + Sync>;

pub(crate) struct Memory {
    pub(crate) tree: Mutex<Tree>,
    pub(crate) next_ino: AtomicU64,
    pub(crate) lifetimes: Lifetimes,
    /// Do inode numbers identify files to the resolver?
    pub(crate) identities: bool,
    /// Is a directory that turns up twice really seen twice?
    pub(crate) seen_twice: bool,
    pub(crate) plus: bool,
    pub(crate) wishes: fn(&mut Negotiation),
    /// Called before every operation with its path.
    pub(crate) hook: Mutex<Option<Arc<Hook>>>,
    pub(crate) opened: AtomicUsize,
    pub(crate) released: AtomicUsize,
    pub(crate) inits: AtomicUsize,
    pub(crate) destroyed: Arc<AtomicUsize>,
    pub(crate) init: fn() -> std::io::Result<()>,
    /// Who has locked a file: its content's address, the lock's owner, the open file's address.
    pub(crate) locks: Mutex<Vec<(usize, u64, usize)>>,
}

impl Default for Memory {
    fn default() -> Self {
        let memory = Memory {
            tree: Mutex::default(),
            next_ino: AtomicU64::new(FIRST_INO),
            lifetimes: Lifetimes::SECOND,
            identities: false,
            seen_twice: false,
            plus: true,
            wishes: |_| (),
            hook: Mutex::default(),
            opened: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            inits: AtomicUsize::new(0),
            destroyed: Arc::default(),
            init: || Ok(()),
            locks: Mutex::default(),
        };
        memory.put("", FileType::Directory, b"");
        memory
    }
}

impl Memory {
    pub(crate) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes a file or directory behind the mount; answers its inode number.
    pub(crate) fn put(&self, path: impl AsRef<Path>, file_type: FileType, content: &[u8]) -> u64 {
        let file = self.new_file(file_type, content);
        let ino = file.attr.ino;
        self.tree().insert(path.as_ref().to_owned(), file);
        ino
    }

    fn new_file(&self, file_type: FileType, content: &[u8]) -> File {
        let ino = self.next_ino.fetch_add(1, SeqCst);
        let perm = if file_type == FileType::Directory { 0o755 } else { 0o644 };
        let attr = Attr::new(ino, file_type, perm);
        File { attr, content: Arc::new(Mutex::new(content.to_vec())) }
    }

    /// Renames behind the mount, with all that is below.
    pub(crate) fn move_tree(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        namespace::move_tree(&mut self.tree(), from.as_ref(), to.as_ref());
    }

    /// How many files and directories were opened, and how many of them released.
    pub(crate) fn opened_and_released(&self) -> (usize, usize) {
        (self.opened.load(SeqCst), self.released.load(SeqCst))
    }

    pub(crate) fn set_hook(
        &self,
        hook: impl Fn(Operation, &Path) -> Result<()> + Send + Sync + 'static,
    ) {
        *self.hook.lock().unwrap() = Some(Arc::new(Box::new(hook)));
    }

    fn before(&self, operation: Operation, path: &Path) -> Result<()> {
        let hook = self.hook.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        hook.map_or(Ok(()), |hook| hook(operation, path))
    }

    fn file(&self, path: &Path) -> Result<File> {
        self.tree().get(path).cloned().ok_or(Errno::ENOENT)
    }

    fn attr_of(&self, file: &File) -> Attr {
        let attr = file.attr.with_size(file.content.lock().unwrap().len() as u64);
        let same = |other: &&File| other.attr.ino == attr.ino;
        Attr { nlink: self.tree().values().filter(same).count() as u32, ..attr }
    }

    fn entry(&self, path: &Path) -> Result<Entry<Id>> {
        let attr = self.attr_of(&self.file(path)?);
        let data = Id(self.identities.then_some(attr.ino));
        Ok(Entry { attr, data, lifetimes: self.lifetimes })
    }

    fn make(
        &self,
        operation: Operation,
        parent: &Node<'_, Id>,
        name: &Name,
        file_type: FileType,
        content: &[u8],
    ) -> Result<Entry<Id>> {
        let path = parent.path()?.join(name.as_os_str());
        self.before(operation, &path)?;
        let file = self.new_file(file_type, content);
        namespace::add(&mut self.tree(), &path, file)?;
        self.entry(&path)
    }

    fn children(&self, path: &Path) -> Vec<(OsString, File)> {
        let tree = self.tree();
        namespace::children(&tree, path)
            .map(|(child, file)| (child.file_name().unwrap().to_owned(), file.clone()))
            .collect()
    }
}

/// Where a write or a truncation ends.
fn end_within_limit(offset: u64, length: u64) -> Result<usize> {
    let end = offset.checked_add(length).filter(|end| *end <= LARGEST).ok_or(Errno::EFBIG)?;
    Ok(end as usize)
}

/// An open file: its content, wherever its name goes.
pub(crate) struct OpenFile(Arc<Mutex<Vec<u8>>>);

/// An open directory, as it was when it was listed from the start.
pub(crate) struct OpenDir(Mutex<Vec<(OsString, File)>>);

impl Handler for Memory {
    type Data = Id;
    type File = OpenFile;
    type Dir = OpenDir;

    fn root_data(&self) -> Id {
        Id(self.identities.then_some(FIRST_INO))
    }

    fn wishes(&self, wishes: &mut Negotiation) {
        (self.wishes)(wishes);
    }

    fn init(&self, _agreed: &Negotiation) -> std::io::Result<()> {
        self.inits.fetch_add(1, SeqCst);
        (self.init)()
    }

    fn destroy(&self) {
        self.destroyed.fetch_add(1, SeqCst);
    }

    fn lookup(&self, _req: &Request, parent: &Node<'_, Id>, name: &Name) -> Result<Found<Id>> {
        let path = parent.path()?.join(name.as_os_str());
        let entry = self.entry(&path);
        // Here "before" is before the answer.
        self.before(Operation::Lookup, &path)?;
        entry.map(Found::Entry)
    }

    fn still_there(&self, node: &Node<'_, Id>) -> bool {
        self.seen_twice && node.path().is_ok_and(|path| self.file(&path).is_ok())
    }

    fn without_identity(&self, _data: Id) -> Id {
        Id(None)
    }

    fn getattr(
        &self,
        _req: &Request,
        node: &Node<'_, Id>,
        _file: Option<&OpenFile>,
    ) -> Result<(Attr, Duration)> {
        let path = node.path()?;
        self.before(Operation::GetAttr, &path)?;
        Ok((self.attr_of(&self.file(&path)?), self.lifetimes.attr))
    }

    fn setattr(
        &self,
        _req: &Request,
        node: &Node<'_, Id>,
        set: &SetAttr<'_, OpenFile>,
    ) -> Result<(Attr, Duration)> {
        let path = node.path()?;
        self.before(Operation::SetAttr, &path)?;
        let mut tree = self.tree();
        let file = tree.get_mut(path.as_path()).ok_or(Errno::ENOENT)?;
        if let Some(perm) = set.perm {
            file.attr.perm = perm as u16;
        }
        if let Some(size) = set.size {
            if file.attr.file_type == FileType::Directory {
                return Err(Errno::EISDIR);
            }
            file.content.lock().unwrap().resize(end_within_limit(0, size)?, 0);
        }
        if let Some(SetTime::At(time)) = set.atime {
            file.attr.atime = time;
        }
        if let Some(SetTime::At(time)) = set.mtime {
            file.attr.mtime = time;
        }
        let file = file.clone();
        drop(tree);
        Ok((self.attr_of(&file), self.lifetimes.attr))
    }

    fn readlink(&self, _req: &Request, node: &Node<'_, Id>) -> Result<OsString> {
        let file = self.file(&node.path()?)?;
        let target = file.content.lock().unwrap().clone();
        Ok(OsStr::from_bytes(&target).to_owned())
    }

    fn mkdir(
        &self,
        _req: &Request,
        parent: &Node<'_, Id>,
        name: &Name,
        _mode: u32,
        _umask: u32,
    ) -> Result<Entry<Id>> {
        self.make(Operation::MkDir, parent, name, FileType::Directory, b"")
    }

    fn symlink(
        &self,
        _req: &Request,
        parent: &Node<'_, Id>,
        name: &Name,
        target: &OsStr,
    ) -> Result<Entry<Id>> {
        self.make(Operation::SymLink, parent, name, FileType::Symlink, target.as_bytes())
    }

    fn create(
        &self,
        _req: &Request,
        parent: &Node<'_, Id>,
        name: &Name,
        _mode: u32,
        _umask: u32,
        _flags: i32,
    ) -> Result<(Entry<Id>, Opened<OpenFile>)> {
        let entry = self.make(Operation::Create, parent, name, FileType::Regular, b"")?;
        let file = self.file(&parent.path()?.join(name.as_os_str()))?;
        self.opened.fetch_add(1, SeqCst);
        Ok((entry, Opened::new(OpenFile(file.content))))
    }

    fn unlink(&self, _req: &Request, parent: &Node<'_, Id>, name: &Name) -> Result<()> {
        let path = parent.path()?.join(name.as_os_str());
        self.before(Operation::Unlink, &path)?;
        namespace::unlink(&mut self.tree(), &path)
    }

    fn rmdir(&self, _req: &Request, parent: &Node<'_, Id>, name: &Name) -> Result<()> {
        let path = parent.path()?.join(name.as_os_str());
        self.before(Operation::RmDir, &path)?;
        namespace::rmdir(&mut self.tree(), &path)
    }

    fn rename(
        &self,
        _req: &Request,
        parent: &Node<'_, Id>,
        name: &Name,
        newparent: &Node<'_, Id>,
        newname: &Name,
        flags: RenameFlags,
    ) -> Result<()> {
        let from = parent.path()?.join(name.as_os_str());
        let to = newparent.path()?.join(newname.as_os_str());
        self.before(Operation::Rename, &from)?;
        namespace::rename(&mut self.tree(), &from, &to, flags)
    }

    fn link(
        &self,
        _req: &Request,
        node: &Node<'_, Id>,
        newparent: &Node<'_, Id>,
        newname: &Name,
    ) -> Result<Entry<Id>> {
        let from = node.path()?;
        let to = newparent.path()?.join(newname.as_os_str());
        self.before(Operation::Link, &from)?;
        namespace::link(&mut self.tree(), &from, &to)?;
        self.entry(&to)
    }

    fn open(&self, _req: &Request, node: &Node<'_, Id>, _flags: i32) -> Result<Opened<OpenFile>> {
        let path = node.path()?;
        self.before(Operation::Open, &path)?;
        let file = self.file(&path)?;
        if file.attr.file_type == FileType::Directory {
            return Err(Errno::EISDIR);
        }
        self.opened.fetch_add(1, SeqCst);
        Ok(Opened::new(OpenFile(file.content)))
    }

    fn read(
        &self,
        _req: &Request,
        node: &Node<'_, Id>,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        // The path only for the hook: an open file needs none.
        let path = node.path().map(|path| path.to_owned()).unwrap_or_default();
        self.before(Operation::Read, &path)?;
        let content = file.0.lock().unwrap();
        let rest = content.get(offset as usize..).unwrap_or_default();
        let size = rest.len().min(buf.len());
        buf[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn write(
        &self,
        _req: &Request,
        _node: &Node<'_, Id>,
        file: &OpenFile,
        offset: u64,
        data: &[u8],
        _cached: bool,
    ) -> Result<usize> {
        let mut content = file.0.lock().unwrap();
        let end = end_within_limit(offset, data.len() as u64)?;
        let start = end - data.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(data);
        Ok(data.len())
    }

    /// A lock is for the whole file and excludes all others.
    fn setlk(
        &self,
        _req: &Request,
        _node: &Node<'_, Id>,
        file: &OpenFile,
        owner: u64,
        lock: Lock,
        wait: bool,
    ) -> Result<()> {
        assert!(!wait, "the adapter waits");
        let key = Arc::as_ptr(&file.0) as usize;
        let mut locks = self.locks.lock().unwrap();
        let held = locks.iter().position(|held| held.0 == key);
        match (lock.typ, held) {
            (libc::F_UNLCK, Some(held)) if locks[held].1 == owner => drop(locks.remove(held)),
            (libc::F_UNLCK, _) => {}
            (_, Some(held)) if locks[held].1 != owner => return Err(Errno::EAGAIN),
            (_, Some(_)) => {}
            (_, None) => locks.push((key, owner, file as *const OpenFile as usize)),
        }
        Ok(())
    }

    fn release(&self, _req: &Request, _node: &Node<'_, Id>, file: &OpenFile) {
        // Closing the open file that has the lock releases it.
        self.locks.lock().unwrap().retain(|held| held.2 != file as *const OpenFile as usize);
        self.released.fetch_add(1, SeqCst);
    }

    fn opendir(&self, _req: &Request, node: &Node<'_, Id>, _flags: i32) -> Result<Opened<OpenDir>> {
        let path = node.path()?;
        self.before(Operation::OpenDir, &path)?;
        namespace::directory(&self.tree(), &path)?;
        self.opened.fetch_add(1, SeqCst);
        Ok(Opened::new(OpenDir(Mutex::default())))
    }

    fn readdir(
        &self,
        _req: &Request,
        node: &Node<'_, Id>,
        dir: &OpenDir,
        offset: u64,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        let path = node.path()?;
        self.before(Operation::ReadDir, &path)?;
        let mut entries = dir.0.lock().unwrap();
        if offset == 0 {
            *entries = self.children(&path);
        }
        for (index, (name, file)) in entries.iter().enumerate().skip(offset as usize) {
            if sink.add(file.attr.ino, file.attr.file_type, name.as_bytes(), index as u64 + 1)
                == Fit::Full
            {
                break;
            }
        }
        Ok(())
    }

    fn readdirplus(
        &self,
        _req: &Request,
        node: &Node<'_, Id>,
        dir: &OpenDir,
        offset: u64,
        sink: &mut DirPlusSink<'_, Id>,
    ) -> Result<()> {
        if !self.plus {
            return Err(Errno::ENOSYS);
        }
        let path = node.path()?.to_owned();
        self.before(Operation::ReadDirPlus, &path)?;
        let mut entries = dir.0.lock().unwrap();
        if offset == 0 {
            *entries = self.children(&path);
        }
        for (index, (name, _)) in entries.iter().enumerate().skip(offset as usize) {
            let Ok(entry) = self.entry(&path.join(name)) else { continue };
            if sink.add(name.as_bytes(), index as u64 + 1, entry) == Fit::Full {
                break;
            }
        }
        Ok(())
    }

    fn releasedir(&self, _req: &Request, _node: &Node<'_, Id>, _dir: &OpenDir) {
        self.released.fetch_add(1, SeqCst);
    }

    fn numbering(&self) -> Numbering {
        Numbering::Resolver
    }
}
