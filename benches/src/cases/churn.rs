//! What does a resolution cost while the tree changes?
//!
//! A thousand files, three components deep, are resolved at random, guarded, while one more thread
//! does something without pause:
//!
//! * it computes, and leaves the table alone: what the others are compared with, because the threads
//!   share the machine in any case;
//! * it renames files, to and fro;
//! * it renames the directories at the top, to and fro, above the files that are resolved: each such
//!   rename outdates every path that was kept;
//! * it looks new names up and forgets them.

use std::ffi::OsStr;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;

use crate::alternate::Case;
use crate::peers::Table;
use crate::threads;
use crate::tree::{self, Popularity};

const WIDTH: usize = 10;

/// What the other thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// It computes.
    None,
    /// It renames files.
    Leaves,
    /// It renames directories.
    Directories,
    /// It looks new names up and forgets them.
    NewNames,
}

impl Disturbance {
    /// All of them, that of nothing first.
    pub const ALL: [Disturbance; 4] =
        [Disturbance::None, Disturbance::Leaves, Disturbance::Directories, Disturbance::NewNames];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Disturbance::None => "undisturbed",
            Disturbance::Leaves => "files renamed",
            Disturbance::Directories => "directories renamed",
            Disturbance::NewNames => "names looked up and forgotten",
        }
    }
}

/// Resolutions in a table beside each disturbance.
pub fn cases<T: Table>() -> Vec<Case> {
    let table = Arc::new(T::new());
    let files = tree::build(&*table, WIDTH * WIDTH * WIDTH, 3);
    let requests = Arc::new(tree::requests(&files, Popularity::Uniform, 1 << 14));
    let case = |disturbance| case(Arc::clone(&table), Arc::clone(&requests), disturbance);
    Disturbance::ALL.into_iter().map(case).collect()
}

fn case<T: Table>(table: Arc<T>, requests: Arc<Vec<u64>>, disturbance: Disturbance) -> Case {
    let names: Vec<_> = (0..WIDTH).map(tree::name).collect();
    let name = format!("{}, {}", T::name(), disturbance.name());
    Case::new(name, move |threads, iterations| {
        let (table, requests) = (&*table, &requests);
        let resolve = || {
            threads::time(threads, iterations, |thread| {
                let mut at = thread * 997;
                move |_| {
                    at = (at + 1) % requests.len();
                    let guard = table.enter();
                    drop(black_box(table.path(requests[at])));
                    drop(guard);
                }
            })
        };
        let disturb = |count: u64| match disturbance {
            Disturbance::None => (0..100).for_each(|_| spin_loop()),
            Disturbance::Leaves => {
                let directory = table.lookup(1, &names[0], true);
                let below = table.lookup(directory, &names[count as usize % WIDTH], true);
                to_and_fro(table, below, &names[1], OsStr::new("renamed"));
            }
            Disturbance::Directories => {
                to_and_fro(table, 1, &names[count as usize % WIDTH], OsStr::new("renamed"));
            }
            Disturbance::NewNames => {
                let new = table.lookup(1, OsStr::new(&format!("new-{count}")), false);
                table.forget(new);
            }
        };
        threads::beside(disturb, resolve).0
    })
}

fn to_and_fro<T: Table>(table: &T, parent: u64, name: &OsStr, other: &OsStr) {
    table.rename(parent, name, parent, other);
    table.rename(parent, other, parent, name);
}
