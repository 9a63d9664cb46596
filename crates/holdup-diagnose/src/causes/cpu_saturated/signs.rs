//! CPUs without idle time, and a line of threads in front of them.

use holdup_recording::words::percent;

use crate::instant::facts::Facts;
use crate::instant::load::{WaitKind, kind};
use crate::instant::{SOME, Share, Signs};
use crate::strength::{FAIR, STRONG, WEAK};

/// From this factor on, a line is longer than usual: that of a steady load differs by less.
const LONGER: f64 = 1.5;

/// Niced threads make way for others. Full CPUs may be a burst, or the work that they are for. So it
/// takes a line of threads that has been there for a minute and not always, or threads of the service that wait.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let ([.., Some((strength, evidence))], None) = (&facts.counts.stalled, &facts.idle) {
        signs.add(*strength, evidence.clone());
    }
    managed(facts, signs);
    let (Some((.., evidence)), Some(runnable), Some(cpus)) = (&facts.idle, &facts.runnable, facts.cpus) else {
        return unlisted(facts, signs);
    };
    if !facts.are_cpus_full() || runnable.mean <= cpus {
        return;
    }
    signs.add(FAIR, evidence.clone());
    // A line as long as that of the quarter of an hour before may be how this machine always is.
    let is_usual = |load: f64| facts.usual_load.is_some_and(|usual| load < LONGER * usual);
    if let Some(load) = facts.load.as_ref().filter(|load| load.max > cpus && !is_usual(load.max)) {
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

/// Full CPUs where nothing lists the threads that are runnable: the load average tells of a line, and counts
/// those that wait for a disk, too.
fn unlisted(facts: &Facts<'_>, signs: &mut Signs) {
    const LINE: f64 = 1.5;
    let Some((_, waiting, evidence)) = facts.idle.as_ref().filter(|_| facts.are_cpus_full()) else { return };
    let is_line = facts.load.as_ref().zip(facts.cpus).is_some_and(|(load, cpus)| load.max >= LINE * cpus);
    let is_disk = *waiting >= 0.01 || facts.full_disk().is_some();
    signs.add(if is_line && !is_disk { FAIR } else { WEAK }, evidence.clone());
}

/// A managed database's CPUs, the sessions on them, and the statement that most of them run.
fn managed(facts: &Facts<'_>, signs: &mut Signs) {
    const MUCH: f64 = 0.3;
    for database in &facts.clouds {
        let Some((strength, run)) = database.cpus_full() else { continue };
        let busy = percent(run.mean);
        let text = format!("the CPUs of {} were {busy} busy", database.name);
        signs.add(strength, run.evidence(busy, "below 90 %", text));
        let on_cpu = |_: &str, state: &str| kind(state) == WaitKind::Cpu;
        let sessions = facts.sessions.as_ref().map_or(0.0, |sessions| sessions.count(on_cpu));
        let is_line = database.size.cpus.is_some_and(|cpus| sessions >= cpus);
        let strength = if is_line { STRONG } else { FAIR };
        signs.extend(strength, facts.sessions_in(SOME, "ran or waited for a CPU", on_cpu));
        let heaviest = facts.heaviest.as_ref().filter(|heaviest| heaviest.share >= MUCH);
        signs.extend(WEAK, heaviest.map(|heaviest| heaviest.evidence()));
    }
}
