//! On what a section was measured.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

/// One line: the machine, the kernel, the compiler, the peers' versions, the day.
pub(super) fn stamp() -> Result<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("a CPU");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = output("uname", &["-sr"])?;
    let rustc = output("rustc", &["--version"])?;
    let day = output("date", &["-u", "+%Y-%m-%d"])?;
    let pinpath = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "\n*{cpus} CPUs ({model}), {kernel}, {rustc}, pinpath {pinpath}, {}; {day}*",
        peers()
    ))
}

/// The peers' versions, from the lock file.
fn peers() -> String {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    let version = |name: &str| {
        let entry = LOCK.split(&format!("name = \"{name}\"\nversion = \"")).nth(1)?;
        entry.split('"').next().map(|version| format!("{name} {version}"))
    };
    let peers = ["easy_fuser", "dashmap", "papaya", "scc", "crossbeam-epoch"];
    peers.iter().filter_map(|name| version(name)).collect::<Vec<_>>().join(", ")
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output().context(program.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_peers_are_in_the_lock_file() {
        assert!(super::peers().starts_with("easy_fuser 0.7.1, dashmap "), "{}", super::peers());
    }
}
