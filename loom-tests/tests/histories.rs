//! Random programs of two to four threads by random schedules, each history checked against the
//! oracle. `resolver/tests/linearizable.rs` does the same with real threads, which meet less often.
//!
//! `SHUTTLE_PROGRAMS` (200) says how many programs each test makes; each runs by 50 schedules.

#![cfg(shuttle)]

use std::sync::atomic::{AtomicUsize, Ordering};

use pinpath_testkit::history::{Going, Setup, Step};
use pinpath_testkit::op::Op;
use pinpath_testkit::strategy::{concurrent_operation, setup};
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const SCHEDULES: usize = 50;

fn programs() -> u64 {
    let programs = std::env::var("SHUTTLE_PROGRAMS").ok().and_then(|text| text.parse().ok());
    programs.unwrap_or(200)
}

/// The same programs each time.
fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config::default(), rng)
}

fn random(name: &str, going: Going, threads: usize, operations: usize) {
    static OVERLAPS: AtomicUsize = AtomicUsize::new(0);
    let program = (setup(), vec(vec(concurrent_operation(), operations), threads));
    for seed in 0..programs() {
        let mut runner = runner(seed);
        let (before, scripts) = program.new_tree(&mut runner).expect("a program").current();
        shuttle::check_random(move || one(&before, &scripts, going), SCHEDULES);
    }
    println!("{name}: {} histories", programs() * SCHEDULES as u64);

    fn one(before: &[Op], scripts: &[Vec<Op>], going: Going) {
        let mut tree = Setup::new(None);
        before.iter().for_each(|op| tree.run(op));
        let scripts: Vec<Vec<Step>> =
            scripts.iter().map(|script| script.iter().cloned().map(Step::Op).collect()).collect();
        let history = tree.record(&scripts, going);
        if let Err(report) = history.check() {
            panic!("{report}");
        }
        OVERLAPS.fetch_add(usize::from(history.overlaps()), Ordering::Relaxed);
    }
    assert!(OVERLAPS.load(Ordering::Relaxed) > 0, "no calls met");
}

#[test]
fn two_threads() {
    random("two_threads", Going::Free, 2, 5);
}

#[test]
fn three_threads() {
    random("three_threads", Going::Free, 3, 4);
}

#[test]
fn four_threads() {
    random("four_threads", Going::Free, 4, 2);
}

#[test]
fn under_a_pin() {
    random("under_a_pin", Going::Pinned, 3, 4);
}
