//! Resolution while the tree changes.

use std::fmt::Write;

use anyhow::Result;

use super::table::{Bars, times};
use super::{Fragment, Measured, Progress};
use crate::alternate::Plan;
use crate::cases::churn::{self, Disturbance};
use crate::peers::{EasyFuser, Ours};
use crate::threads;

pub(super) fn steps() -> usize {
    threads::counts().len()
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    let mut cases = churn::cases::<Ours>();
    cases.extend(churn::cases::<EasyFuser>());
    let measured = Measured::take(&cases, Plan::default(), progress);
    let mut bars = Bars::new();
    let rate = |table: &str, disturbance: Disturbance, threads| {
        let name = |disturbance: Disturbance| format!("{table}, {}", disturbance.name());
        measured.ratio(&name(disturbance), &name(Disturbance::None), threads)
    };
    bars.at_least(
        "rate while directories are renamed / undisturbed, 1 thread",
        0.5,
        rate("pinpath", Disturbance::Directories, 1),
    );
    bars.at_least(
        "rate while files are renamed / undisturbed, 1 thread",
        0.9,
        rate("pinpath", Disturbance::Leaves, 1),
    );
    let mut text = format!("## While the tree changes\n\n{}\n{}\n", bars.text(), times(&measured));
    text.push_str("| rate / undisturbed, 1 thread | pinpath | easy_fuser |\n| --- | --- | --- |\n");
    for disturbance in Disturbance::ALL {
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} |",
            disturbance.name(),
            rate("pinpath", disturbance, 1),
            rate("easy_fuser", disturbance, 1)
        );
    }
    text.push_str(
        "\nWhat a rename of a directory costs the others: they walk, because no kept path is true any \
         more, and read the tree's word from the other CPU's cache twice a walk. No mount renames a \
         million times a second, as the other thread does here.\n",
    );
    Ok(Fragment { text, plots: Vec::new() })
}
