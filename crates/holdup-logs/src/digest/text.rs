//! A report for people in a terminal: a table of the statements by time, then each statement with
//! its figures. Names from a log cannot act on the terminal.

use std::fmt::Write as _;

use holdup_recording::words::{bytes, count};

use crate::digest::duration::time;
use crate::digest::report::{PartyCalls, Query, Report};

/// Widest line of a statement in the table.
const STATEMENT: usize = 60;
/// Lines of a statement in its own section.
const LINES: usize = 24;
/// Most plans shown of a statement.
const PLANS: usize = 3;
/// Bars of the time of day, lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Attributes with a fixed place above the others.
const APART: [&str; 1] = ["Query_time"];

/// Columns of the table.
pub const COLUMNS: [&str; 9] = ["rank", "id", "share", "total", "calls", "avg", "p95", "p99", "max"];

/// Shown for a figure that the server does not keep.
pub const UNKNOWN: &str = "-";

/// A time that may be unknown.
fn known(micros: Option<u64>) -> String {
    micros.map_or(UNKNOWN.to_owned(), |micros| time(micros.into()))
}

fn rounded(value: f64) -> u128 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "microseconds or counts, never negative"
    )]
    let whole = value.max(0.0).round() as u128;
    whole
}

/// A figure in its unit.
pub fn figure(unit: &str, value: u128) -> String {
    if unit == "us" { time(value) } else { count(value) }
}

/// The cells of a query's row, and its statement.
pub fn row(query: &Query) -> ([String; 9], String) {
    let cells = [
        query.rank.to_string(),
        query.id.clone(),
        format!("{:.1} %", query.share_ratio * 100.0),
        time(query.total_us),
        count(query.calls),
        time(rounded(query.avg_us)),
        known(query.p95_us),
        known(query.p99_us),
        known(query.max_us),
    ];
    let group: Vec<&str> = query.group.values().map(String::as_str).collect();
    let named = if group.is_empty() { String::new() } else { format!("[{}] ", group.join(", ")) };
    (cells, format!("{named}{}", query.fingerprint))
}

fn table_line(out: &mut String, cells: &[String; 9], statement: &str) {
    let [rank, id, share, total, calls, avg, p95, p99, max] = cells;
    let _ = write!(out, "{rank:>4}  {id:<16} {share:>6} {total:>9} {calls:>11} {avg:>8} {p95:>8} {p99:>8} {max:>8}");
    let _ = writeln!(out, "  {statement}");
}

/// A text without characters that control a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The text on one line, cut to a width.
fn line(text: &str, width: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let whole = clean(&words.join(" "));
    if whole.chars().count() <= width {
        return whole;
    }
    whole.chars().take(width.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

fn bars(hours: &[u64]) -> String {
    let most = hours.iter().copied().max().unwrap_or(0);
    let bar = |value: u64| match (value, most) {
        (0, _) | (_, 0) => ' ',
        _ => {
            let step = u128::from(value) * (BARS.len() as u128 - 1) / u128::from(most);
            usize::try_from(step).ok().and_then(|step| BARS.get(step)).copied().unwrap_or(' ')
        }
    };
    hours.iter().map(|value| bar(*value)).collect()
}

impl Report {
    /// The report as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.head(&mut out);
        self.table(&mut out);
        for query in &self.queries {
            section(&mut out, query);
        }
        self.history_text(&mut out);
        self.server_text(&mut out);
        self.problems_text(&mut out);
        out
    }

    fn head(&self, out: &mut String) {
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let size = bytes(self.files.iter().map(|file| file.bytes).sum::<u64>() as f64);
        let files =
            if let [file] = self.files.as_slice() { clean(&file.path) } else { format!("{} files", self.files.len()) };
        let mut kinds: Vec<&str> = self.files.iter().map(|file| file.format).collect();
        kinds.dedup();
        let _ = writeln!(out, "{files}: {size} of {}", kinds.join(", "));
        let _ = write!(out, "{} executions of {} statements", count(self.calls), count(self.distinct as u128));
        if self.events > self.calls {
            let _ = write!(out, " (of {} in the log)", count(self.events));
        }
        let _ = write!(out, ", {} in total", time(self.total_us));
        if let (Some(first), Some(last)) = (&self.first_seen, &self.last_seen) {
            let _ = write!(out, "\n{first} to {last}");
            if self.seconds >= 1.0 {
                #[expect(clippy::cast_precision_loss, reason = "a rate to look at")]
                let (rate, load) = (self.calls as f64 / self.seconds, self.total_us as f64 / 1e6 / self.seconds);
                let _ = write!(out, ": {rate:.1} a second, {load:.2} at a time");
            }
        }
        out.push_str("\n\n");
    }

    fn table(&self, out: &mut String) {
        if self.queries.is_empty() {
            out.push_str("no statements\n");
            return;
        }
        table_line(out, &COLUMNS.map(str::to_owned), "statement");
        for query in &self.queries {
            let (mut cells, statement) = row(query);
            cells[1] = clean(&cells[1]);
            table_line(out, &cells, &line(&statement, STATEMENT));
        }
        if self.not_listed > 0 {
            let listed: u128 = self.queries.iter().map(|query| query.total_us).sum();
            let _ = writeln!(
                out,
                "      {} more statements, {} in total (--limit 0 lists all)",
                self.not_listed,
                time(self.total_us.saturating_sub(listed + self.rest.as_ref().map_or(0, |rest| rest.total_us)))
            );
        }
        if let Some(rest) = &self.rest {
            let _ = writeln!(out, "      {}", rest.words(self.queries.len()));
        }
    }

    fn history_text(&self, out: &mut String) {
        let Some(history) = &self.history else { return };
        let _ = write!(out, "\ncompared with {} earlier runs: {} statements are new", history.runs, history.new.len());
        let _ = writeln!(out, ", {} are slower, {} of the last run are gone", history.slower.len(), history.gone);
        for (word, ids) in [("new", &history.new), ("slower", &history.slower)] {
            if !ids.is_empty() {
                let shown: Vec<String> = ids.iter().take(10).map(|id| clean(id)).collect();
                let _ = writeln!(out, "  {word} {}{}", shown.join(", "), if ids.len() > 10 { ", …" } else { "" });
            }
        }
    }

    fn server_text(&self, out: &mut String) {
        let Some(server) = &self.server else { return };
        out.push_str("\nthe server\n");
        for (name, times) in &server.counts {
            let _ = writeln!(out, "  {:<28} {:>11}", name.replace('_', " "), count(*times));
        }
        for (name, figures) in &server.figures {
            let unit = figures.unit;
            let _ = writeln!(
                out,
                "  {:<28} {:>11}  sum {}, avg {}, p95 {}, max {}",
                name.trim_end_matches("_us").replace('_', " "),
                count(figures.count),
                figure(unit, figures.sum),
                figure(unit, rounded(figures.avg)),
                figure(unit, figures.p95.unwrap_or(0).into()),
                figure(unit, figures.max.unwrap_or(0).into())
            );
        }
        for (kind, all) in &server.names {
            let list: Vec<String> = all
                .iter()
                .take(5)
                .map(|one| {
                    let took = one.total_us.map_or(String::new(), |total| format!(" ({})", time(total)));
                    format!("{} {}{took}", line(&one.name, 50), count(one.count))
                })
                .collect();
            let _ = writeln!(out, "  {:<28} {}", kind.replace('_', " "), list.join(", "));
        }
        for message in server.messages.iter().take(20) {
            let _ =
                writeln!(out, "  {:>11} x {} {}", count(message.count), message.severity, line(&message.message, 90));
        }
    }

    fn problems_text(&self, out: &mut String) {
        for trouble in &self.problems {
            let places: Vec<String> = trouble.places.iter().map(|place| clean(place)).collect();
            let _ = writeln!(out, "\nnote: {} {}, first at {}", count(trouble.count), trouble.what, places.join("; "));
        }
    }
}

fn section(out: &mut String, query: &Query) {
    heading(out, query);
    figures(out, query);
    calls(out, query);
    for (name, who) in [
        ("users", &query.users),
        ("hosts", &query.hosts),
        ("databases", &query.databases),
        ("applications", &query.applications),
    ] {
        people(out, name, who, query.calls);
    }
    if let (Some(first), Some(last)) = (&query.first_seen, &query.last_seen) {
        let _ = writeln!(out, "   seen {first} to {last}");
        let _ = writeln!(out, "   time by hour of the day 0 |{}| 24", bars(&query.us_by_hour));
    }
    earlier(out, query);
    plans(out, query);
    slowest(out, query);
}

/// Its place, names and text.
fn heading(out: &mut String, query: &Query) {
    let _ = writeln!(out, "\n{}. {}  {:.1} % of the time", query.rank, clean(&query.id), query.share_ratio * 100.0);
    if !query.distilled.is_empty() {
        let _ = writeln!(out, "   {}", clean(&query.distilled));
    }
    for (name, value) in &query.group {
        let _ = writeln!(out, "   {name} {}", clean(value));
    }
    let shown: Vec<&str> = query.fingerprint.lines().take(LINES).collect();
    for text in &shown {
        let _ = writeln!(out, "   {}", line(text, 2_000));
    }
}

/// A table of its times and attributes.
fn figures(out: &mut String, query: &Query) {
    out.push('\n');
    figures_line(out, "", &["sum", "min", "avg", "p95", "p99", "max", "stddev"].map(str::to_owned));
    let times = [
        time(query.total_us),
        known(query.min_us),
        time(rounded(query.avg_us)),
        known(query.p95_us),
        known(query.p99_us),
        known(query.max_us),
        query.stddev_us.map_or(UNKNOWN.to_owned(), |value| time(rounded(value))),
    ];
    figures_line(out, "time", &times);
    for (name, figures) in
        query.attributes.iter().filter(|(name, figures)| !APART.contains(&name.as_str()) && figures.sum > 0)
    {
        let show = |value: u128| figure(figures.unit, value);
        let known = |value: Option<u64>| value.map_or(UNKNOWN.to_owned(), |value| show(value.into()));
        let cells = [
            show(figures.sum),
            known(figures.min),
            show(rounded(figures.avg)),
            known(figures.p95),
            known(figures.p99),
            known(figures.max),
            figures.stddev.map_or(UNKNOWN.to_owned(), |value| show(rounded(value))),
        ];
        figures_line(out, &clean(name), &cells);
    }
}

fn figures_line(out: &mut String, name: &str, cells: &[String; 7]) {
    let [sum, min, avg, p95, p99, max, stddev] = cells;
    let _ = writeln!(out, "   {name:<22} {sum:>11} {min:>9} {avg:>9} {p95:>9} {p99:>9} {max:>9} {stddev:>9}");
}

/// Its calls, and what often held for them.
fn calls(out: &mut String, query: &Query) {
    let _ = write!(out, "   calls {}", count(query.calls));
    if let Some(ratio) = query.variance_to_mean {
        let _ = write!(out, ", variance to mean {ratio:.3} s");
    }
    if let Some(ratio) = query.rows_examined_per_sent {
        let _ = write!(out, ", {ratio:.1} rows examined for each sent");
    }
    out.push('\n');
    let often: Vec<String> = query
        .flags
        .iter()
        .filter(|(_, flag)| flag.yes > 0)
        .map(|(name, flag)| {
            #[expect(clippy::cast_precision_loss, reason = "a percentage")]
            let percent = flag.yes as f64 * 100.0 / (flag.yes + flag.no) as f64;
            format!("{name} {percent:.0} %")
        })
        .collect();
    if !often.is_empty() {
        let _ = writeln!(out, "   {}", clean(&often.join(", ")));
    }
}

/// What earlier runs have of it.
fn earlier(out: &mut String, query: &Query) {
    match &query.before {
        Some(before) if before.is_new => out.push_str("   new: no earlier run has it\n"),
        Some(before) => {
            let avg = before.avg_us.map_or(UNKNOWN.to_owned(), |avg| time(rounded(avg)));
            let change = before.change_ratio.map_or(String::new(), |ratio| format!(", now {ratio:.2} times that"));
            let _ = write!(out, "   before: {} calls in {} runs, avg {avg}{change}", count(before.calls), before.runs);
            if let (Some(first), Some(last)) = (&before.first_seen, &before.last_seen) {
                let _ = write!(out, ", seen {first} to {last}");
            }
            out.push('\n');
        }
        None => {}
    }
}

fn plans(out: &mut String, query: &Query) {
    for plan in query.plans.iter().take(PLANS) {
        let _ = writeln!(
            out,
            "   plan of {} calls, {} in total, at most {}:",
            count(plan.calls),
            time(plan.total_us),
            time(plan.max_us.into())
        );
        for step in plan.slowest.lines().take(LINES) {
            let _ = writeln!(out, "     {}", clean(step));
        }
    }
}

fn slowest(out: &mut String, query: &Query) {
    let Some(slowest) = &query.slowest else { return };
    let _ = write!(out, "   slowest {}", time(slowest.time_us.into()));
    for (word, value) in [
        ("at", slowest.at.as_deref().unwrap_or_default()),
        ("by", &slowest.user),
        ("from", &slowest.host),
        ("in", &slowest.database),
    ] {
        if !value.is_empty() {
            let _ = write!(out, " {word} {}", clean(value));
        }
    }
    let _ = writeln!(out, ": {}", clean(&slowest.place));
}

fn people(out: &mut String, name: &str, who: &[PartyCalls], calls: u64) {
    if who.is_empty() {
        return;
    }
    let list: Vec<String> = who
        .iter()
        .take(5)
        .map(|one| {
            #[expect(clippy::cast_precision_loss, reason = "a percentage")]
            let percent = one.calls as f64 * 100.0 / calls.max(1) as f64;
            format!("{} {percent:.0} %", line(&one.name, 40))
        })
        .collect();
    let more = if who.len() > 5 { ", …" } else { "" };
    let _ = writeln!(out, "   {name} {}{more}", list.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short() {
        assert_eq!(bars(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(line("a\n  b \u{1b}[2J", 80), "a b  [2J");
        assert_eq!(line("abcdef", 4), "abc…");
    }
}
