//! Follows the server's log as it grows. `duration: … statement: …` and auto_explain's plans become
//! executions with the session, the server's own time and the trace id. Plans become trees, and
//! messages about the server's own work (vacuum, checkpoints, locks, temporary files, errors)
//! become events. The log may be text (by `log_line_prefix`), CSV or JSON, as its file name says;
//! rotation, partial lines and arbitrary texts are handled. Parameters and values are not kept.

mod csv;
mod events;
mod execution;
mod maintenance;
mod prefix;
mod text;

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use holdup_recording::rows::Plan;
use holdup_recording::{Batch, Labels, clock};

pub(super) use self::prefix::Prefix;
use crate::reading::event;

/// Bytes read per sample.
const READ_BYTES: u64 = 8 << 20;

/// Bytes kept of one entry.
const ENTRY_BYTES: usize = 1 << 20;

/// Largest number of executions per sample.
const EXECUTIONS: usize = 2_000;

/// Largest number of plans per sample: the slowest of each statement and shape.
const PLANS: usize = 500;

/// The log's format, from the server's settings.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) prefix: Prefix,
    /// Offset of its clock from UTC.
    pub(super) zone_seconds: i64,
    /// `log_min_duration_statement`, if it is on: an execution logged by it is not read from its
    /// plan again.
    pub(super) statement_threshold_ms: Option<f64>,
}

/// The format that the file's name implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Csv,
    Json,
}

impl Kind {
    fn from_path(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Self::Csv,
            Some("json") => Self::Json,
            _ => Self::Text,
        }
    }
}

/// One log message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Nanoseconds since the epoch.
    pub at: Option<i64>,
    /// The session's process.
    pub pid: Option<i64>,
    /// The session's database.
    pub database: Option<String>,
    /// `LOG`, `ERROR`, …
    pub severity: String,
    /// SQLSTATE, if the log has it.
    pub code: Option<String>,
    /// Its text; it may contain values.
    pub message: String,
    /// The text of `DETAIL`; it may contain values.
    pub detail: Option<String>,
    /// The statement concerned; it contains values.
    pub statement: Option<String>,
}

/// Rows of messages that another reader took from a log: events, and the slowest plan of each
/// statement and shape.
pub struct Messages {
    source: String,
    events: events::Events,
    plans: Plans,
}

impl Messages {
    /// Of a server that the rows call `source`.
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), events: events::Events::default(), plans: Plans::default() }
    }

    /// Adds the events of entries to `batch`; one without a time is left out.
    pub fn take(&mut self, entries: &[Entry], batch: &mut Batch) {
        let timed: Vec<Entry> = entries.iter().filter(|entry| entry.at.is_some()).cloned().collect();
        timed.iter().for_each(|entry| self.plans.take(entry, &self.source, 0));
        self.events.take(&timed, &self.source, 0, batch);
    }

    /// The plans so far.
    pub fn plans(self) -> impl Iterator<Item = Plan> {
        self.plans.0.into_values()
    }
}

/// The slowest plan of each statement and shape.
#[derive(Default)]
struct Plans(BTreeMap<(String, String), Plan>);

impl Plans {
    fn take(&mut self, entry: &Entry, source: &str, now: i64) {
        let Some(plan) = execution::plan(entry, source, now) else { return };
        let key = (plan.digest.clone(), plan.shape.clone());
        let slowest = self.0.get(&key).is_none_or(|other| other.duration_ns < plan.duration_ns);
        if slowest && (self.0.len() < PLANS || self.0.contains_key(&key)) {
            self.0.insert(key, plan);
        }
    }
}

/// The file being written: `path`, or the most recently changed file of that folder.
pub(super) fn newest(path: &Path) -> std::io::Result<PathBuf> {
    if !path.is_dir() {
        return holdup_recording::files::open(path).map(|_| path.to_owned());
    }
    let changed = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok()?;
        metadata.is_file().then(|| (metadata.modified().ok(), entry.path()))
    };
    let found = std::fs::read_dir(path)?.filter_map(changed).max();
    let (_, file) = found.ok_or_else(|| std::io::Error::other("the folder contains no file"))?;
    holdup_recording::files::open(&file).map(|_| file)
}

/// Whether the log is text rather than CSV or JSON.
pub(super) fn is_text(path: &Path) -> bool {
    newest(path).is_ok_and(|file| Kind::from_path(&file) == Kind::Text)
}

struct Open {
    file: File,
    identity: (u64, u64),
    offset: u64,
    kind: Kind,
}

/// A log being followed.
pub(super) struct Log {
    path: PathBuf,
    open: Option<Open>,
    /// The part read of an entry that may continue.
    pending: Vec<u8>,
    events: events::Events,
}

impl Log {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: None, pending: Vec::new(), events: events::Events::default() }
    }

    /// Skips the present content.
    pub(super) fn skip_to_end(&mut self) {
        self.pending.clear();
        self.open = newest(&self.path).ok().and_then(|path| open(&path).ok());
        if let Some(open) = &mut self.open {
            open.offset = open.file.metadata().map_or(0, |metadata| metadata.len());
        }
    }

    /// Executions logged since the last call.
    pub(super) fn sample(&mut self, form: &Form, source: &str, batch: &mut Batch) -> std::io::Result<()> {
        let now = clock::now_ns();
        let mut entries = Vec::new();
        let skipped = self.entries(form, &mut entries)?;
        let left_out = self.rows(&entries, form, source, now, batch);
        let mut say = |kind, text: String| batch.events.push(event(source, now, kind, text, Labels::none()));
        if left_out > 0 {
            say("sampled", format!("{left_out} executions of the log were left out: more than {EXECUTIONS} at once"));
        }
        if skipped > 0 {
            say("gap", format!("{skipped} bytes of the log were skipped: it grows faster than holdup reads it"));
        }
        Ok(())
    }

    /// Adds the rows of entries; returns the number of left-out executions.
    fn rows(&mut self, entries: &[Entry], form: &Form, source: &str, now: i64, batch: &mut Batch) -> u64 {
        let before = batch.statements.len();
        let mut left_out = 0_u64;
        let mut plans = Plans::default();
        for entry in entries {
            plans.take(entry, source, now);
            let Some(statement) = execution::from_entry(entry, form, source, now) else { continue };
            if batch.statements.len() - before < EXECUTIONS {
                batch.statements.push(statement);
            } else {
                left_out += 1;
            }
        }
        batch.plans.extend(plans.0.into_values());
        self.events.take(entries, source, now, batch);
        left_out
    }

    /// Reads the entries that are now complete; returns the number of skipped bytes.
    fn entries(&mut self, form: &Form, entries: &mut Vec<Entry>) -> std::io::Result<u64> {
        let current = newest(&self.path)?;
        let metadata = std::fs::metadata(&current)?;
        let mut skipped = 0;
        // Read the end of the renamed file first, then the new one.
        if let Some(open) = &mut self.open
            && open.identity != identity(&metadata)
        {
            let (kind, more) = (open.kind, read(open, &mut skipped)?);
            self.pending.extend(more);
            self.take(kind, true, form, entries);
            self.open = None;
        }
        if self.open.is_none() {
            self.pending.clear();
            self.open = Some(open(&current)?);
        }
        if let Some(open) = &mut self.open {
            if metadata.len() < open.offset {
                // It was truncated in place.
                open.offset = 0;
                self.pending.clear();
            }
            let (kind, more) = (open.kind, read(open, &mut skipped)?);
            if skipped > 0 {
                self.pending.clear();
            }
            let is_over = more.is_empty();
            self.pending.extend(more);
            self.take(kind, is_over, form, entries);
        }
        Ok(skipped)
    }

    /// Extracts entries from the text read so far; the last one only if it `is_over`.
    fn take(&mut self, kind: Kind, is_over: bool, form: &Form, entries: &mut Vec<Entry>) {
        let used = match kind {
            Kind::Text => text::entries(&self.pending, is_over, form, entries),
            Kind::Csv => csv::entries(&self.pending, form, entries),
            Kind::Json => json(&self.pending, form, entries),
        };
        self.pending.drain(..used.min(self.pending.len()));
        // Too long for an entry that would be kept.
        if self.pending.len() > 4 * ENTRY_BYTES {
            self.pending.clear();
        }
    }
}

fn open(path: &Path) -> std::io::Result<Open> {
    let file = holdup_recording::files::open(path)?;
    let identity = identity(&file.metadata()?);
    Ok(Open { file, identity, offset: 0, kind: Kind::from_path(path) })
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The new content of a file: at most its last [`READ_BYTES`].
fn read(open: &mut Open, skipped: &mut u64) -> std::io::Result<Vec<u8>> {
    let behind = open.file.metadata()?.len().saturating_sub(open.offset);
    if behind > READ_BYTES {
        *skipped += behind - READ_BYTES;
        open.offset += behind - READ_BYTES;
    }
    open.file.seek(SeekFrom::Start(open.offset))?;
    let mut bytes = Vec::new();
    (&open.file).take(READ_BYTES).read_to_end(&mut bytes)?;
    open.offset += bytes.len() as u64;
    Ok(bytes)
}

/// Entries of JSON lines (`log_destination = jsonlog`, since 15); returns their length in bytes.
fn json(bytes: &[u8], form: &Form, entries: &mut Vec<Entry>) -> usize {
    let used = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for line in bytes.get(..used).unwrap_or_default().split(|byte| *byte == b'\n') {
        let Ok(object) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
        let word = |name: &str| object.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
        entries.push(Entry {
            at: word("timestamp").and_then(|text| prefix::time(&text, form.zone_seconds)).map(|(at, _)| at),
            pid: object.get("pid").and_then(serde_json::Value::as_i64),
            database: word("dbname"),
            severity: word("error_severity").unwrap_or_default(),
            code: word("state_code"),
            message: word("message").unwrap_or_default(),
            detail: word("detail"),
            statement: word("statement"),
        });
    }
    used
}

/// For the fuzzer: parses any bytes as a log of any format, cut anywhere, and returns the rows of
/// all its entries.
#[doc(hidden)]
pub fn fuzz(prefix: &str, kind: u8, cut: usize, bytes: &[u8]) -> Batch {
    let form = Form { prefix: Prefix::parse(prefix), zone_seconds: 0, statement_threshold_ms: None };
    let kind = [Kind::Text, Kind::Csv, Kind::Json][usize::from(kind) % 3];
    let mut log = Log::new(PathBuf::new());
    let (mut entries, mut batch) = (Vec::new(), Batch::default());
    let (head, tail) = bytes.split_at(cut.min(bytes.len()));
    for (part, is_over) in [(head, false), (tail, false), (&b""[..], true)] {
        log.pending.extend(part);
        log.take(kind, is_over, &form, &mut entries);
    }
    log.rows(&entries, &form, "fuzz", 0, &mut batch);
    batch
}

#[cfg(test)]
mod tests;
