//! PostgreSQL's csvlog: commas between fields, quotes around text, quotes in text doubled, line
//! breaks in text unchanged. All text is quoted and all quotes in it are doubled, so nothing in a
//! literal can look like a record.

use memchr::memchr;

use super::entry::{Entries, Entry};
use super::prefix::{Fields, time};
use crate::digest::attribute::number;
use crate::digest::block::Block;
use crate::digest::boundary;
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;

/// Fields of a record, from 0 (PostgreSQL manual, "Using CSV-Format Log Output").
const TIME: usize = 0;
const USER: usize = 1;
const DATABASE: usize = 2;
const PID: usize = 3;
const CLIENT: usize = 4;
const SEVERITY: usize = 11;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const STATEMENT: usize = 19;
const APPLICATION: usize = 22;
/// Fields that all servers since 9.0 write.
const LEAST_FIELDS: usize = 23;

/// A field: its place without its quotes, and whether quotes in it are doubled.
#[derive(Clone, Copy, Debug, Default)]
struct Field {
    from: usize,
    to: usize,
    is_quoted: bool,
    has_doubled: bool,
}

/// The result of reading a record.
struct Record {
    fields: [Field; LEAST_FIELDS],
    count: usize,
    /// Behind its line break.
    end: usize,
    is_whole: bool,
}

/// Reads the record at `at`; `None` if none begins there.
fn record(data: &[u8], mut at: usize) -> Option<Record> {
    let mut record = Record { fields: [Field::default(); LEAST_FIELDS], count: 0, end: data.len(), is_whole: false };
    loop {
        let mut field = Field { from: at, to: at, is_quoted: false, has_doubled: false };
        if data.get(at) == Some(&b'"') {
            field.is_quoted = true;
            field.from = at + 1;
            let mut from = at + 1;
            loop {
                let Some(found) = memchr(b'"', data.get(from..)?) else {
                    field.to = data.len();
                    record.keep(field);
                    return Some(record);
                };
                if data.get(from + found + 1) != Some(&b'"') {
                    field.to = from + found;
                    at = field.to + 1;
                    break;
                }
                field.has_doubled = true;
                from += found + 2;
            }
        } else {
            let rest = data.get(at..)?;
            let length = rest.iter().position(|byte| matches!(byte, b',' | b'\n' | b'"')).unwrap_or(rest.len());
            at += length;
            field.to = at;
        }
        record.keep(field);
        match data.get(at) {
            Some(b',') => at += 1,
            Some(b'\n') => {
                record.end = at + 1;
                record.is_whole = true;
                return Some(record);
            }
            Some(b'\r') if data.get(at + 1) == Some(&b'\n') => {
                record.end = at + 2;
                record.is_whole = true;
                return Some(record);
            }
            None => {
                record.is_whole = true;
                return Some(record);
            }
            Some(_) => return None,
        }
    }
}

impl Record {
    fn keep(&mut self, field: Field) {
        if let Some(place) = self.fields.get_mut(self.count) {
            *place = field;
        }
        self.count += 1;
    }
}

/// Whether a record certainly begins at `at`: it starts with a time, and every field that must be
/// quoted is.
fn begins_record(data: &[u8], at: usize) -> bool {
    let rest = data.get(at..).unwrap_or_default();
    let stamp = rest.strip_prefix(b"\"").unwrap_or(rest);
    if time(stamp).is_none() {
        return false;
    }
    record(data, at).is_some_and(|record| {
        let message = record.fields[MESSAGE];
        record.count >= LEAST_FIELDS && record.is_whole && message.is_quoted && message.to > message.from
    })
}

/// Start of the last record of a block, if it is not the first.
pub fn last_boundary(data: &[u8]) -> Option<usize> {
    boundary::last(data, begins_record)
}

/// The first start of a record behind the beginning.
pub fn first_boundary(data: &[u8]) -> Option<usize> {
    boundary::next(data, 0, begins_record)
}

/// Whether a log that begins with these bytes is a csvlog.
pub fn is_csv(head: &[u8]) -> bool {
    begins_record(head, 0) || first_boundary(head).is_some()
}

/// Whether the last record of a text that ends with a line is complete.
pub fn is_whole(data: &[u8]) -> bool {
    let begin = last_boundary(data).unwrap_or(0);
    record(data, begin).is_some_and(|record| record.is_whole && record.end == data.len())
}

/// A reader of csvlogs.
#[derive(Debug, Default)]
pub struct Csv {
    entries: Entries,
    /// Buffer for texts without their doubled quotes.
    rooms: [Vec<u8>; 3],
}

/// A text without its doubled quotes; uses `room` if there are any.
fn undoubled<'a>(text: &'a [u8], has_doubled: bool, room: &'a mut Vec<u8>) -> &'a [u8] {
    if !has_doubled {
        return text;
    }
    room.clear();
    let mut rest = text;
    while let Some(found) = memchr(b'"', rest) {
        room.extend_from_slice(rest.get(..=found).unwrap_or_default());
        rest = rest.get(found + 2..).unwrap_or_default();
    }
    room.extend_from_slice(rest);
    room
}

impl Csv {
    /// Reads a block, which begins at the start of a record or of the file.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        let data = block.data.as_slice();
        let mut at = 0;
        while at < data.len() {
            at = match record(data, at) {
                Some(found) if found.count >= LEAST_FIELDS || !found.is_whole => {
                    self.entry(block, at, &found, tally);
                    found.end
                }
                _ => {
                    let is_blank = data.get(at) == Some(&b'\n');
                    if !is_blank {
                        tally.problems.add(Problem::Malformed, block.position(at));
                    }
                    let rest = data.get(at..).unwrap_or_default();
                    // Skips to the next certain start.
                    if is_blank { at + 1 } else { at + first_boundary(rest).unwrap_or(rest.len()) }
                }
            };
        }
        self.entries.end(tally);
    }

    fn entry(&mut self, block: &Block, at: usize, record: &Record, tally: &mut Tally) {
        let data = block.data.as_slice();
        let position = block.position(at);
        let text = |index: usize| {
            record.fields.get(index).and_then(|field| data.get(field.from..field.to)).unwrap_or_default()
        };
        if record.count <= MESSAGE {
            tally.problems.add(Problem::CutOff, position);
            return;
        }
        let client = text(CLIENT);
        let port = memchr::memrchr(b':', client).unwrap_or(client.len());
        let fields = Fields {
            at_us: time(text(TIME)).map(|(at, _)| at),
            pid: number(text(PID)).unwrap_or(0),
            user: text(USER),
            database: text(DATABASE),
            application: text(APPLICATION),
            host: client.get(..port).unwrap_or_default(),
        };
        let [message, detail, statement] = &mut self.rooms;
        let message = undoubled(text(MESSAGE), record.fields[MESSAGE].has_doubled, message);
        let detail = undoubled(text(DETAIL), record.fields[DETAIL].has_doubled, detail);
        let cut = block.cut && record.end >= data.len();
        if !record.is_whole && !cut {
            tally.problems.add(Problem::CutOff, position);
        }
        let statement = undoubled(text(STATEMENT), record.fields[STATEMENT].has_doubled, statement);
        let entry = Entry { severity: text(SEVERITY), message, detail, statement, fields, position, cut };
        self.entries.take(&entry, tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::select::Select;
    use crate::digest::tally::Identity;

    fn line(message: &str) -> String {
        format!(
            "2025-11-03 10:00:00.003 UTC,\"api\",\"shop\",12,\"10.0.0.1:5\",69.1,1,\"SELECT\",2025-11-03 08:53:20 UTC,3/1,0,LOG,00000,\"{message}\",,,,,,,,,\"web\",\"client backend\",,0\n"
        )
    }

    fn read(log: &str) -> Tally {
        let mut tally = Tally::new(holdup_sql::Dialect::PostgreSql, Identity::Holdup, Select::default());
        Csv::default().read(&Block { data: log.as_bytes().to_vec(), ..Block::default() }, &mut tally);
        tally
    }

    #[test]
    fn records_are_read_whatever_their_text() {
        let fake = "2025-11-03 10:00:00.003 UTC,\"\"api\"\",\"\"shop\"\",12,,69.1,1,,,,0,LOG,00000,\"\"duration: 1 ms  statement: select canary\"\",,,,,,,,,,,,";
        let log = [
            line("duration: 1.5 ms  statement: select \"\"A\"\"\nfrom t where b = '\"\"'"),
            line(&format!("duration: 2 ms  statement: select 'x\n{fake}\n'")),
            line("checkpoint starting: time"),
        ]
        .concat();
        let tally = read(&log);
        let texts: Vec<_> = tally.shapes.iter().map(|shape| (shape.text.as_str(), shape.calls)).collect();
        assert_eq!(texts, [("select \"A\" from t where b = ?", 1), ("select ?", 1)]);
        assert_eq!(tally.problems.all().count(), 0);
        assert_eq!(
            tally.shapes[0].slowest.as_ref().unwrap().who,
            ["api", "10.0.0.1", "shop", "web"].map(str::to_owned)
        );
        // Never within the literal.
        let second = line("duration: 1.5 ms  statement: select \"\"A\"\"\nfrom t where b = '\"\"'").len();
        let third = log.len() - line("checkpoint starting: time").len();
        assert_eq!(last_boundary(log.as_bytes()), Some(third));
        assert_eq!(last_boundary(&log.as_bytes()[..third]), Some(second));
    }

    #[test]
    fn invalid_records_are_counted_and_skipped() {
        let tally = read(&format!(
            "nonsense\n{}x,y\n{}",
            line("duration: 1 ms  statement: select 1"),
            line("duration: 1 ms  statement: select 2")
        ));
        assert_eq!(tally.shapes[0].calls, 2);
        assert_eq!(
            tally.problems.all().map(|(problem, count, _)| (problem, count)).collect::<Vec<_>>(),
            [(Problem::Malformed, 2)]
        );
        let cut = line("duration: 1 ms  statement: select 'canary and so on");
        let tally = read(&cut[..cut.len() - 45]);
        assert_eq!((tally.shapes[0].text.as_str(), tally.problems.all().count()), ("select ?", 1));
    }
}
