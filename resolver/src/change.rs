//! [`Change`]: the links of several nodes change in one step.
//!
//! A rename over a target takes a name from one node and gives it to another; an exchange swaps two.
//! Readers must not see the half of it. So the change first puts an *intent* in the place of each
//! node's links: what they were, what they will be, and a pointer to one status word. Then it flips
//! that word, which is the moment at which all of it happens; a reader that meets an intent asks the
//! word which side holds. Afterwards the intents are replaced by the plain links.
//!
//! The caller holds the locks of all the nodes, so intents of two changes never meet. Intents and
//! the word are freed by epoch.

use crate::link::Links;
use crate::node::Node;
use crate::sync::{AtomicU8, Ordering, epoch};

const PENDING: u8 = 0;
const DONE: u8 = 1;

/// In the place of a node's links while a change is under way.
#[derive(Debug)]
#[repr(align(8))] // leaves room for the tag of `Links`
pub(crate) struct Intent {
    old: Links,
    new: Links,
    status: *const AtomicU8,
}

impl Intent {
    /// The side that holds.
    ///
    /// # Safety
    /// An epoch guard is held since before the intent was found in its node.
    pub(crate) unsafe fn links(&self) -> Links {
        // Acquire: pairs with the Release in `apply`; who sees the change done sees all before it.
        // SAFETY: the status is freed an epoch after the last intent that points to it.
        match unsafe { (*self.status).load(Ordering::Acquire) } {
            PENDING => self.old,
            _ => self.new,
        }
    }
}

/// One node's part in a change.
pub(crate) struct Swap<'a, D> {
    pub(crate) node: &'a Node<D>,
    pub(crate) old: Links,
    pub(crate) new: Links,
}

/// Gives each node its new links, all at one moment. The sets that were replaced are retired.
///
/// The caller holds the nodes' locks, and `old` is what they hold.
pub(crate) fn apply<D>(swaps: &[Swap<'_, D>], guard: &epoch::Guard) {
    match swaps {
        [] => {}
        [swap] => swap.node.set_links(swap.new),
        _ => apply_together(swaps, guard),
    }
    for swap in swaps {
        // SAFETY: replaced above, and only we hold the node's lock.
        unsafe { swap.old.retire_set(guard) };
    }
}

fn apply_together<D>(swaps: &[Swap<'_, D>], guard: &epoch::Guard) {
    let status = Box::into_raw(Box::new(AtomicU8::new(PENDING)));
    let intents: Vec<*mut Intent> = swaps
        .iter()
        .map(|swap| Box::into_raw(Box::new(Intent { old: swap.old, new: swap.new, status })))
        .collect();
    for (swap, intent) in swaps.iter().zip(&intents) {
        swap.node.set_links(Links::intent(*intent));
    }
    // Release: pairs with the Acquire in `Intent::links`. This is the moment of the change.
    // SAFETY: ours until it is retired below.
    unsafe { (*status).store(DONE, Ordering::Release) };
    for swap in swaps {
        swap.node.set_links(swap.new);
    }
    // SAFETY: no node holds an intent any more; who found one holds a guard, and the deferral waits
    // for it. Each is freed once.
    unsafe {
        guard.defer_unchecked(move || {
            for intent in intents {
                drop(Box::from_raw(intent));
            }
            drop(Box::from_raw(status));
        });
    }
}
