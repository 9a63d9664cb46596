//! The app waits for a downstream service that it calls over HTTP or RPC.

mod by_services;
mod outside;
mod signs;

use crate::change::Fix;
use std::collections::BTreeMap;

use holdup_recording::Labels;

use super::{Cause, CauseFinding, Definition, Doc, Judge, Outcome, Role, ms, percent, timing};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::app_waits::{self, AppWait};
use crate::resources::{is_too_small, workers};
use crate::strength::{CERTAIN, STRONG, Strength, WEAK};
use holdup_recording::objective::Unit;
use holdup_signals::app::accounts::{Owner, Resource};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::UPSTREAM_TIMEOUT, crate::strength::FAIR)],
    ..Definition::new(Cause::DownstreamSlow, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A downstream service is slow",
    what: "The app calls another service over HTTP or RPC for each request and waits for its answer. That service takes longer than before, or is called more often.",
    hurts: "The request takes as long as its slowest downstream service, and holds its worker, pooled connection or lock for as long. Requests that never call that service queue for these.",
    needs: "The app's client spans of such calls (--watch otlp), or its metric http.client.request.duration over Prometheus; or a Server-Timing header or log with them. Without any of these, the app's connections that await an answer (--watch server:PORT of the app): by Little's law they are the wait of a request.",
    predicts: "The wait for the downstream service makes up the excess; it is longer than in the baseline window, if there is one.",
    clears: "The wait for downstream services is a small share of the delay, and not a large part of worker-hold time.",
    looks_like: "Workers that are all busy: if the downstream service is as fast as before, there are too few workers; if it has become slow, it holds them, and they are the symptom. Without a baseline window its wait counts as slow if it takes half of the objective, or without one 100 ms. An exhausted connection pool, if a connection is held during the call: the pool is then the symptom. A network in between that loses packets: the downstream service's own timing is short.",
    fix: "A deadline and a fallback for the call; no lock and no pooled connection held meanwhile; calls in parallel or batched; then the downstream service itself.",
    prove: "The same load again: the downstream part of the ledger is that of the baseline window.",
    references: "OpenTelemetry semantic conventions, HTTP client spans and metrics; M. Nygard, Release It!, Timeouts and Circuit Breaker; Google SRE Book, Addressing Cascading Failures; R. B. Miller, Response Time in Man-Computer Conversational Transactions, 1968 (0.1 s).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "ss -tnp state established on the app's machine",
    1,
    "which service the app's connections wait for",
);

/// Slow wait without baseline window and objective, milliseconds: users do not feel less (R. B.
/// Miller 1968; J. Nielsen, "Usability Engineering", 1993, ch. 5).
const SLOW_BY_ITSELF_MS: f64 = 100.0;

/// Share (0-1) of the objective it may take without a baseline, and of worker-hold time.
const HALF: f64 = 0.5;

const ENABLE: &str = "--watch server:PORT of the app; --watch otlp with the app's OpenTelemetry exporter pointed at it, or --watch prometheus:http://APP/metrics with http.client.request.duration";

/// How long requests wait for downstream services.
struct DownstreamWait {
    /// Milliseconds of a mean request.
    ms: f64,
    /// The same in the baseline window, if there was one.
    baseline_ms: Option<f64>,
    /// By downstream service: how much more than in the baseline window.
    growth_ms: BTreeMap<String, f64>,
    evidence: Evidence,
    /// The chance that it alone would be right.
    weight: Strength,
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if by_services::can_judge(case) {
        return by_services::judge(case);
    }
    let by_metrics = || match (by_metrics(case), outside::waited(case)) {
        // The app's own time of a call includes its wait for a CPU once the answer is there: the kernel's does not.
        (Ok(timed), Some(awaited)) if awaited.ms >= HALF * timed.ms => Ok(timed),
        (Err(missing), None) => Err(missing),
        (Ok(timed), None) => Ok(timed),
        (_, Some(awaited)) => Ok(awaited),
    };
    let waited = by_spans(case).map_or_else(by_metrics, Ok)?;
    let explains_ms = (waited.ms - waited.baseline_ms.unwrap_or(0.0)).max(0.0);
    let before =
        waited.baseline_ms.map_or_else(String::new, |baseline| format!(", {} in the baseline window", ms(baseline)));
    let text = format!("a request waited {} for downstream services{before}", ms(waited.ms));
    let expected = waited.baseline_ms.map_or_else(|| "a small share of the delay".to_owned(), ms);
    let mut evidence = vec![waited.evidence.saying(expected, text)];
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    if let Some(held) = workers::waits_for_workers(case) {
        let said = evidence[0].clone();
        let of = format!("{} of the {} that it holds a worker", percent((waited.ms / held.ms).min(1.0)), ms(held.ms));
        // Without a baseline window, only the size of the wait shows whether it is unusual.
        if waited.baseline_ms.is_none() && waited.ms < slow_by_itself_ms(case) {
            let text = format!("that is {of}, and not unusual for this work: there are too few workers for it");
            return Ok(Outcome::Cleared(vec![said.saying("", text)]));
        }
        evidence.push(said.saying("", format!("that is {of}: other requests wait until it is free")));
    }
    let mut weights = vec![waited.weight];
    let most = waited.growth_ms.iter().max_by(|a, b| a.1.total_cmp(b.1)).filter(|(name, _)| !name.is_empty());
    if let Some((name, of_it)) = most {
        let share = percent((of_it / explains_ms.max(1e-9)).clamp(0.0, 1.0));
        let said = evidence[0].clone().saying("", format!("{share} of that was for {name}: {}", ms(*of_it)));
        evidence.push(said);
        weights.push(WEAK);
    }
    let name = most.map_or("the downstream service", |(name, _)| name.as_str());
    let fix = Fix::advice;
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![
            fix(
                format!("Hold no pooled connection and no lock while calling {name}."),
                Some("Statements of one transaction must stay together."),
            ),
            fix(
                format!("Give the call of {name} a deadline and a fallback."),
                Some("Some requests are then answered without its data."),
            ),
            fix(format!("Diagnose {name} with holdup: that service is slow."), None),
        ],
        prove: "Run the same scenario again: the downstream part leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

/// How long a downstream service may take before it counts as slow without a baseline window.
fn slow_by_itself_ms(case: &Case<'_>) -> f64 {
    let limits = case.objectives.iter().map(|o| &o.judgement).filter(|j| j.unit == Unit::Ms).map(|j| j.limit);
    limits.reduce(f64::min).map_or(SLOW_BY_ITSELF_MS, |limit| HALF * limit)
}

/// From spans, of single requests or of traces alone, if most requests can be followed.
fn by_spans(case: &Case<'_>) -> Option<DownstreamWait> {
    let has_any = case.recording.tables.spans.rows.iter().any(|s| s.resource == "http");
    let wait = app_waits::waited_for(case, Owner::Downstream, Resource::Http).filter(|_| has_any)?;
    let labels = Labels::new([("resource", "http")]);
    let evidence = Evidence::new("spans", "duration_ns", labels, case.slow().window, super::ms(wait.ms), "", "");
    let AppWait { ms, baseline_ms, growth_ms } = wait;
    Some(DownstreamWait { ms, baseline_ms, growth_ms, evidence, weight: CERTAIN })
}

/// Labels that name the other side, newest convention first.
const NAMES: [&str; 3] = ["server_address", "net_peer_name", "http_host"];

/// From the app's metrics.
fn by_metrics(case: &Case<'_>) -> Result<DownstreamWait, Missing> {
    let view = case.slow();
    let mean = view.mean(timing::HTTP_CLIENT, &[], ENABLE)?;
    let ms = per_request(case, &view, &[]).unwrap_or(0.0);
    let baseline_ms = case.baseline().and_then(|baseline| per_request(case, &baseline, &[]));
    let evidence = mean.evidence(super::ms(ms), "", "");
    Ok(DownstreamWait { ms, baseline_ms, growth_ms: growth_by_metrics(case), evidence, weight: STRONG })
}

/// Milliseconds of a mean request in `view`, from the app's metrics with `labels`.
fn per_request(case: &Case<'_>, view: &View<'_>, labels: &[(&str, &str)]) -> Option<f64> {
    let mean = view.mean(timing::HTTP_CLIENT, labels, ENABLE).ok()?;
    Some(mean.ms * mean.count / case.completed_in(view.window).ok()?.max(1.0))
}

fn growth_by_metrics(case: &Case<'_>) -> BTreeMap<String, f64> {
    let (view, baseline) = (case.slow(), case.baseline());
    let mut growth = BTreeMap::new();
    for label in NAMES {
        let names = view.label_values(&format!("{}_sum", timing::HTTP_CLIENT), label);
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let labels = [(label, name.as_str())];
            let before = baseline.as_ref().and_then(|baseline| per_request(case, baseline, &labels)).unwrap_or(0.0);
            let waited = per_request(case, &view, &labels).unwrap_or(0.0) - before;
            growth.entry(name).or_insert(waited);
        }
    }
    growth
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Span;

    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_signals::app::accounts::testing::{ALL, Injected, NONE, ReportingSources, made};

    const SLOW: Injected = Injected { downstream: 60.0, ..NONE };

    #[test]
    fn a_slow_neighbour_is_named_by_its_spans() {
        let diagnosis = made(SLOW, ALL).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::DownstreamSlow), "{}", diagnosis.headline);
        let finding = &diagnosis.findings[0];
        assert!((finding.explains_ms - 60.0).abs() < 2.0, "{finding:?}");
        assert!(finding.evidence[1].text.contains("stock.example"), "{:?}", finding.evidence);
    }

    #[test]
    fn other_delays_clear_it_only_with_an_account_of_calls() {
        let other = Injected { downstream: 0.0, pool: 60.0, ..SLOW };
        assert_eq!(made(other, ALL).explains(&DEFINITION), Some(0.0));
        assert_eq!(made(SLOW, ReportingSources { spans: false, ..ALL }).explains(&DEFINITION), None);
    }

    #[test]
    fn metrics_tell_without_spans() {
        let untold = made(SLOW, ReportingSources { spans: false, ..ALL });
        let rate = holdup_signals::app::accounts::testing::RATE as f64;
        let labels = [("server_address", "stock.example")];
        let told = untold
            .counter("prometheus:app", "http_client_request_duration_seconds_count", &labels, rate)
            .counted("prometheus:app", "http_client_request_duration_seconds_sum", &labels, |s| {
                let slow = (s - holdup_signals::app::accounts::testing::BASELINE_S).max(0) as f64;
                rate * (0.002 * s as f64 + 0.06 * slow)
            });
        let ms = told.explains(&DEFINITION).unwrap();
        assert!((ms - 60.0).abs() < 6.0, "{ms}");
    }

    /// Ten requests a second for a minute, which ask two services at once; one of them takes 190 ms
    /// instead of 20 from second 40 on. As an import of traces has them: with their counts and sums,
    /// and nothing else.
    fn traces_alone() -> SyntheticRecording {
        let span = |number: i64, id: &str, resource: &str, from_ms: i64, took_ms: i64| Span {
            started_at: number * 100_000_000 + from_ms * 1_000_000,
            duration_ns: took_ms * 1_000_000,
            source: "otlp".into(),
            service: "shop".into(),
            trace_id: format!("{:032x}", number + 1),
            span_id: Some(format!("{id}{number}")),
            parent_id: (id != "root").then(|| format!("root{number}")),
            name: format!("GET /{id}"),
            kind: if id == "root" { "server" } else { "client" }.into(),
            resource: resource.into(),
            system: (resource == "http").then(|| format!("{id}.example")),
            ..Span::default()
        };
        let rows = (0..600).flat_map(|number| {
            let slow_ms = if number < 400 { 20 } else { 190 } + number % 3;
            [
                span(number, "root", "request", 0, slow_ms.max(40) + 10),
                span(number, "stock", "http", 5, slow_ms),
                span(number, "price", "http", 5, 40),
            ]
        });
        let rows: Vec<Span> = rows.collect();
        let sum = |second: i64| 10.0 * (0.05 * second as f64 + 0.151 * (second - 40).max(0) as f64);
        SyntheticRecording::new(60)
            .counter("import:traces", "http_server_request_duration_seconds_count", &[], 10.0)
            .counted("import:traces", "http_server_request_duration_seconds_sum", &[], sum)
            .tables(|tables| {
                tables.requests.rows.clear();
                (tables.spans.present, tables.spans.rows) = (true, rows);
            })
    }

    #[test]
    fn traces_alone_name_the_service_that_the_path_runs_through() {
        let diagnosis = traces_alone().diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::DownstreamSlow), "{}", diagnosis.headline);
        let finding = &diagnosis.findings[0];
        assert!((finding.explains_ms - 151.0).abs() < 2.0, "{finding:?}");
        assert!(finding.evidence.iter().any(|e| e.text.contains("stock.example")), "{:?}", finding.evidence);
        // Most causes were not judged; none of them can be in time that the calls took.
        assert!(finding.confidence >= 0.7, "{}", finding.confidence);
    }
}
