//! Which CPU client and server run on: what the scheduler does by itself, and what could be forced.

use super::folder;
use crate::mounts;
use crate::report::{self, thousands};
use crate::rounds::{Plan, measure};
use crate::servers::{Served, Server, Threads};
use crate::{client, rounds};

const CLIENTS: [usize; 2] = [1, 8];

/// Where the server's threads are.
#[derive(Clone, Copy)]
enum Place {
    Free,
    OneReaderPerCpu,
    AllOn(usize),
    /// Under another policy of the scheduler.
    Policy(i32),
}

pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let cpus = std::thread::available_parallelism()?.get();
    let folder = folder()?;
    // Without spares where each reader gets a CPU: which of them are spare is anybody's guess.
    let inline = |readers| Served {
        readers: Some(readers),
        threads: Threads::Inline,
        ..Served::new(Server::Ours)
    };
    let default = || Served::new(Server::Ours);
    let placements = [
        ("free", Place::Free, default()),
        ("free, clone_fd", Place::Free, Served { clone_fd: true, ..default() }),
        ("one reader, free", Place::Free, inline(1)),
        ("two readers, free", Place::Free, inline(2)),
        ("one reader on each CPU", Place::OneReaderPerCpu, inline(cpus)),
        (
            "one reader on each CPU, clone_fd",
            Place::OneReaderPerCpu,
            Served { clone_fd: true, ..inline(cpus) },
        ),
        ("all on CPU 0", Place::AllOn(0), inline(cpus)),
        ("one reader, SCHED_BATCH", Place::Policy(libc::SCHED_BATCH), inline(1)),
        ("one reader, SCHED_IDLE", Place::Policy(libc::SCHED_IDLE), inline(1)),
    ];
    let mut running = Vec::new();
    for (_, placement, served) in &placements {
        let mounted = mounts::start(served, folder.path())?;
        // Until the surplus readers have parked.
        for _ in 0..200 {
            client::stat(&mounted.files[0])?;
        }
        match placement {
            Place::Free => {}
            Place::OneReaderPerCpu => mounted.spread_readers(cpus)?,
            Place::AllOn(cpu) => mounted.pin(*cpu)?,
            Place::Policy(policy) => mounted.schedule_readers(*policy)?,
        }
        running.push(mounted);
    }
    // Clients: anywhere, on CPU 0, on the last one.
    let places = [None, Some(0), Some(cpus - 1)];
    let mut cases = Vec::new();
    for mounted in &running {
        for clients in CLIENTS {
            cases.extend(places.map(|place| (mounted, clients, place)));
        }
    }
    let samples = measure("placement", plan, &cases, |(mounted, clients, place), length| {
        client::rate(&mounted.files, *clients, length, *place)
    })?;
    let cells = CLIENTS.len() * places.len();
    let rows: Vec<Vec<String>> = placements
        .iter()
        .zip(samples.chunks(cells))
        .map(|((name, ..), samples)| {
            let rates = samples.iter().map(rounds::Samples::median).map(thousands);
            std::iter::once((*name).to_owned()).chain(rates).collect()
        })
        .collect();
    let head = [
        "server's threads",
        "1 client, free",
        "on CPU 0",
        "on the last",
        "8 clients, free",
        "on CPU 0",
        "on the last",
    ];
    let mut text = format!(
        "## Dispatch: on which CPU\n\nGETATTR requests a second on {cpus} CPUs, by where the server's and \
         the clients' threads may run.\n\n"
    );
    text += &report::table(&head, &rows);
    report::write(&plan.out, "dispatch-5-placement.md", &text)
}
