//! A mirror that is mounted in this process, so that its resolver can be looked at.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pinpath_fuse::mirror::{Mirror, MirrorOptions};
use pinpath_fuse::{Mount, MountOptions, Unmounted, mount};

use super::{Places, Unmounts};

/// A mount in this process. If the test has not ended by then, the connection is cut, so that
/// whoever hangs in it gets an error.
pub(crate) struct Mirrored {
    pub(crate) places: Places,
    mount: Option<Mount<Mirror>>,
    _unmounts: Unmounts,
    watchdog: Option<(mpsc::Sender<()>, thread::JoinHandle<()>)>,
}

impl Mirrored {
    pub(crate) fn new(limit: Duration) -> Self {
        Self::with_options(MirrorOptions::default(), limit)
    }

    pub(crate) fn with_options(options: MirrorOptions, limit: Duration) -> Self {
        let places = Places::new();
        let mirror = Mirror::open(places.source(), options).expect("a mirror");
        let mount = mount(mirror, places.mountpoint(), &MountOptions::default()).expect("a mount");
        let unmounter = mount.unmounter();
        let (sender, over) = mpsc::channel::<()>();
        let watch = move || {
            if over.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("no end after {limit:?}: the connection is cut");
                let _ = unmounter.abort();
            }
        };
        let watchdog =
            thread::Builder::new().name("watchdog".into()).spawn(watch).expect("a watchdog");
        let _unmounts = Unmounts(places.mountpoint());
        Mirrored { places, mount: Some(mount), _unmounts, watchdog: Some((sender, watchdog)) }
    }

    pub(crate) fn mount(&self) -> &Mount<Mirror> {
        self.mount.as_ref().expect("still mounted")
    }

    pub(crate) fn nodes(&self) -> usize {
        let resolver = self.mount().resolver();
        resolver.reclaim();
        resolver.stats().nodes
    }

    pub(crate) fn unmount(&mut self) {
        let mount = self.mount.take().expect("still mounted");
        assert_eq!(mount.unmount().expect("to unmount"), Unmounted::Now);
    }
}

impl Drop for Mirrored {
    fn drop(&mut self) {
        if let Some((sender, watchdog)) = self.watchdog.take() {
            drop(sender);
            let _ = watchdog.join();
        }
    }
}
