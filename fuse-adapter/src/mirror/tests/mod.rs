//! The mirror driven without a mount: the handler's methods, and a resolver that follows what they
//! answer as the dispatcher would make it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinpath::{Inode, Name, Resolver};
use tempfile::TempDir;

use super::*;
use crate::FileType;

mod callers;
mod content;
mod directories;
mod paths;
mod right_file;
mod xattrs;

pub(super) struct World {
    dir: TempDir,
    pub(super) mirror: Mirror,
    pub(super) resolver: Resolver<MirrorNode>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(MirrorOptions::default())
    }

    pub(super) fn with(options: MirrorOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("source")).unwrap();
        let mirror = Mirror::open(dir.path().join("source"), options).unwrap();
        let resolver = Resolver::new(mirror.root_data());
        World { dir, mirror, resolver }
    }

    /// A place in the source, to be changed behind the mirror.
    pub(super) fn source(&self, path: &str) -> PathBuf {
        self.dir.path().join("source").join(path)
    }

    /// A place beside the source, which the mirror must never reach.
    pub(super) fn outside(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(super) fn write(&self, path: &str, content: &str) {
        std::fs::write(self.source(path), content).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.source(path)).unwrap()
    }

    /// How many descriptors of this process lead into the source or to what was in it.
    pub(super) fn descriptors(&self) -> usize {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        targets.filter(|target| target.starts_with(self.source(""))).count()
    }

    pub(super) fn node(&self, inode: Inode) -> MirrorRef<'_> {
        Node::new(inode, Some(&self.resolver))
    }

    pub(super) fn root(&self) -> MirrorRef<'_> {
        self.node(Inode::ROOT)
    }

    /// Looks up name after name, as a kernel does.
    pub(super) fn look(&self, path: impl AsRef<Path>) -> Result<MirrorRef<'_>> {
        let mut at = Inode::ROOT;
        for component in path.as_ref().iter() {
            let name = Name::new(component.as_bytes()).unwrap();
            match self.mirror.lookup(&ME, &self.node(at), name)? {
                Found::Entry(entry) => at = self.enter(at, name, entry),
                Found::Nothing(_) => return Err(Errno::ENOENT),
            }
        }
        Ok(self.node(at))
    }

    pub(super) fn enter(&self, parent: Inode, name: &Name, entry: Entry<MirrorNode>) -> Inode {
        self.resolver.lookup(parent, name, entry.attr.file_type.kind(), entry.data).unwrap()
    }

    pub(super) fn attr(&self, node: &MirrorRef<'_>) -> Result<Attr> {
        Ok(self.mirror.getattr(&ME, node, None)?.0)
    }

    /// Unlinks through the mirror, and commits.
    pub(super) fn unlink(&self, parent: &MirrorRef<'_>, name: &str) -> Result<()> {
        self.mirror.unlink(&ME, parent, self::name(name))?;
        self.resolver.unlink(parent.inode(), self::name(name)).unwrap();
        Ok(())
    }

    pub(super) fn create(&self, path: &str) -> (Inode, MirrorFile) {
        let (entry, opened) = self
            .mirror
            .create(&ME, &self.root(), name(path), 0o100_644, 0o022, libc::O_RDWR | libc::O_CREAT)
            .unwrap();
        (self.enter(Inode::ROOT, name(path), entry), opened.file)
    }
}

/// Who runs the tests.
pub(super) const ME: Request = Request { unique: 1, uid: 0, gid: 0, pid: 0 };

pub(super) const NOTHING: SetAttr<'static, MirrorFile> = SetAttr {
    perm: None,
    uid: None,
    gid: None,
    size: None,
    atime: None,
    mtime: None,
    ctime: None,
    file: None,
};

pub(super) fn name(name: &str) -> &Name {
    Name::new(name).unwrap()
}

pub(super) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED: this test must run as root");
    }
    root
}

#[test]
fn a_read_only_mirror_changes_nothing() {
    let options = MirrorOptions { read_only: true, ..MirrorOptions::default() };
    let world = World::with(options);
    world.write("f", "content");
    let (mirror, root, f) = (&world.mirror, world.root(), world.look("f").unwrap());
    let new = name("new");
    let refused = [
        mirror.setattr(&ME, &f, &SetAttr { size: Some(0), ..NOTHING }).map(drop),
        mirror.mknod(&ME, &root, new, 0o100_644, 0, 0).map(drop),
        mirror.mkdir(&ME, &root, new, 0o755, 0).map(drop),
        mirror.symlink(&ME, &root, new, OsStr::new("f")).map(drop),
        mirror.link(&ME, &f, &root, new).map(drop),
        mirror.create(&ME, &root, new, 0o100_644, 0, libc::O_RDWR).map(drop),
        mirror.unlink(&ME, &root, name("f")),
        mirror.rmdir(&ME, &root, name("f")),
        mirror.rename(&ME, &root, name("f"), &root, new, RenameFlags::default()),
        mirror.open(&ME, &f, libc::O_RDWR).map(drop),
        mirror.open(&ME, &f, libc::O_WRONLY).map(drop),
        mirror.open(&ME, &f, libc::O_RDONLY | libc::O_TRUNC).map(drop),
        mirror.setxattr(&ME, &f, OsStr::new("user.k"), b"v", 0),
        mirror.removexattr(&ME, &f, OsStr::new("user.k")),
        mirror.access(&ME, &f, libc::W_OK),
    ];
    for (index, result) in refused.into_iter().enumerate() {
        assert_eq!(result, Err(Errno::EROFS), "operation {index}");
    }
    assert!(mirror.open(&ME, &f, libc::O_RDONLY).is_ok());
    assert_eq!(world.read("f"), "content");
    assert_eq!(std::fs::read_dir(world.source("")).unwrap().count(), 1);
}

#[test]
fn the_source_must_be_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "").unwrap();
    let open = |path| Mirror::open(path, MirrorOptions::default()).unwrap_err();
    assert_eq!(open(dir.path().join("none")).kind(), io::ErrorKind::NotFound);
    assert_eq!(open(dir.path().join("f")).kind(), io::ErrorKind::NotADirectory);
    let file = std::fs::File::open(dir.path().join("f")).unwrap();
    let error = Mirror::from_fd(file.into(), MirrorOptions::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
}
