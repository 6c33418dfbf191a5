//! [`Locks`]: locks of programs that use the mount, taken in the source for them.
//!
//! POSIX locks (`fcntl`, `lockf`) belong to a process, and all requests are carried out by one, the
//! mirror. So every owner that the kernel names gets an open file of its own in the source, and the
//! locks are taken for that (`F_OFD_SETLK`). They conflict as the kernel's own would, also with
//! those of programs that use the source itself.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::errno::Errno;
use crate::handler::Lock;

type Result<T> = std::result::Result<T, Errno>;

/// The locks of one inode, by owner.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<u64, Arc<OwnedFd>>>);

impl Locks {
    /// Takes a lock for an owner, or gives it up. `open` opens the file once more.
    ///
    /// # Errors
    /// `EAGAIN` if another's is in the way and `wait` is false.
    pub(super) fn set(
        &self,
        owner: u64,
        lock: Lock,
        wait: bool,
        open: impl FnOnce() -> Result<OwnedFd>,
    ) -> Result<()> {
        let mut flock = flock(lock)?;
        if lock.typ == libc::F_UNLCK {
            return self.give_up(owner, &mut flock);
        }
        let file = self.file(owner, open)?;
        // Not under the mutex: it may wait.
        let command = if wait { libc::F_OFD_SETLKW } else { libc::F_OFD_SETLK };
        call(&file, command, &mut flock)
    }

    fn give_up(&self, owner: u64, flock: &mut libc::flock) -> Result<()> {
        let file = self.owners().get(&owner).cloned();
        let Some(file) = file else { return Ok(()) };
        if flock.l_start == 0 && flock.l_len == 0 {
            self.release(owner);
            return Ok(());
        }
        call(&file, libc::F_OFD_SETLK, flock)
    }

    /// The lock that is in the way of an owner's; `F_UNLCK` if none.
    pub(super) fn test(
        &self,
        owner: u64,
        lock: Lock,
        open: impl FnOnce() -> Result<OwnedFd>,
    ) -> Result<Lock> {
        let mut flock = flock(lock)?;
        let file = self.owners().get(&owner).cloned();
        let file = match file {
            Some(file) => file,
            // Asking makes nobody an owner.
            None => Arc::new(open()?),
        };
        call(&file, libc::F_OFD_GETLK, &mut flock)?;
        let start = u64::try_from(flock.l_start).map_err(|_| Errno::EOVERFLOW)?;
        let end = match flock.l_len {
            0 => LAST_BYTE,
            length => start + length as u64 - 1,
        };
        // Who holds it can't be said: to the source it is an open file (pid -1).
        Ok(Lock { start, end, typ: flock.l_type.into(), pid: flock.l_pid as u32 })
    }

    /// Gives up all that an owner has.
    pub(super) fn release(&self, owner: u64) {
        let file = self.owners().remove(&owner);
        drop(file);
    }

    fn file(&self, owner: u64, open: impl FnOnce() -> Result<OwnedFd>) -> Result<Arc<OwnedFd>> {
        if let Some(file) = self.owners().get(&owner) {
            return Ok(Arc::clone(file));
        }
        let new = Arc::new(open()?);
        // Another thread of the same owner may have been faster; there must be one.
        Ok(Arc::clone(self.owners().entry(owner).or_insert(new)))
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<u64, Arc<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const LAST_BYTE: u64 = i64::MAX as u64;

/// FUSE names the last byte, `fcntl` the length, which is 0 for all that follows.
fn flock(lock: Lock) -> Result<libc::flock> {
    let start = i64::try_from(lock.start).map_err(|_| Errno::EINVAL)?;
    let length = match lock.end {
        end if end >= LAST_BYTE => 0,
        end => {
            let length = end.checked_sub(lock.start).ok_or(Errno::EINVAL)? + 1;
            i64::try_from(length).map_err(|_| Errno::EINVAL)?
        }
    };
    Ok(libc::flock {
        l_type: i16::try_from(lock.typ).map_err(|_| Errno::EINVAL)?,
        l_whence: libc::SEEK_SET as i16,
        l_start: start,
        l_len: length,
        l_pid: 0,
    })
}

fn call(file: &impl AsFd, command: i32, flock: &mut libc::flock) -> Result<()> {
    // SAFETY: these commands read and write one `flock`, which lives until the call returns.
    let result = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, flock) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(typ: i32, start: u64, end: u64) -> Lock {
        Lock { start, end, typ, pid: 1 }
    }

    #[test]
    fn owners_exclude_each_other_by_ranges() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || Ok(std::fs::File::options().read(true).write(true).open(&file)?.into());
        let locks = Locks::default();
        let set = |owner, wanted| locks.set(owner, wanted, false, open);
        let (read, write, none) = (libc::F_RDLCK, libc::F_WRLCK, libc::F_UNLCK);

        set(1, lock(write, 0, 0)).unwrap();
        assert_eq!(set(2, lock(write, 0, 0)), Err(Errno::EAGAIN), "byte 0 is taken");
        set(2, lock(write, 1, 1)).unwrap();
        assert_eq!(locks.test(3, lock(read, 0, LAST_BYTE), open).unwrap().end, 0);
        let free = locks.test(3, lock(read, 2, LAST_BYTE), open).unwrap();
        assert_eq!(free.typ, none);
        assert_eq!(locks.owners().len(), 2, "asking makes no owner");
        set(1, lock(none, 0, 0)).unwrap();
        set(2, lock(read, 0, 0)).unwrap();
        set(3, lock(read, 0, 0)).unwrap();
        assert_eq!(set(1, lock(write, 0, 0)), Err(Errno::EAGAIN), "two read");
        locks.release(2);
        set(3, lock(none, 0, LAST_BYTE)).unwrap();
        set(1, lock(write, 0, LAST_BYTE)).unwrap();
        assert_eq!(locks.owners().len(), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(flock(lock(libc::F_RDLCK, 5, 3)).is_err());
        assert!(flock(lock(libc::F_RDLCK, u64::MAX, u64::MAX)).is_err());
        assert!(flock(lock(70_000, 0, 0)).is_err());
        assert_eq!(flock(lock(libc::F_RDLCK, 7, LAST_BYTE)).unwrap().l_len, 0);
    }
}
