//! Concurrent histories of a resolver: recording one, and asking whether the oracle allows it.
//!
//! The events of a history are the calls of all threads, and one look at everything when all is at
//! rest again, so that a wrong state is seen even if no call happened to tell of it.

use crate::call::{Answer, Call};
use crate::linearize::{Event, Model, linearization};
use crate::op::{Known, Op};
use crate::oracle::Oracle;
use crate::{Data, Identity, Resolver};
use pinpath::{Inode, Kind, NodeData};

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(not(shuttle))]
use std::thread;

// The threads of a history are shuttle's in its models. The clock is not: it must not add schedules.
#[cfg(shuttle)]
use shuttle::thread;

/// May nodes go while the threads run?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// No: a pin is held throughout.
    Pinned,
    /// Yes, whenever nothing refers to them.
    Free,
}

/// What a thread does next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Exactly this.
    Call(Call),
    /// This, among the nodes that there were before the threads began and those that this thread
    /// has been told of since.
    Op(Op),
}

/// What an event asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A call.
    Call(Call),
    /// All that is there when the threads have ended and what can be reclaimed is.
    AtRest,
}

/// What it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// By a call.
    Answer(Answer),
    /// By the look at everything.
    AtRest(AtRest),
}

/// Everything that is there: id, lookup count and paths of each node, in the order of the ids.
pub type AtRest = Vec<(Inode, u64, Vec<PathBuf>)>;

/// The oracle as a [`Model`], whose choice is what it reclaims when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forest {
    /// The tree.
    pub oracle: Oracle,
    /// May anything be reclaimed now?
    pub reclaims: bool,
}

impl Model for Forest {
    type Call = Asked;
    type Answer = Told;

    fn step(&self, asked: &Asked, told: &Told) -> Vec<Self> {
        let mut states = Vec::new();
        for reclaimed in self.reclaimed() {
            let mut next = Forest { oracle: reclaimed, ..*self };
            if next.answers(asked, told) && !states.contains(&next) {
                states.push(next);
            }
        }
        states
    }
}

impl Forest {
    /// The trees that this one can have turned into with nobody calling.
    fn reclaimed(&self) -> Vec<Oracle> {
        if !self.reclaims {
            return vec![self.oracle.clone()];
        }
        let without = |set: &Vec<Inode>| {
            let mut rest = self.oracle.clone();
            assert!(rest.reclaim(set), "the sets are built of what may go");
            rest
        };
        self.oracle.reclaimable_sets().iter().map(without).collect()
    }

    fn answers(&mut self, asked: &Asked, told: &Told) -> bool {
        match (asked, told) {
            (Asked::Call(call), Told::Answer(answer)) => {
                call.on_oracle(&mut self.oracle, answer) == *answer
            }
            (Asked::AtRest, Told::AtRest(told)) => {
                self.oracle.settle();
                let nodes = self.oracle.nodes();
                let at_rest: AtRest = nodes
                    .map(|(inode, node)| (inode, node.lookups, self.oracle.paths(inode)))
                    .collect();
                at_rest == *told
            }
            _ => false,
        }
    }
}

/// A tree that both the resolver and the oracle have.
#[derive(Debug)]
pub struct Setup {
    /// The resolver under test.
    pub resolver: Resolver,
    /// What it holds.
    pub oracle: Oracle,
}

impl Setup {
    /// A tree with only a root.
    pub fn new(root: Option<Identity>) -> Self {
        Setup { resolver: Resolver::new(Data(root)), oracle: Oracle::new(root) }
    }

    /// Makes a call on both.
    ///
    /// # Panics
    /// If they answer differently: that is for the property tests to find.
    pub fn call(&mut self, call: &Call) -> Answer {
        let answer = call.on_resolver(&self.resolver);
        assert_eq!(answer, call.on_oracle(&mut self.oracle, &answer), "{call:?}");
        answer
    }

    /// Makes the call that `op` is here, on both.
    ///
    /// # Panics
    /// As [`Setup::call`].
    pub fn run(&mut self, op: &Op) {
        if let Some(call) = op.call(&self.oracle, &Known::of(&self.oracle)) {
            self.call(&call);
        }
    }

    /// Runs the scripts, each on a thread of its own, all at once, and records the history.
    pub fn record(&self, scripts: &[Vec<Step>], going: Going) -> History {
        let pin = (going == Going::Pinned).then(|| self.resolver.pin());
        let clock = AtomicU64::new(0);
        let missing = AtomicUsize::new(scripts.len());
        let mut events: Vec<Event<Asked, Told>> = thread::scope(|scope| {
            let run = |(thread, script)| {
                let (clock, missing) = (&clock, &missing);
                scope.spawn(move || {
                    begin_together(missing);
                    self.run_script(thread, script, clock)
                })
            };
            let scripts = scripts.iter().map(Vec::as_slice).enumerate();
            let threads: Vec<_> = scripts.map(run).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Vec<_>>| match thread.join() {
                Ok(events) => events,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().flat_map(join).collect()
        });
        drop(pin);
        events.sort_by_key(|event| event.invoked);
        let at_rest = Told::AtRest(self.at_rest(&events));
        let now = clock.into_inner();
        events.push(Event {
            thread: scripts.len(),
            call: Asked::AtRest,
            answer: at_rest,
            invoked: now,
            returned: now + 1,
        });
        let initial = Forest { oracle: self.oracle.clone(), reclaims: going == Going::Free };
        History { initial, events }
    }

    fn run_script(
        &self,
        thread: usize,
        script: &[Step],
        clock: &AtomicU64,
    ) -> Vec<Event<Asked, Told>> {
        let mut known = Known::of(&self.oracle);
        let mut events = Vec::with_capacity(script.len());
        for step in script {
            let call = match step {
                Step::Call(call) => call.clone(),
                Step::Op(op) => match op.call(&self.oracle, &known) {
                    Some(call) => call,
                    None => continue,
                },
            };
            let invoked = clock.fetch_add(1, Ordering::SeqCst);
            let answer = call.on_resolver(&self.resolver);
            let returned = clock.fetch_add(1, Ordering::SeqCst);
            known.learn(&call, &answer);
            let (call, answer) = (Asked::Call(call), Told::Answer(answer));
            events.push(Event { thread, call, answer, invoked, returned });
        }
        events
    }

    /// Reclaims what can be, and looks at all that anybody was told of.
    fn at_rest(&self, events: &[Event<Asked, Told>]) -> AtRest {
        settle(&self.resolver);
        let mut inodes: Vec<Inode> = self.oracle.nodes().map(|(inode, _)| inode).collect();
        for event in events {
            if let Told::Answer(answer) = &event.answer {
                inodes.extend(answer.inodes());
            }
        }
        inodes.sort();
        inodes.dedup();
        let look = |inode| {
            let count = self.resolver.lookup_count(inode)?;
            Some((inode, count, self.resolver.paths(inode)))
        };
        inodes.into_iter().filter_map(look).collect()
    }
}

/// Returns in all threads at about the same moment. (shuttle decides by itself who begins.)
fn begin_together(missing: &AtomicUsize) {
    if cfg!(shuttle) {
        return;
    }
    missing.fetch_sub(1, Ordering::SeqCst);
    let mut turns = 0_u32;
    while missing.load(Ordering::SeqCst) > 0 {
        turns += 1;
        // At first without yielding, to be quick; but there may be fewer processors than threads.
        if turns < 10_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// Reclaims until nothing waits. Only when no pin is held.
///
/// # Panics
/// If something still waits after very many tries.
pub fn settle<D: NodeData>(resolver: &pinpath::Resolver<D>) {
    for _ in 0..10_000 {
        resolver.reclaim();
        if resolver.stats().retired == 0 {
            return;
        }
    }
    panic!("nothing runs, and still something waits: {:?}", resolver.stats());
}

impl Known {
    /// Takes up what a thread was told.
    pub fn learn(&mut self, call: &Call, answer: &Answer) {
        if let (Call::Lookup { entry, .. }, Answer::Inode(Ok(inode))) = (call, answer) {
            if !self.nodes.contains(inode) {
                self.nodes.push(*inode);
                if entry.kind != Kind::Leaf {
                    self.directories.push(*inode);
                }
            }
        }
    }
}

/// What happened.
#[derive(Clone, Debug)]
pub struct History {
    initial: Forest,
    events: Vec<Event<Asked, Told>>,
}

impl History {
    /// A history that was written down by hand.
    pub fn new(initial: Forest, events: Vec<Event<Asked, Told>>) -> Self {
        History { initial, events }
    }

    /// Could a sequential tree have answered this?
    ///
    /// # Errors
    /// The history, without those of its reads that are not needed to see that it is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.is_linearizable() {
            return Ok(());
        }
        Err(self.without_needless_reads().to_string())
    }

    /// Do calls of different threads overlap? Only then there is something to check.
    pub fn overlaps(&self) -> bool {
        self.events.windows(2).any(|pair| pair[1].invoked < pair[0].returned)
    }

    fn is_linearizable(&self) -> bool {
        linearization(&self.initial, &self.events).is_some()
    }

    /// Without a call that changes nothing, a right history stays right. So if it stays wrong, the
    /// call is not what was wrong.
    fn without_needless_reads(&self) -> History {
        let mut small = self.clone();
        let mut index = 0;
        while index < small.events.len() {
            let mut smaller = small.clone();
            let is_read = match smaller.events.remove(index).call {
                Asked::Call(call) => call.only_reads(),
                Asked::AtRest => true,
            };
            if is_read && !smaller.is_linearizable() {
                small = smaller;
            } else {
                index += 1;
            }
        }
        small
    }
}

impl std::fmt::Display for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "no order explains what was answered; at first there is")?;
        for (inode, node) in self.initial.oracle.nodes() {
            writeln!(f, "  {inode:?}: {node:?}")?;
        }
        for event in &self.events {
            let text = match (&event.call, &event.answer) {
                (Asked::Call(call), Told::Answer(answer)) => format!("{call:?} -> {answer:?}"),
                (_, told) => format!("at rest: {told:?}"),
            };
            let Event { thread, invoked, returned, .. } = event;
            writeln!(f, "  {invoked:>3} to {returned:>3}, thread {thread}: {text}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
