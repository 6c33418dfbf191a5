//! Measures mounts: how many requests a second, through a kernel and back.
//!
//! * [`servers`]: what is mounted, each in a process of its own;
//! * [`mounts`]: starts and ends them;
//! * [`client`]: the one program that uses them all: every call is exactly one request;
//! * [`rounds`]: measures all of them in turn;
//! * [`sections`]: what is asked, one section of `benches/RESULTS.md` each;
//! * [`report`]: tables and pictures.
//!
//! `cargo run --release -p pinpath-mounted-benches -- all` measures everything and writes
//! `benches/results/`. A section's name instead of `all` measures that one.

mod client;
mod mounts;
mod report;
mod rounds;
mod sections;
mod servers;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::rounds::Plan;

#[derive(Debug, Parser)]
#[command(about = "Measures mounts")]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Samples of each server
    #[arg(long, global = true, default_value_t = 15)]
    rounds: usize,

    /// How long one takes, in milliseconds
    #[arg(long, global = true, default_value_t = 60)]
    sample: u64,

    /// Where the results go
    #[arg(long, global = true, default_value = "benches/results")]
    out: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every section
    All,
    /// The default against easy_fuser, a bare fuser filesystem and libfuse
    Peers,
    /// Node ids used as inode only, as one path, as all paths
    Ids,
    /// Readers x handlers, against the default
    Matrix,
    /// What blocked clients do to others
    Blocked,
    /// On which CPU client and server run
    Placement,
    /// Mount one of the servers and serve it: used by the others
    #[command(hide = true)]
    Serve(servers::Served),
}

fn main() -> anyhow::Result<()> {
    let Arguments { command, rounds, sample, out } = Arguments::parse();
    let plan = Plan { rounds: rounds.max(1), sample: Duration::from_millis(sample), out };
    match command {
        Command::Serve(served) => servers::serve(&served),
        Command::Peers => sections::peers::run(&plan),
        Command::Ids => sections::ids::run(&plan),
        Command::Matrix => sections::matrix::run(&plan),
        Command::Blocked => sections::blocked::run(&plan),
        Command::Placement => sections::placement::run(&plan),
        Command::All => {
            sections::peers::run(&plan)?;
            sections::ids::run(&plan)?;
            sections::matrix::run(&plan)?;
            sections::blocked::run(&plan)?;
            sections::placement::run(&plan)
        }
    }
}
