//! The mountpoint: there or made, free or cleared, and removed at the end if it was made.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::failure::Failure;
use crate::mount_table::{self, Mounted};
use crate::say;

/// A directory to mount on. Dropping it removes it, if it was made here.
#[derive(Debug)]
pub(crate) struct Mountpoint {
    path: PathBuf,
    made: bool,
}

impl Mountpoint {
    /// Makes sure that `path` is a directory that nothing of ours is mounted on.
    pub(crate) fn prepare(path: &Path, clear_stale: bool) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Mountpoint(path.to_owned(), error);
        let made = match std::fs::create_dir(path) {
            Ok(()) => true,
            Err(error) => match error.kind() {
                // Perhaps a directory; perhaps something else; and the root of a dead mount exists, too.
                io::ErrorKind::AlreadyExists => false,
                io::ErrorKind::NotFound => {
                    return Err(Failure::MountpointWithoutParent(path.to_owned()));
                }
                _ if std::fs::symlink_metadata(path).is_ok() => false,
                _ => return Err(failed(error)),
            },
        };
        // From here on dropping it tidies up.
        let mut mountpoint = Mountpoint { path: path.to_owned(), made };
        mountpoint.path = path.canonicalize().map_err(failed)?;
        mountpoint.free(clear_stale)?;
        Ok(mountpoint)
    }

    /// Its absolute path, free of symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory, if it was made here.
    pub(crate) fn remove(&self) {
        if self.made {
            // Fails where something lives in it, or is mounted on it, by now: then it is not ours.
            let _ = std::fs::remove_dir(&self.path);
        }
    }

    /// Clears dead mounts away (they may lie on each other), and refuses live ones.
    fn free(&self, clear_stale: bool) -> Result<(), Failure> {
        let failed = |error| Failure::Mountpoint(self.path.clone(), error);
        while let Some(mounted) = mount_table::seen_at(&self.path).map_err(failed)? {
            if !mounted.is_fuse() {
                break;
            }
            if !is_dead(&self.path) {
                refuse_own(mounted)?;
                break;
            }
            if !clear_stale {
                return Err(Failure::StaleMount(self.path.clone()));
            }
            pinpath_fuse::clear_stale(&self.path)
                .map_err(|error| Failure::ClearStale(self.path.clone(), error))?;
            say::note(format_args!("cleared the dead mount on {}", say::quoted(&self.path)));
        }
        match std::fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(Failure::MountpointNotADirectory(self.path.clone())),
            Err(error) => Err(failed(error)),
        }
    }
}

impl Drop for Mountpoint {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Mounting a mirror over another filesystem, FUSE or not, is a thing to do; mounting one over a
/// mirror of the same kind is nearly always the same command given twice.
fn refuse_own(mounted: Mounted) -> Result<(), Failure> {
    if mounted.fs_type == crate::mirror::FS_TYPE {
        return Err(Failure::AlreadyMounted {
            source_path: mounted.source.into(),
            mountpoint: mounted.mountpoint,
        });
    }
    Ok(())
}

/// Has the daemon behind this mount gone? Asks for what the kernel never answers from memory; the
/// attributes of the root it may still know.
fn is_dead(path: &Path) -> bool {
    matches!(rustix::fs::statfs(path), Err(Errno::NOTCONN))
}
