//! Which rate is offered next.

use std::time::Duration;

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
pub struct Search {
    config: Config,
    steps: Vec<Step>,
    now: Duration,
}

impl Search {
    /// A search that has not begun.
    pub fn new(config: Config) -> Self {
        Self { config, steps: Vec::new(), now: Duration::ZERO }
    }

    /// What to do next. `now` is the time since the start of the load; `last` is the step that was just played, none at
    /// first and after a drain.
    pub fn next(&mut self, now: Duration, last: Option<&Step>) -> Move {
        self.now = now;
        self.steps.extend(last.cloned());
        Move::Done
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let share = self.now.as_secs_f64() / self.config.budget.as_secs_f64().max(1.0);
        Progress { text: String::new(), share: share.min(1.0) }
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
