//! The joined accounts of single requests: how many were joined, and one request's own ledger.

use std::fmt::Write as _;

use holdup_diagnose::verdict::{AccountsReport, Diagnosis, RequestReport};

use super::words::part;
use super::{BAR, BOLD, DIM, bar, wrap};

/// The number of joined requests, and the slowest of them, after the ledger.
pub(super) fn accounts(out: &mut String, d: &Diagnosis) {
    let Some(accounts) = &d.accounts else { return };
    wrap(out, "  ", &format!("{}.", accounts.text));
    if let Some(sampling) = &accounts.sampling {
        wrap(out, "  ", &format!("But {sampling}."));
    }
    // A check that agrees needs no line.
    for check in accounts.checks.iter().filter(|c| !c.agrees) {
        wrap(out, "  ", &format!("{}: {}.", part(&check.part), check.text));
    }
    if d.symptom.is_some() {
        slowest(out, accounts);
    }
}

fn slowest(out: &mut String, accounts: &AccountsReport) {
    let Some(one) = accounts.examples.iter().find(|r| r.joined) else { return };
    let parts: Vec<String> = line_up(one).iter().map(|(name, ms)| format!("{} {ms:.1}", part(name))).collect();
    wrap(
        out,
        "  ",
        &format!("The slowest joined request, {} ({:.1} ms): {}.", one.trace_id, one.response_ms, parts.join(", ")),
    );
}

/// The parts that took at least half a percent of it.
fn line_up(one: &RequestReport) -> Vec<(&str, f64)> {
    let parts = one.parts.iter().map(|p| (p.part.as_str(), p.ms));
    let all = parts.chain([("unexplained", one.unexplained_ms)]);
    all.filter(|(_, ms)| ms.abs() >= 0.005 * one.response_ms).collect()
}

/// One request: its ledger and its waits.
pub fn request(one: &RequestReport) -> String {
    let mut out = String::new();
    let joined = if one.joined { "both accounts joined" } else { "one account" };
    let _ = writeln!(
        out,
        "{BOLD}{}{BOLD:#} {DIM}({}, due at {:.3} s, {}, {} database calls, {joined}){DIM:#}",
        one.trace_id, one.operation, one.at_s, one.outcome, one.calls
    );
    let _ = writeln!(out, "  {:<26}{:>10.3} ms", "response", one.response_ms);
    let parts = one.parts.iter().map(|p| (p.part.as_str(), p.ms, p.error_ms));
    for (name, ms, error_ms) in parts.chain([("unexplained", one.unexplained_ms, 0.0)]) {
        let share = ms / one.response_ms.max(1e-9);
        let error = if error_ms > 0.0 { format!("± {error_ms:.3}") } else { String::new() };
        let name = part(name);
        let line = format!("  {name:<26}{ms:>10.3} ms {error:<10} {:>3.0} %  {}", share * 100.0, bar(share, BAR));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if !one.waits.is_empty() {
        let _ = writeln!(out, "{BOLD}Waits of the app{BOLD:#} {DIM}(from the time it was due){DIM:#}");
    }
    for wait in &one.waits {
        let from = wait.from_ms.map_or_else(|| "sum".to_owned(), |ms| format!("{ms:.1}"));
        let calls = if wait.calls > 1 { format!(" ({} calls)", wait.calls) } else { String::new() };
        wrap(
            &mut out,
            &format!("  {from:>10} {:>10.1} ms  {:<10}", wait.ms, wait.resource),
            &format!("{}{calls}", wait.what),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_whole_and_cannot_act_on_the_terminal() {
        let json = serde_json::json!({
            "trace_id": "00000000000000000000000000000abc", "operation": "get", "at_s": 1.5, "outcome": "ok", "response_ms": 100.0,
            "joined": true, "calls": 3, "unexplained_ms": 1.0,
            "parts": [{"part": "database_admission_queue", "ms": 99.0, "error_ms": 0.06}],
            "waits": [{"resource": "database", "what": "SELECT\u{1b}[2J ?", "from_ms": 1.25, "ms": 99.0, "calls": 3}],
        });
        let text = request(&serde_json::from_value(json).unwrap());
        assert!(
            text.contains("database admission queue") && text.contains("± 0.060") && text.contains("(3 calls)"),
            "{text}"
        );
        assert!(!text.contains("\u{1b}[2J"), "{text}");
    }
}
