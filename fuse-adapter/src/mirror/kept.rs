//! [`Kept`]: the descriptor of something that has no name any more but that the kernel still knows.
//!
//! A file that was unlinked while it is open is reached through its open descriptor. Pipes, sockets
//! and devices are opened by the kernel alone, and a directory may be somebody's working directory
//! without being open here: for those, a descriptor is kept from the moment that the last name goes
//! until the kernel forgets the inode. There are never many; not for regular files, whose space
//! would stay taken until then.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// More than so many at once are not kept: nodes are reclaimed some time after they were
/// forgotten, and descriptors are dear.
const AT_MOST: usize = 256;

/// How many all mirrors of this process keep.
static COUNT: AtomicUsize = AtomicUsize::new(0);

const NOTHING: i32 = -1;
const NEVER: i32 = -2;

/// At most one descriptor, set at most once, closed on drop.
#[derive(Debug)]
pub(super) struct Kept(AtomicI32);

impl Kept {
    /// For what can be in use without being open here.
    pub(super) const fn nothing_yet() -> Self {
        Kept(AtomicI32::new(NOTHING))
    }

    /// For what can't.
    pub(super) const fn never() -> Self {
        Kept(AtomicI32::new(NEVER))
    }

    /// Would [`keep`](Kept::keep) keep it?
    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == NOTHING && COUNT.load(Ordering::Relaxed) < AT_MOST
    }

    /// Keeps `fd`, unless there is one, or there are too many.
    pub(super) fn keep(&self, fd: OwnedFd) {
        if !self.is_wanted() {
            return;
        }
        COUNT.fetch_add(1, Ordering::Relaxed);
        let raw = fd.into_raw_fd();
        // Release: pairs with the Acquire in `get`. A descriptor number publishes nothing but
        // itself, yet who sees it must see the file behind it opened.
        if self.0.compare_exchange(NOTHING, raw, Ordering::Release, Ordering::Relaxed).is_err() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: `raw` came from the OwnedFd above and was stored nowhere.
            drop(unsafe { OwnedFd::from_raw_fd(raw) });
        }
    }

    /// The descriptor, if one is kept.
    pub(super) fn get(&self) -> Option<BorrowedFd<'_>> {
        let raw = self.0.load(Ordering::Acquire);
        // SAFETY: a number that is no mark was put here by `keep`, which gave up its ownership, and
        // it is closed only when `self` is dropped, which the borrow outlives not.
        (raw >= 0).then(|| unsafe { BorrowedFd::borrow_raw(raw) })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(fd) = self.get() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: as in `get`; nobody else can see `self` any more.
            drop(unsafe { OwnedFd::from_raw_fd(fd.as_raw_fd()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Two ends: one to keep, and one that tells whether the other is open.
    fn pair() -> (UnixStream, OwnedFd) {
        let (witness, end) = UnixStream::pair().unwrap();
        witness.set_nonblocking(true).unwrap();
        (witness, end.into())
    }

    fn is_open(mut witness: &UnixStream) -> bool {
        match witness.read(&mut [0; 1]) {
            Ok(0) => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => true,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keeps_the_first_and_closes_it_when_dropped() {
        let (first_witness, first) = pair();
        let (second_witness, second) = pair();
        let kept = Kept::nothing_yet();
        kept.keep(first);
        kept.keep(second);
        assert!(is_open(&first_witness), "the first is kept");
        assert!(!is_open(&second_witness), "the second is closed");
        drop(kept);
        assert!(!is_open(&first_witness));
    }

    #[test]
    fn what_can_only_be_used_open_is_not_kept() {
        let (witness, end) = pair();
        let kept = Kept::never();
        assert!(!kept.is_wanted());
        kept.keep(end);
        assert!(kept.get().is_none());
        assert!(!is_open(&witness));
    }
}
