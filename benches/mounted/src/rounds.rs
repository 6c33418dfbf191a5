//! Samples of several cases, taken in turn, so that whatever else the machine does meets them all.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How long and how often.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) sample: Duration,
    /// Where the results go.
    pub(crate) out: PathBuf,
}

/// Samples of one case; more is better.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn median(&self) -> f64 {
        self.quantile(1, 2)
    }

    /// Half the distance of the quartiles, in per cent of the median.
    pub(crate) fn spread(&self) -> f64 {
        50.0 * (self.quantile(3, 4) - self.quantile(1, 4)) / self.median()
    }

    /// The median of the ratios of what was sampled in the same round.
    pub(crate) fn ratio_to(&self, other: &Samples) -> f64 {
        let ratios = self.0.iter().zip(&other.0).map(|(own, other)| own / other);
        Samples(ratios.collect()).median()
    }

    fn quantile(&self, part: usize, of: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
            .get((sorted.len() * part / of).min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// Takes a sample of each of `cases` in every round; every other round backwards, so that none always
/// follows the same one. One more round comes before them, and does not count.
pub(crate) fn measure<T>(
    what: &str,
    plan: &Plan,
    cases: &[T],
    mut sample: impl FnMut(&T, Duration) -> anyhow::Result<f64>,
) -> anyhow::Result<Vec<Samples>> {
    let style = "{msg:12} {wide_bar} {pos}/{len} {eta}";
    let bar = ProgressBar::new(((plan.rounds + 1) * cases.len()) as u64)
        .with_style(ProgressStyle::with_template(style)?)
        .with_message(what.to_owned());
    let mut samples = vec![Samples::default(); cases.len()];
    for round in 0..=plan.rounds {
        let mut order: Vec<usize> = (0..cases.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let value = sample(&cases[at], plan.sample)?;
            if round > 0 {
                samples[at].0.push(value);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_those_of_the_rounds() {
        let plan = Plan { rounds: 3, sample: Duration::ZERO, out: PathBuf::new() };
        let mut calls = 0.0;
        let samples = measure("test", &plan, &[1.0, 2.0], |case, _| {
            calls += 1.0;
            Ok(case * 10.0)
        });
        let samples = samples.unwrap();
        assert_eq!(calls, 8.0);
        assert_eq!((samples[0].median(), samples[1].median()), (10.0, 20.0));
        assert_eq!(samples[1].ratio_to(&samples[0]), 2.0);
        assert_eq!(samples[0].spread(), 0.0);
    }
}
