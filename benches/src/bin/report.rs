//! `cargo bench-report [SECTION...]`: measures these sections, or all, and writes `RESULTS.md`.
//! `--assemble` only puts together what was measured before.

use anyhow::{Result, ensure};
use pinpath_benches::report::{SECTIONS, assemble, measure_sections};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names = || SECTIONS.iter().map(|section| section.name).collect::<Vec<_>>().join(", ");
    for argument in &arguments {
        let known =
            argument == "--assemble" || SECTIONS.iter().any(|section| section.name == argument);
        ensure!(known, "{argument:?} is no section; there are {}", names());
    }
    let wanted = SECTIONS.iter().filter(|section| {
        arguments.is_empty() || arguments.iter().any(|argument| argument == section.name)
    });
    measure_sections(&wanted.copied().collect::<Vec<_>>())?;
    assemble()
}
