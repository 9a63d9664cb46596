//! A burstable class without credits, whose CPUs do what it sustains.

use crate::instant::Signs;
use crate::instant::facts::Facts;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.out_of_cpu_credits()) {
        signs.add(strength, evidence);
    }
}
