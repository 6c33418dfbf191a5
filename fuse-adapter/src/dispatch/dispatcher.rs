//! [`Dispatcher`]: which thread runs an operation.

use std::io;
use std::sync::Arc;

use crossbeam_channel::Receiver;

use super::pool::{Job, Pool};
use crate::operation::{Class, Operation};

/// Which thread runs an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dispatch {
    /// The one that read it. The fastest by a third, and one operation that blocks stops a reader:
    /// for handlers that never do.
    Inline,
    /// One of the pool.
    #[default]
    Pool,
    /// By its [`Class`], which the handler knows: short ones inline, the others on the pool. With
    /// as many short operations blocked as there are readers, the mount stands still.
    ByClass,
}

/// How a dispatcher is to be set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) dispatch: Dispatch,
    /// Threads of the pool; 0: everything is inline.
    pub(crate) handlers: usize,
    /// Requests that may wait for one of them.
    pub(crate) queue_length: usize,
}

/// Who runs an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// The thread that read it.
    Reader,
    /// The pool.
    Work,
    /// A thread for what ends something: it must not wait behind operations that may be blocked,
    /// since what it ends can be just what they wait for.
    Closing,
}

/// Dropping it finishes what is queued.
pub(crate) struct Dispatcher<C> {
    /// By [`Operation`].
    lanes: Vec<Lane>,
    work: Option<Pool<C>>,
    closing: Option<Pool<C>>,
}

/// Shows how many requests wait for a thread.
pub(crate) struct Backlog<C>(Vec<Receiver<Job<C>>>);

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
        let lanes =
            Operation::ALL.iter().map(|&operation| lane(dispatch, operation, class(operation)));
        let mut dispatcher = Dispatcher { lanes: lanes.collect(), work: None, closing: None };
        if dispatch != Dispatch::Inline {
            let start =
                |name, count| Pool::start(name, count, threads.queue_length, context.clone());
            dispatcher.work = Some(start("pinpath", threads.handlers)?);
            dispatcher.closing = Some(start("pinpath-close", 1)?);
        }
        Ok(dispatcher)
    }

    /// The pool that runs this operation; `None`: run it here.
    pub(crate) fn pool(&self, operation: Operation) -> Option<&Pool<C>> {
        match self.lanes[operation as usize] {
            Lane::Reader => None,
            Lane::Work => self.work.as_ref(),
            Lane::Closing => self.closing.as_ref(),
        }
    }

    /// The pool for an unlock: what ends something, whatever its operation.
    pub(crate) fn closing_pool(&self) -> Option<&Pool<C>> {
        self.closing.as_ref()
    }

    pub(crate) fn backlog(&self) -> Backlog<C> {
        Backlog(self.work.iter().chain(&self.closing).map(Pool::queue).collect())
    }

    /// Finishes what is queued and ends the threads. What comes later runs where it is read.
    pub(crate) fn finish(&mut self) {
        self.work = None;
        self.closing = None;
    }
}

impl<C> Backlog<C> {
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Receiver::len).sum()
    }
}

fn lane(dispatch: Dispatch, operation: Operation, class: Class) -> Lane {
    match dispatch {
        // Never long, and never to wait behind anything: memory depends on it.
        _ if operation == Operation::Forget => Lane::Reader,
        Dispatch::Inline => Lane::Reader,
        Dispatch::ByClass if class == Class::Short => Lane::Reader,
        _ if operation.ends_something() => Lane::Closing,
        Dispatch::Pool | Dispatch::ByClass => Lane::Work,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_own_index() {
        for (index, &operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(operation as usize, index);
        }
    }

    #[test]
    fn forget_is_never_queued_and_release_never_behind_work() {
        use Class::{MayBlock, Short};
        for dispatch in [Dispatch::Inline, Dispatch::Pool, Dispatch::ByClass] {
            assert_eq!(lane(dispatch, Operation::Forget, MayBlock), Lane::Reader);
            assert_ne!(lane(dispatch, Operation::Release, MayBlock), Lane::Work);
            assert_ne!(lane(dispatch, Operation::Flush, MayBlock), Lane::Work);
        }
        assert_eq!(lane(Dispatch::Pool, Operation::GetAttr, Short), Lane::Work);
        assert_eq!(lane(Dispatch::ByClass, Operation::GetAttr, Short), Lane::Reader);
        assert_eq!(lane(Dispatch::ByClass, Operation::FSync, MayBlock), Lane::Work);
    }

    #[test]
    fn without_handler_threads_everything_is_inline() {
        let threads = Threads { dispatch: Dispatch::Pool, handlers: 0, queue_length: 8 };
        let dispatcher = Dispatcher::start(threads, Operation::class, &Arc::new(())).unwrap();
        assert!(Operation::ALL.iter().all(|&operation| dispatcher.pool(operation).is_none()));
    }
}
