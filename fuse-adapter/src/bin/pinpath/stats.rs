//! What the mount is doing, on standard error: every so many seconds (`--stats`), and on SIGUSR1.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pinpath_fuse::{Handler, Mount};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::say;

/// From now on the signal asks for figures rather than kills.
pub(crate) fn catch() -> Result<Signals, Failure> {
    Signals::new([SIGUSR1]).map_err(Failure::Signals)
}

/// Reports while `work` goes on.
pub(crate) fn report_during<H: Handler, T>(
    mount: &Mount<H>,
    every: Option<Duration>,
    mut signals: Signals,
    work: impl FnOnce() -> T,
) -> T {
    let handle = signals.handle();
    let (over, is_over) = channel::<()>();
    thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(name.into());
        let started = named("stats-signal").spawn_scoped(scope, move || {
            for _ in signals.forever() {
                report(mount);
            }
        });
        let started = started.and_then(|_| match every {
            None => Ok(()),
            Some(every) => named("stats")
                .spawn_scoped(scope, move || {
                    while is_over.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                        report(mount);
                    }
                })
                .map(drop),
        });
        if let Err(error) = started {
            say::error(format_args!("there will be no figures: {error}"));
        }
        let result = work();
        drop(over);
        handle.close();
        result
    })
}

fn report<H: Handler>(mount: &Mount<H>) {
    say::error(format_args!(
        "{} inodes, {} paths in use\n{}",
        mount.stats().resolver.nodes,
        mount.stats().resolver.leases,
        mount.dispatch_stats()
    ));
}
