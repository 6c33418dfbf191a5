//! The collector by itself, for the models in `loom-tests/`.

use super::Collector;
use crate::sync::Arc;

/// A collector that the threads of a model share.
#[derive(Clone, Debug)]
pub struct Epochs(Arc<Collector>);

impl Epochs {
    #[allow(clippy::new_without_default, missing_docs)]
    pub fn new() -> Self {
        Epochs(Arc::new(Collector::new()))
    }

    /// Runs `f` under a guard; what it answers is retired then.
    pub fn under_guard<R: Send + 'static>(&self, f: impl FnOnce() -> Option<R>) {
        let guard = self.0.pin(None);
        if let Some(retired) = f() {
            // SAFETY: the models retire what they own.
            unsafe { guard.defer_unchecked(move || drop(retired)) };
        }
    }

    /// Frees what can be freed.
    pub fn collect(&self) {
        self.0.collect();
    }
}
