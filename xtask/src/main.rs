//! Errands of this repository.
//!
//! `cargo xtask drop-in` puts [`pinpath::drop_in`](../pinpath/drop_in/index.html) into easy_fuser, as
//! the registry has it, in the place of its own resolver, and runs easy_fuser's own tests. With
//! `--stock` the unchanged crate is tested beside it; with `--bench` its benchmarks run on both instead.

mod bench;
mod own_tests;
mod run;
mod source;
mod swap;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask drop-in [--stock] [--bench]

  --stock  run the tests on the unchanged easy_fuser, too
  --bench  instead run its benchmarks, unchanged and swapped in turn, and print the medians
           (ROUNDS=9 and EASY_FUSER_BENCH_ITERS=50000 say how often and how long)";

fn main() -> ExitCode {
    match errand() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// True if all is well.
fn errand() -> Result<bool> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("drop-in") {
        bail!("{USAGE}");
    }
    let (mut stock, mut bench) = (false, false);
    for argument in arguments {
        match argument.as_str() {
            "--stock" => stock = true,
            "--bench" => bench = true,
            _ => bail!("{USAGE}"),
        }
    }
    drop_in(stock, bench)
}

fn drop_in(stock: bool, bench: bool) -> Result<bool> {
    let copies = source::copies()?;
    swap::swap(&copies)?;
    if bench {
        bench::run(&copies)?;
        return Ok(true);
    }
    own_tests::run(&copies, stock)
}
