//! Samples of several cases taken in turn, so that whatever else the machine does meets them all,
//! and ratios of their medians mean something.

use std::time::Duration;

/// Something to measure.
#[allow(missing_debug_implementations)]
pub struct Case {
    /// As it stands in the tables.
    pub name: String,
    run: Box<dyn Fn(usize, u64) -> Duration>,
}

impl Case {
    /// A case that on so many threads does its operation so many times each, and answers how long
    /// that took.
    pub fn new(name: impl Into<String>, run: impl Fn(usize, u64) -> Duration + 'static) -> Self {
        Case { name: name.into(), run: Box::new(run) }
    }

    /// A case of one operation, the same on every thread.
    pub fn of(name: impl Into<String>, operation: impl Fn() + Sync + 'static) -> Self {
        Case::new(name, move |threads, iterations| {
            let operation = &operation;
            crate::threads::time(threads, iterations, |_| move |_| operation())
        })
    }

    /// The same in several goes, each of at most so many times: for what prepares something for each.
    pub fn run_in_goes(&self, threads: usize, mut iterations: u64, most: u64) -> Duration {
        let mut took = Duration::ZERO;
        while iterations > 0 {
            let now = iterations.min(most);
            took += self.run(threads, now);
            iterations -= now;
        }
        took
    }

    /// Does it, on so many threads so many times each.
    pub fn run(&self, threads: usize, iterations: u64) -> Duration {
        (self.run)(threads, iterations)
    }
}

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Samples of each case.
    pub rounds: usize,
    /// About how long a sample takes.
    pub sample: Duration,
    /// The most repetitions a thread, where an operation leaves something behind.
    pub most: u64,
}

impl Default for Plan {
    /// Many short samples: what disturbs a machine comes in bursts, and hits few of them.
    fn default() -> Self {
        Plan { rounds: 25, sample: Duration::from_millis(6), most: u64::MAX }
    }
}

/// Nanoseconds an operation of each sample, all threads taken together: the time divided by the number
/// of operations on all threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// The middle one.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// The difference of the quartiles in per cent of the median.
    pub fn spread(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let quartile = |part: usize| sorted[sorted.len() * part / 4];
        100.0 * (quartile(3) - quartile(1)) / self.median()
    }

    /// Million operations a second.
    pub fn rate(&self) -> f64 {
        1000.0 / self.median()
    }
}

/// Takes samples of all cases, one of each in a round.
pub fn measure(cases: &[Case], threads: usize, plan: Plan) -> Vec<Samples> {
    let iterations: Vec<u64> = cases.iter().map(|case| calibrate(case, threads, plan)).collect();
    let mut samples = vec![Samples(Vec::new()); cases.len()];
    for round in 0..plan.rounds {
        // Every other round backwards, so that no case always follows the same one.
        let mut order: Vec<usize> = (0..cases.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let took = cases[at].run(threads, iterations[at]);
            let operations = iterations[at] * threads as u64;
            samples[at].0.push(took.as_nanos() as f64 / operations as f64);
        }
    }
    samples
}

/// How many iterations a thread take about as long as a sample should.
fn calibrate(case: &Case, threads: usize, plan: Plan) -> u64 {
    let mut iterations = 16.min(plan.most);
    loop {
        let took = case.run(threads, iterations);
        if iterations >= plan.most || took >= plan.sample / 4 {
            let fitting = plan.sample.as_secs_f64() / took.as_secs_f64().max(1e-9);
            return ((iterations as f64 * fitting) as u64).clamp(1, plan.most);
        }
        iterations = (iterations * 4).min(plan.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_operation() {
        let slow = Case::of("slow", || std::thread::sleep(Duration::from_micros(200)));
        let quick = Case::of("quick", || {
            std::hint::black_box(1);
        });
        let plan = Plan { rounds: 3, sample: Duration::from_millis(2), ..Plan::default() };
        let samples = measure(&[slow, quick], 1, plan);
        assert!(samples[0].median() >= 200_000.0);
        assert!(samples[1].median() < 10_000.0);
    }

    #[test]
    fn median_and_spread() {
        let samples = Samples(vec![5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!(samples.median(), 3.0);
        assert!((samples.spread() - 200.0 / 3.0).abs() < 1e-9);
    }
}
