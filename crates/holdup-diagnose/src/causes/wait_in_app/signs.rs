//! Threads of the app that wait for each other, by their stacks.

use crate::instant::facts::Facts;
use crate::instant::{Signs, stacks};
use crate::strength::FAIR;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(FAIR, stacks::many(facts, &["monitor"], "waited for a lock within the app"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn many_threads_in_front_of_a_monitor_are_a_sign_and_one_is_not() {
        let chance = |threads: f64| {
            let made =
                SyntheticRecording::new(2).gauge("host", "process_waiting_stacks", &[("wait", "monitor")], threads);
            made.seen(|view| {
                let mut signs = Signs::default();
                find(&Facts::read(*view), &mut signs);
                signs.weigh().map_or(0.0, |weighed| weighed.chance)
            })
        };
        assert!((chance(23.0) - FAIR.chance()).abs() < 1e-9);
        assert_eq!(chance(1.0), 0.0);
    }
}
