//! The tables of open files and directories: a handle is what the kernel sends back for one.
//!
//! Looking a handle up takes no lock: [`sharded_slab`] keeps a shard per opening thread and counts
//! the references to each entry. An operation that is under way when its handle is removed keeps
//! the file until it ends.

use std::fmt;
use std::ops::Deref;

use sharded_slab::Slab;

use crate::errno::Errno;

/// One table.
pub(crate) struct Handles<T>(Slab<T>);

/// A reference to what a handle stands for. The value lives at least as long as this.
pub(crate) struct Held<'a, T>(sharded_slab::Entry<'a, T>);

impl<T> Handles<T> {
    pub(crate) fn new() -> Self {
        Handles(Slab::new())
    }

    /// A handle for `value`, which is given back where there is no room.
    pub(crate) fn insert(&self, value: T) -> Result<u64, T> {
        let Some(entry) = self.0.vacant_entry() else { return Err(value) };
        // One more than the index, so that 0, which the kernel sends where it never opened
        // anything, is never a handle.
        let handle = entry.key() as u64 + 1;
        entry.insert(value);
        Ok(handle)
    }

    /// What the handle stands for; `EBADF` for one that was never given out or was removed.
    pub(crate) fn get(&self, handle: u64) -> Result<Held<'_, T>, Errno> {
        let index = handle.checked_sub(1).ok_or(Errno::EBADF)?;
        self.0.get(index as usize).map(Held).ok_or(Errno::EBADF)
    }

    /// Ends the handle. The value is dropped when nobody uses it any more.
    pub(crate) fn remove(&self, handle: u64) {
        if let Some(index) = handle.checked_sub(1) {
            self.0.remove(index as usize);
        }
    }
}

impl<T> fmt::Debug for Handles<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handles")
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
impl<T: fmt::Debug> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_wrong_handle_is_refused() {
        let handles = Handles::new();
        let a = handles.insert("a").unwrap();
        assert_ne!(a, 0);
        assert_eq!(handles.get(0).err(), Some(Errno::EBADF));
        assert_eq!(handles.get(u64::MAX).err(), Some(Errno::EBADF));
        assert_eq!(*handles.get(a).unwrap(), "a");
        handles.remove(a);
        assert_eq!(handles.get(a).err(), Some(Errno::EBADF));
        let b = handles.insert("b").unwrap();
        assert_ne!(a, b, "a handle of the past must not name the next file");
        assert_eq!(handles.get(a).err(), Some(Errno::EBADF));
    }

    #[test]
    fn a_file_in_use_outlives_its_handle() {
        let handles = Handles::new();
        let file = Arc::new(());
        let handle = handles.insert(file.clone()).unwrap();
        let held = handles.get(handle).unwrap();
        handles.remove(handle);
        assert_eq!(Arc::strong_count(&file), 2, "still held");
        drop(held);
        assert_eq!(Arc::strong_count(&file), 1, "and dropped by the last user");
    }

    #[test]
    fn threads_share_the_table() {
        let handles = Handles::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let handles = &handles;
                scope.spawn(move || {
                    for i in 0..1000 {
                        let handle = handles.insert(thread * 1000 + i).unwrap();
                        assert_eq!(*handles.get(handle).unwrap(), thread * 1000 + i);
                        handles.remove(handle);
                    }
                });
            }
        });
    }
}
