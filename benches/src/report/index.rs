//! The candidates for the index of names.

use anyhow::Result;

use super::table::times;
use super::{Fragment, Measured, Progress, plot};
use crate::alternate::Plan;
use crate::cases::index;
use crate::threads;

pub(super) fn steps() -> usize {
    threads::counts().len()
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    let plan = Plan { most: 100_000, ..Plan::default() };
    let measured = Measured::take(&index::cases(), plan, progress);
    let text = format!(
        "## The index of names\n\nOne name added, four looked up, one removed.\n\n{}\n\
         ![rates](results/index.svg)\n",
        times(&measured)
    );
    let plot = plot::rates("one name added, four looked up, one removed", &measured)?;
    Ok(Fragment { text, plots: vec![("index.svg".to_owned(), plot)] })
}
