//! [`Pool`]: named threads behind a bounded queue, as many as it takes.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::busy::{Busy, Clock, Seen};
use super::counters::Counters;
use crate::operation::Operation;

/// What is done for a request, on a thread that has a `C`.
pub(crate) type Work<C> = Box<dyn FnOnce(&C) + Send>;

/// A worker that has been at one request for so long is taken for blocked.
const BLOCKED: Duration = Duration::from_micros(200);
/// So many threads are added at once at most.
const STEP: usize = 4;

pub(super) enum Job<C> {
    Work {
        operation: Operation,
        queued_at: u64,
        work: Work<C>,
    },
    /// One thread is too many.
    Leave,
}

/// How many threads a pool has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Always; at least 1.
    pub(super) least: usize,
    /// While all others are blocked.
    pub(super) most: usize,
}

/// Dropping it finishes what is queued and joins the threads.
pub(crate) struct Pool<C> {
    shared: Arc<Shared<C>>,
    sender: Sender<Job<C>>,
}

struct Shared<C> {
    name: &'static str,
    size: Size,
    queue: Receiver<Job<C>>,
    clock: Clock,
    counters: Arc<Counters>,
    /// Given to jobs by reference, so that no request counts it.
    context: Arc<C>,
    workers: Mutex<Workers>,
}

#[derive(Default)]
struct Workers {
    started: usize,
    /// Told to leave, and not seen to have left yet.
    leaving: usize,
    running: Vec<(Arc<Busy>, JoinHandle<()>)>,
    /// Most that were busy at once since the last look back.
    most_busy: usize,
    /// It has been said that no thread could be started.
    complained: bool,
    finished: bool,
}

thread_local! {
    /// Which pool the current thread works for: the address of what its threads share.
    static OWN_POOL: Cell<usize> = const { Cell::new(0) };
}

impl<C: Send + Sync + 'static> Pool<C> {
    /// Starts the least number of threads, named `name`-0, `name`-1, ...
    ///
    /// # Errors
    /// A thread can't be started; those that could have ended again.
    pub(super) fn start(
        name: &'static str,
        size: Size,
        queue_length: usize,
        clock: Clock,
        counters: Arc<Counters>,
        context: Arc<C>,
    ) -> io::Result<Self> {
        let (sender, queue) = bounded(queue_length.max(1));
        let size = Size { least: size.least.max(1), most: size.most.max(size.least).max(1) };
        let workers = Mutex::default();
        let shared = Arc::new(Shared { name, size, queue, clock, counters, context, workers });
        let pool = Pool { shared, sender };
        for _ in 0..size.least {
            pool.shared.add(&mut pool.shared.workers())?;
        }
        Ok(pool)
    }

    /// Queues a job. Waits while the queue is full: the reader that calls this stops reading, and
    /// requests wait in the kernel instead. One of the pool's own threads does not wait for the
    /// others, who may be waiting likewise: it does the job itself.
    pub(crate) fn submit(&self, operation: Operation, work: Work<C>) {
        let Shared { clock, counters, .. } = &*self.shared;
        counters.queued(operation);
        let job = Job::Work { operation, queued_at: clock.now(), work };
        let own = OWN_POOL.get() == self.shared.address();
        let unsent = match self.sender.try_send(job) {
            Ok(()) => None,
            Err(TrySendError::Full(job)) if !own => {
                self.sender.send(job).err().map(|error| error.0)
            }
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => Some(job),
        };
        if let Some(job) = unsent {
            // Nobody's request may be lost.
            self.shared.run(job, None);
        }
    }

    /// Queues more work for requests that were read before, if there is room for it.
    pub(super) fn try_submit(&self, operation: Operation, work: Work<C>) -> bool {
        let job = Job::Work { operation, queued_at: self.shared.clock.now(), work };
        let sent = self.sender.try_send(job).is_ok();
        if sent {
            self.shared.counters.queued_again(operation);
        }
        sent
    }

    /// How many jobs wait.
    pub(super) fn queued(&self) -> usize {
        self.shared.queue.len()
    }

    /// How many threads it has.
    pub(super) fn threads(&self) -> usize {
        self.shared.workers().running.len()
    }

    /// Does anybody wait, and may there be more threads?
    pub(super) fn is_short_of_threads(&self) -> bool {
        self.queued() > 0 && self.threads() < self.shared.size.most
    }

    /// For the supervisor, now and then: adds threads while all are blocked and somebody waits.
    /// Calls `at_work` for each thread that works on something.
    pub(super) fn grow(&self, now: u64, mut at_work: impl FnMut(&Busy, Seen)) {
        let mut workers = self.shared.workers();
        workers.see_who_left();
        let (mut busy, mut stuck) = (0, 0);
        for (worker, _) in &workers.running {
            let Some(seen) = worker.look() else { continue };
            busy += 1;
            stuck += usize::from(seen.age(now) > BLOCKED);
            at_work(worker, seen);
        }
        workers.most_busy = workers.most_busy.max(busy);
        let queued = self.shared.queue.len();
        if queued == 0 || stuck < workers.running.len() || workers.finished {
            return;
        }
        let room = self.shared.size.most.saturating_sub(workers.running.len());
        for _ in 0..queued.min(STEP).min(room) {
            if let Err(error) = self.shared.add(&mut workers) {
                if !std::mem::replace(&mut workers.complained, true) {
                    tracing::warn!(%error, "no further handler thread can be started");
                }
                break;
            }
        }
    }

    /// For the supervisor, once in a while: lets threads go that were not needed since the last
    /// time. Answers whether there are as few as there should be when nothing is to do.
    pub(super) fn shrink(&self) -> bool {
        let mut workers = self.shared.workers();
        workers.see_who_left();
        let most_busy = std::mem::take(&mut workers.most_busy);
        let keep = self.shared.size.least.max(most_busy + most_busy.min(1));
        for _ in keep..workers.running.len() - workers.leaving {
            workers.leaving += usize::from(self.sender.try_send(Job::Leave).is_ok());
        }
        workers.running.len() <= self.shared.size.least
    }
}

impl<C> Pool<C> {
    /// Finishes what is queued and ends the threads. Nothing may be submitted afterwards.
    pub(super) fn finish(&self) {
        let running = {
            let mut workers = self.shared.workers();
            workers.finished = true;
            std::mem::take(&mut workers.running)
        };
        // Behind all that is queued, one for each.
        for _ in &running {
            let _ = self.sender.send(Job::Leave);
        }
        for (_, thread) in running {
            // The last reference to the pool may go on one of its own threads.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Workers {
    fn see_who_left(&mut self) {
        let before = self.running.len();
        self.running.retain(|(_, thread)| !thread.is_finished());
        self.leaving = self.leaving.saturating_sub(before - self.running.len());
    }
}

impl<C> Shared<C> {
    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }

    /// Runs a job; `busy` shows it.
    fn run(&self, job: Job<C>, busy: Option<&Busy>) {
        let Job::Work { operation, queued_at, work } = job else { return };
        let began = self.clock.now();
        self.counters.taken(operation, began.saturating_sub(queued_at));
        if let Some(busy) = busy {
            busy.begin(operation, began);
        }
        // The engine contains the handler's panics. Should there be another one, its request is
        // answered by the reply's destructor, and this thread goes on.
        if catch_unwind(AssertUnwindSafe(|| work(&self.context))).is_err() {
            tracing::error!("a request panicked outside the handler");
        }
        if let Some(busy) = busy {
            busy.end();
        }
        self.counters.done(operation, self.clock.now().saturating_sub(began));
    }
}

impl<C: Send + Sync + 'static> Shared<C> {
    /// Starts one more thread.
    fn add(self: &Arc<Self>, workers: &mut Workers) -> io::Result<()> {
        let busy = Arc::new(Busy::default());
        let builder =
            std::thread::Builder::new().name(format!("{}-{}", self.name, workers.started));
        let (shared, own) = (self.clone(), busy.clone());
        let thread = builder.spawn(move || shared.work(&own))?;
        workers.started += 1;
        workers.running.push((busy, thread));
        Ok(())
    }

    /// A thread's life.
    fn work(self: Arc<Self>, busy: &Busy) {
        OWN_POOL.set(self.address());
        busy.adopt();
        for job in &self.queue {
            if matches!(job, Job::Leave) {
                return;
            }
            self.run(job, Some(busy));
        }
    }
}

impl<C> Drop for Pool<C> {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{Barrier, mpsc};

    use super::*;

    const SECONDS: Duration = Duration::from_secs(10);

    fn start<C: Send + Sync + 'static>(
        least: usize,
        most: usize,
        queue_length: usize,
        context: Arc<C>,
    ) -> Pool<C> {
        let size = Size { least, most };
        Pool::start("test", size, queue_length, Clock::new(), Arc::default(), context).unwrap()
    }

    fn submit<C: Send + Sync + 'static>(pool: &Pool<C>, work: impl FnOnce(&C) + Send + 'static) {
        pool.submit(Operation::Read, Box::new(work));
    }

    /// What the supervisor does.
    fn grow<C: Send + Sync + 'static>(pool: &Pool<C>) {
        pool.grow(pool.shared.clock.now(), |_, _| ());
    }

    #[test]
    fn what_is_queued_is_finished_before_the_pool_is_gone() {
        let done = Arc::new(AtomicUsize::new(0));
        let pool = start(2, 2, 100, done.clone());
        for _ in 0..100 {
            submit(&pool, |done: &AtomicUsize| {
                std::thread::sleep(Duration::from_micros(100));
                done.fetch_add(1, SeqCst);
            });
        }
        drop(pool);
        assert_eq!(done.load(SeqCst), 100);
        assert_eq!(Arc::strong_count(&done), 1, "the threads are gone");
    }

    #[test]
    fn a_full_queue_makes_the_caller_wait() {
        let pool = Arc::new(start(1, 1, 1, Arc::new(Barrier::new(2))));
        let wait = |pool: &Pool<Barrier>| {
            submit(pool, |barrier: &Barrier| {
                barrier.wait();
            });
        };
        let barrier = pool.shared.context.clone();
        wait(&pool); // taken by the thread
        while pool.queued() > 0 {
            std::thread::yield_now();
        }
        wait(&pool); // fills the queue
        let (sender, submitted) = mpsc::channel();
        let other = pool.clone();
        let submitter = std::thread::spawn(move || {
            wait(&other);
            sender.send(()).unwrap();
        });
        assert!(submitted.recv_timeout(Duration::from_millis(100)).is_err(), "it must wait");
        barrier.wait();
        submitted.recv_timeout(SECONDS).expect("and go on when there is room");
        barrier.wait();
        barrier.wait();
        submitter.join().unwrap();
    }

    #[test]
    fn a_panic_ends_the_job_and_not_the_thread() {
        let pool = start(1, 1, 8, Arc::new(()));
        submit(&pool, |()| panic!("on purpose"));
        let (sender, answer) = mpsc::channel();
        submit(&pool, move |()| {
            sender.send(std::thread::current().name().map(str::to_owned)).unwrap();
        });
        let name = answer.recv_timeout(SECONDS).unwrap();
        assert_eq!(name.as_deref(), Some("test-0"));
    }

    #[test]
    fn it_grows_while_all_are_blocked_and_shrinks_when_idle() {
        let pool = start(1, 3, 100, Arc::new(Barrier::new(4)));
        for _ in 0..3 {
            submit(&pool, |barrier: &Barrier| {
                barrier.wait();
            });
        }
        // All three at the barrier at once: only with three threads.
        while pool.queued() > 0 {
            grow(&pool);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(pool.threads(), 3);
        submit(&pool, |_| ());
        std::thread::sleep(Duration::from_millis(1));
        grow(&pool);
        assert_eq!(pool.threads(), 3, "that is the limit");
        assert!(!pool.shrink(), "all were needed");
        pool.shared.context.wait();
        let start = std::time::Instant::now();
        while !pool.shrink() {
            assert!(start.elapsed() < SECONDS, "it does not shrink");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(pool.threads(), 1);
        let (sender, answer) = mpsc::channel();
        submit(&pool, move |_| sender.send(()).unwrap());
        answer.recv_timeout(SECONDS).expect("one is left");
    }

    #[test]
    fn short_jobs_do_not_make_it_grow() {
        let pool = start(1, 8, 10_000, Arc::new(()));
        for _ in 0..20 {
            (0..100).for_each(|_| submit(&pool, |()| ()));
            pool.grow(0, |_, _| ()); // at the time 0 nothing has taken long
        }
        assert_eq!(pool.threads(), 1);
    }

    #[test]
    fn a_worker_that_submits_to_a_full_queue_of_its_own_does_the_job_itself() {
        let pool = Arc::new(start(1, 1, 1, Arc::new(())));
        let (sender, answer) = mpsc::channel();
        let own = Arc::downgrade(&pool);
        submit(&pool, move |()| {
            let pool = own.upgrade().unwrap();
            for number in 0..10 {
                let sender = sender.clone();
                submit(&pool, move |()| sender.send(number).unwrap());
            }
        });
        let mut done: Vec<i32> = (0..10).map(|_| answer.recv_timeout(SECONDS).unwrap()).collect();
        done.sort_unstable();
        assert_eq!(done, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_worker_that_waits_for_a_job_of_its_own_gets_a_thread() {
        let pool = Arc::new(start(1, 4, 100, Arc::new(())));
        let (sender, answer) = mpsc::channel();
        let own = Arc::downgrade(&pool);
        submit(&pool, move |()| {
            let (inner, done) = mpsc::channel();
            submit(&own.upgrade().unwrap(), move |()| inner.send(7).unwrap());
            sender.send(done.recv().unwrap()).unwrap();
        });
        let start = std::time::Instant::now();
        while answer.try_recv() != Ok(7) {
            assert!(start.elapsed() < SECONDS, "a deadlock");
            grow(&pool);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
