//! `cargo bench-instructions [--update]`: are the hot paths as short as `instructions.tsv` says?

use anyhow::{Result, ensure};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let update = arguments == ["--update"];
    ensure!(update || arguments.is_empty(), "only --update is known");
    pinpath_benches::report::check_instructions(update)
}
