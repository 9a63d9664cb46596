//! Evaluates the objectives while the load runs: each second is checked, and an objective may end
//! the run. The results are stored in the manifest, because only here is it known exactly how many
//! requests failed in a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdup_load::scenario::{Scenario, WarmUp};
use holdup_load::stats::Second;
use holdup_recording::clock;
use holdup_recording::manifest::{Aborted, Threshold};
use holdup_recording::objective::{self, Evaluation, Extent, Judgement, OperationOutcomes};

/// See the module.
pub struct Objectives {
    each: Vec<(Threshold, Evaluation)>,
    end: Arc<AtomicBool>,
    aborted: Option<Aborted>,
}

impl Objectives {
    /// The objectives of `scenario`; setting `end` ends the load.
    pub fn for_scenario(scenario: &Scenario, end: Arc<AtomicBool>) -> Self {
        let warm_up = match scenario.warm_up {
            WarmUp::For(length) => length,
            // A warm-up detected from response times is known only after the run.
            WarmUp::Detect | WarmUp::None => Duration::ZERO,
        };
        Self::over(&scenario.thresholds, Extent { warm_up, due_until: Some(scenario.load.length()) }, end)
    }

    fn over(thresholds: &[Threshold], extent: Extent, end: Arc<AtomicBool>) -> Self {
        let each = thresholds.iter().map(|t| (t.clone(), Evaluation::new(t, extent))).collect();
        Self { each, end, aborted: None }
    }

    /// Adds a second of the load; ends the load if an objective demands that.
    pub fn second(&mut self, second: &Second) {
        if self.each.is_empty() {
            return;
        }
        let times: Vec<Vec<(u64, u64)>> =
            second.operations.iter().map(|o| objective::times(&o.latencies.response)).collect();
        let ended: Vec<OperationOutcomes<'_>> = second
            .operations
            .iter()
            .zip(&times)
            .map(|(operation, times)| OperationOutcomes {
                operation: &operation.name,
                completed: operation.completed,
                failed: operation.failures.values().sum(),
                times,
            })
            .collect();
        for (_, evaluation) in &mut self.each {
            evaluation.second(second.from, second.to, &ended);
        }
        if self.aborted.is_some() {
            return;
        }
        let reason = self.each.iter().find_map(|(threshold, e)| Some((threshold, e.ends_the_run()?)));
        // An objective does not end a load that has been ended already.
        if let Some((threshold, miss)) = reason
            && !self.end.swap(true, Ordering::Relaxed)
        {
            self.aborted = Some(Aborted {
                text: threshold.text.clone(),
                value: miss.value,
                stretch: miss.stretch,
                at: clock::now_ns(),
            });
        }
    }

    /// The result of each objective, in order, and the one that ended the load.
    pub fn finish(mut self) -> (Vec<Judgement>, Option<Aborted>) {
        (self.each.iter_mut().map(|(_, evaluation)| evaluation.result()).collect(), self.aborted)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use holdup_load::stats::{Latencies, OperationSecond};
    use holdup_recording::objective::State;

    use super::*;

    fn second(index: u64, completed: u64, failed: u64) -> Second {
        let operation = OperationSecond {
            name: "a".to_owned(),
            completed,
            failures: BTreeMap::from([("timeout", failed)]),
            latencies: Latencies::new(),
        };
        Second {
            from: Duration::from_secs(index),
            to: Duration::from_secs(index + 1),
            started_at: 0,
            phase: String::new(),
            rate: 10.0,
            in_flight: 0,
            waiting: 0,
            operations: vec![operation],
        }
    }

    fn watching(abort: &str, end: &Arc<AtomicBool>) -> Objectives {
        let read = |text: &str| objective::parse(text, &["a"]).unwrap();
        let thresholds = [read("errors < 90%"), Threshold { abort: true, ..read(abort) }];
        Objectives::over(&thresholds, Extent::default(), Arc::clone(end))
    }

    #[test]
    fn the_load_is_ended_once_by_the_objective_that_is_to_end_it() {
        let end = Arc::new(AtomicBool::new(false));
        let mut objectives = watching("errors < 50% for 2s", &end);
        for index in 0..8 {
            objectives.second(&second(index, 10, if index < 4 { 0 } else { 30 }));
            // From 3 to 5 s 30 of 50 failed.
            assert_eq!(end.load(Ordering::Relaxed), index >= 4, "second {index}");
        }
        let (judgements, aborted) = objectives.finish();
        let aborted = aborted.unwrap();
        assert_eq!((aborted.text.as_str(), aborted.value), ("errors < 50% for 2s", 0.6));
        assert_eq!((aborted.stretch.from_ns, aborted.stretch.to_ns), (3_000_000_000, 5_000_000_000));
        assert_eq!(judgements.iter().map(|j| j.state).collect::<Vec<_>>(), [State::Met, State::Missed]);
    }

    #[test]
    fn a_load_that_was_stopped_is_not_ended_by_an_objective() {
        let end = Arc::new(AtomicBool::new(true));
        let mut objectives = watching("errors < 50% for 2s", &end);
        (0..4).for_each(|index| objectives.second(&second(index, 0, 30)));
        assert!(objectives.finish().1.is_none());
    }
}
