//! [`RequestPin`]: keeps what a request may need until it has been answered.

use crate::domain::Domain;

/// While a pin is held, no node is reclaimed that was known when it began: that had a lookup count
/// (or a directory above such a node). Nor is one that was found by its name since, counted or not.
/// So whatever the kernel can ask for in a request lives until the request has been answered, even
/// if it is forgotten meanwhile.
///
/// Begun with [`Resolver::pin`](crate::Resolver::pin) on the thread that reads a request, carried
/// along with it, and dropped on whichever thread has answered it. It may be held for as long as
/// the request takes: it delays the reclamation of forgotten nodes and nothing else.
///
/// Beginning and ending one each write to the calling thread's own cache line and to no other, and
/// neither ever waits.
#[derive(Debug)]
#[must_use = "a pin that is dropped at once keeps nothing"]
pub struct RequestPin {
    domain: &'static Domain,
    parity: usize,
}

impl RequestPin {
    #[inline]
    pub(crate) fn begin(domain: &'static Domain) -> Self {
        RequestPin { domain, parity: domain.enter() }
    }
}

impl Drop for RequestPin {
    #[inline]
    fn drop(&mut self) {
        self.domain.exit(self.parity);
    }
}
