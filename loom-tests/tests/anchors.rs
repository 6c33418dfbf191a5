//! Values that requests keep alive.

#![cfg(any(loom, shuttle))]

// The standard library's: only looked at once all threads have ended.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinpath::{Anchor, AnchoredRequest, Inode, Resolver};
use pinpath_loom_tests::{file, run_model, thread};

/// Counts its drops. Under loom each use of it is checked against the drop.
struct Server {
    resolver: Resolver,
    #[cfg(loom)]
    content: loom::cell::UnsafeCell<u32>,
    dropped: Arc<AtomicUsize>,
}

// SAFETY: the content is written only by the drop; that no use is left then is what the models check.
unsafe impl Sync for Server {}

impl AsRef<Resolver> for Server {
    fn as_ref(&self) -> &Resolver {
        &self.resolver
    }
}

impl Server {
    fn anchored() -> (Anchor<Self>, Arc<AtomicUsize>) {
        let dropped = Arc::new(AtomicUsize::new(0));
        let server = Server {
            resolver: Resolver::new(()),
            #[cfg(loom)]
            content: loom::cell::UnsafeCell::new(0),
            dropped: Arc::clone(&dropped),
        };
        (Anchor::new(server), dropped)
    }

    fn answer(&self) {
        #[cfg(loom)]
        // SAFETY: only read, and loom fails the model if it is written at the same time.
        self.content.with(|content| assert_eq!(unsafe { *content }, 0));
        assert_eq!(self.resolver.lookup_count(Inode::ROOT), Some(1));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        #[cfg(loom)]
        // SAFETY: nobody else is here, or loom fails the model.
        self.content.with_mut(|content| unsafe { *content = 1 });
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn end_while_the_owner_goes(
    request: AnchoredRequest<Server>,
    anchor: Anchor<Server>,
    dropped: &AtomicUsize,
) {
    let worker = thread::spawn(move || {
        request.answer();
        drop(request);
    });
    drop(anchor);
    worker.join().unwrap();
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

/// The owner goes while a request ends: one of the two drops the value, after the request's last use.
///
/// Bad: the owner sums the counters before the exit reaches it, and the request looks for graves
/// before the owner's has reached it: nobody drops the value. Or the owner sees the exit and not
/// what the request did before it.
#[test]
fn last_request_against_dropped_anchor() {
    run_model("last_request_against_dropped_anchor", || {
        let (anchor, dropped) = Server::anchored();
        let request = anchor.begin_request();
        end_while_the_owner_goes(request, anchor, &dropped);
    });
}

/// Two requests end at the same time after the owner has gone.
///
/// Bad: each finds the other still counted in, and nobody looks again; or both drop the value.
#[test]
fn two_last_requests() {
    run_model("two_last_requests", || {
        let (anchor, dropped) = Server::anchored();
        let (one, two) = (anchor.begin_request(), anchor.begin_request());
        drop(anchor);
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        let worker = thread::spawn(move || {
            one.answer();
            drop(one);
        });
        two.answer();
        drop(two);
        worker.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

/// The request is counted in the second parity, because nodes were reclaimed before it began.
///
/// Bad: only the parity that is current, or that was current at first, is waited for.
#[test]
fn anchor_waits_for_both_parities() {
    run_model("anchor_waits_for_both_parities", || {
        let (anchor, dropped) = Server::anchored();
        let earlier = anchor.begin_request();
        let inode = file(&anchor.resolver, Inode::ROOT, "a");
        anchor.resolver.forget(inode, 1);
        // Makes the other parity current and then waits for the earlier request.
        anchor.resolver.reclaim();
        drop(earlier);
        let request = anchor.begin_request();
        end_while_the_owner_goes(request, anchor, &dropped);
    });
}
