//! Follows the slow query log as it grows. Each entry becomes an execution with its session, the
//! server's own time and the trace id, even when performance_schema is off. The log is read only if
//! `?log=PATH` names it and the server keeps no statement history, which has the same executions
//! with better times.

mod coverage;
mod entries;
mod head;
mod scan;

use std::path::{Path, PathBuf};

use holdup_recording::rows::Statement;
use holdup_recording::{Batch, Labels, clock};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

pub(super) use self::coverage::find;
use self::entries::{Entries, Entry};
use super::server::MARKER;
use crate::log::follow::Follow;
use crate::reading::event;

/// Largest number of executions per sample.
const EXECUTIONS: usize = 2_000;

/// The format of a server's log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Form {
    /// Whether `SET timestamp` is the statement's start rather than the time of logging. Servers
    /// that write the latter also write the entry's time, except those before 5.7.
    pub(super) stamp_is_begin: bool,
}

/// A log being followed.
pub(super) struct SlowLog {
    path: PathBuf,
    follow: Option<(Follow, Entries)>,
}

impl SlowLog {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), follow: None }
    }

    /// Skips the present content.
    pub(super) fn skip_to_end(&mut self) -> std::io::Result<()> {
        let mut follow = Follow::in_pieces(self.path.clone());
        let entries = Entries::new(clock::now_ns());
        follow.begin(0, &mut |_, _| {})?;
        self.follow = Some((follow, entries));
        Ok(())
    }

    /// Executions logged since the last call. The last entry waits for the next call if nothing
    /// follows it yet, unless `at_once`: the server may still be writing it.
    pub(super) fn sample(&mut self, form: Form, at_once: bool, source: &str, batch: &mut Batch) -> std::io::Result<()> {
        let Some((follow, entries)) = &mut self.follow else { return self.skip_to_end() };
        let (mut found, mut left_out, mut lines) = (Vec::new(), 0_u64, 0_u64);
        let mut each = |entry: Entry| {
            if found.len() < EXECUTIONS {
                found.extend(Some(entry).filter(is_foreign));
            } else {
                left_out += u64::from(is_foreign(&entry));
            }
        };
        let begun_at = clock::now_ns();
        let looked = follow.look(&mut |_, line| {
            lines += 1;
            entries.take(&line, &mut each);
        });
        let now = clock::now_ns();
        // Anything written during the read is found by the next look.
        entries.looked(follow.is_between_lines(), begun_at, now);
        if at_once || lines == 0 {
            entries.finish(&mut each);
        }
        batch.statements.extend(found.iter().map(|entry| row(entry, form, source, now)));
        let mut say = |kind, text: String| batch.events.push(event(source, now, kind, text, Labels::none()));
        if left_out > 0 {
            say(
                "sampled",
                format!("{left_out} executions of the slow log were left out: more than {EXECUTIONS} at once"),
            );
        }
        let doubtful = std::mem::take(&mut entries.doubtful);
        if doubtful > 0 {
            let why = "they stand in or after an unterminated literal or comment";
            say("sampled", format!("{doubtful} entries of the slow log were left out: {why}"));
        }
        let skipped = looked?;
        if skipped > 0 {
            say("gap", format!("{skipped} bytes of the slow log were skipped: it grows faster than holdup reads it"));
        }
        Ok(())
    }
}

/// Whether it is a complete statement and not holdup's own.
fn is_foreign(entry: &Entry) -> bool {
    let text = entry.text.trim_ascii_start();
    // A value in a warning may have ended the head too early: then the true end is in the text.
    let is_cut =
        entry.head.has_warnings && text.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"SET timestamp="));
    !(is_cut
        || text.starts_with(MARKER.as_bytes())
        || text.starts_with(b"# administrator command: ")
        || text.is_empty())
}

fn row(entry: &Entry, form: Form, source: &str, now: i64) -> Statement {
    let head = &entry.head;
    let sql = entry.text.trim_ascii();
    let sql = sql.strip_suffix(b";").unwrap_or(sql);
    let text = digest_text(sql, Dialect::MySql);
    Statement {
        observed_at: ended_at(entry, form, now),
        source: source.to_owned(),
        kind: "execution".to_owned(),
        session_id: head.session_id,
        digest: digest_of_text(&text),
        digest_text: text,
        database: head.database.clone(),
        calls: 1,
        duration_ns: head.duration_ns,
        lock_ns: head.lock_ns,
        rows_examined: head.rows_examined,
        rows_sent: head.rows_sent,
        errors: head.errors,
        rows_affected: head.rows_affected,
        no_index: head.no_index,
        temporary_tables: head.temporary_tables,
        temporary_disk_tables: head.temporary_disk_tables,
        trace_id: trace_id(sql, Dialect::MySql),
    }
}

/// When it ended. If the server writes whole seconds, the second and the time of finding the entry
/// bound it, and the middle is taken; a session may also have set its clock to any value.
fn ended_at(entry: &Entry, form: Form, now: i64) -> i64 {
    let head = &entry.head;
    if let Some(at) = head.written_at {
        return at;
    }
    let (after, before) = (entry.after, entry.before.unwrap_or(now).max(entry.after));
    let since = if form.stamp_is_begin { head.duration_ns } else { 0 };
    let earliest = head.stamp_at.saturating_add(since);
    let (least, most) = (after.max(earliest), before.min(earliest.saturating_add(head.stamp_grain_ns)));
    let (least, most) = if least <= most { (least, most) } else { (after, before) };
    least + (most - least) / 2
}

#[cfg(test)]
mod tests;
