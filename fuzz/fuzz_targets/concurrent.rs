//! Two threads with a sequence each, on one tree; then the history is checked, and the table.
//!
//! A failure may need several runs to come again: the schedule is not part of the input.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use pinpath_testkit::history::{Going, Setup, Step, settle};
use pinpath_testkit::op::Op;

#[derive(Arbitrary, Debug)]
struct Input {
    setup: Vec<Op>,
    first: Vec<Op>,
    second: Vec<Op>,
    pinned: bool,
}

const MOST_SETUP: usize = 12;
/// Short enough that the search for an order stays quick.
const MOST: usize = 6;

fuzz_target!(|input: Input| {
    let mut tree = Setup::new(None);
    for op in input.setup.iter().take(MOST_SETUP) {
        tree.run(op);
        settle(&tree.resolver);
        tree.oracle.settle();
    }
    let script = |ops: &[Op]| ops.iter().take(MOST).cloned().map(Step::Op).collect();
    let scripts = [script(&input.first), script(&input.second)];
    let going = if input.pinned { Going::Pinned } else { Going::Free };
    let history = tree.record(&scripts, going);
    if let Err(report) = history.check() {
        panic!("{report}");
    }
    if let Err(why) = tree.resolver.validate() {
        panic!("{why}\n{history}");
    }
});
