//! Does a resolution cost the same among a thousand inodes and among ten million?
//!
//! A thousand fit the CPU's nearest cache, ten million fit none: what is left is how many cache lines
//! a resolution touches that nobody touched lately. Files are three components deep, or thirty (a deep
//! source tree has ten to fifteen); asked for uniformly, which is the worst case, or by Zipf's law,
//! which real trees are nearer to. All of them are guarded.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::alternate::Case;
use crate::peers::Table;
use crate::threads;
use crate::tree::{self, Popularity};

/// Requests until they repeat: enough that what they touch does not fit a cache if the tree doesn't.
const REQUESTS: usize = 1 << 21;

/// A tree in a table, and what is asked of it.
#[allow(missing_debug_implementations)]
pub struct Grown<T> {
    table: Arc<T>,
    files: Vec<u64>,
}

impl<T: Table> Grown<T> {
    /// With so many files, so deep.
    pub fn new(files: usize, depth: usize) -> Self {
        let table = Arc::new(T::new());
        let files = tree::build(&*table, files, depth);
        Grown { table, files }
    }

    /// Guarded resolutions.
    pub fn case(&self, popularity: Popularity) -> Case {
        let table = Arc::clone(&self.table);
        let length = REQUESTS.min(self.files.len() * 16);
        let requests = tree::requests(&self.files, popularity, length);
        // Each sample goes on where the last one ended, so that none finds what the last one left in
        // the caches.
        let cursor = AtomicUsize::new(0);
        Case::new(T::name(), move |threads, iterations| {
            let begin = cursor.fetch_add(threads * iterations as usize, Ordering::Relaxed);
            let (table, requests) = (&table, &requests);
            threads::time(threads, iterations, |thread| {
                let mut at = (begin + thread * iterations as usize) % requests.len();
                move |_| {
                    let guard = table.enter();
                    drop(black_box(table.path(requests[at])));
                    drop(guard);
                    at += 1;
                    if at == requests.len() {
                        at = 0;
                    }
                }
            })
        })
    }
}
