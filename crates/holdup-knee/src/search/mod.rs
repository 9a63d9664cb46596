//! Decides which rate to offer next.

mod budget;
mod plan;

use std::collections::VecDeque;
use std::time::Duration;

use crate::judge::Analysis;
use crate::search::budget::Budget;
use crate::{Config, Purpose, Step};

/// The engine's next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// Offer `rate` requests per second for `length` (whole seconds).
    Offer {
        /// Requests per second.
        rate: f64,
        /// Whole seconds.
        length: Duration,
        /// How much of its start to leave out: return it in [`Step::settle`].
        settle: Duration,
        /// Return it in [`Step::purpose`].
        purpose: Purpose,
    },
    /// Offer nothing until no request is in flight.
    Drain {
        /// Longest wait.
        most: Duration,
    },
    /// The search is over.
    Done,
}

/// The controller: from the result of the last step, it decides what to offer next.
///
/// It keeps no conclusions between moves: each is decided anew from all steps so far (`Analysis`),
/// so that later visits outvote one that was disturbed.
pub struct Search {
    config: Config,
    steps: Vec<Step>,
    /// Moves that follow whatever the last step showed.
    planned: VecDeque<Move>,
    doing: String,
    overload_done: bool,
}

impl Search {
    /// A search that has not begun.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            steps: Vec::new(),
            planned: VecDeque::new(),
            doing: "about to begin".to_owned(),
            overload_done: false,
        }
    }

    /// Decides the next move. `now` is the time since the start of the load; `last` is the step
    /// that was just played, none at first and after a drain.
    ///
    /// Within [`Config::budget`] it always leaves [`Config::timeout`] (or a quarter of the budget,
    /// if that is less) after the last step, so that requests in flight can end.
    pub fn next(&mut self, now: Duration, last: Option<&Step>) -> Move {
        self.steps.extend(last.cloned());
        let analysis = Analysis::from_steps(&self.steps, &self.config);
        let budget = Budget::new(&self.config, now);
        if last.is_some()
            && self.planned.is_empty()
            && let Some(visit) = analysis.visits.last()
            && plan::needs_drain(visit, &analysis)
        {
            self.doing = "waiting for the backlog to drain".to_owned();
            return Move::Drain { most: budget.drain() };
        }
        if let Some(next) = self.planned.pop_front() {
            return self.checked(next, &budget);
        }
        match plan::next(&self.steps, &analysis, &self.config, &budget) {
            Some(wanted) => {
                self.doing = wanted.why;
                self.checked(wanted.offer, &budget)
            }
            None if !self.overload_done => {
                self.overload_done = true;
                let mut moves = plan::overload(&analysis, &self.config, &budget);
                let Some(first) = moves.pop_front() else { return self.done() };
                self.planned = moves;
                self.doing = "overload, then less load: does it recover?".to_owned();
                self.checked(first, &budget)
            }
            None => self.done(),
        }
    }

    /// Prevents a step that could end after the budget.
    fn checked(&mut self, next: Move, budget: &Budget) -> Move {
        match next {
            Move::Offer { length, .. } if length.as_secs_f64() > budget.left() => self.done(),
            other => other,
        }
    }

    fn done(&mut self) -> Move {
        self.doing = "done".to_owned();
        self.planned.clear();
        self.overload_done = true;
        Move::Done
    }

    /// The present action, and the results so far: a line for people.
    pub fn progress(&self) -> &str {
        &self.doing
    }

    /// The steps played so far, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}
