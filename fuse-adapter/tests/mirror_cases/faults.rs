//! A source that is full, read-only, or fails.
//!
//! The failing one is a filesystem of our own: a mirror of a plain directory that fails when told
//! to, before or after it did what it was asked for. What the mirror under test shows afterwards
//! must be what is there, whatever the failing one claimed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use pinpath_fuse::mirror::{MirrorDir, MirrorFile, MirrorNode};
use pinpath_fuse::{
    Attr, DirSink, Entry, Errno, Found, Handler, Name, Negotiation, Node, Opened, RenameFlags,
    Request, Result, SetAttr, StatFs,
};
use rustix::mount::MountFlags;

use super::mounts::Tmpfs;
use super::*;

/// When and with what it fails; 0: it doesn't.
#[derive(Debug, Default)]
struct Fault {
    before: AtomicI32,
    after: AtomicI32,
}

impl Fault {
    /// Fails with `before` and does nothing, or does it and then fails with `after`.
    fn set(&self, before: i32, after: i32) {
        self.before.store(before, Ordering::SeqCst);
        self.after.store(after, Ordering::SeqCst);
    }

    fn around<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let fails = |when: &AtomicI32| match when.load(Ordering::SeqCst) {
            0 => Ok(()),
            number => Err(Errno::from_raw(number)),
        };
        fails(&self.before)?;
        let done = work()?;
        fails(&self.after)?;
        Ok(done)
    }
}

struct Failing {
    mirror: Mirror,
    fault: Arc<Fault>,
}

type At<'a> = Node<'a, MirrorNode>;

/// Reading attributes and names always works: what fails is what somebody wants done.
impl Handler for Failing {
    type Data = MirrorNode;
    type File = MirrorFile;
    type Dir = MirrorDir;

    fn root_data(&self) -> MirrorNode {
        self.mirror.root_data()
    }
    fn wishes(&self, wishes: &mut Negotiation) {
        self.mirror.wishes(wishes);
    }
    fn lookup(&self, req: &Request, parent: &At<'_>, name: &Name) -> Result<Found<MirrorNode>> {
        self.mirror.lookup(req, parent, name)
    }
    fn getattr(
        &self,
        req: &Request,
        node: &At<'_>,
        file: Option<&MirrorFile>,
    ) -> Result<(Attr, Duration)> {
        self.mirror.getattr(req, node, file)
    }
    fn setattr(
        &self,
        req: &Request,
        node: &At<'_>,
        set: &SetAttr<'_, MirrorFile>,
    ) -> Result<(Attr, Duration)> {
        self.fault.around(|| self.mirror.setattr(req, node, set))
    }
    fn mkdir(
        &self,
        req: &Request,
        parent: &At<'_>,
        name: &Name,
        mode: u32,
        umask: u32,
    ) -> Result<Entry<MirrorNode>> {
        self.fault.around(|| self.mirror.mkdir(req, parent, name, mode, umask))
    }
    fn unlink(&self, req: &Request, parent: &At<'_>, name: &Name) -> Result<()> {
        self.fault.around(|| self.mirror.unlink(req, parent, name))
    }
    fn rmdir(&self, req: &Request, parent: &At<'_>, name: &Name) -> Result<()> {
        self.fault.around(|| self.mirror.rmdir(req, parent, name))
    }
    fn symlink(
        &self,
        req: &Request,
        parent: &At<'_>,
        name: &Name,
        target: &std::ffi::OsStr,
    ) -> Result<Entry<MirrorNode>> {
        self.fault.around(|| self.mirror.symlink(req, parent, name, target))
    }
    fn readlink(&self, req: &Request, node: &At<'_>) -> Result<std::ffi::OsString> {
        self.mirror.readlink(req, node)
    }
    fn rename(
        &self,
        req: &Request,
        parent: &At<'_>,
        name: &Name,
        newparent: &At<'_>,
        newname: &Name,
        flags: RenameFlags,
    ) -> Result<()> {
        self.fault.around(|| self.mirror.rename(req, parent, name, newparent, newname, flags))
    }
    fn link(
        &self,
        req: &Request,
        node: &At<'_>,
        newparent: &At<'_>,
        newname: &Name,
    ) -> Result<Entry<MirrorNode>> {
        self.fault.around(|| self.mirror.link(req, node, newparent, newname))
    }
    fn open(&self, req: &Request, node: &At<'_>, flags: i32) -> Result<Opened<MirrorFile>> {
        self.mirror.open(req, node, flags)
    }
    fn create(
        &self,
        req: &Request,
        parent: &At<'_>,
        name: &Name,
        mode: u32,
        umask: u32,
        flags: i32,
    ) -> Result<(Entry<MirrorNode>, Opened<MirrorFile>)> {
        self.fault.around(|| self.mirror.create(req, parent, name, mode, umask, flags))
    }
    fn read(
        &self,
        req: &Request,
        node: &At<'_>,
        file: &MirrorFile,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        self.fault.around(|| self.mirror.read(req, node, file, offset, buf))
    }
    fn write(
        &self,
        req: &Request,
        node: &At<'_>,
        file: &MirrorFile,
        offset: u64,
        data: &[u8],
        cached: bool,
    ) -> Result<usize> {
        self.fault.around(|| self.mirror.write(req, node, file, offset, data, cached))
    }
    fn flush(&self, _: &Request, _: &At<'_>, _: &MirrorFile, _: u64) -> Result<()> {
        self.fault.around(|| Ok(()))
    }
    fn fsync(
        &self,
        req: &Request,
        node: &At<'_>,
        file: &MirrorFile,
        data_only: bool,
    ) -> Result<()> {
        self.fault.around(|| self.mirror.fsync(req, node, file, data_only))
    }
    fn opendir(&self, req: &Request, node: &At<'_>, flags: i32) -> Result<Opened<MirrorDir>> {
        self.mirror.opendir(req, node, flags)
    }
    fn readdir(
        &self,
        req: &Request,
        node: &At<'_>,
        dir: &MirrorDir,
        offset: u64,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        self.mirror.readdir(req, node, dir, offset, sink)
    }
    fn statfs(&self, req: &Request, node: &At<'_>) -> Result<StatFs> {
        self.mirror.statfs(req, node)
    }
}

/// A plain directory, the failing filesystem over it, and the mirror of that, which is tested.
struct Stack {
    // In the order in which they go.
    tested: Mirrored,
    failing: Mount<Failing>,
    _failing_at: Mountpoint,
    plain: TempDir,
    fault: Arc<Fault>,
}

impl Stack {
    fn new(cache: Cache) -> Option<Self> {
        let (plain, failing_at) = (open_directory(), mountpoint()?);
        let fault = Arc::new(Fault::default());
        let mut uncached = MirrorOptions::default();
        uncached.cache = Cache::None;
        let mirror = Mirror::open(plain.path(), uncached).unwrap();
        let mut mount_options = MountOptions::default();
        mount_options.allow_other = true;
        let failing = Failing { mirror, fault: Arc::clone(&fault) };
        let failing = pinpath_fuse::mount(failing, failing_at.path(), &mount_options).unwrap();
        let mut options = MirrorOptions::default();
        options.cache = cache;
        let mirror = Mirror::open(failing_at.path(), options).unwrap();
        // What is below is no source that this one looks into by path.
        let tested = Mirrored::of(mirror, mountpoint()?, open_directory())?;
        Some(Stack { tested, failing, _failing_at: failing_at, plain, fault })
    }

    fn at(&self, path: &str) -> PathBuf {
        self.tested.at(path)
    }

    /// What the mirror shows is what is there.
    #[track_caller]
    fn is_true(&self, when: &str) {
        let shown = || names(self.tested.mountpoint.path());
        let there = names(self.plain.path());
        support::eventually(when, LIMIT / 4, || shown() == there);
    }
}

/// Everything below a directory: name, type and size of files.
fn names(root: &Path) -> Vec<(PathBuf, bool, u64)> {
    let mut found = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        // Something may have gone since it was listed.
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(meta) = std::fs::symlink_metadata(entry.path()) else { continue };
            if meta.is_dir() {
                todo.push(entry.path());
            }
            let name = entry.path().strip_prefix(root).unwrap().to_owned();
            found.push((name, meta.is_dir(), if meta.is_dir() { 0 } else { meta.len() }));
        }
    }
    found.sort();
    found
}

/// Things to do, each from the same beginning: `d` with `f` in it, `e`, and `f`.
type Deed = (&'static str, fn(&Stack) -> std::io::Result<()>);

const DEEDS: [Deed; 12] = [
    ("create", |stack| std::fs::File::create(stack.at("d/new")).map(drop)),
    ("mkdir", |stack| std::fs::create_dir(stack.at("d/new"))),
    ("symlink", |stack| std::os::unix::fs::symlink("x", stack.at("d/new"))),
    ("link", |stack| std::fs::hard_link(stack.at("f"), stack.at("d/new"))),
    ("unlink", |stack| std::fs::remove_file(stack.at("d/f"))),
    ("rmdir", |stack| std::fs::remove_dir(stack.at("e"))),
    ("rename a file", |stack| std::fs::rename(stack.at("f"), stack.at("d/moved"))),
    ("rename over a file", |stack| std::fs::rename(stack.at("f"), stack.at("d/f"))),
    ("rename a directory", |stack| std::fs::rename(stack.at("d"), stack.at("moved"))),
    ("rename over a directory", |stack| std::fs::rename(stack.at("d"), stack.at("e"))),
    ("truncate", |stack| std::fs::OpenOptions::new().write(true).open(stack.at("f"))?.set_len(1)),
    ("write", |stack| {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(stack.at("f"))?;
        file.write_all_at(b"changed and longer", 0)?;
        file.sync_all()
    }),
];

/// The error reaches the caller, and names lead to what is there, whether it was done or not.
#[test]
fn a_failing_source() {
    for cache in [Cache::None, Cache::Auto] {
        for (name, deed) in DEEDS {
            for (before, after) in [(libc::EIO, 0), (0, libc::EIO)] {
                let Some(stack) = Stack::new(cache) else { return };
                let plain = |path: &str| stack.plain.path().join(path);
                for dir in ["d", "e"] {
                    std::fs::create_dir(plain(dir)).unwrap();
                }
                for file in ["d/f", "f"] {
                    write(plain(file), "content");
                }
                // The kernel and the table know all of it.
                stack.is_true("before");
                stack.fault.set(before, after);
                let failed = deed(&stack);
                stack.fault.set(0, 0);
                assert_eq!(errno(failed), libc::EIO, "{name}, {cache:?}, {before}, {after}");
                stack.is_true(name);
                // And it goes on: whatever can still be done is done.
                let _ = deed(&stack);
                stack.is_true("after it works again");
                write(stack.at("later"), "works");
                assert_eq!(read(plain("later")), "works");
            }
        }
    }
}

/// Whatever the source says, the caller hears.
#[test]
fn errors_come_through_as_they_are() {
    let Some(stack) = Stack::new(Cache::Auto) else { return };
    write(stack.at("f"), "content");
    let open = std::fs::File::open(stack.at("f")).unwrap();
    for number in [
        libc::EIO,
        libc::ENOSPC,
        libc::EDQUOT,
        libc::EROFS,
        libc::EACCES,
        libc::EPERM,
        libc::ETIMEDOUT,
    ] {
        stack.fault.set(number, 0);
        assert_eq!(errno(std::fs::File::create(stack.at("new"))), number);
        assert_eq!(errno(std::fs::create_dir(stack.at("new"))), number);
        assert_eq!(errno(std::fs::remove_file(stack.at("f"))), number);
        assert_eq!(errno(open.sync_all()), number);
        stack.fault.set(0, 0);
        assert!(!stack.at("new").exists() && stack.at("f").exists());
    }
}

/// A source whose server has died: every request is answered, with an error.
#[test]
fn a_dead_source() {
    let Some(stack) = Stack::new(Cache::None) else { return };
    write(stack.at("f"), "content");
    let open = std::fs::File::open(stack.at("f")).unwrap();
    stack.failing.unmounter().abort().unwrap();
    assert_eq!(errno(open.sync_all()), libc::ENOTCONN);
    assert_eq!(errno(std::fs::create_dir(stack.at("new"))), libc::ENOTCONN);
    assert!(std::fs::metadata(stack.at("f")).is_err());
    drop(open);
    assert!(std::fs::read_dir(stack.tested.mountpoint.path()).is_err());
}

fn over_tmpfs(options: &str) -> Option<(Tmpfs, Mirrored)> {
    let source = open_directory();
    let tmpfs = Tmpfs::on(source.path(), options)?;
    let mirror = Mirror::open(source.path(), MirrorOptions::default()).unwrap();
    Some((tmpfs, Mirrored::of(mirror, mountpoint()?, source)?))
}

/// No inode is left for anything new, and then some are.
#[test]
fn a_source_without_inodes() {
    let Some((_tmpfs, mirrored)) = over_tmpfs("nr_inodes=10") else { return };
    let made =
        (0..20).take_while(|n| std::fs::create_dir(mirrored.at(&n.to_string())).is_ok()).count();
    assert!((5..10).contains(&made), "{made}");
    assert_eq!(errno(std::fs::create_dir(mirrored.at("new"))), libc::ENOSPC);
    assert_eq!(errno(std::fs::File::create(mirrored.at("new"))), libc::ENOSPC);
    assert_eq!(errno(std::os::unix::fs::symlink("x", mirrored.at("new"))), libc::ENOSPC);
    assert!(!mirrored.at("new").exists());
    std::fs::rename(mirrored.at("0"), mirrored.at("new")).unwrap();
    std::fs::remove_dir(mirrored.at("1")).unwrap();
    // Somebody could have the removed one as working directory, until the kernel forgets it.
    let succeeds = || std::fs::write(mirrored.at("f"), "").is_ok();
    support::eventually("its inode is free", LIMIT / 4, succeeds);
    assert_eq!(std::fs::read_dir(mirrored.mountpoint.path()).unwrap().count(), made);
}

/// The source becomes read-only, as after an error of the disk, and writable again.
#[test]
fn a_source_that_becomes_read_only() {
    let Some((_tmpfs, mirrored)) = over_tmpfs("size=1m") else { return };
    std::fs::create_dir(mirrored.at("d")).unwrap();
    write(mirrored.at("d/f"), "content");
    let remount = |flags| {
        // Busy as long as a file is open for writing, and it is released after it was closed.
        let again = || rustix::mount::mount_remount(mirrored.source.path(), flags, "").is_ok();
        support::eventually("remounted", LIMIT / 4, again);
    };
    remount(MountFlags::RDONLY);
    assert_eq!(errno(std::fs::File::create(mirrored.at("d/new"))), libc::EROFS);
    assert_eq!(
        errno(std::fs::OpenOptions::new().write(true).open(mirrored.at("d/f"))),
        libc::EROFS
    );
    assert_eq!(errno(std::fs::rename(mirrored.at("d"), mirrored.at("e"))), libc::EROFS);
    assert_eq!(errno(std::fs::remove_file(mirrored.at("d/f"))), libc::EROFS);
    assert_eq!(
        errno(std::fs::set_permissions(mirrored.at("d/f"), PermissionsExt::from_mode(0o600))),
        libc::EROFS
    );
    assert_eq!(read(mirrored.at("d/f")), "content");
    remount(MountFlags::empty());
    std::fs::rename(mirrored.at("d"), mirrored.at("e")).unwrap();
    write(mirrored.at("e/f"), "changed");
    assert_eq!(read(mirrored.behind("e/f")), "changed");
}
