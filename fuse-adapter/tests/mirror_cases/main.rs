//! The mirror, mounted: each test is a fault that users met in some FUSE filesystem.
//!
//! What is right is what a plain directory does. So most tests are a function of a directory, and
//! run on a plain one first and then on a mirror in each cache mode and with passthrough: a test that expects what is
//! not so fails before it comes to the mirror.

mod attributes;
mod behind;
mod content;
mod faults;
mod listings;
mod locks;
mod mapped;
mod mounts;
mod names;
mod owners;
#[path = "../support/mod.rs"]
mod support;
mod unlinked;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinpath_fuse::mirror::{Cache, Mirror, MirrorOptions};
use pinpath_fuse::{Mount, MountOptions};
use tempfile::TempDir;

use support::{Mountpoint, Watchdog};

const LIMIT: Duration = Duration::from_secs(60);

/// A mirror of a fresh directory, mounted for everybody.
struct Mirrored {
    // In the order in which they go.
    watchdog: Option<Watchdog>,
    mount: Option<Mount<Mirror>>,
    mountpoint: Mountpoint,
    source: TempDir,
}

impl Mirrored {
    /// `None`, said loudly, where nothing can be mounted.
    fn new(cache: Cache) -> Option<Self> {
        let mut options = MirrorOptions::default();
        options.cache = cache;
        Self::with(options)
    }

    fn with(options: MirrorOptions) -> Option<Self> {
        let source = open_directory();
        let mirror = Mirror::open(source.path(), options).unwrap();
        Self::of(mirror, mountpoint()?, source)
    }

    fn of(mirror: Mirror, mountpoint: Mountpoint, source: TempDir) -> Option<Self> {
        let mut options = MountOptions::default();
        options.allow_other = true;
        options.suid = true;
        options.dev = true;
        let mount = pinpath_fuse::mount(mirror, mountpoint.path(), &options).unwrap();
        let watchdog = Watchdog::start(LIMIT, Some(mount.unmounter()));
        Some(Mirrored { watchdog: Some(watchdog), mount: Some(mount), mountpoint, source })
    }

    fn mount(&self) -> &Mount<Mirror> {
        self.mount.as_ref().unwrap()
    }

    /// Seen through the mirror.
    fn at(&self, path: &str) -> PathBuf {
        self.mountpoint.join(path)
    }

    /// Seen in the source.
    fn behind(&self, path: &str) -> PathBuf {
        self.source.path().join(path)
    }
}

impl Drop for Mirrored {
    fn drop(&mut self) {
        drop(self.mount.take());
        drop(self.watchdog.take());
    }
}

/// `None`, said loudly, where nothing can be mounted. Most cases change owners and users as well, so
/// root has to run them.
fn mountpoint() -> Option<Mountpoint> {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("PINPATH_REQUIRE_FUSE").is_none(), "these tests need root");
        eprintln!("\n*** SKIPPED, because only root can run it ***\n");
        return None;
    }
    support::mountpoint()
}

/// A directory that other users may enter.
fn open_directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    dir
}

/// Runs a case on a plain directory, then on a mirror in each cache mode, and on one whose open files
/// the kernel reads and writes itself.
fn everywhere(case: impl Fn(&Path)) {
    in_each_cache_mode(&case);
    let mut options = MirrorOptions::default();
    options.passthrough = true;
    let Some(mirrored) = Mirrored::with(options) else { return };
    eprintln!("passed through by the kernel: {}", mirrored.mount().agreed().passthrough);
    case(mirrored.mountpoint.path());
}

/// The same without that last one.
fn in_each_cache_mode(case: impl Fn(&Path)) {
    if mountpoint().is_none() {
        return;
    }
    let plain = open_directory();
    case(plain.path());
    for cache in [Cache::None, Cache::Auto, Cache::Always] {
        let Some(mirrored) = Mirrored::new(cache) else { return };
        eprintln!("cache mode {cache:?}");
        case(mirrored.mountpoint.path());
    }
}

/// Runs `work` on a thread of another user.
fn as_user<T: Send>(uid: u32, gid: u32, groups: &[u32], work: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let groups: Vec<_> =
        groups.iter().map(|group| rustix::process::Gid::from_raw(*group)).collect();
    let (uid, gid) = (rustix::process::Uid::from_raw(uid), rustix::process::Gid::from_raw(gid));
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            set_thread_groups(&groups).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            work()
        });
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The mode without the type.
fn perm(path: impl AsRef<Path>) -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    std::fs::write(path, content).unwrap();
}

/// The number of an error.
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}
