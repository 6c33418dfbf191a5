//! Node ids used as inode only, as one path, and as all paths; ours and easy_fuser's.

use super::{folder, rates};
use crate::mounts;
use crate::report::{self, ratio, thousands};
use crate::rounds::Plan;
use crate::servers::{Ids, Served, Server};

const CLIENTS: [usize; 3] = [1, 4, 8];
const KINDS: [(Ids, &str); 3] =
    [(Ids::Inode, "inode"), (Ids::Path, "one path"), (Ids::Paths, "all paths")];

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let folder = folder()?;
    let mut running = Vec::new();
    for server in [Server::Ours, Server::Easy] {
        for (ids, _) in KINDS {
            let served = Served { ids, ..Served::new(server) };
            running.push(mounts::start(&served, folder.path())?);
        }
    }
    let rates = rates("ids", plan, &running, &CLIENTS)?;
    let mut rows = Vec::new();
    for (at, rates_here) in rates.iter().enumerate() {
        let (own, kind) = (at / KINDS.len(), at % KINDS.len());
        let mut row = vec![format!("{}, {}", ["ours", "easy_fuser"][own], KINDS[kind].1)];
        for (count, rate) in rates_here.iter().enumerate() {
            let by_inode = &rates[own * KINDS.len()][count];
            row.push(format!("{} ({})", thousands(rate.median()), ratio(rate.ratio_to(by_inode))));
        }
        rows.push(row);
    }
    let mut text = String::from(
        "## Dispatch: what an id is used as\n\nGETATTR requests a second of the same handler, and in \
         brackets the ratio to the one that uses the inode only, in the same round.\n\n",
    );
    text += &report::table(&["server", "1 client", "4 clients", "8 clients"], &rows);
    report::write(&plan.out, "dispatch-2-ids.md", &text)
}
