//! Arbitrary histories of requests, in place of the kernel, against an engine with a filesystem in
//! memory. `fuzz/` does the same with histories that it finds by what they reach; what crashed
//! there is a test here.

mod kernel;
mod names;
mod request;
mod serve;

// What the mounted tests have, without what these share besides.
#[allow(dead_code)]
#[path = "../support/memory.rs"]
mod memory;
#[path = "../support/namespace.rs"]
mod namespace;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arbitrary::{Arbitrary, Unstructured};
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use request::History;

/// How many requests a history has at most.
const MOST: usize = 120;

fn history(bytes: &[u8]) -> History {
    let history = History::arbitrary(&mut Unstructured::new(bytes));
    history.expect("there are bytes enough to begin with")
}

/// What the kernel and the engine disagree about.
fn disagreement(history: &History, closely: bool) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| serve::run(history, MOST, closely))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned())).or(Some("?".to_owned()))
}

/// Leaves out the requests that are not needed.
fn smallest(mut history: History, closely: bool) -> History {
    loop {
        let without = |index| {
            let mut smaller = history.clone();
            smaller.requests.remove(index);
            disagreement(&smaller, closely).map(|_| smaller)
        };
        let Some(smaller) = (0..history.requests.len()).find_map(without) else { return history };
        history = smaller;
    }
}

/// `PROPTEST_CASES` sets how many histories are tried.
#[test]
fn the_kernel_and_the_engine_agree_after_every_request() {
    // Panics of the handler on purpose would fill the log.
    std::panic::set_hook(Box::new(|_| ()));
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let config = ProptestConfig { cases: config.cases.saturating_mul(8), ..config };
    let bytes = proptest::collection::vec(any::<u8>(), 16..1500);
    let (histories, requests) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&(bytes, any::<bool>()), |(bytes, closely)| {
        let history = history(&bytes);
        histories.set(histories.get() + 1);
        requests.set(requests.get() + history.requests.len());
        disagreement(&history, closely).map_or(Ok(()), |why| Err(TestCaseError::fail(why)))
    });
    let failed = match result {
        Ok(()) => None,
        Err(TestError::Fail(_, (bytes, closely))) => {
            let history = smallest(history(&bytes), closely);
            Some(format!("{:?}\nby {history:?}, {closely}", disagreement(&history, closely)))
        }
        Err(other) => Some(other.to_string()),
    };
    let _ = std::panic::take_hook();
    println!("{} histories, {} requests", histories.get(), requests.get());
    assert!(failed.is_none(), "{}", failed.unwrap_or_default());
}
