//! The examples of SEMANTICS.md, each run in a mount of its own, in each cache mode that it names.

use std::process::Command;
use std::time::Duration;

mod running;

use running::{Daemon, Places, can_mount, has_program, run};

const TEXT: &str = include_str!("../../SEMANTICS.md");

/// Each example: the modes that stand beside its fence, the line where it begins, and its text.
fn examples() -> Vec<(Vec<&'static str>, usize, String)> {
    let mut examples = Vec::new();
    let mut lines = TEXT.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(modes) = line.strip_prefix("```sh ") else { continue };
        let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let body = body.map(|line| format!("{line}\n")).collect();
        examples.push((modes.split(' ').collect(), number + 2, body));
    }
    examples
}

fn try_out(mode: &str, script: &str, places: &Places) -> running::Finished {
    let mut command = Command::new("unshare");
    command
        .args(["-m", "--propagation", "slave", "bash", "-euc", script])
        .current_dir(places.path())
        .env("LC_ALL", "C");
    eprintln!("--cache {mode}:\n{script}");
    run(&mut command, Duration::from_secs(60))
}

#[test]
fn the_examples_are_true() {
    let test = "the_examples_are_true";
    if !can_mount(test)
        || !["bash", "setpriv", "unshare"].iter().all(|name| has_program(test, name))
    {
        return;
    }
    let examples = examples();
    assert!(examples.len() >= 10, "{}", examples.len());
    for (modes, line, script) in examples {
        for mode in modes {
            assert!(["none", "auto", "always"].contains(&mode), "line {line}: {mode}");
            let places = Places::new();
            let arguments = ["--allow-other", "--cache", mode].map(std::ffi::OsString::from);
            let places_named =
                [places.source().into_os_string(), places.mountpoint().into_os_string()];
            let daemon =
                Daemon::start(&[&arguments[..], &places_named[..]].concat(), &places.mountpoint());
            let finished = try_out(mode, &script, &places);
            assert!(
                finished.status.success(),
                "line {line} and below, --cache {mode}: {finished:?}"
            );
            daemon.stop();
        }
    }
}

/// An example that isn't true fails.
#[test]
fn an_untrue_example_is_noticed() {
    let places = Places::new();
    let finished = try_out("none", "test 1 = 1\ntest 1 = 2\ntest 1 = 1\n", &places);
    assert!(!finished.status.success(), "{finished:?}");
}
