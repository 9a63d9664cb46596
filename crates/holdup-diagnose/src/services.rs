//! What traces show beside the verdict, as data and as text: the services of the episode, and one
//! request as a waterfall.

use std::fmt::Write as _;

use holdup_recording::words::{percent, round};
use holdup_signals::app::accounts::trace_number;
use holdup_signals::app::waterfall::waterfall;
use serde::{Deserialize, Serialize};

use crate::case::Case;
pub use crate::resources::services::ServiceRow;
use crate::resources::services::Services;

/// Services that the table shows at most: those that lost most time, or failed most.
const ROWS: usize = 15;

/// Characters of a bar over the whole request.
const BAR: usize = 40;

/// The services as traces show them; empty without traces.
pub fn report(case: &Case<'_>) -> Vec<ServiceRow> {
    let mut rows = Services::measure(case).map(|services| services.rows.clone()).unwrap_or_default();
    for row in &mut rows {
        let figures = [&mut row.own_ms, &mut row.way_ms, &mut row.stores_ms, &mut row.calls];
        figures.into_iter().for_each(|ms| *ms = round(*ms, 3));
        let before = [&mut row.own_before_ms, &mut row.calls_before, &mut row.errors_before];
        before.into_iter().flatten().for_each(|value| *value = round(*value, 4));
        [&mut row.errors, &mut row.failed_first].into_iter().for_each(|share| *share = round(*share, 4));
    }
    rows
}

/// The table of the services, a line each under a header; empty without any.
pub fn table(rows: &[ServiceRow]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    let name = rows.iter().map(|row| row.service.chars().count()).max().unwrap_or(0).clamp(7, 32);
    let _ = writeln!(
        text,
        "{:<name$} {:>12} {:>12} {:>9} {:>9} {:>9} {:>9}",
        "service", "own ms", "before", "calls", "before", "errors", "before"
    );
    for row in rows.iter().take(ROWS) {
        let shown: String = printable(&row.service).chars().take(name).collect();
        let or_dash =
            |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        let before = row.errors_before.map_or("-".to_owned(), percent);
        let _ = writeln!(
            text,
            "{shown:<name$} {:>12.1} {:>12} {:>9.2} {:>9} {:>9} {before:>9}",
            row.own_ms,
            or_dash(row.own_before_ms, 1),
            row.calls,
            or_dash(row.calls_before, 2),
            percent(row.errors),
        );
    }
    if rows.len() > ROWS {
        let _ = writeln!(text, "and {} more", rows.len() - ROWS);
    }
    text
}

/// A name as it may be printed: it cannot act on the terminal.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// One span of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaterfallSpan {
    /// How many spans lie above it.
    pub depth: usize,
    /// The service that reported it.
    pub service: String,
    /// Its name.
    pub name: String,
    /// The kind of time, as the table `spans` has it.
    pub resource: String,
    /// Its start after that of the request, milliseconds.
    pub from_ms: f64,
    /// Its duration, milliseconds.
    pub took_ms: f64,
    /// The part that the request waited for and that no span below has, milliseconds.
    pub own_ms: f64,
    /// Whether it failed.
    pub has_failed: bool,
}

/// The spans of one request, parents before what they set off; none without spans of that trace. An id with fewer
/// digits is that of a tracer with shorter ones.
pub fn request(case: &Case<'_>, trace_id: &str) -> Option<Vec<WaterfallSpan>> {
    let wanted = trace_number(&format!("{:0>32}", trace_id.trim().to_ascii_lowercase()))?;
    let trace = case
        .sources()
        .traces()
        .find(|trace| trace.first().is_some_and(|span| trace_number(&span.trace_id) == Some(wanted)))?;
    let ms = |ns: i64| round(ns as f64 / 1e6, 3);
    let row = |row: &holdup_signals::app::waterfall::WaterfallRow<'_>| WaterfallSpan {
        depth: row.depth,
        service: row.span.service.clone(),
        name: row.span.name.clone(),
        resource: row.span.resource.clone(),
        from_ms: ms(row.from_ns),
        took_ms: ms(row.took_ns),
        own_ms: ms(row.own_ns),
        has_failed: row.span.status == "error",
    };
    let rows: Vec<WaterfallSpan> = waterfall(&trace).iter().map(row).collect();
    (!rows.is_empty()).then_some(rows)
}

/// The same as text: start, duration, own time, a bar over the request, and the span.
pub fn waterfall_text(rows: &[WaterfallSpan]) -> String {
    let end = rows.iter().map(|row| row.from_ms + row.took_ms).fold(0.0, f64::max).max(1e-9);
    let mut text = format!("{:>10} {:>10} {:>10}  {:<BAR$}  span\n", "from ms", "took ms", "own ms", "");
    for row in rows {
        let place = |ms: f64| ((ms / end).clamp(0.0, 1.0) * BAR as f64).round() as usize;
        let (from, to) = (place(row.from_ms).min(BAR - 1), place(row.from_ms + row.took_ms));
        let bar = format!("{}{}", " ".repeat(from), "█".repeat(to.saturating_sub(from).max(1)));
        let failed = if row.has_failed { "  FAILED" } else { "" };
        let indent = "  ".repeat(row.depth.min(20));
        let _ = writeln!(
            text,
            "{:>10.1} {:>10.1} {:>10.1}  {bar:<BAR$}  {indent}{}: {}{failed}",
            row.from_ms,
            row.took_ms,
            row.own_ms,
            printable(&row.service),
            printable(&row.name)
        );
    }
    text
}
