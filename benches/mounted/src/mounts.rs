//! Servers that run: each in a process of its own, unmounted and ended when dropped.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::mount::UnmountFlags;

use crate::client;
use crate::servers::Served;

const PATIENCE: Duration = Duration::from_secs(10);

/// Where libfuse's example `passthrough_ll` is.
pub(crate) const PASSTHROUGH: &str = "PASSTHROUGH_LL";

/// A server that is mounted.
pub(crate) struct Mounted {
    child: Child,
    mountpoint: PathBuf,
    log: File,
    /// The files that the clients stat.
    pub(crate) files: Vec<OwnedFd>,
}

/// One of ours, or one of this program's peers.
pub(crate) fn start(served: &Served, folder: &Path) -> anyhow::Result<Mounted> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").args(served.arguments());
    start_command(command, folder)
}

/// libfuse's `passthrough_ll`; `None`, said once, where nobody says where it is.
pub(crate) fn start_passthrough(source: &Path, folder: &Path) -> anyhow::Result<Option<Mounted>> {
    let Some(program) = std::env::var_os(PASSTHROUGH) else {
        eprintln!(
            "skipped: libfuse's passthrough_ll, because {PASSTHROUGH} does not say where it is"
        );
        return Ok(None);
    };
    let mut command = Command::new(program);
    command.arg("-f").arg("-o").arg(format!("source={}", source.display()));
    start_command(command, folder).map(Some)
}

/// Starts a command that mounts on the directory that is its last argument.
fn start_command(mut command: Command, folder: &Path) -> anyhow::Result<Mounted> {
    let mountpoint = tempfile::Builder::new().prefix("mnt-").tempdir_in(folder)?.keep();
    let log = tempfile::tempfile()?;
    let child = command
        .arg(&mountpoint)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let mut mounted = Mounted { child, mountpoint, log, files: Vec::new() };
    let start = Instant::now();
    while !is_mounted(&mounted.mountpoint)? {
        if mounted.child.try_wait()?.is_some() || start.elapsed() > PATIENCE {
            bail!("{command:?} does not mount: {}", mounted.said());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    mounted.files = client::name_files(&mounted.mountpoint)
        .with_context(|| format!("{command:?}: {}", mounted.said()))?;
    Ok(mounted)
}

fn is_mounted(mountpoint: &Path) -> anyhow::Result<bool> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(table.lines().any(|line| line.split(' ').nth(4) == mountpoint.to_str()))
}

impl Mounted {
    /// The server's threads by name: all of them, or those that read requests.
    fn threads(&self, only_readers: bool) -> anyhow::Result<Vec<i32>> {
        let mut threads = Vec::new();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let task = task?;
            let name = std::fs::read_to_string(task.path().join("comm"))?;
            if !only_readers || name.starts_with("fuser-") {
                threads.push(task.file_name().to_str().context("a number")?.parse()?);
            }
        }
        Ok(threads)
    }

    /// All threads of the server on one CPU from now on.
    pub(crate) fn pin(&self, cpu: usize) -> anyhow::Result<()> {
        self.threads(false)?.into_iter().try_for_each(|thread| pin(thread, cpu))
    }

    /// Each thread that reads on a CPU of its own.
    pub(crate) fn spread_readers(&self, cpus: usize) -> anyhow::Result<()> {
        let readers = self.threads(true)?.into_iter().enumerate();
        readers.into_iter().try_for_each(|(number, thread)| pin(thread, number % cpus))
    }

    /// All threads that read under another policy of the scheduler.
    pub(crate) fn schedule_readers(&self, policy: i32) -> anyhow::Result<()> {
        for thread in self.threads(true)? {
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: `none` is a valid `sched_param` for the time of the call.
            if unsafe { libc::sched_setscheduler(thread, policy, &none) } != 0 {
                return Err(std::io::Error::last_os_error().into());
            }
        }
        Ok(())
    }

    fn said(&mut self) -> String {
        use std::io::Seek;
        let mut text = String::new();
        let _ = self.log.rewind().and_then(|()| self.log.read_to_string(&mut text));
        text
    }
}

fn pin(thread: i32, cpu: usize) -> anyhow::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(rustix::thread::Pid::from_raw(thread), &set)?)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.files.clear();
        let _ = rustix::mount::unmount(&self.mountpoint, UnmountFlags::DETACH);
        let start = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if start.elapsed() > Duration::from_secs(3) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = std::fs::remove_dir(&self.mountpoint);
    }
}
