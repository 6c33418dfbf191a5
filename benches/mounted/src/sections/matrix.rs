//! Every number of readers and handlers, against the default, which nobody has tuned.

use super::{folder, rates};
use crate::mounts;
use crate::report::{self, HeatMap, ratio, thousands};
use crate::rounds::Plan;
use crate::servers::{Cost, Served, Server, Threads};

const COUNTS: [usize; 4] = [1, 2, 4, 8];
const CLIENTS: usize = 8;
const COSTS: [(Cost, &str); 3] = [
    (Cost::Nothing, "constant time"),
    (Cost::Sleep, "1 ms asleep"),
    (Cost::Mix, "1 in 10 asleep for 1 ms"),
];

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut maps = Vec::new();
    for (cost, what) in COSTS {
        // Clones of the device matter where little else does.
        let clones: &[bool] = if cost == Cost::Nothing { &[false, true] } else { &[false] };
        let mut served = vec![Served { cost, ..Served::new(Server::Ours) }];
        for &clone_fd in clones {
            for readers in COUNTS {
                for handlers in COUNTS {
                    served.push(Served {
                        cost,
                        clone_fd,
                        threads: Threads::Pool,
                        readers: Some(readers),
                        handlers: Some(handlers),
                        ..Served::new(Server::Ours)
                    });
                }
            }
        }
        let folder = folder()?;
        let mut running = Vec::new();
        for served in &served {
            running.push(mounts::start(served, folder.path())?);
        }
        let rates: Vec<_> = rates(what, plan, &running, &[CLIENTS])?
            .into_iter()
            .map(|mut rates| rates.swap_remove(0))
            .collect();
        let best = (1..rates.len())
            .max_by(|&left, &right| rates[left].median().total_cmp(&rates[right].median()))
            .unwrap_or(1);
        let name = |at: usize| {
            let Served { readers, handlers, clone_fd, .. } = &served[at];
            let clone = if *clone_fd { ", clone_fd" } else { "" };
            format!("{}x{}{clone}", readers.unwrap_or(0), handlers.unwrap_or(0))
        };
        rows.push(vec![
            what.to_owned(),
            format!("{} ±{:.0} %", thousands(rates[0].median()), rates[0].spread()),
            format!(
                "{} ±{:.0} % ({})",
                thousands(rates[best].median()),
                rates[best].spread(),
                name(best)
            ),
            ratio(rates[0].ratio_to(&rates[best])),
        ]);
        for (grid, &clone_fd) in clones.iter().enumerate() {
            let cells = COUNTS.len() * COUNTS.len();
            let values =
                rates[1 + grid * cells..][..cells].iter().map(|rate| rate.median()).collect();
            maps.push((format!("{what}{}", if clone_fd { ", clone_fd" } else { "" }), values));
        }
    }
    let maps: Vec<HeatMap<'_>> = maps
        .iter()
        .map(|(title, values)| HeatMap {
            title,
            rows: &COUNTS,
            columns: &COUNTS,
            values: Vec::clone(values),
        })
        .collect();
    let mut text = format!(
        "## Dispatch: readers x handlers\n\nGETATTR requests a second of {CLIENTS} clients. Each cell of \
         the pictures is a mount with `Dispatch::Pool` and so many readers and handlers; the default \
         has none of that tuning. Its ratio is to the best cell of all, in the same round.\n\n"
    );
    text +=
        &report::table(&["handler", "default", "best cell (readers x handlers)", "ratio"], &rows);
    text += "\n![readers x handlers](results/dispatch-matrix.svg)\n";
    report::write(&plan.out, "dispatch-matrix.svg", &report::heat_maps(&maps))?;
    report::write(&plan.out, "dispatch-3-matrix.md", &text)
}
