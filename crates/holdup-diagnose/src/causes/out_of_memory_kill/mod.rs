//! The kernel killed a process of the service because there was no memory left.

mod advice;
mod kills;
mod signs;

use holdup_recording::rows::Event;
use holdup_recording::{Labels, metrics, words};

use self::kills::Kills;
use super::{Cause, CauseFinding, Definition, Doc, Judge, MATTERS, Outcome, Role, Trait, of_failures};
use crate::case::Case;
use crate::failures::{self, Failed};
use crate::next_command::NextCommand;
use crate::resources::share;
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, Window, host::processes};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Harm, Trait::NamedByKubernetes],
    signs: Some(signs::find),
    ..Definition::new(Cause::OutOfMemoryKill, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The kernel killed a process because memory ran out",
    what: "A cgroup was at its memory limit, or the host had none left, and nothing could be reclaimed: the kernel killed the process that held most.",
    hurts: "All its requests in flight are lost, and until it has restarted and is warm each request fails or waits. Its own log shows nothing: it has no chance to write.",
    needs: "The kernel's count of such kills (--watch host, or the cgroup's own by --watch pid:N, server:PORT or cgroup:PATH), and whether a process of the service ended or restarted. Kubernetes reports it outright (--watch kubernetes:).",
    predicts: "The count grows; a watched process or server is gone or restarted at the same moment; requests fail from then on.",
    clears: "The count did not grow; or it grew and every process of the service survived.",
    looks_like: "A process ended by a signal or a crash is gone too, with the count unchanged. On a shared host the killed process may belong to another service.",
    fix: "A limit above its need, or less memory used: smaller caches and buffers, fewer connections.",
    prove: "The same load again: the count does not grow, and nothing restarts.",
    references: "Kernel documentation: cgroup v2 (memory.max, memory.events), Memory Resource Controller; proc_pid_oom_score_adj(5).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine(
    "dmesg -T | grep -iE 'out of memory|killed process'",
    1,
    "whether the kernel killed a process",
);

const HOST: &str = "--watch host";
const MIB: f64 = 1_048_576.0;
const SERVICE: &str =
    "--watch pid:N for the app and the database, server:PORT, or cgroup:PATH; in Kubernetes kubernetes:";

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    // The kill comes before its consequences.
    let view = case.view(case.whole());
    let kills = Kills::count(&view);
    if !kills.are_any() {
        return none_killed(&view, kills);
    }
    let times = kills.times(&view);
    let ended = kills::ended(&view, &times)?;
    let mut evidence = kills.evidence(&view);
    // A killed worker leaves its parent alive: the service's own cgroup counts it.
    if ended.is_empty() && !kills.are_of_cgroup() {
        let _ = kills.of_cgroup?;
        if view.processes_with(metrics::process::MEMORY_USAGE_BYTES.name).is_empty() {
            return Err(Missing::new("whether it was a process of the service", SERVICE));
        }
        let last = evidence.pop().map(|e| {
            let text = e.text.clone() + ", which is not a watched one";
            e.saying("a process of the service", text)
        });
        return Ok(Outcome::Cleared(last.into_iter().collect()));
    }
    evidence.extend(ended.iter().map(|event| at_that_moment(&view, event)));
    let after: Vec<Window> = times.iter().map(|w| Window { from: w.from, to: i64::MAX }).collect();
    let failed = Failed::of(failures::failed_share(case, &after))?;
    let limited = limit(&view, &ended);
    evidence.extend(limited.as_ref().map(|l| l.evidence.clone()));
    // Requests in flight then, and those that wait for its return, are slow because of it.
    let slow = case.degradation.as_ref().is_some_and(|c| after.iter().any(|w| w.from < c.slow.to));
    let explains_ms = if slow { case.excess_ms() * failed.share } else { 0.0 };
    if failed.is_small() && share(case, explains_ms) < MATTERS {
        return Ok(Outcome::Cleared(evidence));
    }
    evidence.extend(failed.uncounted.is_none().then(|| of_failures(case, failed.share, "failed after it")));
    let found = CauseFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG, if ended.is_empty() { WEAK } else { STRONG }, FAIR * failed.share],
        fixes: advice::fixes(&view, limited.as_ref()),
        prove: "Run the same scenario again: system_out_of_memory_kills_total does not grow, and no process ends."
            .to_owned(),
        role: Role::Root,
    };
    Ok(Outcome::failing(found, failed))
}

/// Clears it: by Kubernetes where the host was not watched, else by the kernel's count.
fn none_killed(view: &View<'_>, kills: Kills) -> Result<Outcome, Missing> {
    if let (Err(_), Ok(restarts)) = (&kills.of_host, view.counter(metrics::kubernetes::RESTARTS.name, &[], SERVICE)) {
        let text =
            format!("{:.0} containers restarted, none for lack of memory according to Kubernetes", restarts.delta);
        return Ok(Outcome::Cleared(vec![restarts.evidence("no OOMKilled", "1 or more", text)]));
    }
    // A process's cgroup has no sample after the kill: only the host's count can rule it out.
    let count = kills.of_host?;
    let text = "the kernel killed no process for lack of memory on this host".to_owned();
    Ok(Outcome::Cleared(vec![count.evidence("0 kills", "1 or more", text)]))
}

/// The end of a process or a server, as evidence.
fn at_that_moment(view: &View<'_>, event: &Event) -> Evidence {
    let at_s = (event.observed_at - view.recording.manifest.started_at) as f64 / 1e9;
    let text = format!("at that moment (second {at_s:.0}): {}", event.text);
    let labels = Labels::new([("kind", event.kind.as_str())]);
    Evidence::new("events", "kind", labels, view.window, event.kind.clone(), "no such event", text)
}

/// The memory limit of the killed process.
struct Limit {
    name: String,
    source: String,
    /// The file that holds it.
    file: String,
    bytes: f64,
    evidence: Evidence,
}

fn limit(view: &View<'_>, ended: &[&Event]) -> Option<Limit> {
    const LIMIT: &str = "cgroup.memory_limit_bytes";
    let gone = ended.iter().find(|e| processes::is_service(&e.source)).map(|e| e.source.as_str());
    let killed = view.services_with(metrics::cgroup::OUT_OF_MEMORY_KILLS.name).into_iter().map(|p| p.source);
    let (source, bytes) = gone
        .into_iter()
        .chain(killed)
        .find_map(|source| Some((source, view.setting_of(source, LIMIT)?.parse::<f64>().ok()?)))?;
    let name = view.setting_of(source, "comm").unwrap_or(source).to_owned();
    let most = |metric| view.gauge_where(|s| s == source, metric, &[], HOST).map(|g| g.max);
    let peak =
        most(metrics::cgroup::MEMORY_USAGE_BYTES.name).or_else(|_| most(metrics::process::MEMORY_USAGE_BYTES.name));
    let had = peak.map_or_else(|_| String::new(), |b| format!("; it used up to {} in a sample", words::bytes(b)));
    let text = format!("{name} was in a cgroup limited to {} of memory{had}", words::bytes(bytes));
    let evidence = view.setting_evidence(source, LIMIT, "more than it needs", text);
    let path = view.cgroup_of(source, metrics::cgroup::MEMORY_USAGE_BYTES.name);
    let file = match view.setting_of(source, "cgroup.version") {
        Some("2") => format!("/sys/fs/cgroup{path}/memory.max"),
        _ => format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"),
    };
    Some(Limit { name, source: source.to_owned(), file, bytes, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// Every second request fails from second 8 on.
    fn made() -> SyntheticRecording {
        SyntheticRecording::new(20).requests(50, 30).each_request(|n, r| {
            if n >= 8 * 50 && n % 2 == 0 {
                r.outcome = "connect_failed".into();
            }
        })
    }

    #[test]
    fn a_server_that_stopped_as_its_cgroup_counted_a_kill_was_killed() {
        let at = |second: i64| move |s: i64| if s < second { 0.0 } else { 1.0 };
        for source in ["server:8080", "cgroup:/shop"] {
            let killed = made()
                .counted(source, "cgroup_out_of_memory_kills_total", &[], at(8))
                .counted("host", "system_out_of_memory_kills_total", &[], at(8))
                .events(&[(8, "server:8080", "server_stopped", &[("port", "8080")])]);
            assert!(killed.fails(&DEFINITION).unwrap() > 0.95, "{source}");
            let none = made().counted(source, "cgroup_out_of_memory_kills_total", &[], at(99)).counted(
                "host",
                "system_out_of_memory_kills_total",
                &[],
                at(99),
            );
            assert_eq!(none.fails(&DEFINITION), Some(0.0), "{source}");
        }
    }

    #[test]
    fn kubernetes_says_it_outright() {
        let restarted = |reason: &'static [(&'static str, &'static str)]| {
            made()
                .counter("kubernetes:shop/orders", "container_restarts_total", &[("container", "app")], 0.1)
                .events(&[(8, "kubernetes:shop/orders", "container_restarted", reason)])
        };
        assert!(restarted(&[("container", "app"), ("reason", "OOMKilled")]).fails(&DEFINITION).unwrap() > 0.95);
        assert_eq!(restarted(&[("container", "app"), ("reason", "Error")]).fails(&DEFINITION), Some(0.0));
        assert_eq!(made().fails(&DEFINITION), None);
    }
}
