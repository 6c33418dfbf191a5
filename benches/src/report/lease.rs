//! Leases.

use anyhow::Result;

use super::table::{Bars, times};
use super::{Fragment, Measured, Progress};
use crate::alternate::Plan;
use crate::cases::lease;
use crate::threads;

pub(super) fn steps() -> usize {
    threads::counts().len()
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    let measured = Measured::take(&lease::cases(), Plan::default(), progress);
    let mut bars = Bars::new();
    let ratio = measured.ratio("epoch pin (crossbeam)", "lease", 1);
    bars.at_most("a lease / a bare epoch pin (crossbeam), 1 thread", 2.0, ratio);
    let text = format!(
        "## Leases\n\n{}\n{}\nWhat a transaction costs is in `benches/lease.rs`.\n",
        bars.text(),
        times(&measured)
    );
    Ok(Fragment { text, plots: Vec::new() })
}
