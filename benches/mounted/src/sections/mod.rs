//! What is asked: one section of the results each.

pub(crate) mod blocked;
pub(crate) mod ids;
pub(crate) mod matrix;
pub(crate) mod peers;
pub(crate) mod placement;

use std::path::Path;

use crate::client;
use crate::mounts::Mounted;
use crate::rounds::{Plan, Samples, measure};

/// A folder for mountpoints and sources, in memory where that can be had.
fn folder() -> anyhow::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("pinpath-bench-");
    let made = if memory.is_dir() { builder.tempdir_in(memory) } else { builder.tempdir() };
    Ok(made?)
}

/// The files that mirrors show.
fn source(folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    let source = folder.join("source");
    std::fs::create_dir(&source)?;
    for number in 0..client::FILES {
        std::fs::write(source.join(client::file_name(number)), b"")?;
    }
    Ok(source)
}

/// Requests a second of each mount and number of clients: by mount, then by number.
fn rates(
    what: &str,
    plan: &Plan,
    mounts: &[Mounted],
    clients: &[usize],
) -> anyhow::Result<Vec<Vec<Samples>>> {
    let cases: Vec<(&Mounted, usize)> =
        clients.iter().flat_map(|&count| mounts.iter().map(move |mount| (mount, count))).collect();
    let samples = measure(what, plan, &cases, |(mount, count), length| {
        client::rate(&mount.files, *count, length, None)
    })?;
    let of = |at: usize| samples.iter().skip(at).step_by(mounts.len()).cloned().collect();
    Ok((0..mounts.len()).map(of).collect())
}
