//! Mounting: [`mount`](fn@mount) and the [`Mount`] that it returns.
//!
//! However a mount ends (unmounted by [`Mount::unmount`], by an [`Unmounter`], by `umount` from
//! outside, by dropping the [`Mount`], by [`Unmounter::abort`]), the same follows: the readers
//! stop, what is queued is finished and answered, the handler's `destroy` runs, the threads end.

mod attach;
mod end;
mod error;
mod fusermount;
mod options;
mod place;
mod reclaimer;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pinpath::Resolver;

use self::end::End;
use self::place::Place;
use self::reclaimer::{Bell, Reclaimer};
use crate::dispatch::{Core, DispatchStats, Dispatcher, Engine, Threads};
use crate::handler::{Handler, Mounted};
use crate::negotiation::Negotiation;
use crate::transport::backing::BackingFiles;
use crate::transport::device::Notifier;
use crate::transport::fuser::{Session, StartError};

pub use self::error::MountError;
pub use self::options::{MountOptions, MountThreads};
pub use self::place::{Unmounted, clear_stale};

/// How long dropping a [`Mount`] waits for requests under way.
const DROP_LIMIT: Duration = Duration::from_secs(1);
/// How long a mount that was in use just now may take to be idle after all.
const SHORTLY: Duration = Duration::from_millis(200);

/// A mounted filesystem. Dropping it unmounts, lazily if it is in use, and waits for requests under
/// way for a second at most; what is still open then is served as long as this process lives.
pub struct Mount<H: Handler> {
    engine: Arc<Engine<H>>,
    dispatch: Arc<Core<Engine<H>>>,
    agreed: Negotiation,
    unmounter: Unmounter,
    notifier: Notifier,
    /// Serves the mount and cleans up after it.
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

/// Figures of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountStats {
    /// Of the resolver.
    pub resolver: pinpath::Stats,
    /// Requests that wait for a handler thread.
    pub queued: usize,
}

/// Mounts `handler` on `mountpoint`. Returns once the kernel's first request is answered: from
/// then on the mount is there for everybody.
///
/// ```no_run
/// # fn run<H: pinpath_fuse::Handler>(handler: H) -> Result<(), Box<dyn std::error::Error>> {
/// let options = pinpath_fuse::MountOptions::default();
/// let mount = pinpath_fuse::mount(handler, "/mnt/hello", &options)?;
/// mount.wait()?; // until somebody says: umount /mnt/hello
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Why not, and what to do about it. Nothing is mounted then, and no thread is left.
pub fn mount<H: Handler>(
    handler: H,
    mountpoint: impl AsRef<Path>,
    options: &MountOptions,
) -> Result<Mount<H>, MountError> {
    let mut wishes = options.negotiation;
    handler.wishes(&mut wishes);

    // Everything that can fail without a mount comes before it.
    let bell = Bell::new();
    let engine = {
        let bell = bell.clone();
        Arc::new(Engine::with_reclaimer(handler, Box::new(move || bell.ring())))
    };
    let reclaimer =
        Reclaimer::start(&bell, engine.resolver().clone()).map_err(MountError::Threads)?;
    let threads = Threads {
        dispatch: options.dispatch,
        readers: options.threads.readers,
        handlers: options.threads.handlers,
        queue_length: options.queue_length,
    };
    let class = |operation| engine.handler().class(operation);
    let dispatcher = Dispatcher::start(threads, class, &engine).map_err(MountError::Threads)?;
    let dispatch = dispatcher.core().clone();
    threads_can_be_had(dispatch.event_loops() + 1).map_err(MountError::Threads)?;

    let (descriptor, place) = attach::attach(mountpoint.as_ref(), options)?;
    let started =
        Session::start(engine.clone(), dispatcher, wishes, descriptor, options.threads.clone_fd);
    let told = started.and_then(|(session, agreed)| {
        let backing_files = BackingFiles::new(Arc::downgrade(session.device()));
        let mounted = Mounted { device: place.device(), backing_files };
        // The requests that wait already are read by the supervisor, later.
        let tell = || engine.handler().mounted(&mounted);
        catch_unwind(AssertUnwindSafe(tell)).map_err(|_| StartError::InitPanicked)?;
        Ok((session, agreed))
    });
    let (session, agreed) = told.map_err(|error| {
        // In use or not: nobody was ever answered here.
        undo(&place);
        match error {
            StartError::Init(error) => MountError::Init(error),
            StartError::InitPanicked => MountError::InitPanicked,
            StartError::Connection(error) => MountError::Connection(error),
        }
    })?;

    let notifier = Notifier::new(Arc::downgrade(session.device()));
    let unmounter = Unmounter(Arc::new(Ending { place, end: End::default() }));
    let ending = unmounter.0.clone();
    let builder = std::thread::Builder::new().name("pinpath-mount".into());
    let supervisor =
        builder.spawn(move || supervise(session, reclaimer, &ending)).map_err(|error| {
            undo(&unmounter.0.place);
            MountError::Threads(error)
        })?;
    Ok(Mount {
        engine,
        dispatch,
        agreed,
        unmounter,
        notifier,
        supervisor: Mutex::new(Some(supervisor)),
    })
}

/// fuser starts its readers one by one after the mount is there. Better to know before.
fn threads_can_be_had(count: usize) -> io::Result<()> {
    let (hold, held) = crossbeam_channel::bounded::<()>(0);
    let started: io::Result<Vec<_>> = (0..count)
        .map(|_| {
            let held = held.clone();
            std::thread::Builder::new().spawn(move || held.recv())
        })
        .collect();
    drop(hold);
    for thread in started? {
        let _ = thread.join();
    }
    Ok(())
}

/// Serves until the mount is gone, then cleans up.
fn supervise<H: Handler>(session: Session<H>, reclaimer: Reclaimer, ending: &Ending) {
    let result = session.run();
    if let Err(error) = &result {
        tracing::error!(%error, "the mount broke");
    }
    // Normally there is nothing left to undo.
    undo(&ending.place);
    drop(reclaimer);
    ending.end.set(result);
}

/// Takes a mount away that nobody serves.
fn undo(place: &Place) {
    if let Err(error) = place.detach() {
        tracing::warn!(%error, mountpoint = ?place.mountpoint(), "could not be unmounted");
    }
    place.dismiss_helper();
}

impl<H: Handler> Mount<H> {
    /// The directory, by its canonical path.
    pub fn mountpoint(&self) -> &Path {
        self.unmounter.0.place.mountpoint()
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        self.engine.handler()
    }

    /// What the mount knows of inodes and paths.
    pub fn resolver(&self) -> &Resolver<H::Data> {
        self.engine.resolver()
    }

    /// What the kernel agreed to.
    pub fn agreed(&self) -> &Negotiation {
        &self.agreed
    }

    /// How it is doing.
    pub fn stats(&self) -> MountStats {
        MountStats { resolver: self.resolver().stats(), queued: self.dispatch.queued() }
    }

    /// What its requests and threads are doing, and how long everything took so far. Adds up what the
    /// threads have counted, each for itself: some microseconds for each thread and operation.
    pub fn dispatch_stats(&self) -> DispatchStats {
        self.dispatch.stats()
    }

    /// For another thread to unmount, one that waits for signals say.
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// For telling the kernel what changed behind its back.
    pub fn notifier(&self) -> Notifier {
        self.notifier.clone()
    }

    /// Waits until the mount has ended, whoever ended it, and everything queued is answered.
    ///
    /// # Errors
    /// The connection broke.
    pub fn wait(&self) -> io::Result<()> {
        let result = self.unmounter.0.end.wait();
        self.join();
        result
    }

    /// Unmounts and waits for the end, unless it is in use: then it is gone from the tree, served
    /// until the last open file is closed, and [`Mount::wait`] waits for that.
    ///
    /// # Errors
    /// It could not be unmounted, and is served as before; or the connection broke.
    pub fn unmount(&self) -> io::Result<Unmounted> {
        self.unmounter.unmount()?;
        // An open file keeps it, a bind mount, or a copy of the tree for another process.
        if self.unmounter.0.end.wait_for(SHORTLY).is_none() && self.notifier.is_connected() {
            return Ok(Unmounted::WhenIdle);
        }
        self.wait().map(|()| Unmounted::Now)
    }

    /// The mount has ended, and so is its thread about to.
    fn join(&self) {
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(supervisor) = supervisor {
            let _ = supervisor.join();
        }
    }
}

impl<H: Handler> Drop for Mount<H> {
    fn drop(&mut self) {
        if !self.unmounter.has_ended() {
            undo(&self.unmounter.0.place);
        }
        if self.unmounter.0.end.wait_for(DROP_LIMIT).is_some() {
            self.join();
        }
    }
}

impl<H: Handler> fmt::Debug for Mount<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount").field("mountpoint", &self.mountpoint()).finish_non_exhaustive()
    }
}

/// Ends a mount from any thread. Cheap to clone; does not keep the mount.
#[derive(Clone, Debug)]
pub struct Unmounter(Arc<Ending>);

#[derive(Debug)]
struct Ending {
    place: Place,
    end: End,
}

impl Unmounter {
    /// Takes the mount out of the tree; lazily if it is in use. Does not wait for the end.
    ///
    /// # Errors
    /// It could not be unmounted, and is served as before.
    pub fn unmount(&self) -> io::Result<Unmounted> {
        if self.has_ended() {
            return Ok(Unmounted::Now);
        }
        self.0.place.detach()
    }

    /// Ends the mount at once, in use or not: who waits for an answer gets an error, and so does
    /// whoever uses a file that is still open. (A handler that is busy is not interrupted.)
    ///
    /// # Errors
    /// Not permitted, or the kernel offers no way.
    pub fn abort(&self) -> io::Result<()> {
        if self.has_ended() {
            return Ok(());
        }
        self.0.place.abort()?;
        self.0.place.detach().map(|_| ())
    }

    /// Has the mount ended, and is everything queued answered?
    pub fn has_ended(&self) -> bool {
        self.0.end.is_set()
    }
}
