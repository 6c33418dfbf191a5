//! Resolving, looking up and forgetting.

use anyhow::Result;

use super::table::{Bars, times};
use super::{Fragment, Measured, Progress, plot};
use crate::alternate::Plan;
use crate::cases::request_paths;
use crate::threads;

pub(super) fn steps() -> usize {
    3 * threads::counts().len()
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    let resolve = Measured::take(&request_paths::resolve(), Plan::default(), progress);
    let plan = Plan { most: request_paths::MOST, ..Plan::default() };
    let forget = Measured::take(&request_paths::lookup_and_forget(), plan, progress);
    let listing = Measured::take(&request_paths::listing(), Plan::default(), progress);
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
         have no queue and no grace period to pay for. What it takes here, on one thread: about twenty locked \
         instructions (three shards' locks, the lock and the states of the node, the stacks of free and of \
         forgotten nodes, the parent's count of children), an allocation, and a share of the two \
         grace periods; on several, these are shared lines and interrupts.\n\n\
         ### A hundred known names, listed with their inodes and forgotten\n\n{}\n\
         ![rates](results/request_paths.svg)\n",
        bars.text(),
        times(&resolve),
        times(&forget),
        times(&listing)
    );
    let plot = plot::rates("a fresh name, looked up and forgotten", &forget)?;
    Ok(Fragment { text, plots: vec![("request_paths.svg".to_owned(), plot)] })
}
