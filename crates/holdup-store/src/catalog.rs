//! Which recordings a store has, which rows of them, and how to remove one.

use std::collections::BTreeMap;

use holdup_recording::{Cell, Column, tables};
use serde::{Deserialize, Serialize};

use crate::address::check_name;
use crate::client::{Client, SMALL_BYTES_MAX};
use crate::dialect::Dialect;
use crate::error::StoreError;
use crate::rowbinary::{Reader, put, put_bytes};
use crate::schema::{ENTRY, FILES, PIECE, PLACE, RECORDINGS, SEGMENT_ROWS};
use crate::statement::Statement;

/// Which recording of which host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The recording's name in the store.
    pub recording: String,
    /// The host it comes from; empty if only one host wrote it.
    pub host: String,
}

impl Place {
    /// The place of a recording.
    ///
    /// # Errors
    /// If a name is too long, or the recording has none.
    pub fn new(recording: &str, host: &str) -> Result<Self, StoreError> {
        let checked = check_name("the recording's name", recording).and_then(|()| check_name("the host's name", host));
        checked.map_err(StoreError::Recording)?;
        if recording.is_empty() {
            return Err(StoreError::Recording("the recording has no name; give one with --as NAME".to_owned()));
        }
        Ok(Self { recording: recording.to_owned(), host: host.to_owned() })
    }

    /// `statement` with the parameters of this place.
    pub(crate) fn bind(&self, statement: Statement) -> Statement {
        statement.text("recording", &self.recording).text("host", &self.host)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.recording.escape_debug())?;
        if self.host.is_empty() { Ok(()) } else { write!(f, " of host {}", self.host.escape_debug()) }
    }
}

/// The condition for the rows of a [`Place`].
pub(crate) const HERE: &str = "recording = {recording:String} AND host = {host:String}";

/// One table of a recording, as its folder has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFacts {
    /// Its rows.
    pub rows: u64,
    /// Columns that its files lack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
}

/// One recording of one host in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Which.
    #[serde(flatten)]
    pub place: Place,
    /// When its last push wrote this, nanoseconds since the Unix epoch.
    pub pushed_at: i64,
    /// When its first push began.
    pub begun_at: i64,
    /// Whether all its rows and files are in the store.
    pub complete: bool,
    /// When the recording began.
    pub started_at: i64,
    /// When it ended, if it has.
    pub ended_at: Option<i64>,
    /// `running`, `complete` or `interrupted`.
    pub state: String,
    /// Version of the holdup that recorded it.
    pub holdup: String,
    /// Its tables that have a file.
    pub tables: BTreeMap<String, TableFacts>,
}

impl Entry {
    /// Rows in all tables.
    pub fn rows(&self) -> u64 {
        self.tables.values().map(|table| table.rows).sum()
    }

    /// Writes it into the table of recordings, in place of an earlier one.
    pub(crate) fn write(&self, client: &Client) -> Result<(), StoreError> {
        let tables = serde_json::to_string(&self.tables).unwrap_or_default();
        let cells = [
            Cell::Int64(self.pushed_at),
            Cell::Int64(self.begun_at),
            Cell::Bool(self.complete),
            Cell::Int64(self.started_at),
            self.ended_at.map_or(Cell::Absent, Cell::Int64),
            Cell::Text(self.state.as_str().into()),
            Cell::Text(self.holdup.as_str().into()),
            Cell::Text(tables.into()),
        ];
        let mut row = Vec::new();
        put_place(&mut row, &self.place);
        for (column, cell) in ENTRY.iter().zip(&cells) {
            put(&mut row, column, cell);
        }
        client.insert(&insertion(client.dialect(), RECORDINGS, &ENTRY), &row, &mut || true)
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let place = Place { recording: utf8(reader.bytes()?), host: utf8(reader.bytes()?) };
        let mut cells = Vec::with_capacity(ENTRY.len());
        for column in &ENTRY {
            cells.push(reader.cell(column)?);
        }
        let [
            Cell::Int64(pushed_at),
            Cell::Int64(begun_at),
            Cell::Bool(complete),
            Cell::Int64(started_at),
            ended_at,
            Cell::Text(state),
            Cell::Text(holdup),
            Cell::Text(tables),
        ] = <[Cell<'_>; 8]>::try_from(cells).ok()?
        else {
            return None;
        };
        let ended_at = if let Cell::Int64(at) = ended_at { Some(at) } else { None };
        let (state, holdup) = (state.into_owned(), holdup.into_owned());
        let tables = serde_json::from_str(&tables).ok()?;
        Some(Self { place, pushed_at, begun_at, complete, started_at, ended_at, state, holdup, tables })
    }
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Appends the first columns of every row.
pub(crate) fn put_place(row: &mut Vec<u8>, place: &Place) {
    put_bytes(row, place.recording.as_bytes());
    put_bytes(row, place.host.as_bytes());
}

/// The statement that inserts rows of `table`: their place, then `columns`.
pub(crate) fn insertion(dialect: Dialect, table: &str, columns: &[Column]) -> Statement {
    let names = PLACE.iter().chain(columns).map(|column| column.name);
    insertion_named(dialect, table, names)
}

/// The same with all columns named.
pub(crate) fn insertion_named<'n>(dialect: Dialect, table: &str, names: impl Iterator<Item = &'n str>) -> Statement {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let statement = Statement::new(format!("INSERT INTO {table} ({}) FORMAT RowBinary", names.join(", ")));
    // Over shards a confirmed block must lie there, and not in a queue of the server that took it.
    let statement = statement.setting("insert_distributed_sync", 1);
    if dialect == Dialect::Old { statement } else { statement.setting("async_insert", 0) }
}

/// The recordings of a store in order of name, or those named `recording`.
///
/// # Errors
/// If the store cannot be read.
pub fn entries(client: &Client, recording: Option<&str>) -> Result<Vec<Entry>, StoreError> {
    let names: Vec<&str> = PLACE.iter().chain(&ENTRY).map(|column| column.name).collect();
    let which = recording.map_or("", |_| " WHERE recording = {recording:String}");
    let sql = format!(
        "SELECT {} FROM {RECORDINGS}{which} ORDER BY recording, host, pushed_at FORMAT RowBinary",
        names.join(", ")
    );
    let ask = recording.into_iter().fold(Statement::new(sql), |ask, recording| ask.text("recording", recording));
    let answer = client.read(&ask, SMALL_BYTES_MAX)?;
    let mut reader = Reader::new(&answer);
    let mut newest: BTreeMap<Place, Entry> = BTreeMap::new();
    while !reader.is_at_end() {
        let entry = Entry::read(&mut reader).ok_or_else(|| StoreError::BadAnswer(RECORDINGS.to_owned()))?;
        newest.insert(entry.place.clone(), entry);
    }
    Ok(newest.into_values().collect())
}

/// The one recording of that name, of `host` if it was written by several.
///
/// # Errors
/// If it is missing, or it is not clear which host is meant.
pub fn entry(client: &Client, recording: &str, host: Option<&str>) -> Result<Entry, StoreError> {
    let mut found = entries(client, Some(recording))?;
    let all: Vec<String> = found.iter().map(|entry| format!("{:?}", entry.place.host)).collect();
    found.retain(|entry| host.is_none_or(|host| entry.place.host == host));
    let (name, server) = (recording.escape_debug(), client.server());
    match (found.pop(), found.is_empty(), all.is_empty()) {
        (Some(entry), true, _) => Ok(entry),
        (_, _, true) => {
            Err(StoreError::Recording(format!("{server} has no recording {name}; list them: holdup store ls URL")))
        }
        _ => Err(StoreError::Recording(format!(
            "recording {name} has these hosts: {}; name one: --host",
            all.join(", ")
        ))),
    }
}

/// The columns that a table has on the server.
///
/// # Errors
/// If the store cannot be read.
pub fn columns(client: &Client, table: &str) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table:String} FORMAT \
               RowBinary";
    let answer = client.read(&Statement::new(sql).text("table", table), SMALL_BYTES_MAX)?;
    let mut reader = Reader::new(&answer);
    Ok(std::iter::from_fn(|| reader.bytes().map(utf8)).collect())
}

/// How many different rows each segment of a table has. A row that arrived twice counts once.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn segments(client: &Client, table: &str, place: &Place) -> Result<BTreeMap<u64, u64>, StoreError> {
    segments_between(client, table, place, 0, u64::from(u32::MAX))
}

/// The same of the segments from `first` to `last`.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn segments_between(
    client: &Client,
    table: &str,
    place: &Place,
    first: u64,
    last: u64,
) -> Result<BTreeMap<u64, u64>, StoreError> {
    // Numbers in a segment differ in their last 16 bits.
    let sql = format!(
        "SELECT segment, uniqExact(toUInt16(row)) FROM {table} WHERE {HERE} AND segment >= {{first:UInt64}} AND segment \
         <= {{last:UInt64}} GROUP BY segment ORDER BY segment FORMAT RowBinary"
    );
    let ask = place.bind(Statement::new(sql)).number("first", first).number("last", last);
    by_segment(&client.read(&ask, SMALL_BYTES_MAX)?, Reader::u64, table)
}

/// First and last time of each segment of a table, nanoseconds since the Unix epoch, by the column
/// `time`.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn spans(
    client: &Client,
    table: &str,
    time: &str,
    place: &Place,
) -> Result<BTreeMap<u64, (i64, i64)>, StoreError> {
    let [from, to] = ["min", "max"].map(|of| client.dialect().ns(&format!("{of}(`{time}`)")));
    let sql = format!(
        "SELECT segment, {from}, {to} FROM {table} WHERE {HERE} GROUP BY segment ORDER BY segment FORMAT RowBinary"
    );
    let answer = client.read(&place.bind(Statement::new(sql)), SMALL_BYTES_MAX)?;
    by_segment(&answer, |reader| Some((reader.i64()?, reader.i64()?)), table)
}

/// An answer with a segment and a value in each row.
fn by_segment<'b, V>(
    answer: &'b [u8],
    value: impl Fn(&mut Reader<'b>) -> Option<V>,
    table: &str,
) -> Result<BTreeMap<u64, V>, StoreError> {
    let (mut reader, mut found) = (Reader::new(answer), BTreeMap::new());
    while !reader.is_at_end() {
        let segment = reader.u32().ok_or_else(|| StoreError::BadAnswer(table.to_owned()))?;
        let value = value(&mut reader).ok_or_else(|| StoreError::BadAnswer(table.to_owned()))?;
        found.insert(u64::from(segment), value);
    }
    Ok(found)
}

/// How many rows a segment of a table of `rows` rows has.
pub(crate) fn rows_of_segment(rows: u64, segment: u64) -> u64 {
    rows.saturating_sub(segment * SEGMENT_ROWS).min(SEGMENT_ROWS)
}

/// The error for rows that are gone.
pub(crate) fn removed(client: &Client, place: &Place, table: &str, found: u64, expected: u64) -> StoreError {
    StoreError::Recording(format!(
        "{} has {found} of {expected} rows of a segment of {table} of {place}: rows were removed there, by a TTL or by \
         hand",
        client.server()
    ))
}

/// A file of a recording in the store.
pub(crate) struct Piece {
    pub(crate) name: String,
    pub(crate) chunk: i64,
    pub(crate) chunks: i64,
    pub(crate) pushed_at: i64,
    pub(crate) sha256: String,
}

/// The newest pieces of a recording's files, without their content, in order.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn pieces(client: &Client, place: &Place) -> Result<Vec<Piece>, StoreError> {
    let without_content = &PIECE[..5];
    let names: Vec<&str> = without_content.iter().map(|column| column.name).collect();
    let order = "name, chunk, pushed_at";
    let sql = format!("SELECT {} FROM {FILES} WHERE {HERE} ORDER BY {order} FORMAT RowBinary", names.join(", "));
    let answer = client.read(&place.bind(Statement::new(sql)), SMALL_BYTES_MAX)?;
    let mut reader = Reader::new(&answer);
    let mut newest: BTreeMap<(String, i64), Piece> = BTreeMap::new();
    while !reader.is_at_end() {
        let piece = read_piece(&mut reader).ok_or_else(|| StoreError::BadAnswer(FILES.to_owned()))?;
        newest.insert((piece.name.clone(), piece.chunk), piece);
    }
    // A file that has become shorter leaves old pieces behind.
    let of_file = |name: &str| newest.values().filter(|p| p.name == name).max_by_key(|p| p.pushed_at).map(|p| p.chunks);
    let chunks: BTreeMap<String, i64> =
        newest.keys().filter_map(|(name, _)| Some((name.clone(), of_file(name)?))).collect();
    Ok(newest.into_values().filter(|piece| chunks.get(&piece.name).is_some_and(|most| piece.chunk < *most)).collect())
}

fn read_piece(reader: &mut Reader<'_>) -> Option<Piece> {
    let name = utf8(reader.bytes()?);
    let mut number = || match reader.cell(&PIECE[1])? {
        Cell::Int64(value) => Some(value),
        _ => None,
    };
    let (chunk, chunks, pushed_at) = (number()?, number()?, number()?);
    Some(Piece { name, chunk, chunks, pushed_at, sha256: utf8(reader.bytes()?) })
}

/// Removes a recording of one host from every table, and waits for that where the server can.
/// `cluster` is the one that the tables were made for.
///
/// # Errors
/// If the server refuses.
pub fn remove(client: &Client, place: &Place, cluster: Option<&str>) -> Result<(), StoreError> {
    let wrong = |why: String| StoreError::Recording(why);
    cluster.map_or(Ok(()), crate::address::check_database).map_err(wrong)?;
    // The entry goes last: while it is there, the command can be repeated.
    let names = tables::schema().into_iter().map(|(name, _)| name).chain([FILES, RECORDINGS]);
    for name in names {
        let table = cluster.map_or_else(|| name.to_owned(), |cluster| format!("{name}_shard ON CLUSTER '{cluster}'"));
        let statement = place.bind(Statement::new(format!("ALTER TABLE {table} DELETE WHERE {HERE}")));
        let is_old = client.dialect() == Dialect::Old;
        client.execute(&if is_old { statement } else { statement.setting("mutations_sync", 2) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_from_its_row() {
        let facts = TableFacts { rows: 3, lacking: vec!["weight".to_owned()] };
        let entry = Entry {
            place: Place::new("a'\n", "h").unwrap(),
            pushed_at: 3,
            begun_at: 2,
            complete: true,
            started_at: 1,
            ended_at: None,
            state: "running".to_owned(),
            holdup: "0.1.0".to_owned(),
            tables: BTreeMap::from([("requests".to_owned(), facts)]),
        };
        let mut row = Vec::new();
        put_place(&mut row, &entry.place);
        let cells = [
            Cell::Int64(3),
            Cell::Int64(2),
            Cell::Bool(true),
            Cell::Int64(1),
            Cell::Absent,
            Cell::Text("running".into()),
            Cell::Text("0.1.0".into()),
            Cell::Text("{\"requests\":{\"rows\":3,\"lacking\":[\"weight\"]}}".into()),
        ];
        for (column, cell) in ENTRY.iter().zip(&cells) {
            put(&mut row, column, cell);
        }
        assert_eq!(Entry::read(&mut Reader::new(&row)), Some(entry.clone()));
        assert_eq!(entry.place.to_string(), "a\\'\\n of host h");
        for end in 0..row.len() {
            assert_eq!(Entry::read(&mut Reader::new(&row[..end])), None);
        }
    }

    #[test]
    fn names_have_a_limit() {
        assert!(Place::new("", "").is_err());
        assert!(Place::new("x", &"h".repeat(1_001)).is_err());
    }
}
