//! The cost against the number of inodes.

use std::fmt::Write;

use anyhow::Result;

use super::plot::{Axes, Lines, draw};
use super::table::{Bars, number};
use super::{Fragment, Progress};
use crate::alternate::{Plan, measure};
use crate::cases::scale::Grown;
use crate::peers::{EasyFuser, Ours};
use crate::tree::Popularity;

const SIZES: [usize; 5] = [1000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Depth thirty is measured up to this size: the shape is clear by then.
const DEEP: usize = 1_000_000;

fn rows() -> impl Iterator<Item = (usize, usize)> {
    let sizes = SIZES.into_iter();
    sizes
        .flat_map(|files| [(files, 3), (files, 30)])
        .filter(|(files, depth)| *depth == 3 || *files <= DEEP)
}

pub(super) fn steps() -> usize {
    rows().count()
}

pub(super) fn run(progress: &Progress) -> Result<Fragment> {
    let mut text = String::from("### Guarded owned paths, ns\n\n");
    text.push_str("| files | depth | asked for | threads | pinpath | easy_fuser | ratio |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    let mut lines: Lines = Vec::new();
    let mut largest = 0.0;
    for (files, depth) in rows() {
        let ours = Grown::<Ours>::new(files, depth);
        let theirs = Grown::<EasyFuser>::new(files, depth);
        for popularity in [Popularity::Uniform, Popularity::Zipf] {
            let cases = [ours.case(popularity), theirs.case(popularity)];
            for threads in [1, 8] {
                let samples = measure(&cases, threads, Plan { rounds: 9, ..Plan::default() });
                let (ours, theirs) = (samples[0].median(), samples[1].median());
                let ratio = theirs / ours;
                let _ = writeln!(
                    text,
                    "| {files} | {depth} | {popularity:?} | {threads} | {} | {} | {} |",
                    number(ours),
                    number(theirs),
                    number(ratio)
                );
                if threads == 1 && popularity == Popularity::Uniform {
                    for (table, median) in [("pinpath", ours), ("easy_fuser", theirs)] {
                        add(&mut lines, format!("{table}, depth {depth}"), (files as f64, median));
                    }
                    if depth == 3 {
                        largest = ratio;
                    }
                }
            }
        }
        progress.step();
    }
    let mut bars = Bars::new();
    let most = SIZES[SIZES.len() - 1];
    bars.at_least(&format!("guarded path / easy_fuser's, {most} inodes, uniform"), 8.0, largest);
    let text = format!(
        "## The number of inodes\n\n{}\n{text}\n![cost against inodes](results/scale.svg)\n",
        bars.text()
    );
    let axes =
        Axes { title: "a guarded owned path, asked for uniformly, 1 thread", x: "files", y: "ns" };
    Ok(Fragment { text, plots: vec![("scale.svg".to_owned(), draw(&axes, &lines)?)] })
}

fn add(lines: &mut Lines, name: String, point: (f64, f64)) {
    match lines.iter_mut().find(|(other, _)| *other == name) {
        Some((_, points)) => points.push(point),
        None => lines.push((name, vec![point])),
    }
}
