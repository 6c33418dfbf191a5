//! [`linearization`]: is a concurrent history one that a sequential object could have answered?
//!
//! The search is that of Wing and Gong (1993) with the memory of Lowe (2017): take any call that
//! had begun before the first pending call returned, as the next to have taken effect; let the
//! model answer it; go on with the rest; step back where that leads nowhere, and never enter a pair
//! of (calls done, model state) twice.
//!
//! The crates that do this (`todc-utils`, `stateright`) ask for a model with one next state. Ours
//! has several, since an unreferenced node may be reclaimed at any moment; and it is a page long.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// A sequential object, perhaps with choices of its own.
pub trait Model: Clone + Eq + Hash {
    /// What is asked.
    type Call: Debug;
    /// What is answered.
    type Answer: Debug;

    /// Every state in which the object can be after it answered `call` with `answer`. None if it
    /// can't have answered that.
    fn step(&self, call: &Self::Call, answer: &Self::Answer) -> Vec<Self>;
}

/// One call and its answer, with the moments between which it took effect.
#[derive(Clone, Debug)]
pub struct Event<C, A> {
    /// The thread that called.
    pub thread: usize,
    /// What was asked.
    pub call: C,
    /// What was answered.
    pub answer: A,
    /// A moment before the call.
    pub invoked: u64,
    /// A moment after it. No two moments of a history are equal.
    pub returned: u64,
}

/// An order of the events (their indices) in which a sequential object could have answered them,
/// and which keeps an event that returned before another was invoked before that one. `None`: there
/// is no such order, so the history is wrong.
///
/// # Panics
/// If there are more than 64 events.
pub fn linearization<M: Model>(
    initial: &M,
    events: &[Event<M::Call, M::Answer>],
) -> Option<Vec<usize>> {
    assert!(events.len() <= 64, "the set of events done is kept in 64 bits");
    let mut search = Search { events, entered: HashSet::new(), order: Vec::new() };
    search.finish(0, initial).then_some(search.order)
}

struct Search<'e, M: Model> {
    events: &'e [Event<M::Call, M::Answer>],
    entered: HashSet<(u64, M)>,
    order: Vec<usize>,
}

impl<M: Model> Search<'_, M> {
    /// Can what is not in `done` be ordered, from `state` on? Leaves the order behind if so.
    fn finish(&mut self, done: u64, state: &M) -> bool {
        let pending = |index: &usize| done >> index & 1 == 0;
        let first_return =
            (0..self.events.len()).filter(pending).map(|index| self.events[index].returned).min();
        let Some(first_return) = first_return else { return true };
        for index in (0..self.events.len()).filter(pending) {
            let event = &self.events[index];
            if event.invoked > first_return {
                continue;
            }
            for next in state.step(&event.call, &event.answer) {
                let done = done | 1 << index;
                self.order.push(index);
                if self.entered.insert((done, next.clone())) && self.finish(done, &next) {
                    return true;
                }
                self.order.pop();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register that holds 0 at first. Writes say nothing.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Register(u8);

    #[derive(Clone, Copy, Debug)]
    enum Access {
        Read,
        Write(u8),
    }

    impl Model for Register {
        type Call = Access;
        type Answer = u8;

        fn step(&self, call: &Access, answer: &u8) -> Vec<Self> {
            match *call {
                Access::Read if *answer == self.0 => vec![self.clone()],
                Access::Read => vec![],
                Access::Write(value) => vec![Register(value)],
            }
        }
    }

    fn event(call: Access, answer: u8, invoked: u64, returned: u64) -> Event<Access, u8> {
        Event { thread: 0, call, answer, invoked, returned }
    }

    use Access::{Read, Write};

    #[test]
    fn a_sequential_history_has_its_own_order() {
        let events = [event(Write(1), 0, 1, 2), event(Read, 1, 3, 4)];
        assert_eq!(linearization(&Register(0), &events), Some(vec![0, 1]));
    }

    #[test]
    fn overlapping_calls_may_take_effect_in_either_order() {
        for seen in [0, 1] {
            let events = [event(Write(1), 0, 1, 4), event(Read, seen, 2, 3)];
            assert!(linearization(&Register(0), &events).is_some(), "a read of {seen}");
        }
    }

    #[test]
    fn a_read_of_what_was_overwritten_before_is_rejected() {
        let events = [event(Write(1), 0, 1, 2), event(Read, 0, 3, 4)];
        assert_eq!(linearization(&Register(0), &events), None);
    }

    #[test]
    fn new_then_old_is_rejected_although_each_read_alone_is_fine() {
        let events = [event(Write(1), 0, 1, 6), event(Read, 1, 2, 3), event(Read, 0, 4, 5)];
        assert_eq!(linearization(&Register(0), &events), None);
    }

    #[test]
    fn a_read_of_what_nobody_wrote_is_rejected() {
        let events = [event(Write(1), 0, 1, 4), event(Read, 2, 2, 3)];
        assert_eq!(linearization(&Register(0), &events), None);
    }

    #[test]
    fn the_search_steps_back() {
        // Taken greedily in the order of invocation (1, 2, read 1) this fails; (2, 1, read 1) is it.
        let events = [event(Write(1), 0, 1, 4), event(Write(2), 0, 2, 5), event(Read, 1, 6, 7)];
        assert_eq!(linearization(&Register(0), &events), Some(vec![1, 0, 2]));
    }

    /// A coin: each flip may fall either way, and only looking tells which it was.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Coin(Option<bool>);

    impl Model for Coin {
        type Call = &'static str;
        type Answer = Option<bool>;

        fn step(&self, call: &&'static str, answer: &Option<bool>) -> Vec<Self> {
            match *call {
                "flip" => vec![Coin(Some(true)), Coin(Some(false))],
                _ if *answer == self.0 => vec![self.clone()],
                _ => vec![],
            }
        }
    }

    #[test]
    fn a_choice_is_any_but_only_one() {
        let at =
            |at, call, answer| Event { thread: 0, call, answer, invoked: at, returned: at + 1 };
        let (flip, look) = ("flip", "look");
        for side in [Some(true), Some(false)] {
            let events = [at(1, flip, None), at(3, look, side), at(5, look, side)];
            assert!(linearization(&Coin(None), &events).is_some());
        }
        let events = [at(1, flip, None), at(3, look, Some(true)), at(5, look, Some(false))];
        assert!(linearization(&Coin(None), &events).is_none());
    }
}
