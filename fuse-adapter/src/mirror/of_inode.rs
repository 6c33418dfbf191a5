//! [`OfInode`]: what all open files of one inode have in common, where they have anything.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use foldhash::fast::RandomState;

use super::identity::Identity;
use super::locks::Locks;
use crate::transport::backing::{BackingFile, BackingFiles, BackingId};

/// Lives as long as any file of the inode is open.
#[derive(Debug)]
pub(super) struct OfInode {
    identity: Identity,
    all: Weak<OfInodes>,
    /// What is locked of it through the mount.
    pub(super) locks: Locks,
    /// The kernel wants the same for all open files: either all pass this one through, or none does.
    backing: OnceLock<Option<BackingFile>>,
}

/// Of all inodes that are open.
#[derive(Debug, Default)]
pub(super) struct OfInodes(Mutex<HashMap<Identity, Weak<OfInode>, RandomState>>);

impl OfInodes {
    pub(super) fn get(self: &Arc<Self>, identity: Identity) -> Arc<OfInode> {
        let mut all = self.lock();
        if let Some(found) = all.get(&identity).and_then(Weak::upgrade) {
            return found;
        }
        let new = Arc::new(OfInode {
            identity,
            all: Arc::downgrade(self),
            locks: Locks::default(),
            backing: OnceLock::new(),
        });
        all.insert(identity, Arc::downgrade(&new));
        new
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, Weak<OfInode>, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OfInode {
    /// The kernel's number of the file behind all of them, if it took it. `fd` is any open file of
    /// the inode.
    pub(super) fn backing(&self, files: &BackingFiles, fd: BorrowedFd<'_>) -> Option<BackingId> {
        let backing = self.backing.get_or_init(|| {
            let opened = files.open(fd);
            if let Err(error) = &opened {
                tracing::debug!(%error, "a file can't be passed through");
            }
            opened.ok()
        });
        backing.as_ref().map(BackingFile::id)
    }
}

impl Drop for OfInode {
    fn drop(&mut self) {
        let Some(all) = self.all.upgrade() else { return };
        let mut all = all.lock();
        // It may have been opened again meanwhile.
        if all.get(&self.identity).is_some_and(|of_inode| of_inode.strong_count() == 0) {
            all.remove(&self.identity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_for_all_open_files_and_none_afterwards() {
        let all = Arc::new(OfInodes::default());
        let identity = Identity { ino: 7, birth: 1, device: 2 };
        let first = all.get(identity);
        assert!(Arc::ptr_eq(&first, &all.get(identity)));
        assert!(!Arc::ptr_eq(&first, &all.get(Identity { ino: 8, ..identity })));
        drop(first);
        assert!(all.lock().is_empty());
    }
}
