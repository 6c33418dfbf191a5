//! Resolving, looking up and forgetting.

use anyhow::Result;

use super::table::{Bars, times};
use super::{Fragment, Measured, Progress, plot};
use crate::alternate::Plan;
use crate::cases::request_paths;
use crate::threads;

pub(super) fn steps() -> usize {
    2 * threads::counts().len()
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    let resolve = Measured::take(&request_paths::resolve(), Plan::default(), progress);
    let plan = Plan { most: request_paths::MOST, ..Plan::default() };
    let forget = Measured::take(&request_paths::lookup_and_forget(), plan, progress);
    let mut bars = Bars::new();
    for (threads, bar) in [(1, 4.0), (8, 8.0)] {
        let (ours, theirs) = ("pinpath lookup and forget", "easy_fuser lookup and forget");
        let what = format!("lookup and forget of fresh names / easy_fuser's, {threads} threads");
        bars.at_least(&what, bar, forget.ratio(ours, theirs, threads));
    }
    let text = format!(
        "## The ways of requests\n\n{}\n### A file in the root, resolved\n\n{}\n\
         ### A fresh name, looked up and forgotten\n\n{}\n\
         The plain maps free a name the moment it is forgotten, whoever is using it: they do less, and \
         have no queue and no grace period to pay for.\n\n\
         ![rates](results/request_paths.svg)\n",
        bars.text(),
        times(&resolve),
        times(&forget)
    );
    let plot = plot::rates("a fresh name, looked up and forgotten", &forget)?;
    Ok(Fragment { text, plots: vec![("request_paths.svg".to_owned(), plot)] })
}
