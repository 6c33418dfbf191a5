//! What does it cost to keep a path true?
//!
//! A lease of a file three directories deep, taken and dropped, beside what a reader of a lock-free
//! structure pays at least (an epoch's pin), a request's pin, and with the path copied out.

use std::cell::RefCell;
use std::hint::black_box;

use pinpath::{Inode, Kind, Name, Resolver};

use crate::alternate::Case;

/// Leases and what to compare them with.
pub fn cases() -> Vec<Case> {
    let resolver = Resolver::new(());
    let name = |name| Name::new(name).expect("a name");
    let directory = |parent, child| resolver.lookup(parent, name(child), Kind::Directory, ());
    let a = directory(Inode::ROOT, "a").expect("new");
    let b = directory(a, "b").expect("new");
    let c = directory(b, "c").expect("new");
    let file = resolver.lookup(c, name("file"), Kind::Leaf, ()).expect("new");
    let (pinned, leased, copied) = (resolver.clone(), resolver.clone(), resolver);
    thread_local! {
        static PATH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    vec![
        Case::of("epoch pin (crossbeam)", || drop(black_box(crossbeam_epoch::pin()))),
        Case::of("request pin", move || drop(black_box(pinned.pin()))),
        Case::of("lease", move || drop(black_box(leased.lease(black_box(file))))),
        Case::of("lease, and the path into a buffer", move || {
            let lease = copied.lease(black_box(file)).expect("known");
            PATH.with_borrow_mut(|path| lease.path_into(path)).expect("named");
        }),
    ]
}
