//! Figures on standard error: every so often, and when asked for by a signal.

use std::fs;

use rustix::process::Signal;

use crate::running::{Daemon, Places, SOON, can_mount, until};

/// A line about this operation, that has counted something.
fn is_counted(text: &str, operation: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(operation)
            && words.next().and_then(|count| count.parse::<u64>().ok()).is_some_and(|n| n > 0)
    })
}

#[test]
fn a_signal_asks_for_figures() {
    if !can_mount("a_signal_asks_for_figures") {
        return;
    }
    let places = Places::new();
    let daemon = Daemon::start(&[places.source(), places.mountpoint()], &places.mountpoint());
    fs::read(places.mountpoint().join("hello")).expect("content");
    assert!(!daemon.complained().contains("readers"), "nobody asked");
    daemon.signal(Signal::USR1);
    let reported = || is_counted(&daemon.complained(), "Lookup");
    assert!(until(SOON, reported), "{}", daemon.complained());
    let said = daemon.complained();
    assert!(
        said.contains("readers:") && said.contains("work p50") && is_counted(&said, "Open"),
        "{said}"
    );
    daemon.stop();
}

#[test]
fn figures_come_every_so_often() {
    if !can_mount("figures_come_every_so_often") {
        return;
    }
    let places = Places::new();
    let (source, mountpoint) = (places.source(), places.mountpoint());
    let arguments =
        ["--stats".as_ref(), "0.05".as_ref(), source.as_os_str(), mountpoint.as_os_str()];
    let daemon = Daemon::start(&arguments, &mountpoint);
    fs::read(mountpoint.join("hello")).expect("content");
    let often = || daemon.complained().matches("readers:").count() > 3;
    assert!(until(SOON, often), "{}", daemon.complained());
    assert!(is_counted(&daemon.complained(), "Lookup"), "{}", daemon.complained());
    daemon.stop();
}
