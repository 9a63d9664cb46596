//! Controllers whose rounds are not counted.

use super::{Round, Steps, Surroundings, some};
use crate::jmx::Plan;
use crate::jmx::element::Element;
use crate::load::{LONGEST, length, seconds};
use crate::scenario::Step;

impl Plan<'_> {
    /// The steps inside, in rounds that are not counted.
    pub(super) fn uncounted<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        around.rounds.push(Round::Uncounted);
        let steps = self.inside(at, around);
        around.rounds.pop();
        steps
    }

    pub(super) fn repeat_while<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let steps = self.uncounted(at, around)?;
        let condition = self.condition_in(at, "WhileController.condition");
        Ok(some(steps, |steps| Step::While { condition, steps }))
    }

    pub(super) fn run_time<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let steps = self.uncounted(at, around)?;
        let for_s = at.filled("RunTime.seconds").and_then(|text| self.names.number(text));
        let for_s = for_s.and_then(seconds).filter(|d| !d.is_zero()).unwrap_or(LONGEST);
        Ok(some(steps, |steps| Step::During { length: length(for_s), steps }))
    }
}
