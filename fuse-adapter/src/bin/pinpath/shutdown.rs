//! The end of a mount, by a signal or from outside.
//!
//! The first signal unmounts: what is queued is answered, and the mount is gone. One that is still
//! in use goes out of sight, and ends with its last user. A second signal ends it at once: who
//! waits for an answer gets an error.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinpath_fuse::{Handler, Mount, Unmounted, Unmounter};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::mountpoint::Mountpoint;
use crate::say::{self, quoted};

/// How long a mount whose connection was cut gets for tidying up.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// From now on signals wait for [`wait`] rather than kill.
pub(crate) fn catch() -> Result<Signals, Failure> {
    Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map_err(Failure::Signals)
}

/// Returns when the mount has ended.
pub(crate) fn wait<H: Handler>(
    mount: &Mount<H>,
    mountpoint: &Arc<Mountpoint>,
    signals: Signals,
) -> Result<ExitCode, Failure> {
    let handle = signals.handle();
    let listener = Listener {
        unmounter: mount.unmounter(),
        mountpoint: Arc::clone(mountpoint),
        forced: Arc::new(AtomicBool::new(false)),
    };
    let forced = Arc::clone(&listener.forced);
    let thread = thread::Builder::new()
        .name("signals".into())
        .spawn(move || listener.listen(signals))
        .map_err(Failure::Signals)?;
    let ended = mount.wait();
    handle.close();
    let _ = thread.join();
    // Not left to the last of those who know it: the process may end before that one.
    mountpoint.remove();
    // Relaxed: the thread that set it was joined.
    if forced.load(Ordering::Relaxed) {
        return Ok(ExitCode::FAILURE);
    }
    ended.map_err(|error| Failure::Serving(mountpoint.path().to_owned(), error))?;
    Ok(ExitCode::SUCCESS)
}

struct Listener {
    unmounter: Unmounter,
    mountpoint: Arc<Mountpoint>,
    /// Set by the second signal: the end was no good one.
    forced: Arc<AtomicBool>,
}

impl Listener {
    fn listen(&self, mut signals: Signals) {
        let mut signals = signals.forever();
        if signals.next().is_none() {
            return;
        }
        self.unmount();
        if signals.next().is_none() {
            return;
        }
        self.forced.store(true, Ordering::Relaxed);
        self.end_at_once();
    }

    /// On a thread of its own: unmounting writes back what the kernel keeps, for which a stuck
    /// handler may let it wait, and the second signal must be heard meanwhile.
    fn unmount(&self) {
        let unmounter = self.unmounter.clone();
        let mountpoint = Arc::clone(&self.mountpoint);
        let unmount = move || {
            let path = quoted(mountpoint.path());
            match unmounter.unmount() {
                Ok(Unmounted::Now) => {}
                Ok(Unmounted::WhenIdle) => say::error(format_args!(
                    "{path} is still in use: it is out of sight and ends with its last user; \
                     a second signal ends it at once"
                )),
                Err(error) => say::error(format_args!(
                    "{path} cannot be unmounted: {error}; a second signal ends it at once"
                )),
            }
        };
        if let Err(error) = thread::Builder::new().name("unmount".into()).spawn(unmount) {
            say::error(format_args!("unmounting failed: {error}; a second signal ends at once"));
        }
    }

    /// Cuts the connection, and leaves the process if that doesn't end the mount: with the last
    /// descriptor of the device the kernel cuts it itself.
    fn end_at_once(&self) {
        let _ = self.unmounter.abort();
        let _ = self.unmounter.unmount();
        let begun = Instant::now();
        while begun.elapsed() < LAST_MOMENT {
            if self.unmounter.has_ended() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.mountpoint.remove();
        std::process::exit(1);
    }
}
