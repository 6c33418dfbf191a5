//! `pinpath mirror`: a directory, seen again at another place.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pinpath_fuse::MountOptions;
use pinpath_fuse::mirror::{Cache, Mirror, MirrorOptions};
use rustix::fs::Mode;
use rustix::mount::MountFlags;
use rustix::process::{Resource, Rlimit};

use crate::arguments;
use crate::background::{self, Announcement, Side};
use crate::failure::{Failure, explain, is_root, unmount_command};
use crate::logging::{self, Level};
use crate::mountpoint::Mountpoint;
use crate::options::Options;
use crate::say::{self, quoted};
use crate::shutdown;
use crate::stats;

/// The type of the mount, as `df -T` and mount(8) show it.
pub(crate) const FS_TYPE: &str = "fuse.pinpath";

/// What the user wants.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) source: PathBuf,
    pub(crate) mountpoint: PathBuf,
    pub(crate) options: Options,
    pub(crate) log: Level,
    pub(crate) background: bool,
    /// Report figures so often.
    pub(crate) stats: Option<Duration>,
    /// Say nothing of what goes well.
    pub(crate) quiet: bool,
    /// Do nothing: reading the options was all.
    pub(crate) dry_run: bool,
}

/// Does it, and returns when the mount has ended (in the background: when it answers).
pub(crate) fn run(plan: Plan) -> Result<ExitCode, Failure> {
    if plan.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    check_rights(&plan.options)?;
    if plan.options.remount {
        return remount(&plan);
    }
    check_source(&plan.source)?;
    if !plan.background {
        return serve(&plan, None);
    }
    match background::split()? {
        Side::Parent(exit) => Ok(exit),
        Side::Child(announcement) => serve(&plan, Some(announcement)),
    }
}

fn serve(plan: &Plan, announcement: Option<Announcement>) -> Result<ExitCode, Failure> {
    logging::start(plan.log);
    let mountpoint = Arc::new(Mountpoint::prepare(&plan.mountpoint, plan.options.clear_stale)?);
    let source_failed = |error| Failure::Source(plan.source.clone(), error);
    let source = plan.source.canonicalize().map_err(source_failed)?;
    // Before the mount, so that there is no moment in which a signal would leave it behind.
    let signals = shutdown::catch()?;
    let stats_signals = stats::catch()?;
    let mirror = Mirror::open(&source, mirror_options(&plan.options)).map_err(source_failed)?;
    prepare_process();
    let options = mount_options(&plan.options, &source);
    let mount = pinpath_fuse::mount(mirror, mountpoint.path(), &options)
        .map_err(|error| explain(error, mountpoint.path()))?;
    if !plan.quiet {
        say::note(started(&source, mountpoint.path(), plan.background));
    }
    if let Some(announcement) = announcement {
        announcement.mounted()?;
    }
    stats::report_during(&mount, plan.stats, stats_signals, || {
        shutdown::wait(&mount, &mountpoint, signals)
    })
}

fn started(source: &Path, mountpoint: &Path, background: bool) -> String {
    let stop = unmount_command(mountpoint);
    let stop = if background { stop } else { format!("Ctrl-C, or: {stop}") };
    format!("{} is mounted on {}; to stop: {stop}", quoted(source), quoted(mountpoint))
}

/// What only root may ask for is refused here, where it can be said; fusermount3 would pass over
/// it without a word.
fn check_rights(options: &Options) -> Result<(), Failure> {
    let wanted = [
        ("suid", options.suid == Some(true)),
        ("dev", options.dev == Some(true)),
        ("passthrough", options.passthrough),
    ];
    match wanted.into_iter().find(|(_, wanted)| *wanted) {
        Some((option, _)) if !is_root() => Err(Failure::OnlyRoot { option }),
        _ => Ok(()),
    }
}

/// The two commonest mistakes, before anything is made. Others show when it is opened: the source
/// may lie behind a dead mount that is yet to be cleared.
fn check_source(source: &Path) -> Result<(), Failure> {
    match std::fs::metadata(source) {
        Ok(found) if !found.is_dir() => Err(Failure::SourceNotADirectory(source.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::SourceMissing(source.to_owned()))
        }
        _ => Ok(()),
    }
}

fn prepare_process() {
    few_arenas();
    // Modes come from the callers, whose own umask has been applied.
    rustix::process::umask(Mode::empty());
    // Each file that somebody holds open is one descriptor here.
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::warn!("the limit of open files stays at {:?}: {error}", limit.current);
    }
    // Keeps no directory in use.
    if let Err(error) = rustix::process::chdir("/") {
        tracing::warn!("the working directory stays what it is: {error}");
    }
}

/// glibc gives each thread a heap of its own, which others don't use. What is known of a file is
/// made on one thread and freed on another, so each heap would grow until it could hold everything.
fn few_arenas() {
    // SAFETY: `mallopt` takes two numbers.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

fn mirror_options(options: &Options) -> MirrorOptions {
    let mut wanted = MirrorOptions::default();
    // Read-only is left to the kernel, so that root may remount.
    if let Some(cache) = options.cache {
        wanted.cache = match cache {
            arguments::Cache::None => Cache::None,
            arguments::Cache::Auto => Cache::Auto,
            arguments::Cache::Always => Cache::Always,
        };
    }
    wanted.forward_locks = options.locks == Some(arguments::Locks::Forward);
    wanted.passthrough = options.passthrough;
    // The kernel leaves times of access to the source.
    wanted.no_atime = options.atime == Some(false);
    wanted
}

fn mount_options(options: &Options, source: &Path) -> MountOptions {
    let mut wanted = MountOptions::default();
    wanted.fs_name = options.fs_name.clone().unwrap_or_else(|| source.into());
    if let Some(subtype) = &options.subtype {
        wanted.subtype = subtype.to_string_lossy().into_owned();
    }
    wanted.read_only = options.read_only == Some(true);
    wanted.allow_other = options.allow_other;
    wanted.default_permissions = checked_by_kernel(options);
    wanted.suid = options.suid == Some(true);
    wanted.dev = options.dev == Some(true);
    wanted.exec = options.exec != Some(false);
    wanted.no_atime = options.atime == Some(false);
    wanted.auto_unmount = options.auto_unmount;
    let more = [("sync", options.sync == Some(true)), ("dirsync", options.dirsync)];
    let more = more.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).into());
    wanted.more = more.chain(options.times.iter().cloned()).collect();
    wanted.threads.readers = options.readers.unwrap_or(wanted.threads.readers);
    wanted.threads.handlers = options.handlers.unwrap_or(wanted.threads.handlers);
    wanted.threads.clone_fd = options.clone_fd;
    wanted.dispatch = match options.dispatch {
        None => wanted.dispatch,
        Some(arguments::Dispatch::Adaptive) => pinpath_fuse::Dispatch::Adaptive,
        Some(arguments::Dispatch::Inline) => pinpath_fuse::Dispatch::Inline,
        Some(arguments::Dispatch::Pool) => pinpath_fuse::Dispatch::Pool,
    };
    wanted
}

/// Who may do what is checked by the kernel, always where the mirror is root or serves others: it
/// could do more than the caller. A user's mirror for himself can do exactly what he can, and its
/// source knows better (ACLs) than mode bits do.
fn checked_by_kernel(options: &Options) -> bool {
    options.allow_other || options.default_permissions || is_root()
}

/// `mount -o remount,...`: only the kernel has to know.
fn remount(plan: &Plan) -> Result<ExitCode, Failure> {
    let options = &plan.options;
    let times = |name: &str| options.times.iter().any(|option| option == name);
    let flags = [
        (MountFlags::RDONLY, options.read_only == Some(true)),
        (MountFlags::NOSUID, options.suid != Some(true)),
        (MountFlags::NODEV, options.dev != Some(true)),
        (MountFlags::NOEXEC, options.exec == Some(false)),
        (MountFlags::NOATIME, options.atime == Some(false)),
        (MountFlags::SYNCHRONOUS, options.sync == Some(true)),
        (MountFlags::DIRSYNC, options.dirsync),
        (MountFlags::NODIRATIME, times("nodiratime")),
        (MountFlags::STRICTATIME, times("strictatime")),
        (MountFlags::LAZYTIME, times("lazytime")),
    ];
    let flags = flags.iter().filter(|(_, on)| *on).map(|(flag, _)| *flag).collect();
    rustix::mount::mount_remount(&plan.mountpoint, flags, "")
        .map_err(|error| Failure::Remount(plan.mountpoint.clone(), error.into()))?;
    Ok(ExitCode::SUCCESS)
}
