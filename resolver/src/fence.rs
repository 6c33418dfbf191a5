//! Light and heavy fences: the side that runs often pays nothing, the side that runs rarely pays
//! for both.
//!
//! All heavy fences and SeqCst fences fall into one total order; a light fence is ordered with
//! every heavy one, not with other light ones. So of "store A; light; load B" and "store B; heavy;
//! load A" at least one sees the other's store.
//!
//! On Linux a light fence is a compiler fence, because the heavy one is
//! `membarrier(PRIVATE_EXPEDITED)`, which runs a full fence on every CPU that runs a thread of this
//! process (membarrier(2)). Where that call can't be had both are `fence(SeqCst)`.

use crate::sync::{Ordering, fence};

/// Which pair of fences is in use. Fixed when it is made; all who use one piece of data use one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Light: compiler fence. Heavy: membarrier.
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    Asymmetric,
    /// Both are `fence(SeqCst)`.
    Symmetric,
}

impl Fences {
    /// The best pair that this process may use.
    pub(crate) fn detect() -> Self {
        #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
        {
            use rustix::thread::{MembarrierCommand, membarrier};
            // Registering twice is allowed. The second call proves that the command itself is
            // allowed too (a seccomp filter may refuse it).
            let usable = membarrier(MembarrierCommand::RegisterPrivateExpedited)
                .and_then(|()| membarrier(MembarrierCommand::PrivateExpedited));
            if usable.is_ok() {
                return Fences::Asymmetric;
            }
        }
        Fences::Symmetric
    }

    /// The fence of the side that runs often.
    #[inline(always)]
    pub(crate) fn light(self) {
        match self {
            #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
            Fences::Asymmetric => crate::sync::compiler_fence(Ordering::SeqCst),
            Fences::Symmetric => fence(Ordering::SeqCst),
        }
    }

    /// The fence of the side that runs rarely: about 1 us where it is a membarrier.
    #[cold]
    pub(crate) fn heavy(self) {
        match self {
            #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
            Fences::Asymmetric => {
                use rustix::thread::{MembarrierCommand, membarrier};
                // It worked when the pair was chosen, and then it can't fail later (membarrier(2)
                // names only errors of arguments). Going on without it would be unsound.
                membarrier(MembarrierCommand::PrivateExpedited)
                    .expect("membarrier was registered and has worked before");
                fence(Ordering::SeqCst);
            }
            Fences::Symmetric => fence(Ordering::SeqCst),
        }
    }
}
