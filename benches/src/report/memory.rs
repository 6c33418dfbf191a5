//! Bytes an inode.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::table::Bars;
use super::{Fragment, Progress};

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    progress.says("memory");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "pinpath-benches", "--bin", "memory"])
        .output()
        .context("cargo run --bin memory")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures: Vec<(String, f64)> = String::from_utf8(output.stdout)?
        .lines()
        .map(|line| {
            let (name, bytes) = line.split_once('\t').context("a name and a number")?;
            Ok((name.to_owned(), bytes.parse()?))
        })
        .collect::<Result<_>>()?;
    ensure!(figures.len() >= 2, "two figures of ours, then the peers'");
    let mut bars = Bars::new();
    bars.at_most("bytes an inode, 16-byte names, 10^6 inodes", 128.0, figures[0].1);
    bars.at_most("the same with its path kept", 224.0, figures[1].1);
    let mut text = format!(
        "## Memory\n\nWhat the allocator was asked for and what glibc's malloc adds to that, a million \
         files of 16-byte names three components deep, divided by a million.\n\n{}\n| table | bytes an inode |\n| --- | --- |\n",
        bars.text()
    );
    for (name, bytes) in figures {
        let _ = writeln!(text, "| {name} | {bytes:.1} |");
    }
    progress.step();
    Ok(Fragment { text, plots: Vec::new() })
}
