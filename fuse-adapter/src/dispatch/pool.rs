//! [`Pool`]: a fixed number of named threads behind a bounded queue.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, SendError, Sender, bounded};

/// Work for a pool whose threads share a `C`.
pub(crate) type Job<C> = Box<dyn FnOnce(&C) + Send>;

/// Dropping it finishes what is queued and joins the threads.
pub(crate) struct Pool<C> {
    /// `None` only while dropping.
    sender: Option<Sender<Job<C>>>,
    queue: Receiver<Job<C>>,
    threads: Vec<JoinHandle<()>>,
    /// The threads have one each; given to jobs by reference, so that no request counts it.
    context: Arc<C>,
}

impl<C: Send + Sync + 'static> Pool<C> {
    /// Starts `count` threads (at least one) named `name`-0, `name`-1, ...
    ///
    /// # Errors
    /// A thread can't be started; those that could have ended again.
    pub(crate) fn start(
        name: &str,
        count: usize,
        queue_length: usize,
        context: Arc<C>,
    ) -> io::Result<Self> {
        let (sender, queue) = bounded(queue_length.max(1));
        let mut pool = Pool { sender: Some(sender), queue, threads: Vec::new(), context };
        for index in 0..count.max(1) {
            let (queue, context) = (pool.queue.clone(), pool.context.clone());
            let builder = std::thread::Builder::new().name(format!("{name}-{index}"));
            pool.threads.push(builder.spawn(move || work(&queue, &context))?);
        }
        Ok(pool)
    }

    /// Queues a job. Waits while the queue is full: the reader that calls this stops reading, and
    /// requests wait in the kernel instead.
    pub(crate) fn submit(&self, job: Job<C>) {
        let unsent = match &self.sender {
            Some(sender) => sender.send(job).err().map(|SendError(job)| job),
            None => Some(job),
        };
        if let Some(job) = unsent {
            // No thread is left to take it. Nobody's request may be lost.
            job(&self.context);
        }
    }

    /// Shows how many jobs wait.
    pub(crate) fn queue(&self) -> Receiver<Job<C>> {
        self.queue.clone()
    }
}

impl<C> Drop for Pool<C> {
    fn drop(&mut self) {
        // The threads end when the queue is empty and nobody can add to it.
        self.sender = None;
        for thread in self.threads.drain(..) {
            // The last reference to the pool may go on one of its own threads.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn work<C>(queue: &Receiver<Job<C>>, context: &C) {
    for job in queue {
        // The engine contains the handler's panics. Should there be another one, its request is
        // answered by the reply's destructor, and this thread goes on.
        if catch_unwind(AssertUnwindSafe(|| job(context))).is_err() {
            tracing::error!("a request panicked outside the handler");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{Barrier, mpsc};
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_queued_is_finished_before_the_pool_is_gone() {
        let done = Arc::new(AtomicUsize::new(0));
        let pool = Pool::start("test", 2, 100, done.clone()).unwrap();
        for _ in 0..100 {
            pool.submit(Box::new(|done: &AtomicUsize| {
                std::thread::sleep(Duration::from_micros(100));
                done.fetch_add(1, SeqCst);
            }));
        }
        drop(pool);
        assert_eq!(done.load(SeqCst), 100);
        assert_eq!(Arc::strong_count(&done), 1, "the threads are gone");
    }

    #[test]
    fn a_full_queue_makes_the_caller_wait() {
        let pool = Arc::new(Pool::start("test", 1, 1, Arc::new(Barrier::new(2))).unwrap());
        let wait = |pool: &Pool<Barrier>| {
            pool.submit(Box::new(|barrier: &Barrier| {
                barrier.wait();
            }));
        };
        let barrier = pool.context.clone();
        wait(&pool); // taken by the thread
        while !pool.queue.is_empty() {
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
        submitted.recv_timeout(Duration::from_secs(10)).expect("and go on when there is room");
        barrier.wait();
        barrier.wait();
        submitter.join().unwrap();
    }

    #[test]
    fn a_panic_ends_the_job_and_not_the_thread() {
        let pool = Pool::start("test", 1, 8, Arc::new(())).unwrap();
        pool.submit(Box::new(|()| panic!("on purpose")));
        let (sender, answer) = mpsc::channel();
        pool.submit(Box::new(move |()| {
            sender.send(std::thread::current().name().map(str::to_owned)).unwrap();
        }));
        let name = answer.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(name.as_deref(), Some("test-0"));
    }
}
