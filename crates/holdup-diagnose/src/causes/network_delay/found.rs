//! A slow way between database and clients as a finding: what shows it, and what to do.

use crate::change::Fix;
use holdup_recording::Labels;
use holdup_recording::metrics::tcp;
use holdup_signals::evidence::Evidence;

use super::CONFIRMS;
use crate::case::Case;
use crate::causes::{CauseFinding, Role, ms};
use crate::resources::database_path::{AwaitedBy, DatabasePath};
use crate::resources::statements;
use crate::strength::{FAIR, NONE, STRONG, Strength};

/// The finding by what the app awaits and what the database's sockets show.
pub(super) fn found(case: &Case<'_>, path: &DatabasePath, explains_ms: f64, awaited: Evidence) -> CauseFinding {
    let window = case.slow().window;
    let mut evidence = vec![awaited];
    let mut weights = vec![if path.awaited_by == AwaitedBy::App { FAIR } else { STRONG }];
    if let Some((now, before)) = path.statement_ms {
        let text = format!(
            "the server took {} for a statement, {} before: it does not work on what they wait for",
            ms(now),
            ms(before)
        );
        let labels = Labels::new([("kind", "digest_total")]);
        evidence.push(Evidence::new("statements", "duration_ns", labels, window, ms(now), ms(before), text));
        weights.push(FAIR);
    }
    let sample = |metric: &str, observed: String, expected: String, text: String| {
        let labels = Labels::new([("metric", metric), ("port", path.port.as_str()), ("side", "server")]);
        Evidence::new("samples", "value", labels, window, observed, expected, text)
    };
    if let Some((least, most)) = path.unacked_more_ms() {
        let middle = f64::midpoint(least, most);
        let text =
            format!("the server's answers stayed unacknowledged for {} of a request longer than before", ms(middle));
        evidence.push(sample(tcp::UNACKED_SEGMENTS.name, ms(middle), "0 ms".to_owned(), text));
        weights.push(if middle >= CONFIRMS * explains_ms { STRONG } else { NONE });
    }
    if let Some((now, before)) = path.round_trip_ms() {
        let text = format!(
            "the round trip of the slowest connection was {}, {} before, by the kernel's estimate",
            ms(now),
            ms(before)
        );
        evidence.push(sample(tcp::ROUND_TRIP.name, ms(now), ms(before), text));
        weights.push(NONE);
    }
    finding(case, explains_ms, evidence, weights)
}

/// The finding, with what to do.
pub(super) fn finding(
    case: &Case<'_>,
    explains_ms: f64,
    evidence: Vec<Evidence>,
    weights: Vec<Strength>,
) -> CauseFinding {
    let completed = case.completed_in(case.slow().window).unwrap_or(1.0).max(1.0);
    let calls = statements::calls_per_request(case, completed).filter(|calls| *calls >= 2.0);
    let calls = calls.map_or_else(String::new, |calls| format!(" A request sends {calls:.0}."));
    let fix =
        |text: String, command: Option<&str>| Fix { text, command: command.map(str::to_owned), keep: None, risk: None };
    CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![
            fix(
                "Measure the way from the app's machine and find what changed on it: the route, the region, a VPN, a full link, a bad port.".to_owned(),
                Some("mtr --tcp --port PORT --report ADDRESS; ss -tin state established '( dport = :PORT )'"),
            ),
            fix(format!("Send fewer statements one after another: join, batch, or pipeline them.{calls}"), None),
            fix("Run app and database in one zone, beside each other.".to_owned(), None),
        ],
        prove: "Run the same scenario again: requests await the database for as long as the server works on their statements.".to_owned(),
        role: Role::Root,
    }
}
