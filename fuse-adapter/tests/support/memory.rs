//! A filesystem in memory, by paths, for the tests: it can be told to fail, panic or wait, its
//! content can be changed behind the mount, and it sees what it is asked.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pinpath_fuse::{
    Attr, DirPlusSink, DirSink, Entry, Errno, FileType, Fit, Found, Handler, Lifetimes, Name,
    Negotiation, Node, NodeData, Numbering, Opened, Operation, RenameFlags, Request, SetAttr,
    SetTime,
};

type Result<T> = std::result::Result<T, Errno>;

/// The first inode number: far from the small node ids.
pub(crate) const FIRST_INO: u64 = 1 << 40;

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
    pub(crate) tree: Mutex<BTreeMap<PathBuf, File>>,
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
        };
        memory.put("", FileType::Directory, b"");
        memory
    }
}

impl Memory {
    pub(crate) fn tree(&self) -> MutexGuard<'_, BTreeMap<PathBuf, File>> {
        self.tree.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes a file or directory behind the mount; answers its inode number.
    pub(crate) fn put(&self, path: impl AsRef<Path>, file_type: FileType, content: &[u8]) -> u64 {
        let ino = self.next_ino.fetch_add(1, SeqCst);
        let perm = if file_type == FileType::Directory { 0o755 } else { 0o644 };
        let attr = Attr::new(ino, file_type, perm);
        let content = Arc::new(Mutex::new(content.to_vec()));
        self.tree().insert(path.as_ref().to_owned(), File { attr, content });
        ino
    }

    /// Renames behind the mount, with all that is below.
    pub(crate) fn move_tree(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let mut tree = self.tree();
        let moved: Vec<PathBuf> =
            tree.keys().filter(|path| path.starts_with(&from)).cloned().collect();
        let files: Vec<(PathBuf, File)> = moved
            .into_iter()
            .filter_map(|path| Some((path.clone(), tree.remove(&path)?)))
            .collect();
        for (path, file) in files {
            let rest = path.strip_prefix(&from).unwrap();
            let path = if rest.as_os_str().is_empty() {
                to.as_ref().to_owned()
            } else {
                to.as_ref().join(rest)
            };
            tree.insert(path, file);
        }
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
        if self.tree().contains_key(&path) {
            return Err(Errno::EEXIST);
        }
        self.put(&path, file_type, content);
        self.entry(&path)
    }

    fn children(&self, path: &Path) -> Vec<(OsString, File)> {
        let tree = self.tree();
        let below = tree.iter().filter(|(child, _)| child.parent() == Some(path));
        below.map(|(child, file)| (child.file_name().unwrap().to_owned(), file.clone())).collect()
    }
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
            file.content.lock().unwrap().resize(size as usize, 0);
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
        self.tree().remove(&path).map(drop).ok_or(Errno::ENOENT)
    }

    fn rmdir(&self, _req: &Request, parent: &Node<'_, Id>, name: &Name) -> Result<()> {
        let path = parent.path()?.join(name.as_os_str());
        self.before(Operation::RmDir, &path)?;
        if !self.children(&path).is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.tree().remove(&path).map(drop).ok_or(Errno::ENOENT)
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
        self.file(&from)?;
        let there = self.file(&to);
        if flags.no_replace && there.is_ok() {
            return Err(Errno::EEXIST);
        }
        if flags.exchange {
            there?;
            self.move_tree(&from, "exchanging");
            self.move_tree(&to, &from);
            self.move_tree("exchanging", &to);
            return Ok(());
        }
        self.tree().remove(&to);
        self.move_tree(&from, &to);
        Ok(())
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
        let file = self.file(&from)?;
        self.tree().insert(to.clone(), file);
        self.entry(&to)
    }

    fn open(&self, _req: &Request, node: &Node<'_, Id>, _flags: i32) -> Result<Opened<OpenFile>> {
        let path = node.path()?;
        self.before(Operation::Open, &path)?;
        let file = self.file(&path)?;
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
        let (start, end) = (offset as usize, offset as usize + data.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(data);
        Ok(data.len())
    }

    fn release(&self, _req: &Request, _node: &Node<'_, Id>, _file: &OpenFile) {
        self.released.fetch_add(1, SeqCst);
    }

    fn opendir(&self, _req: &Request, node: &Node<'_, Id>, _flags: i32) -> Result<Opened<OpenDir>> {
        let path = node.path()?;
        self.before(Operation::OpenDir, &path)?;
        self.file(&path)?;
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
        let mut entries = dir.0.lock().unwrap();
        let path = node.path()?;
        self.before(Operation::ReadDir, &path)?;
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
        let mut entries = dir.0.lock().unwrap();
        let path = node.path()?.to_owned();
        self.before(Operation::ReadDirPlus, &path)?;
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
