//! A recording's folder into a store: its tables by segments, then its files. What the store already
//! has is not sent again, so a push that was cut off goes on, and a second one sends nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use holdup_recording::manifest::{Manifest, RunState};
use holdup_recording::tables::{TableVisitor, each_table};
use holdup_recording::transfer::OpenTable;
use holdup_recording::{Cell, Recording, Row, clock, files};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::catalog::{self, Entry, Place, TableFacts, insertion, put_place};
use crate::client::Client;
use crate::error::StoreError;
use crate::insert::Inserter;
use crate::rowbinary::{put, put_bytes};
use crate::schema::{FILES, PIECE, SEGMENT_ROWS};

/// Bytes of one piece of a file.
const PIECE_BYTES: usize = 4 << 20;

/// Largest file beside the tables that is sent.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// How far a push is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The table being sent; empty at the end.
    pub table: &'static str,
    /// Its rows in the store.
    pub rows: u64,
    /// Its rows in the folder.
    pub rows_total: u64,
}

/// What was sent of a recording while it was running.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When the first push of the recording began.
    pub(crate) begun_at: i64,
    /// Rows that the server has confirmed, by table.
    pub rows: BTreeMap<String, u64>,
}

impl Sent {
    /// Rows in all tables.
    pub fn rows_total(&self) -> u64 {
        self.rows.values().sum()
    }
}

/// What a push did.
#[derive(Clone, Debug, Serialize)]
pub struct Pushed {
    /// Which recording.
    #[serde(flatten)]
    pub place: Place,
    /// Rows of the folder, by table.
    pub tables: BTreeMap<String, TableFacts>,
    /// Rows that were sent; the others were there.
    pub rows_sent: u64,
    /// Files beside the tables that were sent.
    pub files_sent: Vec<String>,
    /// Bytes that went over the network, rows and files.
    pub bytes_sent: u64,
    /// Whether the store was read to see that all rows are there: not by an account that may only
    /// insert.
    pub checked: bool,
}

/// ClickHouse's error for a missing grant.
const DENIED: u32 = 497;

/// What the store has of a recording, as far as the account may see it.
enum Before {
    /// The account may only insert: everything is sent, and equal keys fall together.
    Unseen,
    /// Nothing.
    New,
    /// A push, ended or not.
    Known(Box<Entry>),
}

impl Before {
    /// When the first push began, if the account may see that.
    fn begun_at(&self) -> Option<i64> {
        if let Self::Known(entry) = self { Some(entry.begun_at) } else { None }
    }
}

/// Tells the store that rows of this running recording are coming. Returns when the first push of it
/// began.
///
/// # Errors
/// If the store has another recording of that name, or the server refuses.
pub(crate) fn announce(client: &Client, manifest: &Manifest, place: &Place) -> Result<i64, StoreError> {
    let before = known(client, place, manifest)?;
    let now = clock::now_ns();
    let begun_at = before.begun_at().unwrap_or(now);
    if !matches!(&before, Before::Known(entry) if !entry.complete) {
        Entry { pushed_at: now, ..entry(place, manifest, begun_at) }.write(client)?;
    }
    Ok(begun_at)
}

/// Sends the recording in `dir`. `seen` hears how far it is, and returns false to stop.
///
/// # Errors
/// If the folder cannot be read, the store has another recording of that name, or the server does
/// not take the rows.
pub fn push(
    client: &Client,
    dir: &Path,
    place: &Place,
    seen: &mut dyn FnMut(Progress) -> bool,
) -> Result<Pushed, StoreError> {
    push_after(client, dir, place, None, seen)
}

/// The same after some of its rows were `sent` while it was running.
///
/// # Errors
/// Those of [`push`].
pub fn push_after(
    client: &Client,
    dir: &Path,
    place: &Place,
    sent: Option<&Sent>,
    seen: &mut dyn FnMut(Progress) -> bool,
) -> Result<Pushed, StoreError> {
    let manifest = Recording::manifest(dir)?;
    let before = known(client, place, &manifest)?;
    let checked = !matches!(before, Before::Unseen);
    let now = clock::now_ns();
    let begun_at = before.begun_at().or(sent.map(|sent| sent.begun_at)).unwrap_or(now);
    let mut entry = entry(place, &manifest, begun_at);
    if !is_announced(&before, dir, &entry)? {
        entry.pushed_at = now;
        entry.write(client)?;
    }
    let inserter = Inserter::new(client, place.clone(), begun_at);
    let (tables, rows_sent) = (BTreeMap::new(), 0);
    let confirmed = sent.map(|sent| sent.rows.clone()).unwrap_or_default();
    let mut sending = Sending { client, dir, place, inserter, seen, is_seeing: checked, confirmed, tables, rows_sent };
    each_table(&mut sending)?;
    let (tables, rows_sent) = (sending.tables, sending.rows_sent);
    let files_sent = send_files(client, dir, place, checked)?;
    if checked {
        check(client, place, &tables)?;
    }
    entry = Entry { pushed_at: clock::now_ns(), complete: true, tables: tables.clone(), ..entry };
    let is_written = match before {
        Before::Known(before) => Entry { pushed_at: entry.pushed_at, ..*before } == entry,
        Before::Unseen | Before::New => false,
    };
    if !is_written || rows_sent > 0 || !files_sent.is_empty() {
        entry.write(client)?;
    }
    Ok(Pushed { place: place.clone(), tables, rows_sent, files_sent, bytes_sent: client.sent_bytes(), checked })
}

fn entry(place: &Place, manifest: &Manifest, begun_at: i64) -> Entry {
    let state = match manifest.state {
        RunState::Running => "running",
        RunState::Complete => "complete",
        RunState::Interrupted => "interrupted",
    };
    Entry {
        place: place.clone(),
        pushed_at: 0,
        begun_at,
        complete: false,
        started_at: manifest.started_at,
        ended_at: manifest.ended_at,
        state: state.to_owned(),
        holdup: manifest.holdup.clone(),
        tables: BTreeMap::new(),
    }
}

/// What the store has of this recording.
fn known(client: &Client, place: &Place, manifest: &Manifest) -> Result<Before, StoreError> {
    let entries = match catalog::entries(client, Some(&place.recording)) {
        Err(StoreError::Refused { code: DENIED, .. }) => return Ok(Before::Unseen),
        entries => entries?,
    };
    let found = entries.into_iter().find(|entry| entry.place == *place);
    if let Some(other) = found.as_ref().filter(|entry| entry.started_at != manifest.started_at) {
        return Err(StoreError::Recording(format!(
            "{} has another recording {place}, which began at {}; give this one another name with --as NAME, or \
             remove that one with holdup store rm",
            client.server(),
            clock::rfc3339(other.started_at)
        )));
    }
    Ok(found.map_or(Before::New, |entry| Before::Known(Box::new(entry))))
}

/// Whether the store's entry already says what readers must know while rows arrive: that a push has
/// begun, or that all the rows of the folder are there.
fn is_announced(before: &Before, dir: &Path, entry: &Entry) -> Result<bool, StoreError> {
    let Before::Known(before) = before else { return Ok(false) };
    if !before.complete {
        return Ok(true);
    }
    let mut counting = Counting { dir, tables: BTreeMap::new() };
    each_table(&mut counting)?;
    Ok(before.tables == counting.tables && before.state == entry.state && before.ended_at == entry.ended_at)
}

struct Counting<'p> {
    dir: &'p Path,
    tables: BTreeMap<String, TableFacts>,
}

impl TableVisitor for Counting<'_> {
    type Error = StoreError;

    fn table<R: Row>(&mut self) -> Result<(), StoreError> {
        self.tables.extend(facts::<R>(&OpenTable::open::<R>(self.dir)?));
        Ok(())
    }
}

fn facts<R: Row>(table: &OpenTable) -> Option<(String, TableFacts)> {
    let lacking = table.lacking::<R>().into_iter().map(str::to_owned).collect();
    table.is_present().then(|| (R::TABLE.to_owned(), TableFacts { rows: table.rows_total(), lacking }))
}

struct Sending<'p> {
    client: &'p Client,
    dir: &'p Path,
    place: &'p Place,
    inserter: Inserter<'p>,
    seen: &'p mut dyn FnMut(Progress) -> bool,
    /// Whether the account may read.
    is_seeing: bool,
    /// Rows that the server has confirmed to this process before, by table.
    confirmed: BTreeMap<String, u64>,
    tables: BTreeMap<String, TableFacts>,
    rows_sent: u64,
}

impl TableVisitor for Sending<'_> {
    type Error = StoreError;

    fn table<R: Row>(&mut self) -> Result<(), StoreError> {
        let table = OpenTable::open::<R>(self.dir)?;
        let Some((name, facts)) = facts::<R>(&table) else { return Ok(()) };
        let rows_total = facts.rows;
        self.tables.insert(name, facts);
        if rows_total == 0 {
            return Ok(());
        }
        let there = match self.is_seeing {
            true => catalog::segments(self.client, R::TABLE, self.place)?,
            false => BTreeMap::new(),
        };
        if is_whole(&there, rows_total) {
            return Ok(());
        }
        let (mut first, mut pending) = (0, Vec::new());
        for group in table.groups::<R>() {
            pending.append(&mut group?);
            while pending.len() as u64 >= SEGMENT_ROWS {
                let rest = pending.split_off(SEGMENT_ROWS as usize);
                first = self.segment(&there, first, &std::mem::replace(&mut pending, rest), rows_total)?;
            }
        }
        self.segment(&there, first, &pending, rows_total).map(drop)
    }
}

impl Sending<'_> {
    /// Sends one segment unless it is there. Returns the number of the row after it.
    fn segment<R: Row>(
        &mut self,
        there: &BTreeMap<u64, u64>,
        first: u64,
        rows: &[R],
        rows_total: u64,
    ) -> Result<u64, StoreError> {
        let after = first + rows.len() as u64;
        // Who may not look goes by what was confirmed.
        let is_confirmed = !self.is_seeing && self.confirmed.get(R::TABLE).is_some_and(|rows| *rows >= after);
        let is_there = is_confirmed || there.get(&(first / SEGMENT_ROWS)) == Some(&(rows.len() as u64));
        let (mut done, mut sent) = (first, 0);
        if !rows.is_empty() && !is_there {
            let seen = &mut *self.seen;
            self.inserter.insert(first, rows, &mut |count| {
                (done, sent) = (done + count, sent + count);
                seen(Progress { table: R::TABLE, rows: done, rows_total })
            })?;
        }
        self.rows_sent += sent;
        Ok(after)
    }
}

/// Whether each segment of a table of `rows_total` rows has all its rows.
fn is_whole(there: &BTreeMap<u64, u64>, rows_total: u64) -> bool {
    let expected = (0..rows_total.div_ceil(SEGMENT_ROWS)).map(|n| (n, SEGMENT_ROWS.min(rows_total - n * SEGMENT_ROWS)));
    there.len() as u64 == rows_total.div_ceil(SEGMENT_ROWS) && expected.eq(there.iter().map(|(n, rows)| (*n, *rows)))
}

/// Checks that the store has what the folder has.
fn check(client: &Client, place: &Place, tables: &BTreeMap<String, TableFacts>) -> Result<(), StoreError> {
    for (table, facts) in tables.iter().filter(|(_, facts)| facts.rows > 0) {
        let there = catalog::segments(client, table, place)?;
        if !is_whole(&there, facts.rows) {
            let found: u64 = there.values().sum();
            return Err(StoreError::Recording(format!(
                "{} has {found} rows of {table} in place of {}: rows were removed there, by a TTL or by hand; remove \
                 the rest (holdup store rm) and push again",
                client.server(),
                facts.rows
            )));
        }
    }
    Ok(())
}

/// Whether a file beside the tables belongs to a recording and may be written by that name.
pub(crate) fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_kind = name.ends_with(".json") || name.ends_with(".hlog");
    is_kind && !name.starts_with(['.', '-']) && name.len() <= 100 && name.chars().all(is_plain)
}

/// The files of a folder that go with its tables.
fn beside(dir: &Path) -> Result<Vec<(String, PathBuf)>, StoreError> {
    let failed = |source| StoreError::File { path: dir.to_owned(), source };
    let mut found = Vec::new();
    for item in fs::read_dir(dir).map_err(failed)? {
        let item = item.map_err(failed)?;
        let is_file = item.file_type().is_ok_and(|kind| kind.is_file());
        if let Some(name) = item.file_name().to_str().filter(|name| is_file && is_file_name(name)) {
            found.push((name.to_owned(), item.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// Sends the files whose content the store does not have. Returns their names.
fn send_files(client: &Client, dir: &Path, place: &Place, is_seeing: bool) -> Result<Vec<String>, StoreError> {
    let there = if is_seeing { catalog::pieces(client, place)? } else { Vec::new() };
    let mut sent = Vec::new();
    for (name, path) in beside(dir)? {
        let content = files::read(&path, FILE_BYTES_MAX).map_err(|source| StoreError::File { path, source })?;
        let chunks: Vec<&[u8]> = content.chunks(PIECE_BYTES).collect();
        let hashes: Vec<String> = chunks.iter().map(|chunk| sha256(chunk)).collect();
        let known: Vec<&str> = there.iter().filter(|p| p.name == name).map(|p| p.sha256.as_str()).collect();
        if !chunks.is_empty() && known == hashes {
            continue;
        }
        let pushed_at = clock::now_ns();
        for (number, (chunk, hash)) in chunks.iter().zip(&hashes).enumerate() {
            let mut row = Vec::with_capacity(chunk.len() + 512);
            put_place(&mut row, place);
            let cells = [
                Cell::Text(name.as_str().into()),
                Cell::Int64(number as i64),
                Cell::Int64(chunks.len() as i64),
                Cell::Int64(pushed_at),
                Cell::Text(hash.as_str().into()),
            ];
            for (column, cell) in PIECE.iter().zip(&cells) {
                put(&mut row, column, cell);
            }
            put_bytes(&mut row, chunk);
            client.insert(&insertion(client.dialect(), FILES, &PIECE), &row, &mut || true)?;
        }
        if !chunks.is_empty() {
            sent.push(name);
        }
    }
    Ok(sent)
}

/// The SHA-256 of `bytes` as hex digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_whole_if_each_segment_is() {
        let counts = |counts: &[u64]| counts.iter().enumerate().map(|(n, rows)| (n as u64, *rows)).collect();
        assert!(is_whole(&counts(&[SEGMENT_ROWS, 1]), SEGMENT_ROWS + 1));
        assert!(is_whole(&counts(&[SEGMENT_ROWS]), SEGMENT_ROWS));
        for (there, rows) in [(counts(&[SEGMENT_ROWS]), SEGMENT_ROWS + 1), (counts(&[5]), 6), (counts(&[6, 1]), 6)] {
            assert!(!is_whole(&there, rows));
        }
    }

    #[test]
    fn names_of_files_cannot_lead_out_of_the_folder() {
        for name in ["manifest.json", "latency.hlog", "search.json", "a-b_1.json"] {
            assert!(is_file_name(name), "{name}");
        }
        for name in ["../a.json", "/a.json", ".a.json", "a/b.json", "a\0.json", "report.html", "a.parquet", "-a.json"] {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
