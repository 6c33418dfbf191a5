//! Models of the resolver's races, on [loom](https://docs.rs/loom) and
//! [shuttle](https://docs.rs/shuttle).
//!
//! Each model in `tests/` runs two or three threads over one race and is named after it. loom runs
//! it again and again, once for every way in which the threads' steps can interleave and, within
//! the C11 memory model, every value that a load may see. shuttle runs the same models, with all of
//! the resolver's real sizes, by schedules chosen at random, and knows no weak memory.
//! `loom-tests/run` and `loom-tests/run-shuttle` run them all.
//!
//! What loom does not see: membarrier (both fences are `SeqCst` here, which is what membarrier and a
//! compiler fence amount to together), and the resolver's epochs (a stand-in that runs what was deferred as
//! soon as no guard is held). Accesses that are `SeqCst` and no fences are weaker in loom than they
//! are; the resolver uses fences.

#![cfg(any(loom, shuttle))]

use pinpath::{Inode, Kind, Name, Resolver};

#[cfg(loom)]
pub use loom::thread;

#[cfg(shuttle)]
pub use shuttle::thread;

#[cfg(shuttle)]
mod turns;
#[cfg(shuttle)]
pub use turns::{Turn, run_in_turns};

/// Runs a model through its interleavings and prints how many there were.
///
/// Bounds come from loom's environment variables (`LOOM_MAX_PREEMPTIONS`, ...); without one, two
/// preemptions, with which nearly all races show (and three where a model asks for them).
pub fn run_model(name: &str, model: impl Fn() + Sync + Send + 'static) {
    run_model_with(name, 2, model);
}

/// The same with another bound on preemptions.
#[cfg(loom)]
pub fn run_model_with(name: &str, preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let iterations = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&iterations);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = builder.max_branches.max(20_000);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} interleavings", iterations.load(Ordering::Relaxed));
}

/// Runs a model by random schedules, half of them uniform, half of them with few preemptions at
/// random places (PCT). `SHUTTLE_SCHEDULES` says how many (2000).
#[cfg(shuttle)]
pub fn run_model_with(name: &str, preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let schedules = std::env::var("SHUTTLE_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let half = schedules.unwrap_or(2000_usize).div_ceil(2);
    let model = std::sync::Arc::new(model);
    let same = std::sync::Arc::clone(&model);
    shuttle::check_random(move || model(), half);
    shuttle::check_pct(move || same(), half, preemptions + 1);
    println!("{name}: {} schedules", 2 * half);
}

/// What a leased path leads to. Touched by a handler with a lease, and by one that renames: two that
/// must exclude each other must never be in it at once.
#[cfg(loom)]
#[derive(Clone, Debug)]
pub struct Backend(loom::sync::Arc<loom::cell::UnsafeCell<u32>>);

#[cfg(loom)]
impl Backend {
    /// Untouched.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Backend(loom::sync::Arc::new(loom::cell::UnsafeCell::new(0)))
    }

    /// Works on it. loom reports it if another thread does so too.
    pub fn touch(&self) {
        self.0.with_mut(|touched| {
            // SAFETY: loom checks that nobody else is here; that is what the models are about.
            unsafe { *touched += 1 }
        });
    }
}

/// The same for shuttle.
#[cfg(shuttle)]
#[derive(Clone, Debug, Default)]
pub struct Backend(shuttle::sync::Arc<shuttle::sync::atomic::AtomicBool>);

#[cfg(shuttle)]
impl Backend {
    /// Untouched.
    pub fn new() -> Self {
        Self::default()
    }

    /// Works on it, and panics if another thread does so too.
    pub fn touch(&self) {
        use shuttle::sync::atomic::Ordering::SeqCst;
        assert!(!self.0.swap(true, SeqCst), "two handlers that must exclude each other");
        thread::yield_now();
        self.0.store(false, SeqCst);
    }
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
