//! [`Place`]: where a mount is, so that exactly this one can be taken away.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags};

use super::fusermount;

/// How an unmount went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// It is gone.
    Now,
    /// It is in use. It has gone from the tree, and is served until the last open file is closed.
    WhenIdle,
}

/// One mount.
#[derive(Debug)]
pub(super) struct Place {
    mountpoint: PathBuf,
    id: MountId,
    /// Closing it tells `fusermount3` that there is nothing to unmount any more, or does it.
    helper: Mutex<Option<UnixStream>>,
}

/// What tells this mount from every other, at the same path or elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MountId {
    /// The device number, which no other filesystem has while this one exists.
    device: (u32, u32),
    /// Never given to another mount since Linux 6.8. Before that it is, soon after this one is
    /// gone, and so is the device number; 0 before 5.8, which doesn't say.
    mount: u64,
}

impl Place {
    /// The mount that was made just now; if it can't be recognised it is undone.
    pub(super) fn new(mountpoint: PathBuf, helper: Option<UnixStream>) -> io::Result<Self> {
        let id = mount_id(&mountpoint).inspect_err(|_| {
            let _ = unmount(&mountpoint, UnmountFlags::DETACH);
        })?;
        Ok(Place { mountpoint, id, helper: Mutex::new(helper) })
    }

    pub(super) fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Major and minor of the filesystem's device number.
    pub(super) fn device(&self) -> (u32, u32) {
        self.id.device
    }

    /// Takes the mount out of the tree. Waits for nothing, and does no harm when it is gone.
    pub(super) fn detach(&self) -> io::Result<Unmounted> {
        let Some(path) = self.find()? else { return Ok(Unmounted::Now) };
        let done = match unmount(&path, UnmountFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                unmount(&path, UnmountFlags::DETACH).map(|()| Unmounted::WhenIdle)
            }
            // Somebody else was faster.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Unmounted::Now),
            other => other.map(|()| Unmounted::Now),
        };
        if done.is_ok() {
            self.dismiss_helper();
        }
        done
    }

    /// Cuts the connection to the daemon. Who waits for an answer gets an error; the mount stays
    /// in the tree, dead.
    pub(super) fn abort(&self) -> io::Result<()> {
        // Each FUSE connection has a directory there, named after the filesystem's device.
        let file = format!("{}/abort", self.id.device.1);
        let through_sys = fs::write(format!("/sys/fs/fuse/connections/{file}"), "1");
        if through_sys.is_ok() || abort_through_own_view(&file).is_ok() {
            return Ok(());
        }
        match self.find()? {
            // This one only works while the mount is in the tree.
            Some(path) => Ok(rustix::mount::unmount(path, UnmountFlags::FORCE)?),
            None => through_sys,
        }
    }

    /// Lets `fusermount3` go, which waits in the background with `auto_unmount`.
    pub(super) fn dismiss_helper(&self) {
        let helper = self.helper.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        drop(helper);
    }

    /// Where the mount is now; `None` if it is nowhere in the tree. Below another mount it is, but
    /// can't be got at.
    fn find(&self) -> io::Result<Option<PathBuf>> {
        let is_it = |path: &Path| mount_id(path).is_ok_and(|id| id == self.id);
        if is_it(&self.mountpoint) {
            return Ok(Some(self.mountpoint.clone()));
        }
        // A directory above it may have been renamed.
        let table = fs::read("/proc/self/mountinfo")?;
        let mut covered = false;
        for path in paths_in_table(&table, self.id.device) {
            if is_it(&path) {
                return Ok(Some(path));
            }
            covered |= path == self.mountpoint;
        }
        if covered {
            let why = "another filesystem is mounted over it";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        Ok(None)
    }
}

/// Asks the kernel alone: it must work before the session answers, and when it answers no more.
fn mount_id(path: &Path) -> io::Result<MountId> {
    /// `STATX_MNT_ID_UNIQUE`, which rustix doesn't name.
    const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT | AtFlags::SYMLINK_NOFOLLOW;
    let stat = rustix::fs::statx(CWD, path, flags, StatxFlags::MNT_ID | UNIQUE)?;
    let known = StatxFlags::from_bits_retain(stat.stx_mask).intersects(StatxFlags::MNT_ID | UNIQUE);
    Ok(MountId {
        device: (stat.stx_dev_major, stat.stx_dev_minor),
        mount: if known { stat.stx_mnt_id } else { 0 },
    })
}

/// The paths at which a device is mounted, by `/proc/self/mountinfo`: id, parent, major:minor,
/// root, path, ...
fn paths_in_table(table: &[u8], device: (u32, u32)) -> impl Iterator<Item = PathBuf> {
    let device = format!("{}:{}", device.0, device.1);
    table.split(|&byte| byte == b'\n').filter_map(move |line| {
        let mut fields = line.split(|&byte| byte == b' ');
        (fields.nth(2)? == device.as_bytes()).then(|| fields.nth(1).map(unescaped)).flatten()
    })
}

/// Spaces and the like stand there as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

fn unmount(path: &Path, flags: UnmountFlags) -> io::Result<()> {
    match rustix::mount::unmount(path, flags | UnmountFlags::NOFOLLOW) {
        Err(rustix::io::Errno::PERM) => {
            fusermount::unmount(path, flags.contains(UnmountFlags::DETACH))
        }
        other => Ok(other?),
    }
}

/// Where nobody mounted the control filesystem: a view of it that is attached nowhere. For root.
fn abort_through_own_view(file: &str) -> io::Result<()> {
    let context = rustix::mount::fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let view =
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let abort = rustix::fs::openat(view, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(abort, b"1")?;
    Ok(())
}

/// Removes the mount that a killed daemon left at `mountpoint` ("transport endpoint is not
/// connected"). False if there is none: a mount that answers is left alone.
///
/// # Errors
/// It can't be unmounted.
pub fn clear_stale(mountpoint: impl AsRef<Path>) -> io::Result<bool> {
    let mountpoint = mountpoint.as_ref();
    // Not stat: the kernel may answer that from memory, for as long as the filesystem allowed it.
    match rustix::fs::statfs(mountpoint) {
        Err(rustix::io::Errno::NOTCONN) => unmount(mountpoint, UnmountFlags::DETACH).map(|()| true),
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_looked_for_by_its_device() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            40 22 0:51 / /mnt/a\\040b\\134c rw,nosuid - fuse.pinpath src rw\n\
            41 22 0:51 / /bind rw - fuse.pinpath src rw\n";
        let paths = |minor| paths_in_table(table, (0, minor)).collect::<Vec<_>>();
        assert_eq!(paths(51), [Path::new("/mnt/a b\\c"), Path::new("/bind")]);
        assert!(paths(5).is_empty());
        assert_eq!(paths_in_table(b"", (0, 51)).count(), 0);
    }

    #[test]
    fn what_is_no_dead_mount_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!clear_stale(directory.path()).unwrap());
        assert!(!clear_stale(directory.path().join("missing")).unwrap());
    }
}
