//! Who changes the source behind the daemon.
//!
//! They too must not follow the links that they put there: they walk by `openat2` as the mirror
//! does, and act on single names.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::{NAMES, Random, Run};

pub(crate) struct Intruder<'a> {
    run: &'a Run,
    random: Random,
    source: OwnedFd,
    elsewhere: OwnedFd,
    made: usize,
}

type Done = rustix::io::Result<()>;

/// A directory below `root`, reached without following any link.
pub(crate) fn walk(root: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = if path == Path::new("") { Path::new(".") } else { path };
    rustix::fs::openat2(root, path, flags, Mode::empty(), how)
}

pub(crate) fn open_directory(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).unwrap()
}

impl<'a> Intruder<'a> {
    pub(crate) fn new(run: &'a Run, random: Random) -> Self {
        let (source, elsewhere) = (open_directory(&run.source), open_directory(&run.elsewhere));
        Intruder { run, random, source, elsewhere, made: 0 }
    }

    /// Until it is over; answers how many moves succeeded.
    pub(crate) fn work(mut self) -> u64 {
        let mut did = 0;
        while !self.run.is_over() {
            let moves = [
                Self::swap_for_link,
                Self::swap_for_link,
                Self::swap_for_special_file,
                Self::move_out_and_in,
                Self::bind,
                Self::plant_again,
            ];
            did += u64::from(self.random.pick(&moves)(&mut self).is_ok());
        }
        did
    }

    /// A random name of the source, by the directory that has it.
    fn somewhere(&mut self) -> rustix::io::Result<(OwnedFd, &'static str)> {
        let path = self.random.path();
        let dir = walk(&self.source, path.parent().unwrap_or(Path::new("")))?;
        Ok((dir, self.random.pick(&NAMES)))
    }

    fn name(&mut self) -> OsString {
        self.made += 1;
        format!("{:?}-{}", thread::current().id(), self.made).into()
    }

    /// Where a link had better not lead.
    fn target(&mut self) -> PathBuf {
        let canary = &self.run.canary;
        let relative = PathBuf::from("../".repeat(1 + self.random.below(5)));
        match self.random.below(7) {
            0 => canary.clone(),
            1 => canary.join(self.random.path()),
            2 => relative.join("canary"),
            3 => relative.join("canary").join(self.random.path()),
            4 => Path::new("/proc/self/root").join(canary.strip_prefix("/").unwrap()),
            5 => relative,
            _ => PathBuf::from("."),
        }
    }

    /// In one step, so that there is no moment in which the name is missing; and back.
    fn swap(&mut self, other: &OsString, dir: &OwnedFd, name: &str) -> Done {
        let exchange =
            || rustix::fs::renameat_with(dir, name, &self.elsewhere, other, RenameFlags::EXCHANGE);
        let swapped = exchange();
        if swapped.is_ok() {
            thread::sleep(Duration::from_micros(self.random.below(300) as u64));
            exchange()?;
        }
        rustix::fs::unlinkat(&self.elsewhere, other, AtFlags::empty())?;
        swapped
    }

    fn swap_for_link(&mut self) -> Done {
        let (dir, name) = self.somewhere()?;
        let (link, target) = (self.name(), self.target());
        rustix::fs::symlinkat(target, &self.elsewhere, &link)?;
        self.swap(&link, &dir, name)
    }

    fn swap_for_special_file(&mut self) -> Done {
        let (dir, _) = self.somewhere()?;
        let (special, kind) =
            (self.name(), self.random.pick(&[FileType::Fifo, FileType::CharacterDevice]));
        let null = rustix::fs::makedev(1, 3);
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(&self.elsewhere, &special, kind, mode, null)?;
        self.swap(&special, &dir, "file")
    }

    fn move_out_and_in(&mut self) -> Done {
        let (dir, name) = self.somewhere()?;
        let out = self.name();
        rustix::fs::renameat(&dir, name, &self.elsewhere, &out)?;
        // Something else in its place for a while.
        let _ = rustix::fs::symlinkat(&self.run.canary, &dir, name);
        thread::sleep(Duration::from_micros(self.random.below(300) as u64));
        let _ = rustix::fs::unlinkat(&dir, name, AtFlags::empty());
        let back =
            rustix::fs::renameat_with(&self.elsewhere, &out, &dir, name, RenameFlags::NOREPLACE);
        thread::sleep(Duration::from_micros(self.random.below(100) as u64));
        back
    }

    /// A directory of the source, or the mirror itself, on a directory of the source.
    fn bind(&mut self) -> Done {
        let (dir, name) = self.somewhere()?;
        let what = match self.random.below(2) {
            0 => open_directory(&self.run.mountpoint),
            _ => walk(&self.source, &self.random.path())?,
        };
        let place = walk(&dir, Path::new(name))?;
        let path = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
        mount_bind(path(&what), path(&place))?;
        thread::sleep(Duration::from_micros(self.random.below(1000) as u64));
        // What is reached now is the root of the mount.
        let mounted = walk(&dir, Path::new(name))?;
        unmount(path(&mounted), UnmountFlags::DETACH)
    }

    /// The users remove what they find.
    fn plant_again(&mut self) -> Done {
        let (dir, name) = self.somewhere()?;
        let mode = Mode::from_raw_mode(0o777);
        let _ = rustix::fs::mkdirat(&dir, name, mode);
        let made = walk(&dir, Path::new(name))?;
        let flags =
            OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&made, "file", flags, Mode::from_raw_mode(0o666))?;
        rustix::io::write(&file, b"inside").map(drop)
    }
}

/// Takes away what the intruders mounted, wherever it was moved: all below a directory, but not the
/// mirror's mountpoint.
pub(crate) struct Unbinds {
    pub(crate) below: PathBuf,
    pub(crate) but: PathBuf,
}

impl Drop for Unbinds {
    fn drop(&mut self) {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        // Those in others come later.
        let mounts = table.lines().rev().filter_map(|line| line.split(' ').nth(4));
        let theirs =
            |path: &&str| Path::new(path).starts_with(&self.below) && Path::new(path) != self.but;
        for mounted in mounts.filter(theirs) {
            let _ = unmount(mounted, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        }
    }
}
