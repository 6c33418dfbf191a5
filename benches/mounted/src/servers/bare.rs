//! fuser by itself: the least that a filesystem over it can cost.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, MountOption,
    ReplyAttr, ReplyEntry, Request,
};

use super::{LIFETIME, Served, Spend, number_of};

struct Bare(Spend);

fn attr(ino: INodeNo) -> FileAttr {
    let time = SystemTime::UNIX_EPOCH;
    let is_root = ino == INodeNo::ROOT;
    FileAttr {
        ino,
        size: 0,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: if is_root { FileType::Directory } else { FileType::RegularFile },
        perm: if is_root { 0o755 } else { 0o644 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for Bare {
    fn lookup(&self, _req: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match number_of(name.as_bytes()) {
            Some(number) => reply.entry(&LIFETIME, &attr(INodeNo(number + 2)), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.0.spend();
        reply.attr(&LIFETIME, &attr(ino));
    }
}

pub(super) fn serve(served: &Served, at: &Path) -> anyhow::Result<()> {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("bare".into())];
    config.n_threads = Some(served.readers.unwrap_or(2));
    config.clone_fd = served.clone_fd;
    fuser::mount(Bare(Spend::new(served.cost)), at, &config)?;
    Ok(())
}
