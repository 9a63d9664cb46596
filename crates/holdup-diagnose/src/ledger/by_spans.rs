//! The ledger of traces alone, as an import of them has it: without rows of requests, the service's own
//! spans are the requests. Each is split along its critical path, so its parts are its duration.

use crate::gains::{CriticalPathReport, gains};
use holdup_recording::words::round;
use holdup_signals::app::accounts::{Owner, Resource};
use holdup_signals::app::traced::{self, Operation, Requests};

use super::{BANDS, LedgerRow, Part};
use crate::case::Case;
use crate::resources::app_waits;

const PARTS: [(Owner, Option<Resource>); 6] = [
    (Owner::PoolWait, Some(Resource::Pool)),
    (Owner::Downstream, Some(Resource::Http)),
    (Owner::Cache, Some(Resource::Cache)),
    (Owner::Queue, Some(Resource::Queue)),
    (Owner::AppOther, None),
    (Owner::Database, Some(Resource::Database)),
];

/// The critical paths of the episode, or of everything if nothing is degraded.
pub(crate) fn critical_paths(case: &Case<'_>) -> Vec<CriticalPathReport> {
    let window = case.episode();
    gains(&Requests::collect(case.sources(), window).operations())
}

/// One request: its duration and its parts, milliseconds.
struct Split {
    took_ms: f64,
    parts_ms: [f64; PARTS.len()],
}

/// The rows of the service in front; none if its spans cover less than half of the requests that were
/// counted.
pub(super) fn rows(case: &Case<'_>) -> Vec<LedgerRow> {
    let window = case.episode();
    let requests = Requests::collect(case.sources(), window);
    app_waits::front(case, &requests, window).iter().flat_map(of_operation).collect()
}

fn of_operation(operation: &Operation<'_, '_>) -> Vec<LedgerRow> {
    let mut all: Vec<Split> = operation
        .trees()
        .filter_map(|request| {
            let account = traced::account(&request)?;
            let took_ms = request.tree.duration_ns() as f64 / 1e6;
            let mut parts_ms = PARTS.map(|(_, resource)| resource.map_or(0.0, |resource| account.waited_ms(resource)));
            let waited_ms: f64 = parts_ms.iter().sum();
            for (ms, _) in parts_ms.iter_mut().zip(PARTS).filter(|(_, (owner, _))| *owner == Owner::AppOther) {
                *ms = (took_ms - waited_ms).max(0.0);
            }
            Some(Split { took_ms, parts_ms })
        })
        .collect();
    all.sort_by(|a, b| a.took_ms.total_cmp(&b.took_ms));
    let place = |ratio: f64| (ratio * all.len() as f64).floor() as usize;
    let bands = BANDS.iter().map(|(band, from, to)| (*band, &all[place(*from)..place(*to)]));
    let filled = bands.filter(|(_, slice)| !slice.is_empty());
    let scale = operation.count() as f64 / all.len().max(1) as f64;
    filled.map(|(band, slice)| row(operation.name, band, slice, scale)).collect()
}

/// A band's row; each of its requests stands for `scale`.
fn row(operation: &str, band: &str, slice: &[Split], scale: f64) -> LedgerRow {
    let mean = |of: &dyn Fn(&Split) -> f64| slice.iter().map(of).sum::<f64>() / slice.len() as f64;
    let response_ms = mean(&|split| split.took_ms);
    let amounts = PARTS.iter().enumerate().map(|(i, (owner, _))| (owner.name(), mean(&|split| split.parts_ms[i])));
    let parts: Vec<Part> = amounts
        .filter(|(_, ms)| round(*ms, 3) > 0.0)
        .map(|(part, ms)| Part { part: part.to_owned(), ms: round(ms, 3), error_ms: 0.0 })
        .collect();
    let residual_ms = round(response_ms - parts.iter().map(|part| part.ms).sum::<f64>(), 3);
    LedgerRow {
        operation: operation.to_owned(),
        band: band.to_owned(),
        requests: (slice.len() as f64 * scale).round() as u64,
        response_ms: round(response_ms, 3),
        parts,
        residual_ms,
    }
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Span;

    use super::super::ledger;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn calls_at_once_add_up_to_the_request() {
        let span = |number: i64, id: &str, resource: &str, (from_ms, to_ms): (i64, i64)| Span {
            started_at: (number * 100 + from_ms) * 1_000_000,
            duration_ns: (to_ms - from_ms) * 1_000_000,
            source: "otlp".into(),
            service: "shop".into(),
            trace_id: format!("{:032x}", number + 1),
            span_id: Some(format!("{id}{number}")),
            parent_id: (id != "root").then(|| format!("root{number}")),
            name: id.into(),
            kind: if id == "root" { "server" } else { "client" }.into(),
            resource: resource.into(),
            ..Span::default()
        };
        let rows: Vec<Span> = (0..40)
            .flat_map(|n| {
                [
                    span(n, "root", "request", (0, 100)),
                    span(n, "rows", "database", (10, 60)),
                    span(n, "stock", "http", (10, 90)),
                    span(n, "audit", "queue", (95, 150)),
                ]
            })
            .collect();
        let made = SyntheticRecording::new(4).tables(|tables| {
            tables.requests.rows.clear();
            (tables.spans.present, tables.spans.rows) = (true, rows);
        });
        let rows = made.with(ledger);
        let all = rows.iter().find(|row| row.band == "all").expect("a row");
        let parts: Vec<(&str, f64)> = all.parts.iter().map(|part| (part.part.as_str(), part.ms)).collect();
        assert_eq!((all.requests, all.response_ms, all.residual_ms), (40, 100.0, 0.0));
        assert_eq!(parts, [("downstream", 80.0), ("app_other", 20.0)]);
        // 10 requests a second have spans; of 30 that were counted they are too few to stand for all.
        let counted = made.counter("prometheus:app", "http_server_request_duration_seconds_count", &[], 30.0).counter(
            "prometheus:app",
            "http_server_request_duration_seconds_sum",
            &[],
            3.0,
        );
        assert!(counted.with(super::rows).is_empty());
    }
}
