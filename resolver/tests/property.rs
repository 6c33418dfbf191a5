//! Random operations on one thread, against the oracle (`pinpath-testkit`).
//!
//! `PROPTEST_CASES` sets how many sequences each test runs. A failure is shrunk and printed as the
//! calls that lead to it; what was found this way stays in `regressions.rs`.

use pinpath_testkit::harness::{Look, Pace, run};
use pinpath_testkit::op::Op;
use pinpath_testkit::strategy::{operations, operations_under_pins};
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use std::cell::Cell;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..Default::default() }
}

/// Does the root have an identity, one that entries may have too?
fn root() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(0))]
}

fn explore(operations: impl Strategy<Value = Vec<Op>>, pace: Pace, look: Look) {
    let mut runner = TestRunner::new(config());
    let (sequences, done) = (Cell::new(0), Cell::new(0));
    let result = runner.run(&(operations, root()), |(ops, root)| {
        sequences.set(sequences.get() + 1);
        done.set(done.get() + ops.len());
        run(&ops, root, pace, look).map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {
            let (sequences, done) = (sequences.get(), done.get());
            println!("{pace:?}, {look:?}: {sequences} sequences, {done} operations");
        }
        Err(TestError::Fail(_, (ops, root))) => {
            let (ops, why) = smallest(ops, |ops| run(ops, root, pace, look).err());
            panic!("{why}\nby {ops:?}, {root:?}, {pace:?}, {look:?}");
        }
        Err(other) => panic!("{other}"),
    }
}

/// Leaves out what is not needed to fail. Proptest tries that only once, at the start, when each
/// operation still means something else if one before it is missing.
fn smallest(mut ops: Vec<Op>, fails: impl Fn(&[Op]) -> Option<String>) -> (Vec<Op>, String) {
    let mut why = fails(&ops).unwrap_or_else(|| "it fails only sometimes".to_owned());
    loop {
        let without = |index: usize| [&ops[..index], &ops[index + 1..]].concat();
        let smaller = (0..ops.len()).map(without).find_map(|ops| Some((fails(&ops)?, ops)));
        let Some((because, fewer)) = smaller else { return (ops, why) };
        (why, ops) = (because, fewer);
    }
}

#[test]
fn settled_and_looking_at_everything() {
    explore(operations(60), Pace::Settled, Look::Everything);
}

#[test]
fn settled_and_comparing_answers() {
    explore(operations(120), Pace::Settled, Look::Answers);
}

#[test]
fn free_and_looking_at_everything() {
    explore(operations(60), Pace::Free, Look::Everything);
}

#[test]
fn free_and_comparing_answers() {
    explore(operations(120), Pace::Free, Look::Answers);
}

#[test]
fn settled_under_pins() {
    explore(operations_under_pins(60), Pace::Settled, Look::Answers);
}
