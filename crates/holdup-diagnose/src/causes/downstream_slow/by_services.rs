//! From traces of single requests alone: the deepest service whose own time grew. Its callers take
//! longer, too, but only because they wait for it.

use holdup_signals::Missing;

use super::super::{CauseFinding, Outcome, Role, ms};
use crate::case::Case;
use crate::change::Fix;
use crate::resources::is_too_small;
use crate::resources::services::Services;
use crate::resources::slow_service::{SlowService, of};

/// The cause by traces: a service behind the one in front.
pub(super) fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let services = Services::measure(case)?;
    let Some(slow) = SlowService::find(case, &services).filter(|slow| !slow.is_front) else {
        return cleared(case, &services);
    };
    if is_too_small(case, slow.ms)? {
        return Ok(Outcome::Cleared(slow.evidence));
    }
    let name = &slow.service;
    Ok(Outcome::Found(CauseFinding {
        explains_ms: slow.ms,
        fixes: vec![
            Fix {
                text: format!("Look at {name} itself with holdup on its host: its CPU, its locks, its database."),
                command: None,
                keep: None,
                risk: None,
            },
            Fix {
                text: format!("Give the calls of {name} a deadline and a fallback."),
                command: None,
                keep: None,
                risk: Some("Some requests are then answered without its data.".to_owned()),
            },
        ],
        evidence: slow.evidence,
        weights: slow.weights,
        prove: format!("Import traces of a later time: {name}'s own time is that of the baseline window."),
        role: Role::Root,
    }))
}

fn cleared(case: &Case<'_>, services: &Services) -> Result<Outcome, Missing> {
    let behind = services.rows.iter().find(|row| row.service != services.front && row.growth.is_some());
    let Some((row, growth)) = behind.and_then(|row| Some((row, row.growth?))) else {
        let enable = "traces of a healthy time before, or --against a recording of one";
        return Err(Missing::new("traces of a baseline window to compare with", enable));
    };
    let text = format!(
        "no service behind {} took clearly longer than in the baseline window: most did {}, by {}",
        services.front,
        row.service,
        ms(growth.ms.max(0.0))
    );
    Ok(Outcome::Cleared(vec![of(case, row, ms(growth.ms.max(0.0)), "a large part of the delay", text)]))
}

/// Whether traces alone say how requests fared.
pub(super) fn can_judge(case: &Case<'_>) -> bool {
    Services::measure(case).is_ok_and(|services| services.requests.1 > 0)
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Span;

    use crate::causes::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// Ten requests a second for a minute of `front`, which asks `middle`, which asks `deep`. From second 40 on `deep`
    /// takes `slow_ms` instead of 20, and the front itself `front_ms` instead of 5. Clocks are 2 ms apart.
    fn chain(slow_ms: i64, front_ms: i64) -> SyntheticRecording {
        let span = |number: i64, depth: i64, kind: &str, from_ms: i64, took_ms: i64| {
            let service = ["front", "middle", "deep"][usize::try_from(depth / 2).unwrap_or(0)];
            let skew = 2_000_000 * (depth / 2);
            Span {
                started_at: number * 100_000_000 + from_ms * 1_000_000 + skew,
                duration_ns: took_ms * 1_000_000,
                source: "otlp:t.json".into(),
                service: service.into(),
                trace_id: format!("{:032x}", number + 1),
                span_id: Some(format!("{depth}-{number}")),
                parent_id: (depth > 0).then(|| format!("{}-{number}", depth - 1)),
                name: format!("GET /{service}"),
                kind: kind.into(),
                resource: if kind == "server" { "request" } else { "http" }.into(),
                ..Span::default()
            }
        };
        let rows = (0..600).flat_map(|number| {
            let is_slow = number >= 400;
            let (deep, own) = if is_slow { (slow_ms, front_ms) } else { (20, 5) };
            let deep = deep + number % 3;
            [
                span(number, 0, "server", 0, own + deep + 8),
                span(number, 1, "client", own, deep + 6),
                span(number, 2, "server", own + 1, deep + 4),
                span(number, 3, "client", own + 2, deep + 2),
                span(number, 4, "server", own + 3, deep),
            ]
        });
        let rows: Vec<Span> = rows.collect();
        SyntheticRecording::new(60).tables(|tables| {
            tables.requests.rows.clear();
            (tables.spans.present, tables.spans.rows) = (true, rows);
        })
    }

    #[test]
    fn the_deepest_service_is_named_and_not_the_one_that_the_front_calls() {
        let diagnosis = chain(190, 5).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::DownstreamSlow), "{}", diagnosis.headline);
        let first = &diagnosis.findings[0];
        assert_eq!(first.evidence[0].labels.get("service"), Some("deep"), "{:?}", first.evidence);
        let text = &first.evidence[0].text;
        assert!(text.starts_with("deep's own time grew from 2") && text.contains("its callers only wait"), "{text}");
        assert!((first.explains_ms - 170.0).abs() < 3.0, "{}", first.explains_ms);
    }

    #[test]
    fn the_front_s_own_time_is_its_own() {
        let diagnosis = chain(20, 190).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::WaitInApp), "{}", diagnosis.headline);
        assert_eq!(diagnosis.findings[0].evidence[0].labels.get("service"), Some("front"));
    }

    #[test]
    fn nothing_is_named_where_all_stays_as_it_was() {
        let diagnosis = chain(20, 5).diagnose();
        assert!(diagnosis.findings.is_empty() && diagnosis.symptom.is_none(), "{}", diagnosis.headline);
    }
}
