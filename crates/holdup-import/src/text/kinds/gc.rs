//! What runtimes log of their collectors: JVMs before and since version 9, Cassandra, Elasticsearch and
//! Hadoop about their own JVM, Go's `gctrace`, Node.js' `--trace-gc`, Python's `gc`. The lines of a log become
//! one event: how long the app stood still, at most and in all, and the collector's own word for heap
//! that ran out.

use std::sync::OnceLock;

use holdup_recording::words::ms;
use holdup_recording::{Labels, events};
use regex::Regex;

use super::{Columns, Context, Kind, Line, clock, number, text};

pub(super) const KIND: Kind = Kind::lines("garbage collector's log", |lines| pause(text(lines, 0)).is_some(), read);

/// `jstat -gcutil`: counts and seconds of collections since the start, and how full the old generation is.
pub(super) const JSTAT: Kind = Kind::lines("jstat -gcutil", |lines| is_jstat(text(lines, 0)), read_jstat);

fn is_jstat(line: &str) -> bool {
    Columns::new(line).has(&["FGC", "FGCT", "GCT", "O"])
}

fn read_jstat(lines: &[Line], context: &mut Context) -> usize {
    let header = text(lines, 0).to_owned();
    let columns = Columns::new(&header);
    let mut rows: Vec<[f64; 3]> = Vec::new();
    for line in lines.iter().skip(1) {
        let row = columns.row(&line.text);
        let [Some(count), Some(seconds), Some(old)] = ["FGC", "FGCT", "O"].map(|name| row.number(&[name])) else {
            break;
        };
        rows.push([count, seconds, old]);
    }
    let grown = rows.first().zip(rows.last()).map(|(first, last)| (last[0] - first[0], last[1] - first[1], last[2]));
    if let Some((count, total_s, old)) = grown.filter(|(count, ..)| *count >= 1.0) {
        let (at, longest_s) = (context.instant(), total_s / count);
        let text = format!(
            "full collections of the JVM stopped the app {count:.0} times, for {} each; the old generation is {old:.0} % full",
            ms(longest_s * 1e3)
        );
        let mut labels = Labels::new([("runtime", "JVM"), ("why", "full collection")])
            .with("seconds", format!("{longest_s:.4}"))
            .with("total_s", format!("{total_s:.4}"))
            .with(events::COUNT, format!("{count:.0}"));
        if old >= FULL_PERCENT {
            labels = labels.with("distress", "full gc");
        }
        context.out.event(at, events::RUNTIME_PAUSE, text, labels);
    }
    1 + rows.len()
}

/// An old generation without room, percent.
const FULL_PERCENT: f64 = 98.0;

/// A form of line: words that it has, the numbers of seconds in it, their unit in seconds, the runtime, and
/// whether the app stood still for them rather than one thread.
struct Form {
    words: &'static str,
    pattern: &'static str,
    unit_s: f64,
    runtime: &'static str,
}

const fn form(words: &'static str, pattern: &'static str, unit_s: f64, runtime: &'static str) -> Form {
    Form { words, pattern, unit_s, runtime }
}

const MS: f64 = 1e-3;

/// The first that fits counts. All groups of a pattern are added.
const FORMS: [Form; 15] = [
    form("Pause ", r"GC\(\d+\) +Pause .*?(\d+(?:[.,]\d+)?)ms\s*$", MS, "JVM"),
    form("Allocation Stall", r"Allocation Stall \([^)]*\) (\d+(?:[.,]\d+)?)ms", MS, "JVM"),
    form("Safepoint ", r#"Safepoint "[^"]*", .*Total: *(\d+) ns"#, 1e-9, "JVM"),
    form("application threads were stopped", r"stopped: (\d+[.,]\d+) seconds", 1.0, "JVM"),
    form(" secs]", r"\[(?:Full )?GC\b.*?(\d+[.,]\d+) secs\](?: \[Times:.*)?\s*$", 1.0, "JVM"),
    form("pause of approximately", r"pause of approximately (\d+)\s?ms", MS, "JVM"),
    form("GC in ", r"GC in (\d+)\s?ms", MS, "JVM"),
    form("GC for ", r"GC for \w+: (\d+) ms for \d+ collections", MS, "JVM"),
    form("[gc]", r"\[gc\]\[\w+\]\[\d+\]\[\d+\] duration \[(\d+(?:\.\d+)?)s\]", 1.0, "JVM"),
    form("collecting in the last", r"spent \[(\d+(?:\.\d+)?)s\] collecting in the last", 1.0, "JVM"),
    form(" ms clock", r"^gc \d+ @[\d.]+s \d+%: (\d+(?:\.\d+)?)\+\d+(?:\.\d+)?\+(\d+(?:\.\d+)?) ms clock", MS, "Go"),
    form(
        " MB, ",
        r"(?:Mark-[Ss]weep|Mark-Compact|Scavenge)[^,]*MB, (?:pooled: \d+ MB, )?(\d+(?:\.\d+)?) /",
        MS,
        "Node.js",
    ),
    form("gc: done", r"gc: done, .*?(\d+\.\d+)s elapsed", 1.0, "Python"),
    form("has been blocked for", r"has been blocked for (\d+) ms, time limit is", MS, "event loop"),
    form("Executing <", r"Executing <(?:Task|Handle).* took (\d+\.\d+) seconds", 1.0, "event loop"),
];

/// The collector's words for heap that ran out, or could not be freed in time.
const DISTRESS: [&str; 10] = [
    "to-space exhausted",
    "to-space overflow",
    "evacuation failure",
    "concurrent mode failure",
    "promotion failed",
    "allocation stall",
    "degenerated",
    "gc overhead limit exceeded",
    "full gc",
    "pause full",
];

/// What stands in lines of such a log that time no pause.
const OWN: [&str; 12] = [
    "[gc",
    "GC(",
    "[Parallel Time",
    "[Times:",
    "(ms):",
    "concurrent",
    "-> ",
    "Eden",
    "Heap",
    "GC Worker",
    " ms]",
    "secs]",
];

fn patterns() -> &'static [Option<Regex>] {
    static ALL: OnceLock<Vec<Option<Regex>>> = OnceLock::new();
    ALL.get_or_init(|| FORMS.iter().map(|form| Regex::new(form.pattern).ok()).collect())
}

/// A time in which the app stood still.
struct Pause {
    seconds: f64,
    /// Which form of line says so.
    form: usize,
}

fn pause(line: &str) -> Option<Pause> {
    let lower = || line.to_lowercase();
    let (form, of, found) = FORMS
        .iter()
        .enumerate()
        .filter(|(_, of)| line.contains(of.words))
        .find_map(|(form, of)| Some((form, of, patterns().get(form)?.as_ref()?.captures(line)?)))?;
    // Of a JVM before 9 a concurrent phase has the same end as a pause.
    if of.words == " secs]" && lower().contains("concurrent-") {
        return None;
    }
    let parts = found.iter().skip(1).flatten().filter_map(|part| number(part.as_str()));
    let seconds = parts.sum::<f64>() * of.unit_s;
    (0.0..86_400.0).contains(&seconds).then_some(Pause { seconds, form })
}

/// Seconds since the app's start in front of a line: `411206.108: `, `[12.345s]`, `gc 7 @3.2s`.
fn since_start(line: &str) -> Option<f64> {
    let at = line.find(|c: char| c.is_ascii_digit()).filter(|at| *at <= 30)?;
    let rest = line.get(at..)?;
    let rest = if line.starts_with("gc ") { line.split_once('@')?.1 } else { rest };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    let is_time = digits.contains(['.', ',']) && after.starts_with([':', 's', ']']);
    number(digits).filter(|_| is_time)
}

/// The wall clock's time in front of a line.
fn moment(line: &Line) -> Option<i64> {
    line.stamp.or_else(|| {
        let text = line.text.trim_start_matches('[');
        let end = text.find([']', ' ']).unwrap_or(text.len());
        clock::leading(text.get(..end)?.trim_end_matches(':')).0
    })
}

/// What the lines of a log say together.
#[derive(Default)]
struct Log {
    longest: Option<(Pause, String)>,
    /// Seconds and number of pauses by form: a JVM may log one pause in two forms.
    totals: Vec<(usize, f64, u32)>,
    distress: Option<&'static str>,
    /// Seconds since the app's start, and moments, at the first and the last line.
    started: Option<(f64, f64)>,
    moments: Option<(i64, i64)>,
}

impl Log {
    fn take(&mut self, line: &Line) -> bool {
        let lower = line.text.to_lowercase();
        let word = DISTRESS.iter().find(|word| lower.contains(**word) && !lower.contains("system.gc()"));
        self.distress = self.distress.or(word.copied());
        if let Some(at) = moment(line) {
            self.moments = Some(self.moments.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        } else if let Some(at) = since_start(&line.text) {
            self.started = Some(self.started.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        }
        let Some(pause) = pause(&line.text) else { return false };
        match self.totals.iter_mut().find(|(form, ..)| *form == pause.form) {
            Some((_, seconds, count)) => {
                *seconds += pause.seconds;
                *count = count.saturating_add(1);
            }
            None => self.totals.push((pause.form, pause.seconds, 1)),
        }
        if self.longest.as_ref().is_none_or(|(known, _)| known.seconds < pause.seconds) {
            self.longest = Some((pause, why(&line.text)));
        }
        true
    }

    fn put(self, context: &mut Context) {
        let Some((pause, why)) = self.longest else { return };
        let runtime = FORMS.get(pause.form).map_or("", |form| form.runtime);
        let (_, total_s, count) = self.totals.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        let by_clock = self.moments.map(|(first, last)| last.saturating_sub(first) as f64 / 1e9);
        let span_s = by_clock.or(self.started.map(|(first, last)| last - first)).unwrap_or(0.0);
        if let Some((_, last)) = self.moments {
            context.set_time(last);
        }
        let at = context.instant();
        let said = self.distress.map_or_else(String::new, |word| format!(", \"{word}\""));
        let longest = ms(pause.seconds * 1e3);
        let text = format!("the {runtime} stopped the app {count} times, for up to {longest} ({why}{said})");
        let mut labels = Labels::new([("runtime", runtime)])
            .with("seconds", format!("{:.4}", pause.seconds))
            .with("total_s", format!("{total_s:.4}"))
            .with("span_s", format!("{span_s:.3}"))
            .with("why", why)
            .with(events::COUNT, count.to_string());
        if let Some(word) = self.distress {
            labels = labels.with("distress", word);
        }
        context.out.event(at, events::RUNTIME_PAUSE, text, labels);
    }
}

/// What a pause was for, in the log's words.
fn why(line: &str) -> String {
    const WORDS: [&str; 9] =
        ["Pause ", "Allocation Stall", "Full GC", "GC pause", "[GC", "Mark-", "Scavenge", "Safepoint", "pause of"];
    let at = WORDS.iter().find_map(|words| line.find(words)).unwrap_or(0);
    let words = line.get(at..).unwrap_or_default().trim_start_matches('[');
    let end = words.find([',', '[', '@']).unwrap_or(words.len());
    let words: String = words.get(..end).unwrap_or_default().chars().take(60).collect();
    let words =
        words.trim_end_matches(|c: char| c.is_ascii_digit() || " .>-()KMG".contains(c) && !words.ends_with(')'));
    words.trim().to_owned()
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let (mut log, mut used) = (Log::default(), 0);
    for (place, line) in lines.iter().enumerate() {
        let is_own = || line.is_blank() || OWN.iter().any(|words| line.text.contains(words));
        let is_detail = || line.text.starts_with(' ') && line.text.trim_start().starts_with('[');
        if !log.take(line) && !is_own() && !is_detail() {
            break;
        }
        used = place + 1;
    }
    log.put(context);
    used.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(line: &str) -> Option<f64> {
        pause(line).map(|pause| (pause.seconds * 1e6).round() / 1e6)
    }

    #[test]
    fn every_runtime_times_its_pauses_in_its_own_form() {
        for (line, expected) in [
            ("7206.108: [GC pause (G1 Evacuation Pause) (mixed) (to-space exhausted), 9.1429024 secs]", 9.142_902),
            (
                "2.1: [GC (Allocation Failure) [PSYoungGen: 1K->2K(3K)] 4K->5K(6K), 0.0123 secs] [Times: user=0.02 sys=0.00, real=0.01 secs]",
                0.0123,
            ),
            (
                "9.2: [Full GC (Ergonomics) [PSYoungGen: 1K->0K(3K)] 4K->5K(6K), [Metaspace: 7K->7K(8K)], 3.25 secs]",
                3.25,
            ),
            (
                "[2026-11-26T10:11:12.123+0000][info][gc] GC(12) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.456ms",
                0.003_456,
            ),
            (
                "[45.1s][info ][gc          ] GC(3) Pause Full (G1 Compaction Pause) 4095M->4001M(4096M) 4321.5ms",
                4.3215,
            ),
            ("[1.2s][info][gc] Allocation Stall (worker-3) 812.345ms", 0.812_345),
            (
                "[1.2s][info][safepoint] Safepoint \"G1CollectFull\", Time since last: 9 ns, Reaching safepoint: 8 ns, At safepoint: 7 ns, Total: 2500000000 ns",
                2.5,
            ),
            (
                "3.0: Total time for which application threads were stopped: 0.2500000 seconds, Stopping threads took: 0.0001 seconds",
                0.25,
            ),
            (
                "WARN  JvmPauseMonitor - Detected pause in JVM or host machine (eg GC): pause of approximately 8173ms",
                8.173,
            ),
            ("INFO  GCInspector.java:282 - G1 Young Generation GC in 1234ms.  G1 Eden Space: 1 -> 0;", 1.234),
            (
                "[INFO ][o.e.m.j.JvmGcMonitorService] [n1] [gc][old][123][45] duration [27.1s], collections [1]/[27.9s]",
                27.1,
            ),
            (
                "[WARN ][o.e.m.j.JvmGcMonitorService] [n1] [gc][321] overhead, spent [3.5s] collecting in the last [4s]",
                3.5,
            ),
            (
                "gc 7 @3.204s 5%: 0.018+1.3+0.076 ms clock, 0.14+0.3/1.2/0+0.6 ms cpu, 4->4->2 MB, 5 MB goal, 8 P",
                0.000_094,
            ),
            (
                "[7:0x5] 1234 ms: Mark-sweep 1023.4 (1400.5) -> 1020.1 (1400.6) MB, 1234.5 / 0.0 ms  (average mu = 0.1) allocation failure",
                1.2345,
            ),
            ("gc: done, 12 unreachable, 0 uncollectable, 0.5123s elapsed", 0.5123),
            (
                "WARNING: Thread Thread[vert.x-eventloop-thread-0,5,main] has been blocked for 5123 ms, time limit is 2000 ms",
                5.123,
            ),
            ("WARNING:asyncio:Executing <Task pending name='Task-7' coro=<cart() running>> took 1.250 seconds", 1.25),
        ] {
            assert_eq!(seconds(line), Some(expected), "{line}");
        }
        for other in [
            "[1.0s][info][gc,start] GC(3) Pause Young (Normal) (G1 Evacuation Pause)",
            "8.1: [GC concurrent-mark-end, 0.1234567 secs]",
            "[CMS-concurrent-sweep: 1.2/3.4 secs]",
            "   [Other: 8037.5 ms]",
            "GET /pause 200 12ms",
        ] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }

    #[test]
    fn the_lines_of_a_log_are_one_event() {
        let log = "1.000: [GC pause (G1 Evacuation Pause) (young), 0.0200000 secs]\n   [Parallel Time: 18.1 ms, GC Workers: 4]\n11.000: [GC pause (G1 Evacuation Pause) (mixed) (to-space exhausted), 6.5000000 secs]\n   [Other: 5.0 ms]\nend\n";
        let lines = super::super::super::paste::lines(log.as_bytes(), |_| false);
        let mut context = Context::default();
        assert_eq!(read(&lines, &mut context), 4);
        let [event] = context.out.batch.events.as_slice() else { panic!("{:?}", context.out.batch.events) };
        let expected = [("seconds", "6.5000"), ("total_s", "6.5200"), ("span_s", "10.000"), ("count", "2")];
        assert!(event.labels.contains(&expected), "{event:?}");
        assert_eq!(event.labels.get("distress"), Some("to-space exhausted"));
    }

    #[test]
    fn full_collections_between_two_rows_of_jstat_count_and_one_row_does_not() {
        let head = "  S0     S1     E      O      M     CCS    YGC     YGCT    FGC    FGCT     GCT\n";
        let row = |count: u32, seconds: f64| {
            format!("  0.00   0.00 100.00  99.99  94.12  90.11   1203   41.201   {count}  {seconds}   2021.532\n")
        };
        let events = |text: &str| {
            let mut context = Context::default();
            read_jstat(&super::super::super::paste::lines(text.as_bytes(), |_| false), &mut context);
            context.out.batch.events
        };
        let found = events(&format!("{head}{}{}", row(412, 1980.0), row(414, 1990.0)));
        assert_eq!((found.len(), found[0].labels.get("seconds")), (1, Some("5.0000")));
        assert_eq!(events(&format!("{head}{}", row(412, 1980.0))).len(), 0);
    }
}
