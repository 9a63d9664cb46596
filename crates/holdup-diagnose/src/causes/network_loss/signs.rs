//! Segments that were sent again, as a share of all.

use holdup_recording::metrics::host;
use holdup_recording::words::percent;

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{STRONG, WEAK};

/// So few probes show no share.
const PROBES: f64 = 20.0;

/// A sound network loses none of so few; from this share (0-1) on connections stall.
const LOST: f64 = 0.02;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    probes(facts, signs);
    if let Some((strength, evidence)) = &facts.counts.again {
        // What a full accept queue drops is sent again, too.
        let is_queue = facts.counts.overflows.is_some() || facts.accept_queue.is_some();
        signs.add(if is_queue { WEAK } else { *strength }, evidence.clone());
    }
}

/// What `ping` and its like lost on the way to one peer.
fn probes(facts: &Facts<'_>, signs: &mut Signs) {
    for peer in facts.view.label_values(host::NETWORK_PROBES.name, "peer") {
        let gauge = |metric: holdup_recording::metrics::Metric| {
            facts.view.gauge(metric.name, &[("peer", peer.as_str())], "").ok()
        };
        let (Some(sent), Some(lost)) = (gauge(host::NETWORK_PROBES), gauge(host::NETWORK_PROBE_LOSS_RATIO)) else {
            continue;
        };
        // A peer that answers none may refuse to.
        if sent.max >= PROBES && (LOST..1.0).contains(&lost.max) {
            let text = format!("{} of {:.0} probes were not answered", percent(lost.max), sent.max);
            signs.add(STRONG, lost.evidence(percent(lost.max), "none", text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn lost_probes_are_a_sign_and_a_peer_that_answers_none_is_not() {
        let chance = |lost: f64| {
            let made = SyntheticRecording::new(2)
                .gauge("host", "system_network_probes", &[("peer", "db")], 100.0)
                .gauge("host", "system_network_probe_loss_ratio", &[("peer", "db")], lost);
            made.seen(|view| {
                let mut signs = Signs::default();
                find(&Facts::read(*view), &mut signs);
                signs.weigh().map_or(0.0, |weighed| weighed.chance)
            })
        };
        assert!((chance(0.07) - STRONG.chance()).abs() < 1e-9);
        assert_eq!((chance(0.0), chance(1.0)), (0.0, 0.0));
    }
}
