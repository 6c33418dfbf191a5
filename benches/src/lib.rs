//! What pinpath's operations cost, side by side with peers.
//!
//! `benches/` holds the criterion benchmarks, one question a file. `cargo bench-report` measures the
//! same cases in alternation and writes `RESULTS.md` and the plots in `results/`. Both take from here:
//!
//! * [`cases`]: what is measured, one file a question;
//! * [`peers`]: the tables that are measured, behind one face ([`peers::Table`]);
//! * [`tree`]: trees of any size in them;
//! * [`threads`]: runs an operation on many threads that start together;
//! * [`alternate`]: samples of several cases, in turn;
//! * [`memory`]: an allocator that counts;
//! * [`report`]: the sections of the report.

pub mod alternate;
pub mod cases;
pub mod memory;
pub mod peers;
pub mod report;
pub mod threads;
pub mod tree;
