//! [`End`]: how a mount ended, for all who wait for it.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Empty until the mount has ended.
#[derive(Debug, Default)]
pub(super) struct End {
    outcome: Mutex<Option<Result<(), Failure>>>,
    changed: Condvar,
}

/// An error that several can be told of.
#[derive(Clone, Debug)]
struct Failure {
    kind: io::ErrorKind,
    text: String,
}

impl End {
    pub(super) fn set(&self, result: io::Result<()>) {
        let result =
            result.map_err(|error| Failure { kind: error.kind(), text: error.to_string() });
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.changed.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits, however long it takes.
    pub(super) fn wait(&self) -> io::Result<()> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self.changed.wait_while(outcome, |outcome| outcome.is_none());
        outcome_of(&outcome.unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for so long at most. `None`: it has not ended.
    pub(super) fn wait_for(&self, limit: Duration) -> Option<io::Result<()>> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(outcome, limit, |outcome| outcome.is_none());
        let (outcome, _) = waited.unwrap_or_else(PoisonError::into_inner);
        outcome.is_some().then(|| outcome_of(&outcome))
    }
}

fn outcome_of(outcome: &Option<Result<(), Failure>>) -> io::Result<()> {
    match outcome {
        Some(Err(failure)) => Err(io::Error::new(failure.kind, failure.text.clone())),
        _ => Ok(()),
    }
}
