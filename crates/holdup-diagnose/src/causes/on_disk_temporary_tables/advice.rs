//! What to do about temporary tables on disk, from the measurements: how much memory a tmpfs needs,
//! and whether a larger tmp_table_size would help at all.

mod tmpfs;

use holdup_recording::{Labels, metrics};

use super::super::bytes;
use super::{CREATED, ENABLE};
use crate::change::database::{Home, Server};
use crate::change::host::Place;
use crate::change::parameters::Engine;
use crate::change::{Fix, cut};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Mount, View};

/// As many tmpdirs are enough to spread the lock.
const SEVERAL: usize = 4;

/// A table that takes less than this share (0-1) of the memory limit was not put on disk for its
/// size.
const SMALL: f64 = 0.5;

/// Evidence that points at setting `name` of `source`.
pub(super) fn setting(
    view: &View<'_>,
    source: &str,
    name: &str,
    value: &str,
    expected: &str,
    text: String,
) -> Evidence {
    let labels = Labels::new([("name", name), ("source", source)]);
    Evidence::new("settings", "value", labels, view.window, value, expected, text)
}

/// The source that has setting `name`; empty if none has.
pub(super) fn source_of(view: &View<'_>, name: &str) -> String {
    let rows = &view.recording.tables.settings.rows;
    rows.iter().rev().find(|r| r.name == name).map(|r| r.source.clone()).unwrap_or_default()
}

/// Bytes of a temporary table at most: what the server's process wrote, or what was written to
/// tmpdir's device, per table. Both include other writes.
fn table_bytes(view: &View<'_>, mount: Option<&Mount>, created: &Counter) -> Option<f64> {
    let calls = view.counter(metrics::process::IO_CALLS_BYTES.name, &[("direction", "write")], ENABLE).ok();
    let device = mount.and_then(|m| {
        let labels = [("device", m.device.as_str()), ("direction", "write")];
        view.counter(metrics::host::DISK_IO_BYTES.name, &labels, ENABLE).ok()
    });
    let rates = [calls, device].into_iter().flatten().map(|written| written.rate()).filter(|rate| *rate > 0.0);
    rates.min_by(f64::total_cmp).filter(|_| created.rate() > 0.0).map(|rate| rate / created.rate())
}

/// Largest temporary table that stays in memory, bytes: the lesser of both limits.
fn memory_limit(view: &View<'_>) -> Option<f64> {
    let number = |name| view.setting(name, ENABLE).ok()?.parse::<f64>().ok();
    let sizes = [number("tmp_memory_table_size").or(number("tmp_table_size")), number("max_heap_table_size")];
    sizes.into_iter().flatten().min_by(f64::total_cmp)
}

/// Whether a larger tmp_table_size would be useless, by the size of the tables.
pub(super) fn in_vain(view: &View<'_>) -> Option<Evidence> {
    let limit = memory_limit(view)?;
    let created = view.counter(CREATED, &[], ENABLE).ok()?;
    let each =
        table_bytes(view, view.server_directories("tmpdir").first().and_then(|t| view.mount_of(t)).as_ref(), &created)?;
    let text = if each < SMALL * limit {
        format!(
            "raising tmp_table_size or max_heap_table_size would not help: a table takes at most {}, and {} may stay in memory, so it is on disk for its columns (BLOB or TEXT) and not for its size",
            bytes(each),
            bytes(limit)
        )
    } else {
        format!(
            "up to {} were written per table, and {} may stay in memory: some tables may be too large for it",
            bytes(each),
            bytes(limit)
        )
    };
    let source = source_of(view, "tmp_table_size");
    (!source.is_empty()).then(|| setting(view, &source, "tmp_table_size", &bytes(limit), "", text))
}

/// What to do, safest first; `at_once` is the most tables at one moment.
pub(super) fn fixes(
    view: &View<'_>,
    tmpdirs: &[String],
    mount: Option<&Mount>,
    created: &Counter,
    at_once: f64,
) -> Vec<Fix> {
    let server = Server::find(view, Engine::MySql);
    let place = Place::find(view, mount.map_or("host", |mount| mount.source.as_str()));
    let mut fixes = Vec::new();
    // A managed server's tmpdir is not the user's to choose.
    let is_own = server.home() == Home::Own;
    if is_own {
        fixes.push(tmpfs::in_memory(view, &place, table_bytes(view, mount, created), at_once));
    }
    if let Some(mount) = mount.filter(|m| is_own && (m.has_option("dirsync") || m.has_option("sync"))) {
        fixes.push(without_sync(&place, mount));
    }
    fixes.push(Fix {
        text: format!(
            "Avoid the statement's table on disk{}: no BLOB or TEXT column in GROUP BY, DISTINCT or UNION. Group by a key, a hash, or LEFT(column, 200) cast to CHAR instead.",
            statement(view).map_or_else(String::new, |s| format!(" ({})", cut(&s)))
        ),
        command: None,
        keep: None,
        risk: Some(
            "The statement's result must stay the same: values that differ only beyond the grouped part become one."
                .to_owned(),
        ),
    });
    if is_own && tmpdirs.len() < SEVERAL {
        fixes.push(Fix {
            text: format!(
                "Without a tmpfs: several tmpdirs (now {}), each with a separate directory lock; the server uses them in turn.",
                tmpdirs.join(":")
            ),
            command: Some("tmpdir=/var/tmp/m1:/var/tmp/m2:/var/tmp/m3:/var/tmp/m4   # below [mysqld], then restart the server".to_owned()),
            keep: Some("It is in the option file.".to_owned()),
            risk: Some("Shortens the queue of each lock, not the time for which it is held. Needs a restart.".to_owned()),
        });
    }
    fixes
}

fn without_sync(place: &Place, mount: &Mount) -> Fix {
    let option = if mount.has_option("dirsync") { "dirsync" } else { "sync" };
    let steps = place.machine(
        format!("umount {0} && mount -o defaults /dev/{1} {0}", mount.path, mount.device),
        format!("Take {option} out of the line of {} in /etc/fstab.", mount.path),
    );
    Fix {
        text: format!(
            "Mount {} without {option}: because of it, each create and delete waits for the disk. A remount does not change it, so unmount and mount again.{}",
            mount.path,
            steps.note()
        ),
        command: steps.command,
        keep: steps.keep,
        risk: Some(
            "The server must be stopped meanwhile. Directory entries of the last seconds before a crash may be lost, which does not matter for temporary tables."
                .to_owned(),
        ),
    }
}

/// The statement of most busy sessions.
fn statement(view: &View<'_>) -> Option<String> {
    let busy = view.busy_sessions().ok()?;
    busy.groups.into_iter().find(|g| !g.statement.is_empty()).map(|g| g.statement)
}
