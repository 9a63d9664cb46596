//! The execution and the plan in a message: `duration: 12.345 ms  statement: …`, `… execute NAME:
//! …`, or auto_explain's `… plan:` including the statement, in each of its four formats.

use holdup_recording::rows::{Plan, Statement};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::{Entry, Form};
use crate::plans::{postgresql, row, text};
use crate::postgres::server::MARKER;

/// The row of an execution; `now` stands for a missing time.
pub(super) fn from_entry(entry: &Entry, form: &Form, source: &str, now: i64) -> Option<Statement> {
    let (milliseconds, what, sql) = parts(entry)?;
    let sql = match what {
        "statement" => sql.to_owned(),
        "plan" if form.statement_threshold_ms.is_none_or(|threshold| milliseconds < threshold) => planned(sql)?,
        _ if what.starts_with("execute ") => sql.to_owned(),
        // Parse and bind are logged separately and are not the execution.
        _ => return None,
    };
    let sql = sql.trim();
    if sql.is_empty() || sql.starts_with(MARKER) {
        return None;
    }
    let text = digest_text(sql, Dialect::PostgreSql);
    Some(Statement {
        observed_at: entry.at.unwrap_or(now),
        source: source.to_owned(),
        kind: "execution".to_owned(),
        session_id: entry.pid,
        digest: digest_of_text(&text),
        digest_text: text,
        database: entry.database.clone(),
        calls: 1,
        duration_ns: (milliseconds * 1e6).round() as i64,
        trace_id: trace_id(sql, Dialect::PostgreSql),
        ..Statement::default()
    })
}

/// Milliseconds, the kind of message, and the rest.
fn parts(entry: &Entry) -> Option<(f64, &str, &str)> {
    if entry.severity != "LOG" && entry.severity != "INFO" {
        return None;
    }
    let (milliseconds, rest) = entry.message.strip_prefix("duration: ")?.split_once(" ms")?;
    let milliseconds: f64 = milliseconds.parse().ok().filter(|value| (0.0..1e12).contains(value))?;
    let (what, rest) = rest.trim_start().split_once(':')?;
    Some((milliseconds, what, rest))
}

/// The plan in an auto_explain entry, in its text or JSON format.
pub(super) fn plan(entry: &Entry, source: &str, now: i64) -> Option<Plan> {
    let (milliseconds, what, rest) = parts(entry)?;
    let rest = rest.trim_start();
    let (sql, tree) = match what {
        "plan" if rest.starts_with('{') => (postgresql::statement(rest)?, postgresql::tree(rest)?),
        "plan" => text::split(rest).and_then(|(sql, plan)| Some((sql.to_owned(), text::tree(plan)?)))?,
        _ => return None,
    };
    let sql = sql.trim();
    if sql.is_empty() || sql.starts_with(MARKER) {
        return None;
    }
    Some(Plan {
        observed_at: entry.at.unwrap_or(now),
        source: source.to_owned(),
        session_id: entry.pid,
        database: entry.database.clone(),
        duration_ns: Some((milliseconds * 1e6).round() as i64),
        trace_id: trace_id(sql, Dialect::PostgreSql),
        ..row("auto_explain", &tree, digest_text(sql, Dialect::PostgreSql))
    })
}

/// The statement in a plan.
fn planned(plan: &str) -> Option<String> {
    let plan = plan.trim_start();
    if let Some((_, xml)) = plan.split_once("<Query-Text>") {
        let text = xml.split_once("</Query-Text>").map_or(xml, |(text, _)| text);
        return Some(text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"));
    }
    if let Some(json) = plan.strip_prefix('{').and_then(|json| json.trim_start().strip_prefix("\"Query Text\":")) {
        return string(json.trim_start());
    }
    if let Some((sql, _)) = text::split(plan) {
        return Some(sql.to_owned());
    }
    let text = plan.strip_prefix("Query Text: ")?;
    // YAML quotes it like JSON.
    if text.starts_with('"') {
        return string(text);
    }
    // The statement ends where the parameters or the plan's first node start.
    let is_sql = |line: &&str| !line.contains("  (cost=") && !line.starts_with("Query Parameters: ");
    Some(text.lines().take_while(is_sql).collect::<Vec<_>>().join("\n"))
}

/// The JSON string at the start of `text`.
fn string(text: &str) -> Option<String> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return serde_json::from_str(text.get(..=at)?).ok(),
            _ => {}
        }
    }
    None
}
