//! The README shows what is in the example (which `semantics.rs` mounts), and leads to what exists.

use std::path::Path;

const README: &str = include_str!("../../README.md");
const EXAMPLE: &str = include_str!("../examples/hello.rs");

/// The lines between "```rust" and "```".
fn rust_block() -> impl Iterator<Item = &'static str> {
    README.lines().skip_while(|line| *line != "```rust").skip(1).take_while(|line| *line != "```")
}

#[test]
fn every_line_of_code_in_the_readme_is_in_the_example_in_that_order() {
    let mut example = EXAMPLE.lines();
    let mut lines = 0;
    for line in rust_block().filter(|line| !line.trim_start().starts_with("// ...")) {
        assert!(
            example.any(|other| other == line),
            "not in the example, or elsewhere there: {line}"
        );
        lines += 1;
    }
    assert!(lines > 15, "only {lines} lines were compared");
}

#[test]
fn the_files_that_the_readme_leads_to_exist() {
    let targets = README.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files: Vec<_> = targets.filter(|target| !target.contains("://")).collect();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(root.join(file).exists(), "{file}");
    }
}
