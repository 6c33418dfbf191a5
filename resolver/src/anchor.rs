//! [`Anchor`]: a value that requests keep alive without counting references in one place.
//!
//! A server that hands each request to some thread clones an `Arc` of itself for it, and so all its
//! threads write to one count. A request has a pin anyway, which writes to its own thread's line
//! only; here the pin keeps the value alive too. The owner is one, and when it is dropped the value
//! waits in its domain until the requests have ended, the last of which drops it.
//!
//! How it is known that they have: after the owner is gone no request of the anchor begins. So each
//! parity of the domain needs to be seen drained once, in whatever order (`graves.rs`).

use std::ops::Deref;
use std::ptr::NonNull;

use crate::data::NodeData;
use crate::domain::{Domain, Grave};
use crate::pin::RequestPin;
use crate::reclaim;
use crate::resolver::Resolver;

/// Owns a value, a filesystem with its [`Resolver`] for example, that requests borrow for as long as
/// they take.
///
/// ```
/// use pinpath::{Anchor, Inode, Resolver};
///
/// struct Server {
///     resolver: Resolver,
/// }
///
/// impl AsRef<Resolver> for Server {
///     fn as_ref(&self) -> &Resolver {
///         &self.resolver
///     }
/// }
///
/// let server = Anchor::new(Server { resolver: Resolver::new(()) });
/// let request = server.begin_request(); // on the thread that reads requests
/// let worker = std::thread::spawn(move || request.resolver.path(Inode::ROOT).unwrap());
/// drop(server); // unmounted meanwhile
/// assert_eq!(worker.join().unwrap().as_os_str(), "");
/// ```
#[derive(Debug)]
pub struct Anchor<T: Send + Sync + 'static> {
    value: NonNull<T>,
    domain: &'static Domain,
    /// Advances reclamation in the value's resolver, whatever that keeps beside its nodes.
    advance: fn(&T),
}

// SAFETY: like `Arc<T>`, it gives `&T` to whichever threads have it and drops `T` on any.
unsafe impl<T: Send + Sync + 'static> Send for Anchor<T> {}
// SAFETY: the same.
unsafe impl<T: Send + Sync + 'static> Sync for Anchor<T> {}

impl<T: Send + Sync + 'static> Anchor<T> {
    /// Takes a value to which a resolver belongs.
    pub fn new<D: NodeData>(value: T) -> Self
    where
        T: AsRef<Resolver<D>>,
    {
        let domain = value.as_ref().shared().domain;
        let value = NonNull::from(Box::leak(Box::new(value)));
        let advance = |value: &T| _ = reclaim::advance(value.as_ref().shared());
        Anchor { value, domain, advance }
    }

    /// Begins a request: what [`Resolver::pin`] keeps is kept, and the value too, until the answer
    /// is dropped, on whichever thread.
    #[inline]
    pub fn begin_request(&self) -> AnchoredRequest<T> {
        if self.domain.pressing() {
            (self.advance)(self);
        }
        // In the domain noted at first, whichever resolver the value answers with by now.
        AnchoredRequest { value: self.value, _pin: RequestPin::begin(self.domain) }
    }
}

impl<T: Send + Sync + 'static> Deref for Anchor<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: freed only after the anchor has buried it, when it is dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T: Send + Sync + 'static> Drop for Anchor<T> {
    fn drop(&mut self) {
        // SAFETY: leaked in `new`, and nobody else buries it. It is used by requests of this anchor
        // only, which all began before this and are counted in this domain.
        self.domain.bury(unsafe { Grave::new(self.value) });
    }
}

/// A request that keeps an [`Anchor`]'s value, and a [`RequestPin`]. May be dropped on any thread.
#[derive(Debug)]
#[must_use = "a request that is dropped at once keeps nothing"]
pub struct AnchoredRequest<T: Send + Sync + 'static> {
    value: NonNull<T>,
    _pin: RequestPin,
}

// SAFETY: it gives `&T`, and whichever thread drops the last one drops `T`, as with `Arc<T>`.
unsafe impl<T: Send + Sync + 'static> Send for AnchoredRequest<T> {}
// SAFETY: the same.
unsafe impl<T: Send + Sync + 'static> Sync for AnchoredRequest<T> {}

impl<T: Send + Sync + 'static> Deref for AnchoredRequest<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pin is in the anchor's domain, began while the anchor was there, and has not
        // ended; the value is freed after both parities were seen drained since the anchor's end.
        unsafe { self.value.as_ref() }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Anchor;
    use crate::Resolver;

    struct Server(Resolver, Arc<AtomicUsize>);

    impl AsRef<Resolver> for Server {
        fn as_ref(&self) -> &Resolver {
            &self.0
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn server() -> (Anchor<Server>, Arc<AtomicUsize>) {
        let dropped = Arc::new(AtomicUsize::new(0));
        (Anchor::new(Server(Resolver::new(()), Arc::clone(&dropped))), dropped)
    }

    #[test]
    fn the_value_goes_with_the_anchor_if_no_request_has_it() {
        let (anchor, dropped) = server();
        drop(anchor.begin_request());
        drop(anchor);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_last_request_drops_the_value_on_its_own_thread() {
        let (anchor, dropped) = server();
        let requests = [anchor.begin_request(), anchor.begin_request()];
        drop(anchor);
        let [one, two] = requests;
        drop(one);
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        std::thread::spawn(move || drop(two)).join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn other_pins_delay_the_value_and_do_not_lose_it() {
        let (anchor, dropped) = server();
        let resolver = anchor.0.clone();
        let pin = resolver.pin();
        drop(anchor);
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        drop(pin);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn many_owners_and_requests_drop_each_value_once() {
        let dropped = Arc::new(AtomicUsize::new(0));
        for _ in 0..500 {
            let anchor = Anchor::new(Server(Resolver::new(()), Arc::clone(&dropped)));
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let request = anchor.begin_request();
                    scope.spawn(move || drop(request));
                }
                drop(anchor);
            });
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 500);
    }
}
