//! A service fails requests: its answers are errors, and those who called it fail with it.

use holdup_recording::Labels;
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, percent};
use crate::case::Case;
use crate::change::Fix;
use crate::failures::FAILURES_MATTER;
use crate::next_command::NextCommand;
use crate::resources::services::{ServiceRow, Services};
use crate::strength::{CERTAIN, FAIR, STRONG};

pub const DEFINITION: Definition =
    Definition { occurs: Occurs::Rarely, ..Definition::new(Cause::ServiceFails, DOC, Judge::Alone(judge), &NEXT) };

const DOC: Doc = Doc {
    title: "A service fails requests",
    what: "A service answers with errors, exceptions or failing return codes. Its callers pass the failure on, or do without its answer.",
    hurts: "Requests that need the service fail, however fast everything else is. Callers that try again add load to it.",
    needs: "Spans of single requests with their status: an import of traces, or --watch otlp. A status, error=true, an HTTP code from 500 on, a code of gRPC and an exception count.",
    predicts: "Most failed requests have the same deepest failed span: one service failed first, and more often than in the baseline window.",
    clears: "No service fails clearly more often than in the baseline window.",
    looks_like: "A slow service whose callers give up: their spans fail, and its own answers come late and without a failure. Then the wait is the cause.",
    fix: "Roll back the service's last change; read its log at the time of the first failure; give its callers a fallback and a limit for retries.",
    prove: "Traces of a later time: the service fails as rarely as in the baseline window.",
    references: "OpenTelemetry semantic conventions, Recording errors, HTTP spans, gRPC; M. Nygard, Release It!, Cascading Failures; Google SRE Book, Handling Overload.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "kubectl logs deploy/SERVICE --since=30m | grep -iE 'error|exception' | head -50",
    5,
    "what the service says of the requests that it fails",
);

/// From this share (0-1) of the failed requests on it is the reason of most.
const MOST: f64 = 0.5;

/// It fails this many times as often as in the baseline window, at least.
const MORE: f64 = 2.0;

/// Standard errors of the difference of two shares that chance does not reach.
const CLEAR: f64 = 4.0;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let services = Services::measure(case)?;
    let Some(row) = services.failing() else {
        let text = format!("none of {} requests failed in any service", services.requests.0);
        let evidence = Evidence::new("spans", "status", Labels::none(), case.episode(), "0", "some", text);
        return Ok(Outcome::Cleared(vec![evidence]));
    };
    let evidence = said(case, &services, row);
    if row.errors < FAILURES_MATTER || !is_more(&services, row) || case.degradation.is_none() {
        return Ok(Outcome::Cleared(evidence));
    }
    let name = &row.service;
    let failed = if services.failed > 0 { row.failed_first } else { 1.0 };
    let (first, before) = (if failed >= MOST { CERTAIN } else { STRONG }, row.errors_before.map_or(FAIR, |_| STRONG));
    let found = CauseFinding {
        explains_ms: 0.0,
        evidence,
        weights: vec![first, before],
        fixes: vec![
            Fix {
                text: format!("Read {name}'s log from the first failure on, and roll back its last change."),
                command: Some(format!("kubectl logs deploy/{name} --since=1h")),
                keep: None,
                risk: None,
            },
            Fix {
                text: format!("Give the callers of {name} a fallback, and a limit for retries."),
                command: None,
                keep: None,
                risk: Some("Some requests are then answered without its data.".to_owned()),
            },
        ],
        prove: format!("Import traces of a later time: {name} fails as rarely as in the baseline window."),
        role: Role::Root,
    };
    Ok(Outcome::Fails(found, failed))
}

/// Whether it fails clearly more often than in the baseline window, if there is one.
fn is_more(services: &Services, row: &ServiceRow) -> bool {
    let Some(before) = row.errors_before else { return true };
    let (count_now, count_before) = (services.requests.0.max(1) as f64, services.requests.1.max(1) as f64);
    // At least one failure each, so that none before is not certainty.
    let error = (row.errors.max(1.0 / count_now) / count_now + before.max(1.0 / count_before) / count_before).sqrt();
    row.errors >= MORE * before && row.errors - before >= CLEAR * error
}

fn said(case: &Case<'_>, services: &Services, row: &ServiceRow) -> Vec<Evidence> {
    let name = &row.service;
    let of = |column: &str, observed: String, expected: String, text: String| {
        let labels = Labels::new([("service", name.as_str()), ("status", "error")]);
        Evidence::new("spans", column, labels, case.episode(), observed, expected, text)
    };
    let (count, failed) = (services.requests.0, services.failed);
    let first = match failed {
        0 => format!("{name} failed in {} of {count} requests, which were answered all the same", percent(row.errors)),
        _ => format!("{failed} of {count} requests failed, {} of them first in {name}", percent(row.failed_first)),
    };
    let mut all = vec![of("status", percent(row.errors), "hardly any".to_owned(), first)];
    if let Some(before) = row.errors_before {
        let text = format!(
            "failures that began in {name}: {} of the requests, {} in the baseline window",
            percent(row.errors),
            percent(before)
        );
        all.push(of("status", percent(row.errors), percent(before), text));
    }
    all
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Span;

    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// Ten requests a second of a front that asks two services; of those from second 40 on every third fails because
    /// `stock` does, and passes it on if `is_passed_on`. A twentieth fails in `price` all along.
    fn made(is_passed_on: bool) -> SyntheticRecording {
        let span = |number: i64, service: &str, parent: Option<&str>, has_failed: bool| Span {
            started_at: number * 100_000_000,
            duration_ns: if parent.is_some() { 4_000_000 } else { 10_000_000 + number % 7 * 100_000 },
            source: "otlp:t.json".into(),
            service: service.into(),
            trace_id: format!("{:032x}", number + 1),
            span_id: Some(format!("{service}{number}")),
            parent_id: parent.map(|parent| format!("{parent}{number}")),
            name: "GET /".into(),
            kind: "server".into(),
            resource: "request".into(),
            status: if has_failed { "error" } else { "unset" }.into(),
            ..Span::default()
        };
        let rows = (0..600).flat_map(|number| {
            let (stock, price) = (number >= 400 && number % 3 == 0, number % 20 == 7);
            [
                span(number, "front", None, is_passed_on && (stock || price)),
                span(number, "stock", Some("front"), stock),
                span(number, "price", Some("front"), price),
            ]
        });
        let rows: Vec<Span> = rows.collect();
        SyntheticRecording::new(60).tables(|tables| {
            tables.requests.rows.clear();
            (tables.spans.present, tables.spans.rows) = (true, rows);
        })
    }

    #[test]
    fn the_service_that_failed_first_is_named() {
        for is_passed_on in [true, false] {
            let diagnosis = made(is_passed_on).diagnose();
            assert_eq!(diagnosis.culprit, Some(Cause::ServiceFails), "{}", diagnosis.headline);
            let finding = &diagnosis.findings[0];
            assert_eq!(finding.evidence[0].labels.get("service"), Some("stock"), "{:?}", finding.evidence);
            assert!(finding.confidence >= 0.5, "{}", finding.confidence);
            let symptom = diagnosis.symptom.unwrap_or_default();
            assert!(symptom.contains("requests failed"), "{symptom}");
            assert_eq!(symptom.contains("behind the one in front"), !is_passed_on, "{symptom}");
        }
    }

    #[test]
    fn as_many_failures_as_before_are_not_the_reason() {
        for is_passed_on in [true, false] {
            // `price` alone fails, from the first second to the last, as often as it ever did.
            let calm = made(is_passed_on).tables(|tables| {
                let is_of_price = |span: &Span| span.service != "stock" && span.started_at / 100_000_000 % 20 == 7;
                tables.spans.rows.iter_mut().filter(|span| !is_of_price(span)).for_each(|span| span.status.clear());
            });
            let diagnosis = calm.diagnose();
            let accused = diagnosis.findings.iter().any(|finding| finding.confidence >= 0.5);
            assert!(diagnosis.culprit.is_none() && !accused, "{}", diagnosis.headline);
        }
    }

    /// The same in an episode that has another reason: all the requests of `front` take long from second 40 on.
    #[test]
    fn failures_as_often_as_before_do_not_explain_an_episode() {
        let slow = made(true).tables(|tables| {
            for span in &mut tables.spans.rows {
                if span.service == "front" && span.started_at >= 40_000_000_000 {
                    span.duration_ns += 200_000_000;
                }
                if span.started_at / 100_000_000 % 20 != 7 || span.service == "stock" {
                    span.status.clear();
                }
            }
        });
        assert!(slow.diagnose().findings.iter().all(|finding| finding.cause != Cause::ServiceFails));
        assert_eq!(slow.explains(&DEFINITION), Some(0.0), "it is cleared");
    }

    #[test]
    fn calls_without_a_failure_name_no_service() {
        let calm = made(true).tables(|tables| {
            tables.spans.rows.iter_mut().for_each(|span| span.status.clear());
        });
        assert_eq!(calm.diagnose().culprit, None);
    }
}
