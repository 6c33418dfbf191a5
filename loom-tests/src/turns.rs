//! [`run_in_turns`]: a model by every schedule in which its threads take turns in a given order.
//!
//! Some races need three threads and three preemptions at just the right steps. To try all such
//! schedules takes hours, to draw them at random takes luck. But who interrupts whom, and in which
//! order, is what one knows of a race; what one can't know is after which step. So the order is
//! given, and every step is tried.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// A thread's turn. Threads are numbered from 1 in the order in which the model spawns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is interrupted after a number of steps: every number is tried, none included.
    Some(usize),
    /// It goes on until it has ended, or waits for another thread.
    All(usize),
}

/// Runs `model` once for every way in which its threads can take these turns, and prints how many
/// there were.
///
/// At first the model's own thread runs, until it waits for another one. Then the threads take
/// their turns. What is left after that runs in the order of the numbers.
///
/// The model must take the same steps whenever the threads are scheduled the same way.
pub fn run_in_turns(name: &str, order: &[Turn], model: impl Fn() + Sync + Send + 'static) {
    let turns = Turns(Arc::new(Mutex::new(State::new(order))));
    let schedules = shuttle::Runner::new(turns, shuttle::Config::default()).run(model);
    println!("{name}: {schedules} schedules, {order:?} taking turns");
}

/// The runner takes the scheduler; the state is shared only because it must be `Send`.
struct Turns(Arc<Mutex<State>>);

struct State {
    /// Whose turn it is.
    order: Vec<Turn>,
    /// How many steps each turn may have in this execution. Means nothing for [`Turn::All`].
    steps: Vec<usize>,
    /// Which turns of this execution would have gone on.
    cut: Vec<bool>,
    /// The turn that it is now, and how many steps it has had.
    now: Option<(usize, usize)>,
    began: bool,
}

impl State {
    fn new(order: &[Turn]) -> Self {
        let turns = order.len();
        State {
            order: order.to_vec(),
            steps: vec![0; turns],
            cut: vec![false; turns],
            now: None,
            began: false,
        }
    }

    /// The next combination of steps, counted like the digits of a number whose last one runs
    /// fastest: a turn that ended by itself has had all its steps. False after the last combination.
    fn advance(&mut self) -> bool {
        self.now = None;
        if !std::mem::replace(&mut self.began, true) {
            return true;
        }
        let Some(longer) = self.cut.iter().rposition(|cut| *cut) else { return false };
        self.steps[longer] += 1;
        self.steps[longer + 1..].fill(0);
        // Turns that are not reached, because everybody is done before, could not go on either.
        self.cut.fill(false);
        true
    }

    /// Who runs next, of those who can (in the order of their numbers).
    fn next(&mut self, runnable: &[usize]) -> usize {
        let Some((mut turn, mut had)) = self.now else {
            // The model's own thread prepares, spawns the others and waits for them.
            if runnable[0] == 0 {
                return 0;
            }
            self.now = Some((0, 0));
            return self.next(runnable);
        };
        while turn < self.order.len() {
            let (thread, interrupted) = match self.order[turn] {
                Turn::Some(thread) => (thread, had == self.steps[turn]),
                Turn::All(thread) => (thread, false),
            };
            let goes_on = runnable.contains(&thread);
            if goes_on && !interrupted {
                self.now = Some((turn, had + 1));
                return thread;
            }
            self.cut[turn] = goes_on;
            (turn, had) = (turn + 1, 0);
        }
        self.now = Some((turn, 0));
        runnable[0]
    }
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scheduler for Turns {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.state().advance().then(|| Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        _current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        let mut numbers: Vec<usize> = runnable.iter().map(|task| task.id().into()).collect();
        numbers.sort_unstable();
        Some(self.state().next(&numbers).into())
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schedules of two threads with two steps each.
    fn schedules(order: &[Turn]) -> Vec<Vec<usize>> {
        let mut state = State::new(order);
        let mut seen = Vec::new();
        while state.advance() {
            let mut left = [0, 2, 2];
            let mut schedule = Vec::new();
            loop {
                let runnable: Vec<usize> = (1..=2).filter(|thread| left[*thread] > 0).collect();
                if runnable.is_empty() {
                    break;
                }
                let thread = state.next(&runnable);
                left[thread] -= 1;
                schedule.push(thread);
            }
            seen.push(schedule);
        }
        seen
    }

    #[test]
    fn an_interruption_is_tried_after_each_step() {
        let schedules = schedules(&[Turn::Some(1), Turn::All(2)]);
        assert_eq!(schedules, [[2, 2, 1, 1], [1, 2, 2, 1], [1, 1, 2, 2]]);
    }

    #[test]
    fn two_interruptions_are_tried_in_all_combinations() {
        let schedules = schedules(&[Turn::Some(1), Turn::Some(2), Turn::All(1)]);
        let all = [[2, 1, 1, 2], [2, 2, 1, 1], [1, 2, 1, 2], [1, 2, 2, 1], [1, 1, 2, 2]];
        for schedule in all {
            assert!(schedules.contains(&schedule.to_vec()), "{schedule:?} in {schedules:?}");
        }
    }
}
