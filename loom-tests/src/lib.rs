//! Exhaustive models of the resolver's races, on [loom](https://docs.rs/loom).
//!
//! Each model in `tests/` runs two or three threads over one race and is named after it. loom runs
//! it again and again, once for every way in which the threads' steps can interleave and, within
//! the C11 memory model, every value that a load may see. `loom-tests/run` runs them all.
//!
//! What loom does not see: membarrier (both fences are `SeqCst` here, which is what membarrier and a
//! compiler fence amount to together), and crossbeam-epoch (a stand-in that runs what was deferred as
//! soon as no guard is held). Accesses that are `SeqCst` and no fences are weaker in loom than they
//! are; the resolver uses fences.

#![cfg(loom)]

use std::sync::atomic::{AtomicUsize, Ordering};

use pinpath::{Inode, Kind, Name, Resolver};

/// Runs a model through its interleavings and prints how many there were.
///
/// Bounds come from loom's environment variables (`LOOM_MAX_PREEMPTIONS`, ...); without one, two
/// preemptions, with which nearly all races show (and three where a model asks for them).
pub fn run_model(name: &str, model: impl Fn() + Sync + Send + 'static) {
    run_model_with(name, 2, model);
}

/// The same with another bound on preemptions.
pub fn run_model_with(name: &str, preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    static ITERATIONS: AtomicUsize = AtomicUsize::new(0);
    let iterations = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&iterations);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = builder.max_branches.max(20_000);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let iterations = iterations.load(Ordering::Relaxed);
    ITERATIONS.fetch_add(iterations, Ordering::Relaxed);
    println!("{name}: {iterations} interleavings");
}

/// A name that is known to be one.
pub fn name(name: &str) -> &Name {
    Name::new(name).expect("a name")
}

/// Looks a directory up and counts it.
pub fn dir(resolver: &Resolver, parent: Inode, child: &str) -> Inode {
    resolver.lookup(parent, name(child), Kind::Directory, ()).expect("a new directory")
}

/// Looks a file up and counts it.
pub fn file(resolver: &Resolver, parent: Inode, child: &str) -> Inode {
    resolver.lookup(parent, name(child), Kind::Leaf, ()).expect("a new file")
}

/// The path as text, or the reason why there is none.
pub fn path(resolver: &Resolver, inode: Inode) -> Result<String, pinpath::PathError> {
    resolver.path(inode).map(|path| path.to_str().expect("names are text here").to_owned())
}

/// After the threads have ended: reclaims all that can be, and checks every invariant.
pub fn settle(resolver: &Resolver) {
    while resolver.reclaim() > 0 {}
    if let Err(wrong) = resolver.validate() {
        panic!("{wrong}");
    }
}
