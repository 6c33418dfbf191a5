//! Concurrent histories of the real resolver, checked against the oracle.
//!
//! First some named races, each with the wrong answer that it is there to catch; then random
//! histories. `PINPATH_HISTORIES` sets how many of each are run; only those count in which calls of
//! two threads overlapped. Without it, 500 of each, or as many as a busy machine can run in some
//! seconds.

use pinpath::{Inode, Kind};
use pinpath_testkit::call::{Answer, Call, Entry};
use pinpath_testkit::history::{Going, Setup, Step};
use pinpath_testkit::oracle::Place;
use pinpath_testkit::strategy::{concurrent_operation, setup};
use pinpath_testkit::watchdog::watch;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const ROOT: Inode = Inode::ROOT;

/// How many histories of each race are to be run, and how long that may take once there are
/// [`ENOUGH`]. Who asks for a number gets it.
fn histories() -> (u64, Duration) {
    match std::env::var("PINPATH_HISTORIES") {
        Ok(number) => (number.parse().expect("PINPATH_HISTORIES is a number"), Duration::MAX),
        Err(_) => (500, Duration::from_secs(4)),
    }
}

/// After this long a test does not go on only to see more overlaps.
const LIMIT: Duration = Duration::from_secs(1);

/// With fewer overlaps than this nothing was tested, so it goes on for longer, and then fails.
const ENOUGH: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(60);

fn at(parent: Inode, name: &str) -> Place {
    Place { parent, name: name.into() }
}

fn lookup(parent: Inode, name: &str, kind: Kind) -> Call {
    Call::Lookup { parent, entry: Entry { name: name.into(), kind, identity: None } }
}

fn make(tree: &mut Setup, parent: Inode, name: &str, kind: Kind) -> Inode {
    match tree.call(&lookup(parent, name, kind)) {
        Answer::Inode(Ok(inode)) => inode,
        other => panic!("the setup failed: {other:?}"),
    }
}

/// Runs a race many times, each on a tree of its own, and checks every history.
fn race(name: &str, going: Going, scripts: impl Fn(&mut Setup) -> Vec<Vec<Call>>) {
    repeat(name, |_| {
        let mut tree = Setup::new(None);
        let scripts = scripts(&mut tree);
        let step = |script: Vec<Call>| script.into_iter().map(Step::Call).collect();
        check(&tree, scripts.into_iter().map(step).collect(), going, name)
    });
}

/// Calls `one`, which runs and checks one history and says whether calls overlapped in it, until
/// there were enough that did. On a busy machine that may take long, so a part of them does if the
/// time is over.
fn repeat(name: &str, mut one: impl FnMut(u64) -> bool) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // The threads of one race are to meet each other, not those of another one.
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let start = Instant::now();
    let (histories, most) = histories();
    let (mut run, mut overlapping) = (0, 0);
    let goes_on = |run, overlapping| match start.elapsed() {
        _ if overlapping >= histories => false,
        time if overlapping < ENOUGH => time < PATIENCE,
        time => time < LIMIT || (run < histories && time < most),
    };
    while goes_on(run, overlapping) {
        let _watched = watch(format!("{name}, history {run}"));
        overlapping += u64::from(one(run));
        run += 1;
    }
    println!("{name}: {run} histories, {overlapping} of them with calls at the same time");
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
        assert!(overlapping >= ENOUGH.min(histories), "too few calls met to say anything");
    }
}

/// Runs one history and checks it. Did calls overlap?
fn check(tree: &Setup, scripts: Vec<Vec<Step>>, going: Going, name: &str) -> bool {
    let history = tree.record(&scripts, going);
    if let Err(report) = history.check() {
        panic!("{name}, {going:?}: {report}");
    }
    if let Err(why) = tree.resolver.validate() {
        panic!("{name}, {going:?}: {why}\nafter {history}");
    }
    history.overlaps()
}

/// Wrong: `d/y`, a path that never was.
#[test]
fn renames_of_a_directory_and_of_what_is_in_it_against_paths() {
    race("directory and leaf renames against paths", Going::Free, |tree| {
        let d = make(tree, ROOT, "d", Kind::Directory);
        let x = make(tree, d, "x", Kind::Leaf);
        let there = [
            Call::Rename(at(ROOT, "d"), at(ROOT, "e")),
            Call::Rename(at(d, "x"), at(d, "y")),
            Call::Rename(at(ROOT, "e"), at(ROOT, "d")),
            Call::Rename(at(d, "y"), at(d, "x")),
        ];
        vec![there.to_vec(), vec![Call::Path(x); 8]]
    });
}

/// Wrong: what is seen depends on who asks. A path that was kept must not outlive a rename that
/// another reader has seen.
#[test]
fn kept_paths_of_two_nodes_against_renames_above_them() {
    race("kept paths against renames", Going::Free, |tree| {
        let d = make(tree, ROOT, "d", Kind::Directory);
        let (x, y) = (make(tree, d, "x", Kind::Leaf), make(tree, d, "y", Kind::Leaf));
        let fro = Call::Rename(at(ROOT, "d"), at(ROOT, "e"));
        let back = Call::Rename(at(ROOT, "e"), at(ROOT, "d"));
        let reader = [x, y, y, x, y, x].map(Call::Path).to_vec();
        vec![vec![fro.clone(), back.clone(), fro, back], reader]
    });
}

/// Wrong: a parent of the old place above a parent of the new one.
#[test]
fn two_directories_renamed_at_once_against_a_path_through_both() {
    race("two directory renames against a path", Going::Free, |tree| {
        let a = make(tree, ROOT, "a", Kind::Directory);
        let b = make(tree, a, "b", Kind::Directory);
        let x = make(tree, b, "x", Kind::Leaf);
        vec![
            vec![Call::Rename(at(ROOT, "a"), at(ROOT, "c"))],
            vec![Call::Rename(at(a, "b"), at(ROOT, "b"))],
            vec![Call::Path(x), Call::Path(b), Call::Path(x), Call::Path(a)],
        ]
    });
}

/// Wrong: both succeed, and each directory is below the other.
#[test]
fn two_directories_each_moved_below_the_other() {
    race("each below the other", Going::Free, |tree| {
        let a = make(tree, ROOT, "a", Kind::Directory);
        let b = make(tree, ROOT, "b", Kind::Directory);
        vec![
            vec![Call::Rename(at(ROOT, "a"), at(b, "a")), Call::Path(a)],
            vec![Call::Rename(at(ROOT, "b"), at(a, "b")), Call::Path(b)],
        ]
    });
}

/// Wrong: `path(a)` is b, and then `path(b)` is b.
#[test]
fn a_rename_over_a_target_against_the_paths_of_both() {
    race("rename over a target against paths", Going::Free, |tree| {
        let (a, b) = (make(tree, ROOT, "a", Kind::Leaf), make(tree, ROOT, "b", Kind::Leaf));
        vec![
            vec![Call::Rename(at(ROOT, "a"), at(ROOT, "b"))],
            vec![Call::Path(a), Call::Path(b), Call::Path(a), Call::Path(b)],
        ]
    });
}

/// Wrong: a lookup of b that finds neither node, and makes a third.
#[test]
fn a_rename_over_a_target_against_lookups_of_its_names() {
    race("rename over a target against lookups", Going::Free, |tree| {
        make(tree, ROOT, "a", Kind::Leaf);
        make(tree, ROOT, "b", Kind::Leaf);
        let look = lookup(ROOT, "b", Kind::Leaf);
        vec![
            vec![Call::Rename(at(ROOT, "a"), at(ROOT, "b"))],
            vec![look.clone(), Call::Peek(at(ROOT, "a")), look],
        ]
    });
}

/// Wrong: index and path disagree about which node is b.
#[test]
fn an_exchange_against_lookups_and_paths() {
    race("exchange against lookups and paths", Going::Free, |tree| {
        let d = make(tree, ROOT, "d", Kind::Directory);
        let (a, b) = (make(tree, ROOT, "a", Kind::Leaf), make(tree, d, "b", Kind::Directory));
        let swap = Call::Exchange(at(ROOT, "a"), at(d, "b"));
        vec![
            vec![swap.clone(), swap],
            vec![Call::Path(a), Call::Peek(at(ROOT, "a")), Call::Path(b), Call::Peek(at(d, "b"))],
            vec![Call::Path(b), Call::Path(a), Call::Peek(at(d, "b")), Call::Path(b)],
        ]
    });
}

/// Wrong: a list of names that the node never had at one time.
#[test]
fn links_and_unlinks_against_all_paths() {
    race("links and unlinks against paths", Going::Free, |tree| {
        let d = make(tree, ROOT, "d", Kind::Directory);
        let a = make(tree, ROOT, "a", Kind::Leaf);
        vec![
            vec![
                Call::Link(a, at(d, "b")),
                Call::Unlink(at(ROOT, "a")),
                Call::Link(a, at(ROOT, "c")),
                Call::Unlink(at(d, "b")),
            ],
            vec![Call::Paths(a), Call::Path(a), Call::Paths(a), Call::Paths(a)],
            vec![Call::Rename(at(ROOT, "d"), at(ROOT, "e"))],
        ]
    });
}

/// Wrong: names of before the directory's rename next to names of after it.
#[test]
fn a_rename_of_a_directory_that_holds_several_names_against_all_paths() {
    race("directory rename against several names", Going::Free, |tree| {
        let d = make(tree, ROOT, "d", Kind::Directory);
        let a = make(tree, d, "a", Kind::Leaf);
        tree.call(&Call::Link(a, at(d, "b")));
        let fro = Call::Rename(at(ROOT, "d"), at(ROOT, "e"));
        let back = Call::Rename(at(ROOT, "e"), at(ROOT, "d"));
        vec![vec![fro.clone(), back.clone(), fro, back], vec![Call::Paths(a); 6]]
    });
}

/// Wrong: an id that is counted and stale; or two nodes for one name.
#[test]
fn lookups_against_the_last_forget() {
    race("lookup against forget", Going::Free, |tree| {
        let a = make(tree, ROOT, "a", Kind::Leaf);
        let look = lookup(ROOT, "a", Kind::Leaf);
        vec![
            vec![Call::Forget(a, 1), Call::Path(a)],
            vec![look.clone(), Call::Path(a), Call::LookupCount(a)],
        ]
    });
}

/// Wrong: the parent goes although something was put in it.
#[test]
fn a_lookup_in_a_directory_that_is_being_forgotten() {
    race("lookup below a forgotten directory", Going::Free, |tree| {
        let d = make(tree, ROOT, "d", Kind::Directory);
        vec![
            vec![Call::Forget(d, 1), Call::Path(d)],
            vec![lookup(d, "x", Kind::Leaf), Call::Peek(at(ROOT, "d"))],
        ]
    });
}

/// Wrong: one name, two nodes.
#[test]
fn two_lookups_of_one_new_name() {
    race("two lookups of a new name", Going::Free, |_| {
        let look = lookup(ROOT, "a", Kind::Leaf);
        vec![
            vec![look.clone(), look.clone()],
            vec![look.clone(), Call::Unlink(at(ROOT, "a")), look],
        ]
    });
}

/// Wrong: the new name of a node that was taken for gone.
#[test]
fn a_link_against_the_last_forget() {
    race("link against forget", Going::Free, |tree| {
        let a = make(tree, ROOT, "a", Kind::Leaf);
        vec![
            vec![Call::Forget(a, 1)],
            vec![Call::Link(a, at(ROOT, "b")), Call::Paths(a), Call::LookupCount(a)],
        ]
    });
}

fn random(going: Going, threads: usize, calls: usize) {
    let name = format!("{threads} threads with {calls} random calls each, {going:?}");
    let scripts = proptest::collection::vec(
        proptest::collection::vec(concurrent_operation(), calls..=calls),
        threads..=threads,
    );
    repeat(&name, |number| {
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&(number + 1).to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::XorShift, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let (setup, scripts) = (setup(), &scripts)
            .new_tree(&mut runner)
            .expect("these strategies reject nothing")
            .current();
        let mut tree = Setup::new(None);
        for op in &setup {
            tree.run(op);
        }
        let step = |script: Vec<_>| script.into_iter().map(Step::Op).collect();
        check(&tree, scripts.into_iter().map(step).collect(), going, &name)
    });
}

#[test]
fn random_histories_of_two_threads() {
    random(Going::Free, 2, 5);
}

#[test]
fn random_histories_of_three_threads() {
    random(Going::Free, 3, 4);
}

#[test]
fn random_histories_of_four_threads() {
    random(Going::Free, 4, 2);
}

#[test]
fn random_histories_under_a_pin() {
    random(Going::Pinned, 3, 5);
}
