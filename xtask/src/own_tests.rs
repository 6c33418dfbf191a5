//! Runs easy_fuser's own tests and prints a table of them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};

use crate::run::{Mode, cargo_test};
use crate::source::Copies;

const MODES: [Mode; 4] = [Mode::SERIAL, Mode::PARALLEL, Mode::ASYNC, Mode::ALL];

/// Tests of the original that another implementation need not pass, and why.
const EXCEPTED: [(&str, &str); 1] = [(
    "inode_mapping::resolver::tests::retired_generations_are_released_in_order",
    "asserts that a forgotten mapping never waits for a request that began after the forget; \
     pinpath counts requests in two parities, so it may wait for some of those too (never for fewer)",
)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Ignored,
}

type Outcomes = BTreeMap<String, Outcome>;

/// True if all tests pass on the swapped copy.
pub(crate) fn run(copies: &Copies, stock: bool) -> Result<bool> {
    let mut columns = Vec::new();
    for mode in MODES {
        columns.push((mode.name.to_owned(), of(&copies.swapped, mode, &EXCEPTED)?));
    }
    let passed =
        columns.iter().all(|(_, outcomes)| !outcomes.values().any(|o| *o == Outcome::Failed));
    if stock {
        for mode in MODES {
            let outcomes = of(&copies.stock, mode, &[])?;
            columns.push((format!("stock {}", mode.name), outcomes));
        }
    }
    print(&columns);
    for (test, reason) in EXCEPTED {
        println!("excepted: {test}\n  {reason}");
    }
    Ok(passed)
}

fn of(crate_: &Path, mode: Mode, excepted: &[(&str, &str)]) -> Result<Outcomes> {
    eprintln!("{}: {}", crate_.display(), mode.name);
    let mut arguments = vec!["--no-fail-fast", "--lib", "--tests", "--"];
    // Excepted tests are left out by their whole names; the output says each name on a line.
    arguments.extend(["--exact", "--format=pretty"]);
    for (test, _) in excepted {
        arguments.extend(["--skip", test]);
    }
    let output = cargo_test(crate_, mode, 15, &arguments)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let outcomes = parse(&text);
    let failed = outcomes.values().any(|outcome| *outcome == Outcome::Failed);
    if failed || !output.status.success() {
        eprintln!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    // Nothing ran, or something ended that no line tells of: a build, a time limit, a crash.
    if outcomes.is_empty() || (!output.status.success() && !failed) {
        bail!("cargo test ended with {} and {} outcomes", output.status, outcomes.len());
    }
    Ok(outcomes)
}

/// The lines `test NAME ... ok` and the like. A test that should panic says so after its name.
fn parse(output: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for line in output.lines() {
        let Some((test, outcome)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        let outcome = match outcome {
            "ok" => Outcome::Passed,
            _ if outcome.starts_with("ignored") => Outcome::Ignored,
            // Whatever else a line says, it isn't a pass.
            _ => Outcome::Failed,
        };
        let test = test.split(" - should panic").next().unwrap_or(test);
        outcomes.insert(test.to_owned(), outcome);
    }
    outcomes
}

fn print(columns: &[(String, Outcomes)]) {
    let mut tests: Vec<&String> = columns.iter().flat_map(|(_, column)| column.keys()).collect();
    tests.sort();
    tests.dedup();
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    println!("| test | {} |", names.join(" | "));
    println!("| --- |{}", " --- |".repeat(names.len()));
    for test in tests {
        let cells = columns.iter().map(|(_, column)| match column.get(test) {
            Some(Outcome::Passed) => "pass",
            Some(Outcome::Failed) => "FAIL",
            Some(Outcome::Ignored) => "benchmark",
            None => "",
        });
        println!("| {test} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    for (name, column) in columns {
        let count = |wanted| column.values().filter(|outcome| **outcome == wanted).count();
        let (passed, failed) = (count(Outcome::Passed), count(Outcome::Failed));
        println!(
            "{name}: {passed} passed, {failed} failed, {} to run by hand",
            count(Outcome::Ignored)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, parse};

    #[test]
    fn only_ok_is_a_pass() {
        let outcomes = parse(
            "running 4 tests\ntest a::b ... ok\ntest c - should panic ... ok\n\
             test d ... ignored, manual\ntest e ... FAILED\ntest f ... panicked\n\n\
             test result: FAILED. 2 passed; 1 failed\n",
        );
        let expected = [
            ("a::b", Outcome::Passed),
            ("c", Outcome::Passed),
            ("d", Outcome::Ignored),
            ("e", Outcome::Failed),
            ("f", Outcome::Failed),
        ];
        assert_eq!(outcomes.len(), expected.len());
        for (test, outcome) in expected {
            assert!(outcomes[test] == outcome, "{test}");
        }
    }
}
