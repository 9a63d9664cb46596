//! A liveness probe failed too often in a row, and its supervisor had the server killed and
//! restarted.

use holdup_recording::Labels;
use holdup_recording::rows::Request;

use super::bound::Bound;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Fix, Judge, MATTERS, Outcome, Role, Source::AnyBehindApp, Source::Of,
    Trait, ms, percent,
};
use crate::case::Case;
use crate::failures::{self, Failed};
use crate::next_command::NextCommand;
use crate::resources::probe::{self, Probe};
use crate::resources::share;
use crate::strength::{CERTAIN, FAIR, STRONG};
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::{is_latency, mean_over};
use holdup_signals::{Missing, Window};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::InFrontOfApp, Trait::Harm, Trait::NamedByKubernetes],
    follows_from: &[
        // The probe comes through the same queue, and waits no longer than its timeout.
        Edge::in_front(
            &[
                &[Of(Cause::AcceptQueueOverflow)],
                &[Of(Cause::WorkerPoolExhausted)],
                &[Of(Cause::CpuThrottled), Of(Cause::CpuSaturated)],
                &[AnyBehindApp],
            ],
            probe::timeout_ms,
        ),
    ],
    bound: Some(bound),
    signs: Some(signs::find),
    leaves_open: Some(
        "It does not show why the server left the probe without an answer: measure its queue and its workers.",
    ),
    ..Definition::new(Cause::LivenessProbeKill, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A failed liveness probe got the server killed",
    what: "A supervisor (usually Kubernetes) checks at intervals whether the server lives, over a new connection. After some failures in a row, three by default, it kills the server and restarts it. A probe through the common port waits in the same queue as all requests, and fails when that is long, not when the server is dead.",
    hurts: "Requests in flight are lost, and none is answered until the server has started. Meanwhile requests accumulate and hit a cold server all at once: under the same load it fails again. Its own figures have a gap at the very moment that matters.",
    needs: "Probes and restarts: holdup's own probe (--watch probe:http://HOST:PORT/health, or probe: in the scenario) with --watch server:PORT for when the server stopped and started; or --watch kubernetes: (or holdup import of kubectl's output).",
    predicts: "The probe failed several times in a row, the server stopped right after, and another one listened some time later; requests of that time are reset, refused or wait.",
    clears: "Probes did not fail in a row; or the server did not stop after they did; or none of the failed requests was in flight then.",
    looks_like: "A kill for lack of memory, a crash or a deploy stop the server too, without a failed probe before. Probes that fail after the server has stopped are a consequence.",
    fix: "What the probe waits for: usually busy workers. Then a probe that needs less of the service: a separate port and thread, a longer timeout, more failures. A readiness probe takes load off instead of killing.",
    prove: "The same load again: probes succeed, and nothing restarts.",
    references: "Kubernetes documentation: Liveness, Readiness, and Startup Probes; Configure Liveness, Readiness and Startup Probes; Google SRE Book, Addressing Cascading Failures.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "kubectl get events -n NAMESPACE -o json",
    1,
    "whether probes failed and containers were restarted",
);

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    // Probes fail before the kill, requests after it.
    let view = case.view(case.whole());
    let probe = Probe::find(&view)?;
    let kills = probe.kills(&view);
    if kills.is_empty() {
        return Ok(seen_coming(case, &probe));
    }
    let mut evidence = Vec::new();
    let holes: Vec<Window> = kills.iter().map(|kill| kill.hole).collect();
    for kill in kills.iter().take(3) {
        evidence.extend(kill.evidence(&view));
    }
    let gone: f64 = holes.iter().map(|hole| bounded(*hole, case).seconds()).sum();
    let failed = Failed::of(failures::failed_share(case, &holes))?;
    let explains_ms = waited_ms(case, &holes);
    let restarts = format!("{} restart{}", kills.len(), if kills.len() > 1 { "s" } else { "" });
    if failed.uncounted.is_none() {
        let text = format!(
            "{} of the failed requests were in flight in the {gone:.1} s in which the server was gone, in {restarts}",
            percent(failed.share)
        );
        let window = case.episode();
        evidence.push(Evidence::new(
            "requests",
            "outcome",
            Labels::none(),
            window,
            percent(failed.share),
            "none",
            text,
        ));
    }
    evidence.extend(probe::silences(&view, &holes));
    // A kill that users did not feel does not explain their delay, but it happened.
    if failed.is_small() && share(case, explains_ms) < MATTERS {
        return Ok(Outcome::Cleared(evidence));
    }
    let found = CauseFinding {
        explains_ms,
        evidence,
        weights: vec![if kills.iter().any(|k| k.is_explicit) { CERTAIN } else { STRONG }, FAIR * failed.share],
        fixes: fixes(&probe),
        prove: "Run the same scenario again: probe_success stays 1, and the server does not stop.".to_owned(),
        role: Role::Root,
    };
    Ok(Outcome::failing(found, failed))
}

/// Kills, each for as long as the server was gone.
fn bound(case: &Case<'_>) -> Option<Bound> {
    let view = case.view(case.whole());
    let kills = Probe::find(&view).ok()?.kills(&view);
    let pointer = kills.first()?.evidence(&view).into_iter().next()?;
    let gone = kills.iter().map(|kill| bounded(kill.hole, case).seconds()).sum();
    Some(Bound::of_stops(gone, pointer, "the times without a server"))
}

/// Without a kill: whether the probe failed often enough in a row for one.
fn seen_coming(case: &Case<'_>, probe: &Probe) -> Outcome {
    let mut evidence = probe.evidence();
    let Some(worst) = evidence.pop() else { return Outcome::Cleared(Vec::new()) };
    if probe.in_a_row_max < probe.failures {
        return Outcome::Cleared(vec![worst]);
    }
    let text = format!(
        "{}; a supervisor that kills after {:.0} would have killed the server then",
        worst.text, probe.failures
    );
    let expected = worst.expected.clone();
    if case.degradation.is_none() {
        return Outcome::Cleared(vec![worst.saying(expected, text)]);
    }
    Outcome::Found(CauseFinding {
        explains_ms: 0.0,
        evidence: vec![worst.saying(expected, text)],
        weights: vec![FAIR],
        fixes: fixes(probe),
        prove: "Run the same scenario again: probe_success stays 1.".to_owned(),
        role: Role::Symptom,
    })
}

/// Milliseconds of a mean request that lie in `holes`.
fn waited_ms(case: &Case<'_>, holes: &[Window]) -> f64 {
    let Ok(rows) = case.slow_requests() else { return 0.0 };
    let within = |r: &Request| {
        let overlap = |hole: &Window| (r.done_at.min(hole.to) - r.intended_at.max(hole.from)).max(0) as f64 / 1e6;
        is_latency(r).then(|| holes.iter().map(overlap).sum::<f64>())
    };
    mean_over(rows.iter().copied(), within).unwrap_or(0.0)
}

/// A hole, cut off at the end of the recording.
fn bounded(hole: Window, case: &Case<'_>) -> Window {
    Window { to: hole.to.min(case.recording.manifest.ended_at.unwrap_or(hole.to)), ..hole }
}

fn fixes(probe: &Probe) -> Vec<Fix> {
    let fix = |text: &str, command: Option<String>, risk: &str| Fix {
        text: text.to_owned(),
        command,
        keep: None,
        risk: Some(risk.to_owned()),
    };
    vec![
        fix(
            "Let the probe use a path without workers: a separate port and thread, or a readiness probe that takes load off instead of a liveness probe that kills.",
            None,
            "A server whose workers are all stuck for good then survives: the probe has to detect that.",
        ),
        fix(
            &format!(
                "Raise the probe's time until the queue is gone: it waits {} and kills after {:.0} failures.",
                ms(probe.timeout_s * 1e3),
                probe.failures
            ),
            Some(format!(
                "livenessProbe: {{timeoutSeconds: {:.0}, failureThreshold: {:.0}}}",
                (5.0 * probe.timeout_s).ceil().max(1.0),
                (2.0 * probe.failures).ceil().max(1.0)
            )),
            "A server that is really dead is noticed later.",
        ),
    ]
}

mod signs;
#[cfg(test)]
mod tests;
