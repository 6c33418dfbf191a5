//! [`Harness`]: the resolver and the oracle side by side, one operation at a time, on one thread.
//!
//! After every operation the answers are compared, the resolver's own `validate` runs, and as much
//! of the two trees as [`Look`] says. What can't be predicted is when an unreferenced node goes, so
//! that is observed (a stale id) and then judged: was the node one that may go, and was no pin
//! held that was begun while it was still referenced, or before it was last found by its name?

use crate::call::{Answer, Call};
use crate::compare::compare;
use crate::op::{Known, Op};
use crate::oracle::Oracle;
use crate::{Data, Identity, Resolver};
use pinpath::{Inode, RequestPin};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// When is reclaimed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// After every operation, until nothing waits (if no pin is held): all is predictable.
    Settled,
    /// When the resolver sees fit.
    Free,
}

/// How much is compared after an operation?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// All nodes, names and paths. This makes the resolver keep every path that it can keep.
    Everything,
    /// The answer alone; everything only at the end. Paths are asked for only by operations, so
    /// those that are kept and those that are not meet in all mixtures.
    Answers,
}

/// The resolver, the oracle, and what was seen so far.
#[derive(Debug)]
pub struct Harness {
    resolver: Resolver,
    oracle: Oracle,
    pace: Pace,
    look: Look,
    /// How many operations there were.
    step: u64,
    /// The pins held, with the step at which each was begun.
    pins: Vec<(u64, RequestPin)>,
    /// For each node that nothing refers to but others like it: the step from which on, or the one
    /// at which it was last found by its name.
    unneeded_since: BTreeMap<Inode, u64>,
    /// Every id that was ever handed out.
    seen: BTreeSet<Inode>,
    /// Those whose node is gone, the last gone last.
    gone: Vec<Inode>,
    trace: Vec<(Call, Answer)>,
}

/// How many rounds of `reclaim` may be needed until nothing waits, far more than it should take.
const RECLAIM_ROUNDS: usize = 100;

/// How many of the stale ids are looked at after each operation.
const STALE_LOOKS: usize = 8;

/// Runs `ops` from an empty tree to an empty tree.
///
/// # Errors
/// The first difference, with the calls that led to it.
pub fn run(ops: &[Op], root: Option<Identity>, pace: Pace, look: Look) -> Result<(), String> {
    let _watched = crate::watchdog::watch(format!("{pace:?}, {look:?}, root {root:?}: {ops:?}"));
    let mut harness = Harness::new(root, pace, look);
    for op in ops {
        harness.apply(op)?;
    }
    harness.finish()
}

impl Harness {
    /// An empty tree, twice.
    pub fn new(root: Option<Identity>, pace: Pace, look: Look) -> Self {
        Harness {
            resolver: Resolver::new(Data(root)),
            oracle: Oracle::new(root),
            pace,
            look,
            step: 0,
            pins: Vec::new(),
            unneeded_since: BTreeMap::new(),
            seen: BTreeSet::from([Inode::ROOT]),
            gone: Vec::new(),
            trace: Vec::new(),
        }
    }

    /// The resolver under test.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// What an operation can choose from now.
    pub fn known(&self) -> Known {
        let mut known = Known::of(&self.oracle);
        known.stale.extend(self.gone.iter().rev().take(STALE_LOOKS));
        known
    }

    /// The oracle, as it is now.
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Does the same to both, and compares.
    ///
    /// # Errors
    /// The difference, with the calls that led to it.
    pub fn apply(&mut self, op: &Op) -> Result<(), String> {
        if let Some(call) = op.call(&self.oracle, &self.known()) {
            return self.call(call);
        }
        self.step += 1;
        match op {
            Op::Pin => self.pins.push((self.step, self.resolver.pin())),
            Op::Unpin(n) if !self.pins.is_empty() => {
                drop(self.pins.swap_remove(usize::from(*n) % self.pins.len()));
            }
            Op::Reclaim => _ = self.resolver.reclaim(),
            _ => {}
        }
        self.follow(None)
    }

    /// Makes one call on both, and compares.
    ///
    /// # Errors
    /// The difference, with the calls that led to it.
    pub fn call(&mut self, call: Call) -> Result<(), String> {
        self.step += 1;
        let answer = call.on_resolver(&self.resolver);
        self.trace.push((call.clone(), answer.clone()));
        self.follow(Some((&call, &answer)))
    }

    /// Forgets and unlinks all that there is, and looks that all of it goes.
    ///
    /// # Errors
    /// The difference, with the calls that led to it.
    pub fn finish(mut self) -> Result<(), String> {
        self.look = Look::Everything;
        self.pins.clear();
        self.follow(None)?;
        self.pace = Pace::Settled;
        let known = self.known();
        self.call(Call::ForgetBatch(known.nodes.iter().map(|&inode| (inode, u64::MAX)).collect()))?;
        // What is left are known hard links and the directories they are in.
        while let Some(place) = self.known().places.first() {
            self.call(Call::Unlink(place.clone()))?;
        }
        let stats = self.resolver.stats();
        if (stats.nodes, stats.links, stats.retired, stats.leases) != (1, 0, 0, 0) {
            return self.fail(format!("something is left in the end: {stats:?}"));
        }
        Ok(())
    }

    /// Lets the oracle follow what the resolver did and answered, and compares the two.
    fn follow(&mut self, call: Option<(&Call, &Answer)>) -> Result<(), String> {
        self.reclaim_at_pace()?;
        self.note_ids(call.map(|(_, answer)| answer))?;
        let gone: Vec<Inode> = self
            .oracle
            .nodes()
            .map(|(inode, _)| inode)
            .filter(|&inode| self.is_gone(inode))
            .collect();
        // A node that went may have gone before the call did its work or after.
        let mut difference = None;
        for early in subsets(&gone) {
            let mut oracle = self.oracle.clone();
            if !oracle.reclaim(&early) {
                continue;
            }
            match self.agree(&mut oracle, call) {
                Ok(()) => return self.accept(oracle, &gone, call),
                Err(why) => difference = difference.or(Some(why)),
            }
        }
        self.fail(difference.expect("the empty set is among the subsets"))
    }

    /// Makes the call on `oracle`, takes from it what is gone by now, and compares.
    fn agree(&self, oracle: &mut Oracle, call: Option<(&Call, &Answer)>) -> Result<(), String> {
        if let Some((call, answer)) = call {
            let expected = call.on_oracle(oracle, answer);
            if expected != *answer {
                return Err(format!("answered {answer:?} instead of {expected:?}"));
            }
        }
        let late: Vec<Inode> =
            oracle.nodes().map(|(inode, _)| inode).filter(|&inode| self.is_gone(inode)).collect();
        if !oracle.reclaim(&late) {
            return Err(format!("some of {late:?} were reclaimed though they were referenced"));
        }
        self.resolver.validate().map_err(|why| format!("validate: {why}"))?;
        let everything = self.look == Look::Everything;
        compare(&self.resolver, oracle, everything)
    }

    /// `oracle` is what happened. Judges whether what is gone was free to go.
    fn accept(
        &mut self,
        oracle: Oracle,
        gone: &[Inode],
        call: Option<(&Call, &Answer)>,
    ) -> Result<(), String> {
        let oldest_pin = self.pins.iter().map(|(begun, _)| *begun).min().unwrap_or(u64::MAX);
        for inode in gone {
            let since = self.unneeded_since.remove(inode).unwrap_or(self.step);
            if oldest_pin < since {
                return self.fail(format!("{inode:?} was reclaimed under a pin older than that"));
            }
        }
        self.oracle = oracle;
        self.gone.extend(gone);
        let step = self.step;
        let free = self.oracle.unreferenced();
        self.unneeded_since.retain(|inode, _| free.contains(inode));
        let found = call.map(|(call, answer)| found_by_name(call, answer)).unwrap_or_default();
        for &inode in &free {
            let since = self.unneeded_since.entry(inode).or_insert(step);
            let named = || self.oracle.node(inode).is_some_and(|node| !node.names.is_empty());
            if found.contains(&inode) || self.look == Look::Everything && named() {
                *since = step;
            }
        }
        if self.is_settled() && !free.is_empty() {
            return self.fail(format!("nothing keeps {free:?}, but they are still there"));
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.pace == Pace::Settled && self.pins.is_empty()
    }

    fn reclaim_at_pace(&self) -> Result<(), String> {
        if self.pace == Pace::Free {
            return Ok(());
        }
        for _ in 0..RECLAIM_ROUNDS {
            self.resolver.reclaim();
            if self.resolver.stats().retired == 0 || !self.pins.is_empty() {
                return Ok(());
            }
        }
        self.fail(format!(
            "still waiting after {RECLAIM_ROUNDS} reclaims: {:?}",
            self.resolver.stats()
        ))
    }

    /// An id that the resolver tells of is one it has told of before, or a new one: a number whose
    /// node is gone never comes back.
    fn note_ids(&mut self, answer: Option<&Answer>) -> Result<(), String> {
        let told = BTreeSet::from_iter(answer.map(Answer::inodes).unwrap_or_default());
        for inode in told {
            if self.oracle.node(inode).is_none() && !self.seen.insert(inode) {
                return self.fail(format!("{inode:?} was handed out a second time"));
            }
        }
        for inode in self.gone.iter().rev().take(STALE_LOOKS) {
            if !self.is_gone(*inode) || !self.resolver.paths(*inode).is_empty() {
                return self.fail(format!("{inode:?} is alive again"));
            }
        }
        Ok(())
    }

    fn is_gone(&self, inode: Inode) -> bool {
        self.resolver.lookup_count(inode).is_none()
    }

    fn fail(&self, why: String) -> Result<(), String> {
        let mut text = why;
        for (call, answer) in &self.trace {
            let _ = write!(text, "\n  {call:?} -> {answer:?}");
        }
        let pins: Vec<u64> = self.pins.iter().map(|(begun, _)| *begun).collect();
        let _ = write!(text, "\n  step {}, pins begun at {pins:?}", self.step);
        Err(text)
    }
}

/// The nodes that a call has found by a name; a pin keeps them from then on, counted or not.
fn found_by_name(call: &Call, answer: &Answer) -> Vec<Inode> {
    match call {
        Call::Lookup { .. } | Call::Peek(_) | Call::List { .. } | Call::Transact { .. } => {
            answer.inodes()
        }
        _ => Vec::new(),
    }
}

/// All subsets, the empty one first; of a large set only the empty one and the whole.
fn subsets(of: &[Inode]) -> Vec<Vec<Inode>> {
    if of.len() > 6 {
        return vec![Vec::new(), of.to_vec()];
    }
    let members = |mask: usize| {
        let chosen = of.iter().enumerate().filter(move |(bit, _)| mask >> bit & 1 == 1);
        chosen.map(|(_, inode)| *inode).collect()
    };
    (0..1usize << of.len()).map(members).collect()
}
