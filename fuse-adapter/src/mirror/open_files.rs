//! [`OpenFiles`]: which files and directories are open here, by identity.
//!
//! The kernel names an inode and, for most operations, no open file, even where the program used
//! one (`fstat`, `fchmod`, `fsetxattr`). An open file is still the best way to its inode: it needs
//! no path, so it works when the last name is gone and when the file was moved behind the mount,
//! and it is always the right file. There is an entry only for what is open, or [held for a
//! moment](super::recent).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use super::identity::Identity;

/// A descriptor by which others may reach its file as well.
#[derive(Debug)]
pub(super) struct Descriptor {
    fd: OwnedFd,
    /// Opened for reading, writing or listing; otherwise it only stands for its file (`O_PATH`).
    opened: bool,
}

impl Descriptor {
    pub(super) fn is_opened(&self) -> bool {
        self.opened
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

type Shard = HashMap<Identity, Vec<Arc<Descriptor>>, RandomState>;

/// A power of two, and enough that threads seldom meet.
const SHARDS: usize = 64;

/// All that is open.
#[derive(Debug)]
pub(super) struct OpenFiles {
    /// Held for a look-up, never while anything is asked of the system.
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
}

impl OpenFiles {
    pub(super) fn new() -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(OpenFiles { shards, hasher: RandomState::default() })
    }

    /// Some descriptor of the file, an open one if there is any.
    pub(super) fn find(&self, identity: &Identity) -> Option<Arc<Descriptor>> {
        let shard = self.shard(identity);
        let descriptors = shard.get(identity)?;
        descriptors.iter().rfind(|descriptor| descriptor.opened).or(descriptors.last()).cloned()
    }

    /// Adds an open file or directory; it is found until the answer is dropped.
    pub(super) fn register(self: &Arc<Self>, identity: Identity, fd: OwnedFd) -> Registered {
        self.add(identity, Descriptor { fd, opened: true })
    }

    /// Adds what is not open, but can be reached by this.
    pub(super) fn register_as_it_is(
        self: &Arc<Self>,
        identity: Identity,
        fd: OwnedFd,
    ) -> Registered {
        self.add(identity, Descriptor { fd, opened: false })
    }

    fn add(self: &Arc<Self>, identity: Identity, descriptor: Descriptor) -> Registered {
        let descriptor = Arc::new(descriptor);
        self.shard(&identity).entry(identity).or_default().push(Arc::clone(&descriptor));
        Registered { descriptor, identity, files: Arc::clone(self) }
    }

    fn shard(&self, identity: &Identity) -> MutexGuard<'_, Shard> {
        let shard = self.hasher.hash_one(identity) as usize % SHARDS;
        // No code that can panic runs while a shard is locked, and its map is whole at any time.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open descriptor that others find by its identity.
#[derive(Debug)]
pub(super) struct Registered {
    descriptor: Arc<Descriptor>,
    identity: Identity,
    files: Arc<OpenFiles>,
}

impl Registered {
    pub(super) fn descriptor(&self) -> &Arc<Descriptor> {
        &self.descriptor
    }
}

impl AsFd for Registered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut shard = self.files.shard(&self.identity);
        if let Entry::Occupied(mut entry) = shard.entry(self.identity) {
            entry.get_mut().retain(|open| !Arc::ptr_eq(open, &self.descriptor));
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_while_open_and_not_longer() {
        let files = OpenFiles::new();
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let identity = Identity { ino: 7, birth: 1, device: 2 };
        let later = Identity { birth: 2, ..identity };
        let first = files.register(identity, null());
        let second = files.register(identity, null());
        assert!(files.find(&later).is_none(), "the same number, born later, is another file");
        drop(second);
        assert!(Arc::ptr_eq(&files.find(&identity).unwrap(), first.descriptor()));
        drop(first);
        assert!(files.find(&identity).is_none());
        assert!(files.shards.iter().all(|shard| shard.lock().unwrap().is_empty()));
    }
}
