//! Which rate is offered next.

mod budget;
mod plan;

use std::collections::VecDeque;
use std::time::Duration;

use crate::judge::Analysis;
use crate::search::budget::Budget;
use crate::{Config, Finding, Purpose, Step, judge};

/// What the engine does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// Offer `rate` requests per second for `length` (whole seconds).
    Offer {
        /// Requests per second.
        rate: f64,
        /// Whole seconds.
        length: Duration,
        /// So much of its start will be left out: hand it back in [`Step::settle`].
        settle: Duration,
        /// Hand it back in [`Step::purpose`].
        purpose: Purpose,
    },
    /// Offer nothing until no request is in flight, at most so long.
    Drain {
        /// At most so long.
        most: Duration,
    },
    /// The search is over.
    Done,
}

/// How far a search is, for a live view.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What it does now, and what is known: a line for people.
    pub text: String,
    /// Share of the budget that is used, 0-1.
    pub share: f64,
}

/// The controller: told how the last step went, it says what to offer next.
///
/// It keeps no opinion between moves: each is decided anew from all steps so far (`Analysis`), so that a visit that turns out
/// to be disturbed is outvoted by later ones.
pub struct Search {
    config: Config,
    steps: Vec<Step>,
    now: Duration,
    /// What comes next whatever the last step showed.
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
            now: Duration::ZERO,
            planned: VecDeque::new(),
            doing: "about to begin".to_owned(),
            overload_done: false,
        }
    }

    /// What to do next. `now` is the time since the start of the load; `last` is the step that was just played, none at
    /// first and after a drain.
    ///
    /// Within [`Config::budget`] there is always room left for [`Config::timeout`] (or a quarter of the budget, if that is
    /// less) after the last step, so that what is still in flight can end.
    pub fn next(&mut self, now: Duration, last: Option<&Step>) -> Move {
        self.now = now;
        self.steps.extend(last.cloned());
        let analysis = Analysis::of(&self.steps, &self.config);
        let budget = Budget::of(&self.config, now);
        if last.is_some()
            && self.planned.is_empty()
            && let Some(visit) = analysis.visits.last()
            && plan::needs_drain(visit, &analysis)
        {
            self.doing = "waiting until what piled up is done".to_owned();
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
                self.doing = "more than it can do, then less: does it recover?".to_owned();
                self.checked(first, &budget)
            }
            None => self.done(),
        }
    }

    /// No step begins that could end after the budget.
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

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let share = self.now.as_secs_f64() / self.config.budget.as_secs_f64().max(1.0);
        Progress { text: self.doing.clone(), share: share.min(1.0) }
    }

    /// The steps it was told of, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What they show so far.
    pub fn finding(&self) -> Finding {
        judge(&self.steps, &self.config)
    }
}
