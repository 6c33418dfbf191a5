//! What is mounted. All but the mirrors serve the same: a root and eight files, whose attributes cost
//! nothing, or a sleep.

mod bare;
mod easy;
mod ours;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};

/// For how long the kernel may keep names and attributes: the same for all, and longer than a run.
const LIFETIME: Duration = Duration::from_secs(3600);

/// Which server, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Served {
    #[arg(long, value_enum)]
    pub(crate) server: Server,
    /// Of mirrors: the directory
    #[arg(long)]
    pub(crate) source: Option<PathBuf>,
    /// How the attributes are made
    #[arg(long, value_enum, default_value_t = Cost::Nothing)]
    pub(crate) cost: Cost,
    /// What of the node is asked for
    #[arg(long, value_enum, default_value_t = Ids::Inode)]
    pub(crate) ids: Ids,
    #[arg(long)]
    pub(crate) readers: Option<usize>,
    #[arg(long)]
    pub(crate) handlers: Option<usize>,
    #[arg(long)]
    pub(crate) clone_fd: bool,
    #[arg(long, value_enum, default_value_t = Threads::Default)]
    pub(crate) threads: Threads,
    pub(crate) mountpoint: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Server {
    /// Ours
    Ours,
    /// Our mirror
    OurMirror,
    /// easy_fuser, on its pool
    Easy,
    /// The mirror that comes with easy_fuser
    EasyMirror,
    /// fuser by itself, answering where it reads
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cost {
    Nothing,
    /// 1 ms each
    Sleep,
    /// 1 ms for every tenth
    Mix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ids {
    Inode,
    Path,
    Paths,
}

/// How ours dispatches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Threads {
    /// As it comes
    Default,
    Inline,
    Pool,
}

/// A value's name on the command line.
fn word(value: &impl ValueEnum) -> OsString {
    value.to_possible_value().map(|value| value.get_name().into()).unwrap_or_default()
}

impl Served {
    /// With defaults.
    pub(crate) fn new(server: Server) -> Self {
        Served {
            server,
            source: None,
            cost: Cost::Nothing,
            ids: Ids::Inode,
            readers: None,
            handlers: None,
            clone_fd: false,
            threads: Threads::Default,
            mountpoint: PathBuf::new(),
        }
    }

    /// The command line without the mountpoint, which comes last.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: OsString| words.extend([name.into(), value]);
        add("--server", word(&self.server));
        add("--cost", word(&self.cost));
        add("--ids", word(&self.ids));
        add("--threads", word(&self.threads));
        if let Some(source) = &self.source {
            add("--source", source.into());
        }
        for (name, count) in [("--readers", self.readers), ("--handlers", self.handlers)] {
            if let Some(count) = count {
                add(name, count.to_string().into());
            }
        }
        if self.clone_fd {
            words.push("--clone-fd".into());
        }
        words
    }
}

/// Serves until it is unmounted.
pub(crate) fn serve(served: &Served) -> anyhow::Result<()> {
    let at = &served.mountpoint;
    match served.server {
        Server::Ours | Server::OurMirror => ours::serve(served, at),
        Server::Easy | Server::EasyMirror => easy::serve(served, at),
        Server::Bare => bare::serve(served, at),
    }
}

/// Lets time pass as asked for.
#[derive(Debug)]
struct Spend {
    cost: Cost,
    calls: AtomicU64,
}

impl Spend {
    fn new(cost: Cost) -> Self {
        Spend { cost, calls: AtomicU64::new(0) }
    }

    fn spend(&self) {
        let sleeps = match self.cost {
            Cost::Nothing => false,
            Cost::Sleep => true,
            Cost::Mix => self.calls.fetch_add(1, Ordering::Relaxed) % 10 == 0,
        };
        if sleeps {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The number of a file by its name.
fn number_of(name: &[u8]) -> Option<u64> {
    let number: usize = std::str::from_utf8(name).ok()?.strip_prefix('f')?.parse().ok()?;
    (number < crate::client::FILES).then_some(number as u64)
}
