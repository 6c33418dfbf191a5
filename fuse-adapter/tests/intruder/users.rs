//! Who uses the mount meanwhile, without following any link themselves.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW,
};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::canary::{ONLY_THERE, SECRET};
use super::intruders::{open_directory, walk};
use super::{NAMES, Random, Run};

pub(crate) struct User<'a> {
    run: &'a Run,
    random: Random,
    root: OwnedFd,
}

/// How it went: in such a mess most attempts fail, and that is right.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
}

type Done = rustix::io::Result<()>;

impl<'a> User<'a> {
    pub(crate) fn new(run: &'a Run, random: Random) -> Self {
        User { run, random, root: open_directory(&run.mountpoint) }
    }

    /// Until it is over, as this user.
    pub(crate) fn work(mut self, uid: u32, gid: u32) -> Tried {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        set_thread_groups(&[]).unwrap();
        set_thread_res_gid(gid, gid, gid).unwrap();
        set_thread_res_uid(uid, uid, uid).unwrap();
        let mut tried = Tried::default();
        while !self.run.is_over() {
            let actions = [
                Self::read,
                Self::read,
                Self::write,
                Self::list,
                Self::list,
                Self::make,
                Self::make_special,
                Self::remove,
                Self::rename,
                Self::link,
                Self::change_attributes,
                Self::change_by_name,
            ];
            match self.random.pick(&actions)(&mut self) {
                Ok(()) => tried.succeeded += 1,
                Err(_) => tried.failed += 1,
            }
        }
        tried
    }

    fn directory(&mut self) -> rustix::io::Result<OwnedFd> {
        let path = self.random.path();
        walk(&self.root, path.parent().unwrap_or(Path::new("")))
    }

    /// A name that may be a file's, a directory's, or nobody's.
    fn name(&mut self) -> &'static str {
        match self.random.below(NAMES.len() + 1) {
            0 => "file",
            n => NAMES[n - 1],
        }
    }

    /// A pipe doesn't block, and a link is not followed.
    fn open(&mut self, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let (dir, name) = (self.directory()?, self.name());
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o666))
    }

    fn read(&mut self) -> Done {
        let file = self.open(OFlags::RDONLY)?;
        let mut buf = [0; 64];
        let size = rustix::io::read(&file, &mut buf)?;
        let found = String::from_utf8_lossy(&buf[..size]);
        assert!(!found.contains(SECRET), "read from outside: {found}");
        Ok(())
    }

    fn write(&mut self) -> Done {
        let how = self.random.pick(&[
            OFlags::WRONLY,
            OFlags::WRONLY | OFlags::TRUNC,
            OFlags::RDWR | OFlags::APPEND,
            OFlags::RDWR | OFlags::CREATE,
        ]);
        let file = self.open(how)?;
        rustix::io::write(&file, b"inside")?;
        let _ = rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 100);
        rustix::fs::ftruncate(&file, 6)
    }

    fn list(&mut self) -> Done {
        let path = self.random.path();
        let dir = walk(&self.root, &path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(dir, ".", flags, Mode::empty())?;
        for entry in rustix::fs::Dir::new(dir)? {
            let name = entry?.file_name().to_owned();
            assert_ne!(name.to_bytes(), ONLY_THERE.as_bytes(), "listed outside: {path:?}");
        }
        Ok(())
    }

    fn make(&mut self) -> Done {
        let (dir, name) = (self.directory()?, self.name());
        rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o777))
    }

    fn make_special(&mut self) -> Done {
        let (dir, name) = (self.directory()?, self.name());
        match self.random.below(2) {
            0 => rustix::fs::symlinkat(&self.run.canary, dir, name),
            _ => {
                let mode = Mode::from_raw_mode(0o666);
                rustix::fs::mknodat(dir, name, rustix::fs::FileType::Fifo, mode, 0)
            }
        }
    }

    fn remove(&mut self) -> Done {
        let (dir, name) = (self.directory()?, self.name());
        rustix::fs::unlinkat(&dir, name, AtFlags::empty())
            .or_else(|_| rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR))
    }

    fn rename(&mut self) -> Done {
        let (from, name) = (self.directory()?, self.name());
        let (to, newname) = (self.directory()?, self.name());
        let flags = self.random.pick(&[RenameFlags::empty(), RenameFlags::EXCHANGE]);
        rustix::fs::renameat_with(from, name, to, newname, flags)
    }

    fn link(&mut self) -> Done {
        let (from, to) = (self.directory()?, self.directory()?);
        rustix::fs::linkat(from, "file", to, self.name(), AtFlags::empty())
    }

    /// Of what was found once, under whatever name it is by now.
    fn change_attributes(&mut self) -> Done {
        let (dir, name) = (self.directory()?, self.name());
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let empty = AtFlags::EMPTY_PATH;
        let _ = rustix::fs::utimensat(&file, "", &times, empty);
        rustix::fs::chownat(&file, "", Some(rustix::process::getuid()), None, empty)?;
        rustix::fs::statat(&file, "", empty).map(drop)
    }

    /// Of what is under the name now, be it a link.
    fn change_by_name(&mut self) -> Done {
        let (dir, name) = (self.directory()?, self.name());
        let nofollow = AtFlags::SYMLINK_NOFOLLOW;
        let _ = rustix::fs::readlinkat(&dir, name, Vec::new());
        let _ = rustix::fs::chmodat(
            &dir,
            name,
            Mode::from_raw_mode(0o777),
            AtFlags::empty() | nofollow,
        );
        rustix::fs::chownat(&dir, name, None, Some(rustix::process::getgid()), nofollow)
    }
}
