//! Guards, and resolutions with and without them.

use std::fmt::Write;

use anyhow::Result;

use super::table::{Bars, times};
use super::{Fragment, Measured, Progress, plot};
use crate::alternate::Plan;
use crate::cases::guard;
use crate::threads;

pub(super) fn steps() -> usize {
    6 * threads::counts().len()
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    let take = |cases: &[_]| Measured::take(cases, Plan::default(), progress);
    let alone = take(&guard::alone());
    let owned = take(&guard::owned());
    let borrowed = take(&guard::borrowed());
    let paths = take(&guard::paths());
    let components = take(&guard::components());
    let mapped = take(&guard::mapped());

    let mut bars = Bars::new();
    for threads in [1, 4, 8] {
        let ratio = owned.ratio("pinpath PathBuf, guarded", "pinpath PathBuf, unguarded", threads);
        let what = format!("rate of a guarded `PathBuf` / unguarded, {threads} threads");
        bars.at_least(&what, 0.90, ratio);
    }
    for (threads, bar) in [(1, 15.0), (8, 20.0)] {
        let ratio = owned.ratio("pinpath PathBuf, guarded", "easy_fuser PathBuf, guarded", threads);
        bars.at_least(&format!("guarded `PathBuf` / easy_fuser's, {threads} threads"), bar, ratio);
    }
    for threads in [1, 8] {
        let (ours, theirs) = ("pinpath borrowed path, guarded", "easy_fuser PathBuf, guarded");
        let ratio = borrowed.ratio(ours, theirs, threads);
        let what =
            format!("guarded borrowed path / easy_fuser's guarded `PathBuf`, {threads} threads");
        bars.at_least(&what, 40.0, ratio);
    }
    let ratio = paths.ratio("pinpath paths()", "easy_fuser paths()", 1);
    bars.at_least("`paths()` of a one-name file / easy_fuser's, 1 thread", 10.0, ratio);
    bars.at_most("pin and drop, ns, 1 thread", 8.0, alone.by_threads[0].1[0].median());

    let mut text = String::from("## Guards and paths\n\n");
    let _ = writeln!(text, "{}", bars.text());
    let easy_fuser = |threads| {
        owned.ratio("easy_fuser PathBuf, guarded", "easy_fuser PathBuf, unguarded", threads)
    };
    let _ = writeln!(
        text,
        "easy_fuser's own guarded / unguarded here: {:.2}, {:.2}, {:.2} at 1, 4, 8 threads.\n",
        easy_fuser(1),
        easy_fuser(4),
        easy_fuser(8)
    );
    // Where a bar is missed, this is why: the floor is not ours.
    let floor = |threads| {
        owned.ratio("pinpath PathBuf, guarded", "allocate and copy 15 bytes", threads) * 100.0
    };
    let _ = writeln!(
        text,
        "An owned path is memory first: to allocate, copy and free its 15 bytes takes {:.0} % of the time of \
         a guarded `PathBuf` at 1 thread, and {:.0} % at 8. Who needs no owned path asks for a \
         borrowed one.\n",
        floor(1),
        floor(8)
    );
    for (title, measured) in [
        ("A guard alone", &alone),
        ("An owned path of three components", &owned),
        ("A borrowed path", &borrowed),
        ("All paths of a file with one name", &paths),
        ("Components", &components),
        ("Making a `MappedInode`", &mapped),
    ] {
        let _ = write!(text, "### {title}\n\n{}\n", times(measured));
    }
    text.push_str("![rates of owned paths](results/guard-owned.svg)\n");
    text.push_str("![rates of guards](results/guard-alone.svg)\n");
    let plots = vec![
        ("guard-owned.svg".to_owned(), plot::rates("an owned path of three components", &owned)?),
        ("guard-alone.svg".to_owned(), plot::rates("a guard alone", &alone)?),
    ];
    Ok(Fragment { text, plots })
}
