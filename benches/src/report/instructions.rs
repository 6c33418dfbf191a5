//! Instruction counts, and whether they are still what the table says.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::table::Bars;
use super::{Fragment, Progress};

/// Repetitions in one benchmark of `benches/instructions.rs`.
const TIMES: f64 = 1000.0;
/// A case may take so much more than the table says before that is an error: another libc or compiler
/// moves a count by a few per cent.
const MARGIN: f64 = 1.10;

/// Instructions an operation, by the name of the case.
type Counts = BTreeMap<String, f64>;

/// Counts anew and compares with the table, or writes it.
///
/// # Errors
/// If a count has grown by more than the margin, a case is not in the table, or valgrind or the runner
/// is not there.
pub fn check(update: bool) -> Result<()> {
    let counts = count()?;
    let path = table_path();
    if update {
        return Ok(fs::write(path, written(&counts))?);
    }
    let expected = read(&fs::read_to_string(&path).context("instructions.tsv")?)?;
    let mut grown = Vec::new();
    for (name, count) in &counts {
        let before = *expected.get(name).with_context(|| format!("{name} is not in the table"))?;
        println!("{name:24} {count:8.1}  (table: {before:.1})");
        // Half an instruction more where there are few.
        if *count > before * MARGIN + 0.5 {
            grown.push(format!("{name}: {before:.1} -> {count:.1}"));
        }
    }
    ensure!(
        grown.is_empty(),
        "more instructions than in benches/instructions.tsv: {}. If that is as it should be: \
         cargo bench-instructions --update",
        grown.join("; ")
    );
    Ok(())
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    progress.says("instructions");
    let counts = count()?;
    let mut bars = Bars::new();
    bars.at_most("pin and drop, instructions", 40.0, counts["pin_and_drop"]);
    let mut text = format!(
        "## Instructions\n\nUnder valgrind, an operation; those of malloc and free are in it. \
         `cargo bench-instructions` compares them with `instructions.tsv`.\n\n{}\n\
         | operation | instructions |\n| --- | --- |\n",
        bars.text()
    );
    for (name, count) in &counts {
        let _ = writeln!(text, "| {} | {count:.0} |", name.replace('_', " "));
    }
    progress.step();
    Ok(Fragment { text, plots: Vec::new() })
}

fn table_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.tsv")
}

fn written(counts: &Counts) -> String {
    counts.iter().map(|(name, count)| format!("{name}\t{count:.1}\n")).collect()
}

fn read(table: &str) -> Result<Counts> {
    let line = |line: &str| {
        let (name, count) = line.split_once('\t').context("a name and a number")?;
        Ok((name.to_owned(), count.parse()?))
    };
    table.lines().map(line).collect()
}

/// Runs the benchmark and reads what callgrind counted.
fn count() -> Result<Counts> {
    let home = tempfile_in_target()?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["bench", "--quiet", "--package", "pinpath-benches", "--bench", "instructions"])
        .args(["--features", "instructions", "--"])
        .arg(format!("--home={}", home.display()))
        .output()
        .context("cargo bench --bench instructions")?;
    if !output.status.success() {
        bail!(
            "{}\nIt needs valgrind, and gungraun-runner of the version in Cargo.toml.",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let mut totals = Counts::new();
    collect(&home, &mut totals)?;
    fs::remove_dir_all(&home)?;
    let around = totals.remove("nothing").context("the empty case was counted")?;
    ensure!(totals.contains_key("pin_and_drop"), "the cases were counted: {totals:?}");
    Ok(totals.into_iter().map(|(name, total)| (name, (total - around) / TIMES)).collect())
}

/// An empty folder for the runner's files.
fn tempfile_in_target() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("pinpath-instructions-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Finds callgrind's files below a folder; each is named after its case and says its total.
fn collect(folder: &Path, totals: &mut Counts) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, totals)?;
        } else if let Some(case) =
            name.strip_prefix("callgrind.").and_then(|n| n.strip_suffix(".out"))
        {
            let text = fs::read_to_string(&path)?;
            let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
            let total =
                total.or_else(|| text.lines().find_map(|line| line.strip_prefix("totals: ")));
            let total = total.and_then(|total| total.split(' ').next());
            let total = total.with_context(|| format!("no total in {name}"))?.parse()?;
            let case = case.rsplit('.').next().unwrap_or(case);
            totals.insert(case.to_owned(), total);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_as_it_was_written() {
        let counts = Counts::from([("a".to_owned(), 1.5), ("b".to_owned(), 200.0)]);
        assert_eq!(read(&written(&counts)).unwrap(), counts);
    }

    #[test]
    fn the_table_has_numbers() {
        let table = fs::read_to_string(table_path()).unwrap();
        assert!(read(&table).unwrap().contains_key("pin_and_drop"));
    }
}
