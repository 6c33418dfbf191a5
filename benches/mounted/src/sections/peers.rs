//! The default against easy_fuser, a bare fuser filesystem, and libfuse's passthrough_ll.

use super::{folder, rates, source};
use crate::mounts::{self, PASSTHROUGH};
use crate::report::{self, ratio, thousands};
use crate::rounds::Plan;
use crate::servers::{Served, Server};

const CLIENTS: [usize; 3] = [1, 4, 8];

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let folder = folder()?;
    let source = source(folder.path())?;
    let mirror = |server| Served { source: Some(source.clone()), ..Served::new(server) };
    let mut names = vec!["our mirror", "easy_fuser's mirror", "ours", "easy_fuser", "bare fuser"];
    let served = [
        mirror(Server::OurMirror),
        mirror(Server::EasyMirror),
        Served::new(Server::Ours),
        Served::new(Server::Easy),
        Served::new(Server::Bare),
    ];
    let mut running = Vec::new();
    for served in &served {
        running.push(mounts::start(served, folder.path())?);
    }
    if let Some(mounted) = mounts::start_passthrough(&source, folder.path())? {
        running.push(mounted);
        names.push("libfuse's passthrough_ll");
    }
    let rates = rates("peers", plan, &running, &CLIENTS)?;
    let rows: Vec<Vec<String>> = names
        .iter()
        .zip(&rates)
        .map(|(name, rates)| {
            let cells = rates
                .iter()
                .map(|rate| format!("{} ±{:.0} %", thousands(rate.median()), rate.spread()));
            std::iter::once((*name).to_owned()).chain(cells).collect()
        })
        .collect();
    let mut pairs = vec![(0, 1), (2, 3), (2, 4)];
    if names.len() > 5 {
        pairs.push((0, 5));
    }
    let ratios: Vec<Vec<String>> = pairs
        .into_iter()
        .map(|(own, other)| {
            let cells =
                rates[own].iter().zip(&rates[other]).map(|(own, other)| ratio(own.ratio_to(other)));
            let name = format!("{} / {}", names[own], names[other]);
            std::iter::once(name).chain(cells).collect()
        })
        .collect();
    let mut text = String::from(
        "## Dispatch: against peers\n\nGETATTR requests a second, everybody with default settings; \
         the mirrors show one directory in memory, the others answer what costs nothing.\n\n",
    );
    let head = |first| [first, "1 client", "4 clients", "8 clients"];
    text += &report::table(&head("server"), &rows);
    text += "\nMedians of the ratios within a round:\n\n";
    text += &report::table(&head("ratio"), &ratios);
    if names.len() == 5 {
        text += &format!(
            "\nlibfuse's passthrough_ll: skipped, {PASSTHROUGH} did not say where it is.\n"
        );
    }
    report::write(&plan.out, "dispatch-1-peers.md", &text)
}
