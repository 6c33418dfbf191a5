//! Sequences of operations against the oracle, on one thread. The same as the property tests, but
//! the sequences are found by what they reach in the resolver's code.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use pinpath_testkit::harness::{Look, Pace, run};
use pinpath_testkit::op::Op;

#[derive(Arbitrary, Debug)]
struct Input {
    root_has_identity: bool,
    settled: bool,
    look_at_everything: bool,
    ops: Vec<Op>,
}

/// A longer sequence only makes the fuzzer slow.
const MOST: usize = 100;

fuzz_target!(|input: Input| {
    let pace = if input.settled { Pace::Settled } else { Pace::Free };
    let look = if input.look_at_everything { Look::Everything } else { Look::Answers };
    let ops = &input.ops[..input.ops.len().min(MOST)];
    if let Err(difference) = run(ops, input.root_has_identity.then_some(0), pace, look) {
        panic!("{difference}");
    }
});
