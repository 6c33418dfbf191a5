//! A session: from the kernel's INIT to the end of the connection.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use fuser::{Config, ReplyDirectoryPlus, SessionACL};

use super::adapter::Adapter;
use crate::dispatch::{Dispatcher, Engine};
use crate::handler::Handler;
use crate::negotiation::{Negotiation, ReadDirPlus};
use crate::transport::device::Device;

/// Why a session did not start.
#[derive(Debug)]
pub(crate) enum StartError {
    /// The handler's `init` said so.
    Init(io::Error),
    /// The handler's `init` panicked.
    InitPanicked,
    /// The connection failed.
    Connection(io::Error),
}

/// A session whose INIT is answered.
pub(crate) struct Session<H: Handler> {
    session: fuser::Session<Adapter<H>>,
    /// fuser's own descriptor.
    raw: RawFd,
    shared: Arc<Shared>,
}

/// What the session and its adapter know of each other.
pub(super) struct Shared {
    pub(super) device: Arc<Device>,
    pub(super) leak: Leak,
    /// How INIT went; empty before it, and where the connection failed.
    pub(super) init: OnceLock<Init>,
    /// The event loops have ended, and everything queued is answered.
    pub(super) finished: AtomicBool,
}

/// How the handler's part in INIT went.
#[derive(Clone, Copy)]
pub(super) enum Init {
    Agreed(Negotiation),
    Refused,
    Panicked,
}

/// Remembers that replies of fuser's were forgotten, and with each a reference to its descriptor.
#[derive(Default)]
pub(super) struct Leak(AtomicBool);

impl Leak {
    pub(super) fn forget(&self, reply: ReplyDirectoryPlus) {
        if !self.0.load(Ordering::Relaxed) {
            // Relaxed: read after the threads that forget have been joined.
            self.0.store(true, Ordering::Relaxed);
        }
        std::mem::forget(reply);
    }
}

impl<H: Handler> Session<H> {
    /// Answers the kernel's INIT on `descriptor`, an open `/dev/fuse` that is mounted.
    pub(crate) fn start(
        engine: Arc<Engine<H>>,
        dispatcher: Dispatcher<Engine<H>>,
        mut wishes: Negotiation,
        descriptor: OwnedFd,
        clone_fd: bool,
    ) -> Result<(Self, Negotiation), StartError> {
        if clone_fd {
            // An answer must go out on the descriptor on which its request came in. fuser sees to
            // that, but these answers go past it.
            wishes.readdirplus = ReadDirPlus::Off;
        }
        let raw = descriptor.as_raw_fd();
        let shared = Arc::new(Shared {
            device: Arc::new(Device::new(descriptor.try_clone().map_err(StartError::Connection)?)),
            leak: Leak::default(),
            init: OnceLock::new(),
            finished: AtomicBool::new(false),
        });
        let event_loops = dispatcher.core().event_loops();
        let adapter = Adapter::new(engine, dispatcher, wishes, shared.clone());
        let mut config = Config::default();
        config.n_threads = Some(event_loops);
        config.clone_fd = clone_fd;
        // Who may use the mount is decided by the kernel, by the mount's options. fuser's own check
        // on top would refuse even `close` to a process that was given an open file by the owner.
        let session = fuser::Session::from_fd(adapter, descriptor, SessionACL::All, config);
        match (session, shared.init.get()) {
            (Ok(session), Some(&Init::Agreed(agreed))) => {
                Ok((Session { session, raw, shared }, agreed))
            }
            (Err(_), Some(Init::Panicked)) => Err(StartError::InitPanicked),
            (Err(error), Some(Init::Refused)) => Err(StartError::Init(error)),
            (Err(error), _) => Err(StartError::Connection(error)),
            (Ok(_), _) => Err(StartError::Connection(io::ErrorKind::InvalidData.into())),
        }
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.shared.device
    }

    /// Serves until the mount is gone and everything queued is answered.
    ///
    /// # Errors
    /// The connection broke, or a thread could not be started.
    pub(crate) fn run(self) -> io::Result<()> {
        let Session { session, raw, shared } = self;
        // fuser expects a thread that it starts to end well; its decoder has a few panics.
        let result = catch_unwind(AssertUnwindSafe(|| session.run()))
            .unwrap_or_else(|_| Err(io::Error::other("the session panicked")));
        let result = result.or_else(|error| match error.raw_os_error() {
            // Cut off while a request was being read: an end like any other.
            Some(libc::ECONNABORTED) => Ok(()),
            _ => Err(error),
        });
        let leaked = shared.leak.0.load(Ordering::Relaxed);
        if leaked && shared.finished.load(Ordering::Acquire) {
            // SAFETY: `raw` is the descriptor that `start` gave to fuser, which keeps it behind a
            // reference count. A reply that was forgotten holds one of the references for ever, so
            // fuser never closes the descriptor: it is open, and the number has not been given to
            // anything else. Nor does anybody use it any more: `finished` says that fuser's event
            // loops and the dispatcher's threads have ended, which held all other references; the
            // session itself was consumed by `run`; and no object of fuser's is ever given to a
            // handler or to the mount's user (notifications go through `Device`).
            drop(unsafe { OwnedFd::from_raw_fd(raw) });
        }
        result
    }
}
