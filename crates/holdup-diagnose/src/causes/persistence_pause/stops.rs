//! When and for how long servers stood still to persist their data: forks by the time of the latest, the
//! append-only file by the server's monitor, SAVE by the slow log.

use holdup_recording::metrics;
use holdup_recording::words::ms;
use holdup_recording::{Labels, events};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::pairs;

use crate::causes::parts::one_thread::Kept;

/// The monitor's words for stops of the append-only file and the snapshot's. It counts `aof-write` once more
/// by what was the matter, and forks are counted by themselves.
const BY_FILE: [&str; 5] = ["aof-write", "aof-fsync-always", "aof-fstat", "aof-rename", "rdb-unlink-temp-file"];

/// Most forks between two samples: more are not of this server.
const FORKS_MAX: f64 = 100.0;

/// Stops of one server in a window.
pub(super) struct Stops<'v> {
    pub(super) source: &'v str,
    pub(super) kept: Kept,
    /// The longest of each kind, seconds.
    longest: [f64; 3],
    forks: usize,
}

/// Those of each server that stood still.
pub(super) fn all<'v>(view: &View<'v>, requests: f64) -> Vec<Stops<'v>> {
    let sources = view.sources_of(metrics::redis::LATEST_FORK.name).into_iter();
    let of = |source: &'v str| {
        let kinds = [forks(view, source), by_file(view, source), saves(view, source)];
        let longest = kinds.each_ref().map(|seconds| seconds.iter().copied().fold(0.0, f64::max));
        let forks = kinds[0].len();
        let seconds: Vec<f64> = kinds.concat();
        (!seconds.is_empty()).then(|| Stops {
            source,
            kept: Kept::new(view, source, seconds, requests),
            longest,
            forks,
        })
    };
    sources.filter_map(of).collect()
}

/// Whether a server's own monitor timed anything in the recording.
pub(super) fn has_monitor(view: &View<'_>) -> bool {
    view.recording.tables.events.rows.iter().any(|row| row.kind == events::SERVER_STALL)
}

impl Stops<'_> {
    /// Evidence that points at the longest, and what `then` follows.
    pub(super) fn evidence(&self, view: &View<'_>, then: &str) -> Evidence {
        let [fork, file, save] = self.longest;
        let (total, longest) = (ms(self.kept.total_s() * 1e3), ms(self.kept.longest_s() * 1e3));
        let forked = if self.forks > 0 { format!(", {} of them forks", self.forks) } else { String::new() };
        let (table, column, labels) = match () {
            () if fork >= file.max(save) => ("samples", "value", ("metric", metrics::redis::LATEST_FORK.name)),
            () if file >= save => ("events", "kind", ("kind", events::SERVER_STALL)),
            () => ("statements", "duration_ns", ("kind", "execution")),
        };
        let count = self.kept.seconds.len();
        let text = format!(
            "{} stood still {count} times to persist its data{forked}, {longest} at most and {total} in all{then}",
            self.source
        );
        Evidence::new(table, column, Labels::new([labels]), view.window, total, "no stop", text)
    }
}

/// Seconds of each fork.
fn forks(view: &View<'_>, source: &str) -> Vec<f64> {
    let series = |metric: &str| view.total(source, metric, &[]);
    let totals = series(metrics::redis::INFO_TOTAL_FORKS.name);
    let total = |at: i64| totals.iter().find(|(of, _)| *of == at).map(|(_, total)| *total);
    let latest = view.index.series(metrics::redis::LATEST_FORK.name, &[]).filter(|((of, _), _)| of == source);
    let mut all = Vec::new();
    for ((before_at, before), (at, latest)) in latest.flat_map(|(_, points)| pairs(points, view.window)) {
        // Servers before 6.2 do not count them; the length of each is another.
        let count = match total(before_at).zip(total(at)) {
            Some((earlier, now)) => (now - earlier).clamp(0.0, FORKS_MAX) as usize,
            None => usize::from((latest - before).abs() > 0.0),
        };
        all.extend(std::iter::repeat_n(latest, count).filter(|seconds| *seconds > 0.0));
    }
    all
}

/// Seconds of each stop that the monitor timed.
fn by_file(view: &View<'_>, source: &str) -> Vec<f64> {
    let rows = view.recording.tables.events.rows.iter();
    let own = rows.filter(|row| {
        row.kind == events::SERVER_STALL && row.source == source && view.window.contains(row.observed_at)
    });
    let of_file = own.filter(|row| row.labels.get("what").is_some_and(|what| BY_FILE.contains(&what)));
    let seconds = of_file.filter_map(|row| row.labels.get("seconds")?.parse::<f64>().ok());
    seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0).collect()
}

/// Seconds of each SAVE: it writes the snapshot on the one thread.
fn saves(view: &View<'_>, source: &str) -> Vec<f64> {
    let rows = view.recording.tables.statements.rows.iter();
    let own =
        rows.filter(|row| row.kind == "execution" && row.source == source && view.window.contains(row.observed_at));
    own.filter(|row| row.digest_text.split(' ').next() == Some("SAVE"))
        .map(|row| row.duration_ns as f64 / 1e9)
        .collect()
}
