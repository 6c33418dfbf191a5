//! The same filesystems on easy_fuser 0.7.1, with its pool and its default numbers of threads unless
//! told otherwise.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use easy_fuser::delegate_fs;
use easy_fuser::fuse_parallel::prelude::*;
use easy_fuser::fuse_presets::mirror_fs::*;
use easy_fuser::fuse_presets::{StatelessHandler, UnimplementedFuseHandler};

use super::{Ids, LIFETIME, Served, Server, Spend, number_of};

fn attr(number: Option<u64>) -> FileAttribute {
    let time = SystemTime::UNIX_EPOCH;
    FileAttribute {
        size: 0,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: if number.is_none() { FileKind::Directory } else { FileKind::RegularFile },
        perm: if number.is_none() { 0o755 } else { 0o644 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
        ttl: None,
        generation: None,
    }
}

/// The file's number out of its path.
fn by_path(path: &Path) -> Option<u64> {
    path.file_name().map(OsStr::as_bytes).and_then(number_of)
}

/// A filesystem of our eight files by one type of ids: what an entry is there, and the number of the
/// file behind an id.
macro_rules! files {
    ($name:ident, $id:ty, $entry:expr, $number:expr) => {
        struct $name {
            spend: Spend,
            rest: UnimplementedFuseHandler<$id>,
            plain: StatelessHandler<$id>,
        }

        impl FuseHandler for $name {
            type TId = $id;
            type FileHandle = ();

            fn get_default_ttl(&self) -> Duration {
                LIFETIME
            }

            fn lookup(
                &self,
                _req: &RequestInfo,
                _parent: $id,
                name: &OsStr,
            ) -> FuseResult<<$id as FileIdType>::Metadata> {
                let missing = || PosixError::new(ErrorKind::FileNotFound, "");
                let number = number_of(name.as_bytes()).ok_or_else(missing)?;
                Ok(($entry)(number))
            }

            fn getattr(
                &self,
                _req: &RequestInfo,
                id: $id,
                _handle: Option<&mut ()>,
            ) -> FuseResult<FileAttribute> {
                self.spend.spend();
                Ok(attr(($number)(id)))
            }

            delegate_fs! { plain, [ forget, fsyncdir, opendir, releasedir ] }
            delegate_fs! { rest, [
                access, bmap, copy_file_range, create, fallocate, flush, fsync, getlk, getxattr,
                ioctl, link, listxattr, lseek, mkdir, mknod, open, read, readdir, readlink, release,
                removexattr, rename, rmdir, setattr, setlk, setxattr, statfs, symlink, unlink, write
            ] }
        }
    };
}

files!(
    ByInode,
    Inode,
    |number: u64| (fuser::INodeNo(number + 2), attr(Some(number))),
    |id: Inode| { u64::from(id).checked_sub(2) }
);
files!(ByPath, PathBuf, |number| attr(Some(number)), |id: PathBuf| by_path(&id));
files!(ByPaths, MappedInode, |number| attr(Some(number)), |id: MappedInode| id
    .paths()
    .first()
    .and_then(|path| by_path(path)));

struct Mirror {
    mirror: MirrorFs,
    rest: UnimplementedFuseHandler<PathBuf>,
    plain: StatelessHandler<PathBuf>,
}

impl FuseHandler for Mirror {
    type TId = PathBuf;
    type FileHandle = OwnedFd;

    fn get_default_ttl(&self) -> Duration {
        Duration::from_secs(1)
    }

    delegate_fs! { plain, [ forget, fsyncdir, opendir, releasedir ] }
    delegate_fs! { rest, [ bmap, getlk, ioctl, link, setlk ] }
    delegate_fs! { mirror, [
        access, copy_file_range, create, fallocate, flush, fsync, getattr, getxattr, listxattr,
        lookup, lseek, mkdir, mknod, open, read, readdir, readlink, release, removexattr, rename,
        rmdir, setattr, setxattr, statfs, symlink, unlink, write
    ] }
}

fn threads(served: &Served) -> Option<MountThreads> {
    let mut threads = MountThreads::default();
    threads.fuser_threads = served.readers.unwrap_or(threads.fuser_threads);
    threads.handler_threads = served.handlers.unwrap_or(threads.handler_threads);
    threads.clone_fuser_fd |= served.clone_fd;
    Some(threads)
}

pub(super) fn serve(served: &Served, at: &Path) -> anyhow::Result<()> {
    macro_rules! run {
        ($name:ident) => {{
            let spend = Spend::new(served.cost);
            let (rest, plain) = (UnimplementedFuseHandler::new(), StatelessHandler::new());
            mount($name { spend, rest, plain }, at, &[], threads(served))?
        }};
    }
    match (served.server, served.ids) {
        (Server::EasyMirror, _) => {
            let source = served.source.clone().context("a mirror needs a source")?;
            let (rest, plain) = (UnimplementedFuseHandler::new(), StatelessHandler::new());
            let mirror = Mirror { mirror: MirrorFs::new(source), rest, plain };
            mount(mirror, at, &[], threads(served))?
        }
        (_, Ids::Inode) => run!(ByInode),
        (_, Ids::Path) => run!(ByPath),
        (_, Ids::Paths) => run!(ByPaths),
    }
    Ok(())
}
