//! A collector's own log: the longest pause, the share of the time that pauses took, and heap that ran out.

use holdup_recording::events;
use holdup_recording::words::percent;

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{CERTAIN, FAIR, STRONG, Strength};

/// Users notice a stop of this length, seconds …
const FELT_S: f64 = 1.0;

/// … and most time-outs end within this one.
const LONG_S: f64 = 5.0;

/// Shares (0-1) of the time beyond what collectors are set to take.
const MUCH: f64 = 0.1;
const MOSTLY: f64 = 0.3;

/// A share of fewer seconds is chance.
const SPAN_S: f64 = 10.0;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (runtime, pauses) in facts.happened.by(events::RUNTIME_PAUSE, "runtime") {
        let of = |label: &str| pauses.most(label).unwrap_or(0.0);
        let ratio = if of("span_s") >= SPAN_S { of("total_s") / of("span_s") } else { 0.0 };
        let ran_out = facts.happened.of(events::RUNTIME_PAUSE, |event| event.labels.get("distress").is_some());
        let by_length = worth(of("seconds"), ran_out.is_some());
        let by_share = match () {
            () if ratio >= MOSTLY => Some(STRONG),
            () if ratio >= MUCH => Some(FAIR),
            () => None,
        };
        signs.extend(by_length.unwrap_or(STRONG), by_length.map(|_| pauses.told()));
        let text =
            format!("collections of the {runtime} took {} of the time, {}", percent(ratio.min(1.0)), pauses.when());
        signs.extend(by_share.unwrap_or(FAIR), by_share.map(|_| pauses.evidence(text)));
    }
}

/// Short pauses are what a collector is for.
fn worth(longest_s: f64, ran_out: bool) -> Option<Strength> {
    match longest_s {
        s if s >= LONG_S && ran_out => Some(CERTAIN),
        s if s >= LONG_S => Some(STRONG),
        s if s >= FELT_S && ran_out => Some(STRONG),
        s if s >= FELT_S => Some(FAIR),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    fn chance(labels: &[(&str, &str)]) -> f64 {
        let made = SyntheticRecording::new(3).events(&[(1, "host", "runtime_pause", labels)]);
        made.seen(|view| {
            let mut signs = Signs::default();
            find(&Facts::read(*view), &mut signs);
            signs.weigh().map_or(0.0, |weighed| weighed.chance)
        })
    }

    #[test]
    fn long_pauses_and_a_large_share_are_found_and_young_collections_are_not() {
        let long = [("runtime", "JVM"), ("seconds", "9.1"), ("distress", "to-space exhausted")];
        assert!(chance(&long) >= CERTAIN.chance());
        assert!((chance(&[("runtime", "JVM"), ("seconds", "1.2")]) - FAIR.chance()).abs() < 1e-9);
        let much = [("runtime", "JVM"), ("seconds", "0.4"), ("total_s", "9"), ("span_s", "20")];
        assert!((chance(&much) - STRONG.chance()).abs() < 1e-9);
        let young = [
            ("runtime", "JVM"),
            ("seconds", "0.012"),
            ("total_s", "0.2"),
            ("span_s", "60"),
            ("distress", "pause full"),
        ];
        assert_eq!(chance(&young), 0.0);
    }
}
