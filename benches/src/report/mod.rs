//! The report: sections that are measured by themselves, and put together into `RESULTS.md`.
//!
//! A section writes a fragment of Markdown, `results/NAME.md`, and its plots beside that.
//! [`assemble`] puts all fragments that are there together, in the order of [`SECTIONS`] and then by name,
//! so other programs may leave fragments there, too.

mod churn;
mod guard;
mod index;
mod instructions;
mod lease;
mod machine;
mod memory;
mod plot;
mod request_paths;
mod scale;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use crate::alternate::{Case, Plan, Samples, measure};
use crate::threads;

pub use instructions::check as check_instructions;

/// Text and plots of one section.
#[derive(Debug, Default)]
pub struct Fragment {
    /// Markdown, with a heading of the second level.
    pub text: String,
    /// Names of files, and SVG.
    pub plots: Vec<(String, String)>,
}

/// One question of the report.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// By which it is asked for, and its fragment's name.
    pub name: &'static str,
    /// How many cases and numbers of threads it measures, for the progress bar.
    steps: fn() -> usize,
    run: fn(&Progress) -> Result<Fragment>,
}

/// In the order in which they stand in the report.
pub const SECTIONS: &[Section] = &[
    Section { name: "guard", steps: guard::steps, run: guard::run },
    Section { name: "request_paths", steps: request_paths::steps, run: request_paths::run },
    Section { name: "scale", steps: scale::steps, run: scale::run },
    Section { name: "churn", steps: churn::steps, run: churn::run },
    Section { name: "lease", steps: lease::steps, run: lease::run },
    Section { name: "index", steps: index::steps, run: index::run },
    Section { name: "memory", steps: || 1, run: memory::run },
    Section { name: "instructions", steps: || 1, run: instructions::run },
];

/// How far the report is.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    fn new(sections: &[Section]) -> Self {
        let steps: usize = sections.iter().map(|section| (section.steps)()).sum();
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {elapsed} {msg}");
        bar.set_style(style.expect("a template of known fields"));
        Progress(bar)
    }

    fn says(&self, message: impl Into<String>) {
        self.0.set_message(message.into());
    }

    fn step(&self) {
        self.0.inc(1);
    }
}

/// Where the fragments are.
fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results")
}

/// Measures these sections and writes their fragments.
///
/// # Errors
/// What can't be run or written.
pub fn measure_sections(sections: &[Section]) -> Result<()> {
    let progress = Progress::new(sections);
    let folder = results();
    fs::create_dir_all(&folder)?;
    for section in sections {
        progress.says(section.name);
        let fragment = (section.run)(&progress).with_context(|| section.name)?;
        let stamped = format!("{}\n{}\n", fragment.text.trim_end(), machine::stamp()?);
        write(&folder.join(section.name).with_extension("md"), &stamped)?;
        for (name, svg) in fragment.plots {
            write(&folder.join(name), &svg)?;
        }
    }
    progress.0.finish();
    Ok(())
}

/// Puts the fragments together.
///
/// # Errors
/// What can't be read or written.
pub fn assemble() -> Result<()> {
    let folder = results();
    let mut fragments: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("no fragments in {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    fragments.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    fragments.sort_by_key(|path| {
        let place =
            SECTIONS.iter().position(|section| path.file_stem() == Some(section.name.as_ref()));
        (place.unwrap_or(SECTIONS.len()), path.clone())
    });
    let mut text = String::from(HEAD);
    for fragment in fragments {
        text.push('\n');
        text.push_str(&fs::read_to_string(&fragment)?);
    }
    write(&folder.with_file_name("RESULTS.md"), &text)
}

const HEAD: &str = "# Results

Written by `cargo bench-report`; `cargo bench-report NAME...` measures sections anew by their names. Each
section says on what machine and when it was measured. Samples of all cases of a table are taken in turn, in
one process, and medians are shown: compare within a table, not between them. The rate of several
threads is that of all together, and *ns* is its inverse: the time divided by the operations of all
threads. *Spread* is the difference of the quartiles.
";

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Samples of cases at each number of threads.
struct Measured {
    names: Vec<String>,
    by_threads: Vec<(usize, Vec<Samples>)>,
}

impl Measured {
    fn take(cases: &[Case], plan: Plan, progress: &Progress) -> Self {
        let counts = threads::counts();
        Self::take_at(cases, plan, progress, &counts)
    }

    fn take_at(cases: &[Case], plan: Plan, progress: &Progress, counts: &[usize]) -> Self {
        let by_threads = counts
            .iter()
            .map(|threads| {
                let samples = measure(cases, *threads, plan);
                progress.step();
                (*threads, samples)
            })
            .collect();
        Measured { names: cases.iter().map(|case| case.name.clone()).collect(), by_threads }
    }

    fn place(&self, name: &str) -> usize {
        let place = self.names.iter().position(|other| other == name);
        place.unwrap_or_else(|| panic!("{name:?} is none of {:?}", self.names))
    }

    /// How many times the rate of `other` that of `name` is.
    fn ratio(&self, name: &str, other: &str, threads: usize) -> f64 {
        let (name, other) = (self.place(name), self.place(other));
        let samples = self.by_threads.iter().find(|(count, _)| *count == threads);
        let (_, samples) = samples.expect("a number of threads that is measured");
        samples[other].median() / samples[name].median()
    }
}
