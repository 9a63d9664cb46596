//! CPUs without idle time, and a line of threads in front of them.

use crate::instant::facts::Facts;
use crate::instant::{Share, Signs};
use crate::strength::{FAIR, STRONG};

/// Niced threads make way for others. Full CPUs may be a burst, or the work that they are for. So it
/// takes a line of threads that has been there for a minute, or threads of the service that wait.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let ([.., Some((strength, evidence))], None) = (&facts.counts.stalled, &facts.idle) {
        signs.add(*strength, evidence.clone());
    }
    let (Some((.., evidence)), Some(runnable), Some(cpus)) = (&facts.idle, &facts.runnable, facts.cpus) else { return };
    if !facts.are_cpus_full() || runnable.mean <= cpus {
        return;
    }
    signs.add(FAIR, evidence.clone());
    if let Some(load) = facts.load.as_ref().filter(|load| load.max > cpus) {
        let text = format!(
            "{:.0} threads were running or runnable on {cpus:.0} CPUs, and {:.1} on average over the last minute",
            runnable.mean, load.max
        );
        let share = Share { ratio: runnable.mean / load.max.max(runnable.mean), of: "of the load average".to_owned() };
        signs.accounting(STRONG, load.evidence(format!("{:.1}", load.max), "fewer than CPUs", text), share);
    }
    let waits = facts.waits_for_cpu.as_ref().filter(|(threads, _)| *threads >= 1.0);
    signs.extend(STRONG, waits.map(|(_, evidence)| evidence.clone()));
}
