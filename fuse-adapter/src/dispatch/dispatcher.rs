//! [`Dispatcher`]: which thread runs an operation.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::busy::{Busy, Clock};
use super::counters::Counters;
use super::lanes::Lanes;
use super::pool::{Pool, Size, Work};
use super::readers::Readers;
use super::stats::DispatchStats;
use super::supervisor::{self, Alarm};
use super::waiters::{LockWaiters, Round};
use crate::operation::{Class, Operation};

/// Which thread runs an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dispatch {
    /// The one that read it. One operation that blocks stops a reader, and with as many as there are
    /// readers the mount stands still: for handlers that never block.
    Inline,
    /// One of the pool, which has exactly
    /// [`MountThreads::handlers`](crate::MountThreads::handlers) threads. A hand-over costs a third of
    /// the rate of short operations.
    Pool,
    /// The one that read it, for what is short; one of the pool for what is long by its
    /// [`Class`] or was of late. A handler that blocks on a reader all the same is noticed, and
    /// another reader takes over; one is always free to read. The pool grows while all its threads
    /// are blocked, and shrinks again.
    #[default]
    Adaptive,
}

/// How a dispatcher is to be set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) dispatch: Dispatch,
    /// Threads that read at once.
    pub(crate) readers: usize,
    /// Threads of the pool at most; 0: everything is inline.
    pub(crate) handlers: usize,
    /// Requests that may wait for one of them.
    pub(crate) queue_length: usize,
}

/// Readers beyond those that should read at once: as many can be stuck before everything is handed
/// over. A parked one costs its stack and what it has touched of its buffer.
const SPARES: usize = 4;

/// Who runs an operation.
pub(crate) enum Place<'a, C> {
    /// The thread that read it.
    Here(Turn<'a, C>),
    /// A pool.
    Away(Away<'a, C>),
}

/// An operation that runs where it was read.
pub(crate) struct Turn<'a, C> {
    core: &'a Core<C>,
    operation: Operation,
    /// For the supervisor, where there is one.
    busy: Option<&'a Busy>,
}

/// An operation that goes to a pool.
pub(crate) struct Away<'a, C> {
    core: &'a Core<C>,
    operation: Operation,
    pool: &'a Pool<C>,
}

/// What the dispatcher, its threads and the mount share.
pub(crate) struct Core<C> {
    dispatch: Dispatch,
    pub(super) clock: Clock,
    pub(super) lanes: Lanes,
    pub(super) readers: Arc<Readers>,
    pub(super) counters: Arc<Counters>,
    pub(super) alarm: Alarm,
    pub(super) waiters: Arc<LockWaiters<C>>,
    pools: Option<Pools<C>>,
}

struct Pools<C> {
    work: Pool<C>,
    /// For what ends something: it must not wait behind operations that may be blocked, since what
    /// it ends can be just what they wait for.
    closing: Pool<C>,
}

/// Dropping it finishes what is queued.
pub(crate) struct Dispatcher<C> {
    core: Arc<Core<C>>,
    supervisor: Option<JoinHandle<()>>,
}

impl<C: Send + Sync + 'static> Dispatcher<C> {
    /// Starts the threads. `class` is asked once per operation.
    ///
    /// # Errors
    /// A thread can't be started.
    pub(crate) fn start(
        threads: Threads,
        class: impl Fn(Operation) -> Class,
        context: &Arc<C>,
    ) -> io::Result<Self> {
        let dispatch = if threads.handlers == 0 { Dispatch::Inline } else { threads.dispatch };
        let (clock, counters) = (Clock::new(), Arc::<Counters>::default());
        let least = if dispatch == Dispatch::Adaptive { 1 } else { threads.handlers };
        let start = |name, size| {
            let (counters, context) = (counters.clone(), context.clone());
            Pool::start(name, size, threads.queue_length, clock, counters, context)
        };
        let pools = if dispatch == Dispatch::Inline {
            None
        } else {
            let work = start("pinpath", Size { least, most: threads.handlers })?;
            Some(Pools {
                work,
                closing: start("pinpath-close", Size { least: 1, most: threads.handlers })?,
            })
        };
        let spares = if dispatch == Dispatch::Adaptive { SPARES } else { 0 };
        let core = Arc::new(Core {
            dispatch,
            clock,
            lanes: Lanes::new(class),
            readers: Readers::new(threads.readers.max(1), spares),
            counters,
            alarm: Alarm::default(),
            waiters: Arc::default(),
            pools,
        });
        let mut dispatcher = Dispatcher { core, supervisor: None };
        if dispatch != Dispatch::Inline {
            let core = dispatcher.core.clone();
            let builder = std::thread::Builder::new().name("pinpath-watch".into());
            dispatcher.supervisor = Some(builder.spawn(move || supervisor::run(&core))?);
        }
        Ok(dispatcher)
    }

    /// What others may ask how it is doing.
    pub(crate) fn core(&self) -> &Arc<Core<C>> {
        &self.core
    }

    /// Who runs this operation.
    pub(crate) fn place(&self, operation: Operation) -> Place<'_, C> {
        self.core.place(operation, operation.ends_something())
    }

    /// Who runs an unlock: what ends something, whatever its operation.
    pub(crate) fn place_of_unlock(&self) -> Place<'_, C> {
        self.core.place(Operation::SetLk, true)
    }

    /// The same for a forget: never long and never to wait behind anything, since memory depends on
    /// it. Nor does it end a request: one request can forget many.
    pub(crate) fn forget(&self, forget: impl FnOnce()) {
        self.core.counters.read(Operation::Forget);
        contain(forget);
    }

    /// Do waiters for locks wait here? (Otherwise the handler has to.)
    pub(crate) fn lets_locks_wait(&self) -> bool {
        self.core.pools.is_some()
    }

    /// Finishes what is queued and ends the threads. Nothing may come later.
    pub(crate) fn finish(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            self.core.alarm.stop();
            let _ = supervisor.join();
        }
        self.core.pools().for_each(Pool::finish);
        // After whoever tries them once more.
        self.core.waiters.clear();
    }
}

impl<C> Drop for Dispatcher<C> {
    fn drop(&mut self) {
        // Not finished: it never ran.
        if let Some(supervisor) = self.supervisor.take() {
            self.core.alarm.stop();
            let _ = supervisor.join();
        }
    }
}

impl<C> Core<C> {
    pub(super) fn pools(&self) -> impl Iterator<Item = &Pool<C>> {
        self.pools.iter().flat_map(|pools| [&pools.work, &pools.closing])
    }
}

impl<C: Send + Sync + 'static> Core<C> {
    fn place(&self, operation: Operation, ends_something: bool) -> Place<'_, C> {
        let adaptive = self.dispatch == Dispatch::Adaptive;
        // Before asking for spares: who has no seat yet counts as one.
        let busy = if adaptive { self.readers.here() } else { None };
        let away = match self.dispatch {
            Dispatch::Inline => false,
            Dispatch::Pool => true,
            Dispatch::Adaptive => self.lanes.is_away(operation) || !self.readers.has_spare(),
        };
        match &self.pools {
            Some(pools) if away => {
                let pool = if ends_something { &pools.closing } else { &pools.work };
                Place::Away(Away { core: self, operation, pool })
            }
            _ => Place::Here(Turn { core: self, operation, busy }),
        }
    }

    /// Requests for locks that others hold.
    pub(crate) fn lock_waiters(&self) -> &Arc<LockWaiters<C>> {
        &self.waiters
    }

    /// How many event loops the transport shall run.
    pub(crate) fn event_loops(&self) -> usize {
        self.readers.count()
    }

    /// How many requests wait for a thread.
    pub(crate) fn queued(&self) -> usize {
        self.pools().map(Pool::queued).sum()
    }

    /// Has those who wait for a lock try again.
    pub(crate) fn lock_round(&self, round: Option<Round<C>>) {
        let (Some(round), Some(pools)) = (round, &self.pools) else { return };
        // With no room for it there will be another one, soon.
        pools.closing.try_submit(Operation::SetLkWait, Box::new(move |context| round.run(context)));
        self.alarm.ring();
    }

    pub(crate) fn stats(&self) -> DispatchStats {
        let operations = Operation::ALL.iter().map(|&operation| self.counters.stats(operation));
        let mut pools = self.pools().map(Pool::threads);
        DispatchStats {
            operations: operations.filter(|stats| stats.requests > 0).collect(),
            readers: self.readers.stats(),
            handlers: pools.next().unwrap_or(0),
            closers: pools.next().unwrap_or(0),
            queued: self.queued(),
            waiting_for_locks: self.waiters.len(),
        }
    }
}

impl<C> Turn<'_, C> {
    /// Runs it.
    pub(crate) fn run(self, work: impl FnOnce()) {
        let Turn { core, operation, busy } = self;
        core.counters.read(operation);
        let began = core.clock.now();
        if let Some(busy) = busy {
            busy.begin(operation, began);
            core.alarm.ring();
        }
        contain(work);
        let stuck = busy.is_some_and(Busy::end);
        core.counters.done(operation, core.clock.now().saturating_sub(began));
        if busy.is_some() {
            core.readers.rest(stuck);
        }
    }
}

impl<C: Send + Sync + 'static> Away<'_, C> {
    /// Queues it; waits while the queue is full.
    pub(crate) fn submit(self, work: Work<C>) {
        self.pool.submit(self.operation, work);
        self.core.alarm.ring();
        if self.core.dispatch == Dispatch::Adaptive {
            self.core.readers.rest(false);
        }
    }
}

/// A panic (not the handler's, which the engine contains) would end the transport's event loop.
fn contain(work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!("a request panicked outside the handler");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(dispatch: Dispatch, handlers: usize) -> Dispatcher<()> {
        let threads = Threads { dispatch, readers: 2, handlers, queue_length: 8 };
        Dispatcher::start(threads, Operation::class, &Arc::new(())).unwrap()
    }

    /// The name of the thread that runs it; `None`: this one.
    fn runs_on(place: Place<'_, ()>) -> Option<String> {
        let here = std::thread::current().id();
        let (sender, name) = std::sync::mpsc::channel();
        let tell = move || {
            let thread = std::thread::current();
            let name = (thread.id() != here).then(|| thread.name().unwrap().to_owned());
            sender.send(name).unwrap();
        };
        match place {
            Place::Here(turn) => turn.run(tell),
            Place::Away(away) => away.submit(Box::new(move |()| tell())),
        }
        name.recv().unwrap()
    }

    #[test]
    fn every_operation_has_its_own_index() {
        for (index, &operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(operation as usize, index);
        }
    }

    #[test]
    fn what_is_short_runs_here_and_what_may_block_does_not() {
        let dispatcher = start(Dispatch::Adaptive, 4);
        assert_eq!(runs_on(dispatcher.place(Operation::GetAttr)), None);
        assert_eq!(runs_on(dispatcher.place(Operation::Release)), None);
        assert_eq!(runs_on(dispatcher.place(Operation::FSync)).as_deref(), Some("pinpath-0"));
    }

    #[test]
    fn on_the_pool_what_ends_something_has_a_thread_of_its_own() {
        let dispatcher = start(Dispatch::Pool, 1);
        for operation in [Operation::GetAttr, Operation::Read, Operation::SetLk] {
            assert_eq!(runs_on(dispatcher.place(operation)).as_deref(), Some("pinpath-0"));
        }
        for operation in [Operation::Flush, Operation::Release, Operation::ReleaseDir] {
            assert_eq!(runs_on(dispatcher.place(operation)).as_deref(), Some("pinpath-close-0"));
        }
        assert_eq!(runs_on(dispatcher.place_of_unlock()).as_deref(), Some("pinpath-close-0"));
    }

    #[test]
    fn without_handler_threads_everything_is_inline() {
        let dispatcher = start(Dispatch::Pool, 0);
        assert!(!dispatcher.lets_locks_wait());
        for &operation in Operation::ALL {
            assert_eq!(runs_on(dispatcher.place(operation)), None);
        }
    }

    #[test]
    fn what_was_done_is_counted() {
        let mut dispatcher = start(Dispatch::Adaptive, 4);
        for _ in 0..10 {
            runs_on(dispatcher.place(Operation::GetAttr));
            runs_on(dispatcher.place(Operation::FSync));
            dispatcher.forget(|| ());
        }
        dispatcher.finish();
        let stats = dispatcher.core().stats();
        let of = |operation| {
            let found = stats.operations.iter().find(|stats| stats.operation == operation);
            let stats = found.expect("counted");
            let (queue, work) = (stats.in_queue.count(), stats.in_handler.count());
            (stats.requests, stats.handed_over, stats.queued, queue, work)
        };
        assert_eq!(of(Operation::GetAttr), (10, 0, 0, 0, 10));
        assert_eq!(of(Operation::FSync), (10, 10, 0, 10, 10));
        assert_eq!(of(Operation::Forget), (10, 0, 0, 0, 0));
        assert_eq!(stats.operations.len(), 3);
        let text = stats.to_string();
        assert!(text.contains("GetAttr") && text.lines().count() == 5, "{text}");
    }
}
