//! A burstable class without credits, whose CPUs do what it sustains, and a quota that ran out.

use crate::instant::facts::Facts;
use crate::instant::{Signs, quotas};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.out_of_cpu_credits()) {
        signs.add(strength, evidence);
    }
    if let Some((strength, evidence)) = quotas::throttled(&facts.view) {
        signs.add(strength, evidence);
    }
}
