//! What to do about a full disk, safest first. No command deletes a file: what a server has in its
//! folder it removes itself, by its own statements, after a look at who still needs it.

use crate::change::Fix;
use crate::resources::full_disk::{FullDisk, ShownBy};
use holdup_signals::View;

/// At most three steps.
pub(crate) fn fixes(view: &View<'_>, full: &[FullDisk]) -> Vec<Fix> {
    let mut steps: Vec<Fix> = Vec::new();
    let first = full.first();
    let server = |name: &str| full.iter().any(|disk| disk.name == name) || has_source(view, name);
    if first.is_some_and(|disk| disk.shown_by == ShownBy::Inodes) {
        steps.extend(first.map(|disk| files(&disk.name)));
    }
    if server("mysql") {
        steps.push(binary_logs());
    }
    if server("postgresql") {
        steps.push(slots());
    }
    if let Some(disk) = full.iter().find(|disk| matches!(disk.shown_by, ShownBy::Bytes)) {
        steps.push(largest(&disk.name));
    }
    steps.push(match full.iter().find(|disk| disk.shown_by == ShownBy::Cloud) {
        Some(disk) => grow_volume(&disk.name),
        None => grow(),
    });
    steps.truncate(3);
    steps
}

fn has_source(view: &View<'_>, scheme: &str) -> bool {
    let of = format!("{scheme}://");
    view.recording.manifest.coverage.iter().any(|coverage| coverage.source.starts_with(&of))
}

fn step(text: &str, command: Option<String>, risk: Option<&str>) -> Fix {
    Fix { text: text.to_owned(), command, keep: None, risk: risk.map(str::to_owned) }
}

fn binary_logs() -> Fix {
    step(
        "Let the server remove binary logs that no replica and no backup needs any more: see their sizes, ask each replica which one it reads (SHOW REPLICA STATUS: Source_Log_File), then PURGE BINARY LOGS TO the oldest of these. Waiting commits go on within a minute.",
        Some("SHOW BINARY LOGS;".to_owned()),
        Some(
            "A replica or a point-in-time recovery that still needs a purged log is lost. Never delete binlog or ib files by hand: the server's index still names them.",
        ),
    )
}

fn slots() -> Fix {
    step(
        "Find replication slots that hold write-ahead log for a reader that is gone, and drop those with pg_drop_replication_slot; the next checkpoint frees their log. Look at archive_command, too: log that cannot be archived stays.",
        Some("SELECT slot_name, active, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) AS holds FROM pg_replication_slots ORDER BY restart_lsn;".to_owned()),
        Some("The reader of a dropped slot has to be set up again. Never delete files in pg_wal: the server cannot start without them."),
    )
}

fn largest(path: &str) -> Fix {
    step(
        "See what holds the space. Files that were deleted and are still open count as well (lsof +L1): a restart of the program that holds them frees them.",
        Some(format!("du -xh --max-depth=2 {} | sort -h | tail -20", quoted(path))),
        Some("It reads every folder once, which costs I/O for minutes on a large file system."),
    )
}

fn files(path: &str) -> Fix {
    step(
        "See which folders hold the many small files: sessions, a mail queue, a cache. Let the program that makes them expire them.",
        Some(format!("du --inodes -x --max-depth=3 {} | sort -n | tail -20", quoted(path))),
        Some("It reads every folder once, which costs I/O for minutes."),
    )
}

fn grow() -> Fix {
    step(
        "Grow the file system, or move what grew to another one. Both keep all data.",
        None,
        Some("A grown volume mostly cannot be shrunk again."),
    )
}

fn grow_volume(name: &str) -> Fix {
    step(
        &format!(
            "Add storage to {name}: that keeps all data. Turn on automatic growth of its storage, so that this does not come again."
        ),
        None,
        Some(
            "Storage of a managed database mostly cannot be made smaller again, and the next change may have to wait for hours.",
        ),
    )
}

/// A path for a shell.
fn quoted(path: &str) -> String {
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if is_plain { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}
