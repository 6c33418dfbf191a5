//! Markdown tables.

use std::fmt::Write;

use super::Measured;

/// A case a row and a number of threads a column: nanoseconds, and the spread.
pub(super) fn times(measured: &Measured) -> String {
    let mut text = String::from("| ns |");
    for (threads, _) in &measured.by_threads {
        let _ = write!(text, " {threads} {} |", if *threads == 1 { "thread" } else { "threads" });
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(measured.by_threads.len()));
    text.push('\n');
    for (place, name) in measured.names.iter().enumerate() {
        let _ = write!(text, "| {name} |");
        for (_, samples) in &measured.by_threads {
            let samples = &samples[place];
            let _ =
                write!(text, " {} (±{:.0} %) |", number(samples.median()), samples.spread() / 2.0);
        }
        text.push('\n');
    }
    text
}

/// Three digits that count.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// What was promised and what was measured.
#[derive(Debug)]
pub(super) struct Bars(String);

impl Bars {
    pub(super) fn new() -> Self {
        Bars(String::from("| bar | at least | measured | |\n| --- | --- | --- | --- |\n"))
    }

    /// At least so much.
    pub(super) fn at_least(&mut self, what: &str, bar: f64, measured: f64) {
        self.row(what, &number(bar), measured, measured >= bar);
    }

    /// At most so much.
    pub(super) fn at_most(&mut self, what: &str, bar: f64, measured: f64) {
        self.row(what, &format!("at most {}", number(bar)), measured, measured <= bar);
    }

    fn row(&mut self, what: &str, bar: &str, measured: f64, met: bool) {
        let met = if met { "met" } else { "**missed**" };
        let _ = writeln!(self.0, "| {what} | {bar} | {} | {met} |", number(measured));
    }

    pub(super) fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_or_missed() {
        let mut bars = Bars::new();
        bars.at_least("fast", 15.0, 15.0);
        bars.at_most("small", 128.0, 129.0);
        let text = bars.text();
        assert!(text.contains("| fast | 15.0 | 15.0 | met |"), "{text}");
        assert!(text.contains("| small | at most 128 | 129 | **missed** |"), "{text}");
    }
}
