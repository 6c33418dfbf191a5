//! Runs easy_fuser's own benchmarks on both copies in turn and prints the medians.
//!
//! In turn, so that whatever else the machine does meets both; each round is one sample of each.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::run::{Mode, cargo_test};
use crate::source::Copies;

/// One of easy_fuser's benchmarks: where it is, and in which columns of its output the case stands.
struct Benchmark {
    name: &'static str,
    mode: Mode,
    target: &'static [&'static str],
    case: &'static [&'static str],
    /// The column with operations a second.
    rate: &'static str,
}

const BENCHMARKS: [Benchmark; 3] = [
    Benchmark {
        name: "benchmark_id_resolution_costs",
        mode: Mode::ALL,
        target: &["--lib"],
        case: &["case", "threads"],
        rate: "aggregate_ops_per_second",
    },
    Benchmark {
        name: "benchmark_request_paths",
        mode: Mode::ALL,
        target: &["--lib"],
        case: &["path", "guard", "threads"],
        rate: "resolver_ops_per_second",
    },
    Benchmark {
        name: "benchmark_file_id_types",
        mode: Mode::PARALLEL,
        target: &["--test", "thread_scaling"],
        case: &["id_type", "clients"],
        rate: "aggregate_ops_per_second",
    },
];

/// The rates of each case, of all rounds.
type Rates = BTreeMap<String, Vec<f64>>;

pub(crate) fn run(copies: &Copies) -> Result<()> {
    let rounds = match std::env::var("ROUNDS") {
        Ok(rounds) => rounds.parse().context("ROUNDS is no number")?,
        Err(_) => 9,
    };
    for benchmark in &BENCHMARKS {
        let (mut stock, mut swapped) = (Rates::new(), Rates::new());
        // Built before anything is measured.
        for copy in [&copies.stock, &copies.swapped] {
            once(benchmark, copy, &["--no-run"])?;
        }
        for round in 1..=rounds {
            eprintln!("{}: round {round} of {rounds}", benchmark.name);
            for (copy, rates) in [(&copies.stock, &mut stock), (&copies.swapped, &mut swapped)] {
                let arguments =
                    ["--", benchmark.name, "--ignored", "--nocapture", "--test-threads=1"];
                let output = once(benchmark, copy, &arguments)?;
                read(benchmark, &output, rates)?;
            }
        }
        print(benchmark, &stock, &swapped);
        print_guarded(&stock, &swapped);
    }
    Ok(())
}

fn once(benchmark: &Benchmark, copy: &Path, arguments: &[&str]) -> Result<String> {
    let mut all = vec!["--release"];
    all.extend(benchmark.target);
    all.extend(arguments);
    let output = cargo_test(copy, benchmark.mode, 20, &all)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "{} ended with {}\n{text}\n{}",
        benchmark.name,
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(text)
}

/// Reads the comma-separated lines that follow the benchmark's own heading.
fn read(benchmark: &Benchmark, output: &str, rates: &mut Rates) -> Result<()> {
    let mut lines = output.lines();
    let heading = lines
        .find(|line| line.contains(benchmark.rate))
        .with_context(|| format!("no heading in\n{output}"))?;
    // The harness may have written something before it on the same line.
    let columns: Vec<&str> = heading.rsplit(' ').next().unwrap_or(heading).split(',').collect();
    let column = |name: &str| {
        let place = columns.iter().position(|column| *column == name);
        place.with_context(|| format!("no column {name} in {heading}"))
    };
    let rate = column(benchmark.rate)?;
    let case = benchmark.case.iter().map(|name| column(name)).collect::<Result<Vec<_>>>()?;
    let mut read = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != columns.len() {
            continue;
        }
        let case: Vec<&str> = case.iter().map(|column| cells[*column]).collect();
        let rate = cells[rate].parse().with_context(|| format!("no rate in {line}"))?;
        rates.entry(case.join(", ")).or_default().push(rate);
        read += 1;
    }
    ensure!(read > 0, "no figures in\n{output}");
    Ok(())
}

fn print(benchmark: &Benchmark, stock: &Rates, swapped: &Rates) {
    println!("\n{}: million operations a second, medians", benchmark.name);
    println!("| {} | stock | swapped | swapped / stock |", benchmark.case.join(", "));
    println!("| --- | --- | --- | --- |");
    for (case, rates) in stock {
        let Some(ours) = swapped.get(case) else { continue };
        let (theirs, ours) = (median(rates), median(ours));
        let (a, b) = (theirs / 1e6, ours / 1e6);
        println!("| {case} | {a:.3} | {b:.3} | {:.2} |", ours / theirs);
    }
}

/// How much of the rate a guard leaves: cases that are there with and without.
fn print_guarded(stock: &Rates, swapped: &Rates) {
    let mut heading = "\n| guarded / unguarded | stock | swapped |\n| --- | --- | --- |\n";
    for case in swapped.keys() {
        let bare = case.replace("_guarded", "_unprotected").replace(", true", ", false");
        if bare == *case {
            continue;
        }
        let ratio = |rates: &Rates| Some(median(rates.get(case)?) / median(rates.get(&bare)?));
        if let (Some(theirs), Some(ours)) = (ratio(stock), ratio(swapped)) {
            print!("{heading}");
            println!("| {case} | {theirs:.2} | {ours:.2} |");
            heading = "";
        }
    }
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::{BENCHMARKS, Rates, median, read};

    #[test]
    fn figures_are_read_by_the_names_of_their_columns() {
        let output = "running 1 test\n\
            path,guard,threads,iterations_per_thread,sample,ns_per_resolver_op,resolver_ops_per_second\n\
            resolve,true,4,1000,0,50,20000000\nresolve,true,4,1000,1,100,10000000\nok\n";
        let mut rates = Rates::new();
        read(&BENCHMARKS[1], output, &mut rates).unwrap();
        assert_eq!(rates["resolve, true, 4"], [2e7, 1e7]);
        assert!(read(&BENCHMARKS[0], output, &mut rates).is_err());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
