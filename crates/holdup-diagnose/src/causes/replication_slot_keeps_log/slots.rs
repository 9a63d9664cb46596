//! What each slot keeps, by the server or a cloud.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};
use holdup_recording::words::{bytes, bytes_per_second, thousands};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::within;

use crate::causes::parts::present::Shown;
use crate::strength::{CERTAIN, FAIR, NONE, STRONG, Strength};

/// Log up to this is kept between two checkpoints of a busy server, bytes.
const USUAL: f64 = 1_073_741_824.0;

/// As much is kept for a reader that does not come, bytes.
const MUCH: f64 = 10.0 * USUAL;

/// Log that is this many times the data is not that of two checkpoints.
const MORE: f64 = 2.0;

/// Less than this share (0-1) of the log that a slot keeps is not what its reader has yet to confirm.
const LEFT: f64 = 0.5;

/// Most slots that are named.
const SHOWN: usize = 4;

/// Words of the server for log that is gone, or will be with the next checkpoint.
const LOSING: [&str; 2] = ["lost", "unreserved"];

/// What shows it, the worst first; pieces of no worth clear.
pub(super) fn shown(view: &View<'_>) -> Shown {
    let mut all = of_server(view);
    all.extend(unmeasured(view));
    all.extend(folders(view));
    for metric in
        [metrics::aws::OLDEST_REPLICATION_SLOT_LAG_BYTES, metrics::aws::OLDEST_LOGICAL_REPLICATION_SLOT_LAG_BYTES]
    {
        all.extend(of_cloud(view, metric));
    }
    all.sort_by(|a, b| b.0.chance().total_cmp(&a.0.chance()));
    all
}

/// The last state of a slot, and what it kept first and last.
struct Slot<'v> {
    labels: &'v Labels,
    first: (i64, f64),
    last: (i64, f64),
}

impl Slot<'_> {
    fn pace(&self) -> String {
        let seconds = self.last.0.saturating_sub(self.first.0) as f64 / 1e9;
        let grows = (self.last.1 - self.first.1) / seconds.max(1e-9);
        match seconds > 0.0 && grows > 0.0 {
            true => format!(", and {} more", bytes_per_second(grows)),
            false => String::new(),
        }
    }
}

/// By its label: a slot that changes its state begins another series.
fn slots<'v>(view: &View<'v>, metric: Metric, label: &str) -> BTreeMap<&'v str, Slot<'v>> {
    let mut all: BTreeMap<&str, Slot<'_>> = BTreeMap::new();
    for ((_, labels), points) in view.index.series(metric.name, &[]) {
        let points = within(points, view.window);
        let (Some(first), Some(last), Some(name)) = (points.first(), points.last(), labels.get(label)) else {
            continue;
        };
        let is_newer = all.get(name).is_none_or(|known| known.last.0 < last.0 || known.last.1 < last.1);
        if is_newer {
            all.insert(name, Slot { labels, first: *first, last: *last });
        }
    }
    all
}

fn evidence(view: &View<'_>, metric: Metric, of: &Slot<'_>, text: String) -> Evidence {
    let labels = of.labels.iter().fold(Labels::new([("metric", metric.name)]), |all, (k, v)| all.with(k, v));
    Evidence::new("samples", "value", labels, view.window, bytes(of.last.1), "less than 1 GiB", text)
}

fn of_server(view: &View<'_>) -> Shown {
    let metric = metrics::postgresql::REPLICATION_SLOT_RETAINED_BYTES;
    let shown = slots(view, metric, "slot").into_iter().map(|(name, of)| {
        let kept = of.last.1;
        let is_idle = of.labels.get("active") == Some("0");
        let losing = of.labels.get("wal_status").filter(|status| LOSING.contains(status));
        let reader = if is_idle { "has no reader and" } else { "has a reader and" };
        let status = losing.map_or_else(String::new, |status| format!("; its log is {status}"));
        let holds = if is_idle { unread(view, name) } else { stages(view, name, kept) };
        let text = format!(
            "slot {name}{} {reader} keeps {} of log{}{status}{}",
            logical(of.labels),
            bytes(kept),
            of.pace(),
            holds.unwrap_or_default()
        );
        (worth(kept, is_idle, losing.is_some()), evidence(view, metric, &of, text))
    });
    shown.collect()
}

/// What a logical slot decodes with, and whose changes.
fn logical(labels: &Labels) -> String {
    let (plugin, database) = (labels.get("plugin"), labels.get("database"));
    plugin.zip(database).map_or_else(String::new, |(plugin, database)| format!(" ({plugin}, database {database})"))
}

/// The last figure of a slot, and its labels.
fn last<'v>(view: &View<'v>, metric: Metric, slot: &str) -> Option<(f64, &'v Labels)> {
    let all = slots(view, metric, "slot");
    all.get(slot).map(|of| (of.last.1, of.labels))
}

/// Since when nothing reads a slot.
fn unread(view: &View<'_>, slot: &str) -> Option<String> {
    let (seconds, _) = last(view, metrics::postgresql::REPLICATION_SLOT_INACTIVE, slot)?;
    (seconds >= 1.0).then(|| format!("; nothing has read it for {} s", thousands(seconds)))
}

/// How far the reader of a slot that keeps so many bytes has come, and which of its stages is behind.
fn stages(view: &View<'_>, slot: &str, kept: f64) -> Option<String> {
    let behind = |metric| last(view, metric, slot);
    let unconfirmed = behind(metrics::postgresql::REPLICATION_SLOT_UNCONFIRMED_BYTES);
    if let Some((unconfirmed, _)) = unconfirmed.filter(|(of, _)| kept >= USUAL && *of < LEFT * kept) {
        let confirmed = bytes(unconfirmed.max(0.0));
        return Some(format!("; the reader has confirmed all but {confirmed}, and an open transaction keeps the rest"));
    }
    let (replayed, of) = behind(metrics::postgresql::STAT_REPLICATION_REPLAY_LAG_BYTES)?;
    let (sent, _) = behind(metrics::postgresql::STAT_REPLICATION_SENT_LAG_BYTES)?;
    let (flushed, _) = behind(metrics::postgresql::STAT_REPLICATION_FLUSH_LAG_BYTES)?;
    let name = of.get("application_name").unwrap_or("its reader");
    let [sent, flushed, replayed] = [sent, flushed, replayed].map(|of| bytes(of.max(0.0)));
    Some(format!("; {name} was sent all but {sent}, has flushed all but {flushed} and applied all but {replayed}"))
}

/// Slots without a reader of which nothing says how much they keep: each keeps more with every write.
fn unmeasured(view: &View<'_>) -> Option<(Strength, Evidence)> {
    let metric = metrics::postgresql::REPLICATION_SLOT_ACTIVE;
    let measured = slots(view, metrics::postgresql::REPLICATION_SLOT_RETAINED_BYTES, "slot");
    let mut idle = slots(view, metric, "slot");
    idle.retain(|name, of| of.last.1 < 1.0 && !measured.contains_key(name));
    let (_, first) = idle.first_key_value()?;
    let names: Vec<&str> = idle.keys().copied().take(SHOWN).collect();
    let text =
        format!("slot {} has no reader and keeps the log since it lost it; how much was not shown", names.join(", "));
    let labels = Labels::new([("metric", metric.name)]).with("slot", first.labels.get("slot").unwrap_or_default());
    Some((FAIR, Evidence::new("samples", "value", labels, view.window, "no reader", "a reader", text)))
}

/// The folder of the log by its size: as much is kept for a reader, or because it cannot be archived.
fn folders(view: &View<'_>) -> Option<(Strength, Evidence)> {
    let metric = metrics::host::FOLDER_BYTES;
    let all = slots(view, metric, "path");
    let size = |name: &str| {
        let named = all.iter().filter(|(path, _)| path.trim_end_matches('/').rsplit('/').next() == Some(name));
        named.map(|(path, of)| (*path, of)).max_by(|a, b| a.1.last.1.total_cmp(&b.1.last.1))
    };
    let (path, log) = size("pg_wal").or_else(|| size("pg_xlog"))?;
    let (kept, data) = (log.last.1, size("base").map(|(_, data)| data.last.1));
    let is_more = data.is_some_and(|data| kept >= USUAL && kept >= MORE * data);
    let beside = data.map_or_else(String::new, |data| format!(" beside {} of data", bytes(data)));
    let text = format!("{path} holds {} of log{beside}: it is kept for a reader, or was not archived", bytes(kept));
    (kept >= MUCH || is_more).then(|| (FAIR, evidence(view, metric, log, text)))
}

fn worth(kept: f64, is_idle: bool, is_losing: bool) -> Strength {
    match is_idle {
        _ if is_losing => CERTAIN,
        true if kept >= MUCH => CERTAIN,
        true if kept >= USUAL => STRONG,
        // Its reader is behind, and still reads.
        false if kept >= MUCH => FAIR,
        _ => NONE,
    }
}

/// A cloud does not say whether the slot has a reader.
fn of_cloud(view: &View<'_>, metric: Metric) -> Shown {
    let shown = slots(view, metric, "db_instance").into_iter().map(|(name, of)| {
        let kept = of.last.1;
        let text = format!("{name}: its slot furthest behind keeps {} of log{}", bytes(kept.max(0.0)), of.pace());
        let strength = match () {
            () if kept >= MUCH => STRONG,
            () if kept >= USUAL => FAIR,
            () => NONE,
        };
        (strength, evidence(view, metric, &of, text))
    });
    shown.collect()
}
