//! Renders the live view of a load as lines of text. It does not touch the terminal.

use std::collections::VecDeque;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use holdup_load::stats::Snapshot;
use holdup_recording::words::{count, thousands};
use unicode_width::UnicodeWidthChar as _;

use super::moment::Moment;
use crate::terminal::visible::one_line;

/// Most seconds in a curve.
pub const SECONDS: usize = 60;

/// Most operations with their own row.
const OPERATIONS: usize = 5;

/// Most kinds of failures in one row.
const KINDS: usize = 3;

/// Cells of the progress bar.
const BAR: usize = 24;

/// Columns of the rows' names, and of the text before a curve.
const NAMES: usize = 10;
const TEXT: usize = 42;

/// Narrowest useful curve, in columns.
const CURVE_LEAST: usize = 8;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();
const RED: Style = AnsiColor::Red.on_default();

/// The known length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Exactly this long.
    Of(Duration),
    /// At most this long: it ends when its search has an answer.
    AtMost(Duration),
}

/// The terminal's capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canvas {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Whether to use colours.
    pub has_colors: bool,
    /// Whether it shows more than ASCII.
    pub has_unicode: bool,
}

/// The data of the view.
pub struct View<'a> {
    /// The run's length, if known.
    pub length: Option<Length>,
    /// The current state of the load.
    pub now: &'a Snapshot,
    /// Its last seconds, the newest at the end.
    pub moments: &'a VecDeque<Moment>,
    /// Requests that ended so far, by operation, in the scenario's order.
    pub ended: &'a [u64],
}

/// The view: no line break at the end, at least one column narrower and one row shorter than the
/// terminal.
pub fn render(view: &View<'_>, canvas: Canvas) -> String {
    let mut lines = vec![head(view, canvas)];
    if !view.now.doing.is_empty() {
        lines.push(row(canvas, "search", &view.now.doing, &[], PLAIN));
    }
    let last = view.moments.back();
    let curve = |of: fn(&Moment) -> Option<f64>| -> Vec<Option<f64>> { view.moments.iter().map(of).collect() };
    lines.push(row(canvas, "rate", &rates(view, last), &curve(|m| Some(m.achieved)), PLAIN));
    lines.push(row(canvas, "response", &times(last), &curve(|m| m.p99_ms), PLAIN));
    let is_failing = last.is_some_and(|m| m.failing > 0.0);
    let style = if is_failing { RED } else { PLAIN };
    lines.push(row(canvas, "errors", &failing(view.now, last), &curve(|m| Some(m.failed_ratio())), style));
    let now = view.now;
    let requests = format!(
        "{} of {} in flight, {} waiting; {} done, {} failed",
        now.in_flight,
        now.slots,
        now.waiting,
        count(now.completed),
        count(now.errors)
    );
    lines.push(row(canvas, "requests", &requests, &[], PLAIN));
    if let Some(last) = last.filter(|m| m.operations.len() > 1) {
        lines.extend(operations(canvas, last, view.ended));
    }
    lines.truncate(canvas.height.saturating_sub(1).max(1));
    lines.join("\n")
}

/// The view of a recording without load.
pub fn watching(elapsed: Duration, length: Option<Duration>, canvas: Canvas) -> String {
    let mut line = Line::new(canvas);
    match length {
        Some(length) => {
            bar(&mut line, elapsed, Length::Of(length));
            line.put(PLAIN, "  watching");
        }
        None => {
            let text = format!("watching for {}; Ctrl-C ends it and keeps the recording", time(elapsed));
            line.put(PLAIN, &text);
        }
    }
    line.out
}

/// Bar, time left, phase.
fn head(view: &View<'_>, canvas: Canvas) -> String {
    let mut line = Line::new(canvas);
    match view.length {
        Some(length) => bar(&mut line, view.now.elapsed, length),
        None => line.put(BOLD, &time(view.now.elapsed)),
    }
    line.put(DIM, "  now ");
    line.put(BOLD, &view.now.phase);
    line.out
}

fn bar(line: &mut Line, elapsed: Duration, length: Length) {
    let (at_most, length) = match length {
        Length::Of(length) => ("", length),
        Length::AtMost(length) => ("at most ", length),
    };
    let share = (elapsed.as_secs_f64() / length.as_secs_f64().max(1e-9)).min(1.0);
    let cells = BAR.min(line.canvas.width / 3);
    let full = (share * cells as f64) as usize;
    let (on, off) = if line.canvas.has_unicode { ("━", "─") } else { ("=", "-") };
    line.put(AnsiColor::Green.on_default(), &on.repeat(full));
    line.put(DIM, &off.repeat(cells - full));
    line.put(BOLD, &format!(" {:>3.0} %", (share * 100.0).floor()));
    line.put(PLAIN, &format!("  {at_most}{} left", time(length.saturating_sub(elapsed))));
}

fn rates(view: &View<'_>, last: Option<&Moment>) -> String {
    // Before the first second has ended, only the scheduled rate is known.
    let offered = last.map_or(view.now.rate, |m| m.offered);
    let achieved = last.map_or_else(|| "-".to_owned(), |m| number(m.achieved));
    if offered > 0.0 {
        format!("{}/s offered, {achieved}/s achieved", number(offered))
    } else {
        format!("{achieved}/s achieved")
    }
}

fn times(last: Option<&Moment>) -> String {
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let of = |f: fn(&Moment) -> Option<f64>| ms(last.and_then(f));
    format!("p50 {}, p95 {}, p99 {} ms", of(|m| m.p50_ms), of(|m| m.p95_ms), of(|m| m.p99_ms))
}

fn failing(now: &Snapshot, last: Option<&Moment>) -> String {
    match last {
        Some(last) if last.failing > 0.0 => {
            format!("{:.1} %: {}", last.failed_ratio() * 100.0, kinds(&last.failures))
        }
        _ if now.errors == 0 => "none".to_owned(),
        _ => "none".to_owned(),
    }
}

fn kinds(failures: &[(&'static str, u64)]) -> String {
    let mut named: Vec<String> =
        failures.iter().take(KINDS).map(|(kind, times)| format!("{kind} {}", count(*times))).collect();
    if failures.len() > KINDS {
        named.push("…".to_owned());
    }
    named.join(", ")
}

/// One row each for the operations with the most requests.
fn operations(canvas: Canvas, last: &Moment, ended: &[u64]) -> Vec<String> {
    let mut shown: Vec<usize> = (0..last.operations.len()).collect();
    shown.sort_by_key(|i| std::cmp::Reverse(ended.get(*i).copied().unwrap_or(0)));
    shown.truncate(OPERATIONS);
    // Rows keep their order; only the choice of rows changes with the counts.
    shown.sort_unstable();
    let widest = shown.iter().map(|i| columns(&last.operations[*i].name)).max().unwrap_or(0);
    let width = widest.clamp(9, (canvas.width / 3).max(9));
    let mut title = Line::new(canvas);
    title.put(DIM, &format!("{}  {:>8}  {:>8}  errors", fit("operation", width), "per s", "p99 ms"));
    let mut lines = vec![title.out];
    for operation in shown.into_iter().map(|i| &last.operations[i]) {
        let mut line = Line::new(canvas);
        line.put(PLAIN, &fit(&operation.name, width));
        let p99 = operation.p99_ms.map_or_else(|| "-".to_owned(), number);
        line.put(PLAIN, &format!("  {:>8}  {p99:>8}  ", number(operation.rate)));
        line.put(RED, &kinds(&operation.failures));
        lines.push(line.out);
    }
    let more = last.operations.len().saturating_sub(OPERATIONS);
    if more > 0 {
        let mut line = Line::new(canvas);
        line.put(DIM, &format!("and {more} more"));
        lines.push(line.out);
    }
    lines
}

/// A name, a text, and a curve as wide as the room allows.
fn row(canvas: Canvas, name: &str, text: &str, curve: &[Option<f64>], style: Style) -> String {
    let mut line = Line::new(canvas);
    line.put(DIM, &fit(name, NAMES));
    let room = line.left.saturating_sub(TEXT + 1).min(SECONDS);
    if curve.is_empty() || room < CURVE_LEAST {
        line.put(style, text);
    } else {
        line.put(style, &fit(text, TEXT));
        line.put(PLAIN, " ");
        line.put(AnsiColor::Cyan.on_default(), &spark(&curve[curve.len().saturating_sub(room)..], canvas.has_unicode));
    }
    line.out
}

/// One character per value, scaled to the largest. A missing value is a blank.
fn spark(values: &[Option<f64>], has_unicode: bool) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];
    let levels = if has_unicode { BLOCKS } else { ASCII };
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let level = |value: f64| if most > 0.0 { (value / most * 7.0).round().clamp(0.0, 7.0) as usize } else { 0 };
    values.iter().map(|value| value.map_or(' ', |value| levels[level(value)])).collect()
}

/// At least three digits, e.g. `0.12`, `3.4`, `56`, `7,890`.
fn number(value: f64) -> String {
    match value {
        v if v >= 99.95 => thousands(v),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v > 0.0 => format!("{v:.2}"),
        _ => "0".to_owned(),
    }
}

/// `12 s`, `3 min 05 s`, `2 h 07 min`.
fn time(length: Duration) -> String {
    match length.as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{} h {:02} min", s / 3_600, s % 3_600 / 60),
    }
}

/// `text` padded or cut to `width` columns.
fn fit(text: &str, width: usize) -> String {
    let (cut, used) = cut(text, width);
    cut + &" ".repeat(width - used)
}

/// The part of `text` that fits into `width` columns, without control characters, and its width.
fn cut(text: &str, width: usize) -> (String, usize) {
    let mut out = String::new();
    let mut used = 0;
    for c in one_line(text).chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > width {
            break;
        }
        out.push(c);
        used += wide;
    }
    (out, used)
}

/// The width of `line` in columns, without escapes.
pub fn columns(line: &str) -> usize {
    let mut in_escape = false;
    let mut columns = 0;
    for c in line.chars() {
        match (in_escape, c) {
            (false, '\x1b') => in_escape = true,
            (false, _) => columns += c.width().unwrap_or(0),
            (true, _) => in_escape = !c.is_ascii_alphabetic(),
        }
    }
    columns
}

/// A line that ends where the terminal does.
struct Line {
    out: String,
    left: usize,
    canvas: Canvas,
}

impl Line {
    fn new(canvas: Canvas) -> Self {
        Self { out: String::new(), left: canvas.width.saturating_sub(1), canvas }
    }

    fn put(&mut self, style: Style, text: &str) {
        let text = if self.canvas.has_unicode { text.to_owned() } else { text.replace('…', "...") };
        let (text, used) = cut(&text, self.left);
        self.left -= used;
        if self.canvas.has_colors && style != PLAIN && !text.is_empty() {
            self.out.push_str(&format!("{style}{text}{style:#}"));
        } else {
            self.out.push_str(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::moment::OperationMoment;
    use super::*;

    const WIDE: Canvas = Canvas { width: 120, height: 40, has_colors: false, has_unicode: true };

    fn moment(n: u64) -> Moment {
        let operation = |name: &str, rate: f64, failures: &[(&'static str, u64)]| OperationMoment {
            name: name.to_owned(),
            ended: rate as u64,
            rate,
            p99_ms: (rate > 0.0).then_some(n as f64 * 10.0),
            failures: failures.to_vec(),
        };
        Moment {
            offered: 200.0,
            achieved: 150.0 + n as f64,
            failing: 2.0,
            p50_ms: Some(1.234),
            p95_ms: Some(20.0),
            p99_ms: Some(n as f64 * 10.0),
            failures: vec![("timeout", 2)],
            operations: vec![
                operation("search", 1_150.0, &[("timeout", 2), ("http_status", 1), ("never_sent", 1), ("unknown", 1)]),
                operation("a\u{1b}[2Jb", 0.0, &[]),
                operation("検索", 3.5, &[]),
            ],
        }
    }

    fn now() -> Snapshot {
        Snapshot {
            elapsed: Duration::from_secs(30),
            phase: "200/s".to_owned(),
            rate: 200.0,
            completed: 12_345,
            errors: 60,
            in_flight: 34,
            waiting: 5,
            slots: 100,
            ..Snapshot::default()
        }
    }

    fn draw(canvas: Canvas, count: u64, length: Option<Length>) -> String {
        let moments: VecDeque<Moment> = (1..=count).map(moment).collect();
        render(&View { length, now: &now(), moments: &moments, ended: &[900, 0, 7] }, canvas)
    }

    #[test]
    fn all_there_is_to_know() {
        let text = draw(WIDE, 8, Some(Length::Of(Duration::from_secs(120))));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 9, "{text}");
        assert!(lines[0].starts_with("━━━━━━──────────────────  25 %  1 min 30 s left  now 200/s"), "{text}");
        assert!(lines[1].starts_with("rate      200/s offered, 158/s achieved"), "{text}");
        assert!(lines[2].contains("p50 1.23, p95 20.0, p99 80.0 ms") && lines[2].ends_with("▂▃▄▅▅▆▇█"), "{text}");
        assert!(lines[3].contains("1.2 %: timeout 2"), "{text}");
        assert!(lines[4].contains("34 of 100 in flight, 5 waiting; 12,345 done, 60 failed"), "{text}");
        assert_eq!(lines[6], "search        1,150      80.0  timeout 2, http_status 1, never_sent 1, …", "{text}");
        assert!(lines[7].starts_with("a\\u001b[2 "), "what a name holds does not act: {text:?}");
    }

    #[test]
    fn a_search_has_a_budget_and_a_watch_no_end() {
        let text = draw(WIDE, 1, Some(Length::AtMost(Duration::from_secs(3_690))));
        assert!(text.contains("at most 1 h 01 min left"), "{text}");
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("rate")), "without a search: {text}");
        let now = Snapshot { doing: "between 160/s, which held, and 320/s".to_owned(), ..now() };
        let budget = Some(Length::AtMost(Duration::from_secs(180)));
        let text = render(&View { length: budget, now: &now, moments: &VecDeque::new(), ended: &[] }, WIDE);
        assert!(text.lines().nth(1) == Some("search    between 160/s, which held, and 320/s"), "{text}");
        let text = draw(WIDE, 0, None);
        assert!(text.starts_with("30 s  now 200/s\nrate      200/s offered, -/s achieved\n"), "{text}");
        assert!(draw(WIDE, 1, Some(Length::Of(Duration::from_secs(10)))).contains("100 %  0 s left"));
    }

    #[test]
    fn it_fits_into_any_terminal() {
        for width in 1..140 {
            for (height, has_colors) in [(2, true), (5, false), (40, true)] {
                let canvas = Canvas { width, height, has_colors, has_unicode: width % 2 == 0 };
                let text = draw(canvas, 70, Some(Length::Of(Duration::from_secs(60))));
                assert!(text.lines().count() < height.max(2), "{width}x{height}: {text}");
                for line in text.lines() {
                    assert!(columns(line) < width.max(1) || line.is_empty(), "{width}: {line:?}");
                    assert_eq!(line.matches('\x1b').count() % 2, 0, "every style ends: {line:?}");
                }
            }
        }
    }

    #[test]
    fn without_colours_there_are_no_escapes_and_without_unicode_only_ascii() {
        let plain = draw(WIDE, 70, None);
        assert!(!plain.contains('\x1b'));
        assert!(draw(Canvas { has_colors: true, ..WIDE }, 70, None).contains("\x1b["));
        let mut ascii = draw(Canvas { has_unicode: false, ..WIDE }, 70, Some(Length::Of(Duration::from_secs(60))));
        ascii.retain(|c| !"検索".contains(c));
        assert!(ascii.is_ascii(), "{ascii}");
    }

    #[test]
    fn curves() {
        assert_eq!(spark(&[Some(0.0), Some(5.0), None, Some(10.0)], true), "▁▅ █");
        assert_eq!(spark(&[Some(0.0), Some(0.0)], false), "__");
        let line = draw(WIDE, 200, None).lines().nth(1).unwrap().to_owned();
        assert_eq!(line.chars().filter(|c| ('▁'..='█').contains(c)).count(), SECONDS, "{line}");
    }

    #[test]
    fn words_of_numbers() {
        assert_eq!(
            [0.0, 0.123, 9.99, 12.34, 99.96, 7_890.4].map(number),
            ["0", "0.12", "9.99", "12.3", "100", "7,890"]
        );
        assert_eq!(
            [59, 60, 3_599, 7_620].map(|s| time(Duration::from_secs(s))),
            ["59 s", "1 min 00 s", "59 min 59 s", "2 h 07 min"]
        );
    }
}
