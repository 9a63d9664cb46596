//! Events that are drawn across all charts: restarts, kills, failed probes, marks set by the user.

use holdup_recording::{Recording, metrics};
use serde::Serialize;

/// One event; its counterpart is `Mark` in `web/src/model.ts`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Seconds from the recording's start.
    pub at_s: f64,
    /// The event's kind.
    pub kind: String,
    /// The event in words.
    pub text: String,
    /// Whether something ended or failed, rather than began or was noted.
    pub is_bad: bool,
}

/// The kinds of events that become marks, and whether each is bad.
const KINDS: &[(&str, bool)] = &[
    ("server_stopped", true),
    ("server_started", false),
    ("worker_exited", true),
    ("worker_started", false),
    ("container_killed", true),
    ("container_restarted", true),
    ("cgroup_gone", true),
    ("process_gone", true),
    ("probe_failed", true),
    ("probe_recovered", false),
    ("reset", false),
    ("mark", false),
];

/// Out-of-memory kills show only in this counter of the kernel.
const KILLED: &str = metrics::cgroup::OUT_OF_MEMORY_KILLS.name;

/// More marks than this would hide the charts.
const MOST: usize = 300;

/// The first [`MOST`] marks of a recording, in order of time.
pub fn marks(recording: &Recording) -> Vec<Mark> {
    let recording = recording.course().unwrap_or(recording);
    let start = recording.manifest.started_at;
    let at_s = |at: i64| ((at - start) as f64 / 1e6).round() / 1e3;
    let of = |kind: &str| KINDS.iter().find(|(known, _)| *known == kind);
    let events = recording.tables.events.rows.iter();
    let mut marks: Vec<Mark> = events
        .filter_map(|event| {
            of(&event.kind).map(|(kind, is_bad)| Mark {
                at_s: at_s(event.observed_at),
                kind: (*kind).to_owned(),
                text: event.text.clone(),
                is_bad: *is_bad,
            })
        })
        .collect();
    for ((source, _), points) in super::condensed(recording).series.by_metric.get(KILLED).into_iter().flatten() {
        let kills = points.windows(2).filter(|pair| pair[1].1 > pair[0].1);
        marks.extend(kills.map(|pair| Mark {
            at_s: at_s(pair[1].0),
            kind: "out_of_memory_kill".to_owned(),
            text: format!("{source}: killed because memory ran out"),
            is_bad: true,
        }));
    }
    marks.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    marks.truncate(MOST);
    marks
}
