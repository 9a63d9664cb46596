//! The statements that took most by a server's own timing (its log, or its counters by statement), and
//! what each spent that time on: rows read for few that were needed, files, locks, storage, tickets. It
//! judges nothing; causes find their signs in it.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::plan::Node;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, View};

use super::{SOME, Share};

/// Most statements that are looked at.
const HEAVY_MAX: usize = 8;

/// An execution of this time is felt, seconds.
const LONG_S: f64 = 0.1;

/// One of this time may be, seconds.
const NOT_SHORT_S: f64 = 0.01;

/// A statement that keeps this many sessions busy on average is felt, however short it is.
const BUSY: f64 = 0.5;

/// Longest statement in a sentence, characters.
const TEXT_MAX: usize = 120;

/// Stages of reads from files.
pub(crate) const READS: [&str; 2] = ["storage_read", "cache_wait"];

/// What the rows of executed statements must have.
const COLUMNS: &[&str] = &["digest_text", "rows_examined", "rows_sent", "lock_ns"];

/// Functions whose result stands for many rows: rows sent then do not tell how many were needed.
const AGGREGATES: [&str; 8] = ["COUNT(", "COUNT (", "SUM(", "AVG(", "MIN(", "MAX(", "GROUP BY", "DISTINCT"];

/// Whether a row of a statement's result may stand for many rows.
pub(crate) fn sums_up(text: &str) -> bool {
    let text = text.to_uppercase();
    AGGREGATES.iter().any(|word| text.contains(word))
}

/// The statements; none if no server timed any.
#[derive(Default)]
pub(crate) struct Statements {
    /// Those with a share of the time that matters and that can be felt, the heaviest first.
    pub heavy: Vec<Heavy>,
    /// The one with most calls, and its share (0-1) of all calls.
    pub most_called: Option<(DigestUse, f64)>,
    /// Mean time of a commit, seconds, if commits are statements.
    pub commit_s: Option<f64>,
    /// Waits for locks that a server logged.
    pub locked: Option<(f64, Evidence)>,
    /// Whether they are PostgreSQL's.
    pub are_postgresql: bool,
}

/// One of them.
pub(crate) struct Heavy {
    /// Its figures.
    pub of: DigestUse,
    /// Its share (0-1) of the time of all statements of its server.
    pub share: f64,
    /// Seconds of its time by stage.
    stages: BTreeMap<String, f64>,
    /// Seconds for which it waited for locks, by messages in the log.
    lock_wait_s: f64,
    /// Executions that wrote temporary files, by messages in the log.
    spills: f64,
    /// Whether the server says if an index was used.
    pub is_scan_known: bool,
    /// The plan of its slowest execution.
    pub plan: Option<Node>,
}

impl Statements {
    pub(crate) fn read(view: &View<'_>) -> Self {
        let grown = view.executed(COLUMNS).unwrap_or_default();
        let has_grown = !grown.is_empty();
        let all = if has_grown { grown } else { executed_so_far(view) };
        let mut by_source: BTreeMap<&str, f64> = BTreeMap::new();
        all.iter().for_each(|of| *by_source.entry(&of.source).or_default() += of.seconds);
        let share = |of: &DigestUse| of.seconds / by_source.get(of.source.as_str()).copied().unwrap_or(0.0).max(1e-9);
        let window_s = view.window.seconds().max(1.0);
        let is_felt = |of: &DigestUse| {
            let each_s = of.seconds / of.calls.max(1.0);
            // Since when counters that were read once count is not known.
            each_s >= LONG_S || if has_grown { of.seconds / window_s >= BUSY } else { each_s >= NOT_SHORT_S }
        };
        let heavy = all.iter().filter(|of| share(of) >= SOME && is_felt(of)).take(HEAVY_MAX);
        let heavy = heavy.map(|of| Heavy::read(view, of, share(of), &all)).collect();
        let commits: Vec<&DigestUse> = all.iter().filter(|of| of.text.eq_ignore_ascii_case("commit")).collect();
        let (took, calls) = commits.iter().fold((0.0, 0.0), |(took, n), of| (took + of.seconds, n + of.calls));
        let commit_s = (calls > 0.0).then(|| took / calls);
        let are_postgresql = all.iter().any(|of| of.source.starts_with("postgresql"));
        let calls: f64 = all.iter().map(|of| of.calls).sum();
        let most_called = all.iter().max_by(|a, b| a.calls.total_cmp(&b.calls));
        let most_called = most_called.map(|of| (of.clone(), of.calls / calls.max(1.0)));
        Self { heavy, most_called, commit_s, locked: locked(view), are_postgresql }
    }
}

/// Of counters that were read once, all that they count.
fn executed_so_far(view: &View<'_>) -> Vec<DigestUse> {
    let totals = view.index.condensed.totals.iter();
    let once = totals.filter_map(|total| match total.readings.as_slice() {
        [one] if view.window.from <= one.observed_at && one.observed_at <= view.window.to => Some((total, one)),
        _ => None,
    });
    let figure = |value: i64| value.max(0) as f64;
    let mut all: Vec<DigestUse> = once
        .map(|(total, one)| DigestUse {
            source: total.source.clone(),
            digest: total.digest.clone(),
            text: total.text.clone(),
            database: total.database.clone(),
            calls: figure(one.calls),
            seconds: figure(one.duration_ns) / 1e9,
            lock_seconds: figure(one.lock_ns) / 1e9,
            rows_examined: figure(one.rows_examined),
            rows_used: figure(one.rows_sent) + figure(one.rows_affected),
            rows_changed: figure(one.rows_affected),
            no_index: figure(one.no_index),
            temporary_disk_tables: figure(one.temporary_disk_tables),
        })
        .filter(|of| of.calls > 0.0)
        .collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}

impl Heavy {
    fn read(view: &View<'_>, of: &DigestUse, share: f64, all: &[DigestUse]) -> Self {
        let tables = &view.recording.tables;
        let is_own = |source: &str, digest: &str| source == of.source && digest == of.digest;
        let mut stages: BTreeMap<String, f64> = BTreeMap::new();
        for row in tables.stages.rows.iter().filter(|row| is_own(&row.source, &row.digest)) {
            // A stage stands at the end of its stretch, which may be that of the window.
            if view.window.from < row.observed_at && row.observed_at <= view.window.to {
                *stages.entry(row.stage.clone()).or_default() += row.duration_ns as f64 / 1e9;
            }
        }
        let (mut lock_wait_s, mut spills) = (0.0, 0.0);
        for row in tables.events.rows.iter().filter(|row| row.source == of.source) {
            let is_in = view.window.from <= row.observed_at && row.observed_at <= view.window.to;
            if !is_in || row.labels.get("digest") != Some(of.digest.as_str()) {
                continue;
            }
            match row.kind.as_str() {
                "lock_wait" => lock_wait_s += waited_s(&row.labels),
                "temporary_file" => spills += number(&row.labels, "count").unwrap_or(1.0),
                _ => {}
            }
        }
        let has_settings = tables.settings.rows.iter().any(|row| row.source == of.source);
        let has_scans = all.iter().any(|other| other.source == of.source && other.no_index > 0.0);
        let plans = tables.plans.rows.iter().filter(|row| is_own(&row.source, &row.digest));
        let plan = plans.max_by_key(|row| row.duration_ns).and_then(|row| Node::from_json(&row.plan));
        let is_scan_known = has_settings || has_scans;
        Self { of: of.clone(), share, stages, lock_wait_s, spills, is_scan_known, plan }
    }

    /// Seconds of a mean execution.
    pub(crate) fn each_s(&self) -> f64 {
        self.of.seconds / self.of.calls.max(1.0)
    }

    /// Share (0-1) of its time in locks, by the server's own count or by messages in its log.
    pub(crate) fn locked(&self) -> f64 {
        (self.of.lock_seconds.max(self.lock_wait_s) / self.of.seconds.max(1e-9)).min(1.0)
    }

    /// Share (0-1) of its time in these stages.
    pub(crate) fn in_stages(&self, names: &[&str]) -> f64 {
        let took: f64 = names.iter().filter_map(|name| self.stages.get(*name)).sum();
        (took / self.of.seconds.max(1e-9)).min(1.0)
    }

    /// Share (0-1) of its executions that wrote a temporary table or file to disk.
    pub(crate) fn spilled(&self) -> f64 {
        (self.of.temporary_disk_tables.max(self.spills) / self.of.calls.max(1.0)).min(1.0)
    }

    /// Whether it sums up rows, so that few rows are sent whatever an index does.
    pub(crate) fn sums_up(&self) -> bool {
        sums_up(&self.of.text)
    }

    /// Whether it changes rows or locks those that it reads.
    pub(crate) fn locks_rows(&self) -> bool {
        let text = self.of.text.trim_start().to_uppercase();
        ["UPDATE", "DELETE", "INSERT", "REPLACE", "MERGE"].iter().any(|word| text.starts_with(word))
            || text.contains("FOR UPDATE")
    }

    /// Its part of the harm: `part` (0-1) of its time.
    pub(crate) fn share(&self, part: f64) -> Share {
        Share { ratio: self.share * part.min(1.0), of: "of the time of all logged statements".to_owned() }
    }

    /// Evidence that points at its rows, with its figures and the reason.
    pub(crate) fn evidence(&self, view: &View<'_>, column: &str, observed: String, why: &str) -> Evidence {
        let of = &self.of;
        let text = format!(
            "a statement took {} of the time, {} s in {} calls, {} each: {why}: {}",
            percent(self.share),
            thousands(of.seconds),
            thousands(of.calls),
            ms(self.each_s() * 1e3),
            cut(&of.text)
        );
        view.digest_evidence(of, column, observed, "", text)
    }

    /// The command that shows how it is executed.
    pub(crate) fn explain(&self) -> String {
        let text = self.of.text.trim_end_matches(';');
        match () {
            () if self.of.source.starts_with("mongodb") => explain_shape(text),
            () if self.of.source.starts_with("postgresql") => format!("EXPLAIN {text};"),
            () => {
                let database = self.of.database.as_deref().map_or_else(String::new, |name| format!("USE `{name}`; "));
                format!("{database}EXPLAIN {text};")
            }
        }
    }
}

/// `find shop.orders filter { a: ? } sort { b: ? }` as a call that explains it.
fn explain_shape(shape: &str) -> String {
    let mut words = shape.splitn(3, ' ');
    let [_, namespace, rest] = [(); 3].map(|()| words.next().unwrap_or_default());
    let (database, collection) = namespace.split_once('.').unwrap_or(("", namespace));
    let part = |names: &[&str]| {
        let (_, after) = names.iter().find_map(|name| rest.split_once(name))?;
        let mut depth = 0_i32;
        let end = after.char_indices().find(|(_, char)| {
            depth += i32::from(matches!(char, '{' | '[')) - i32::from(matches!(char, '}' | ']'));
            depth <= 0
        });
        after.get(..=end?.0)
    };
    let of = format!("db.getSiblingDB(\"{database}\").{collection}");
    if let Some(pipeline) = part(&["pipeline "]) {
        return format!("{of}.explain(\"executionStats\").aggregate({pipeline})");
    }
    let filter = part(&["filter ", "query ", "q "]).unwrap_or("{}");
    let sort = part(&["sort "]).map_or_else(String::new, |sort| format!(".sort({sort})"));
    format!("{of}.find({filter}){sort}.explain(\"executionStats\")")
}

/// A statement in a sentence.
pub(crate) fn cut(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", one_line.get(..at).unwrap_or_default()),
        None => one_line,
    }
}

fn number(labels: &Labels, name: &str) -> Option<f64> {
    labels.get(name)?.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

/// Seconds of a wait for a lock that has ended.
fn waited_s(labels: &Labels) -> f64 {
    match labels.get("state") {
        Some("acquired") => number(labels, "waited_ms").unwrap_or(0.0) / 1e3,
        _ => 0.0,
    }
}

/// Waits for locks that ended, by messages in a log: sessions that waited on average.
fn locked(view: &View<'_>) -> Option<(f64, Evidence)> {
    let events = view.recording.tables.events.rows.iter();
    let waits = events.filter(|row| {
        row.kind == "lock_wait" && view.window.from <= row.observed_at && row.observed_at <= view.window.to
    });
    let (mut count, mut total_s, mut longest_s) = (0.0, 0.0, 0.0_f64);
    for row in waits {
        let waited = waited_s(&row.labels);
        count += f64::from(u8::from(waited > 0.0));
        total_s += waited;
        longest_s = longest_s.max(waited);
    }
    let mean = total_s / view.window.seconds().max(1.0);
    let text = format!(
        "the log has {} waits for locks of {} in all, the longest {}: {mean:.1} sessions waited on average",
        thousands(count),
        ms(total_s * 1e3),
        ms(longest_s * 1e3)
    );
    let labels = Labels::new([("kind", "lock_wait")]);
    let told = Evidence::new("events", "labels", labels, view.window, format!("{mean:.1} sessions"), "0", text);
    (count > 0.0).then_some((mean, told))
}
