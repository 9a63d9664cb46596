//! PostgreSQL's logs with one JSON object per line: its own jsonlog, CloudNativePG's records, Cloud
//! SQL's exports (whose text is a line with its own prefix). The names of fields identify them at
//! any level of the object.

use memchr::{memchr, memchr2};

use super::entry::{Entries, Entry};
use super::prefix::{Fields, Prefix, time};
use super::{severity, severity_word};
use crate::digest::attribute::number;
use crate::digest::block::Block;
use crate::digest::boundary;
use crate::digest::event::Position;
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;

/// Deepest object that is searched.
const MOST_DEPTH: usize = 8;

/// A string in the line, still escaped.
#[derive(Clone, Copy, Debug, Default)]
struct Text<'a> {
    raw: &'a [u8],
    is_escaped: bool,
}

/// The fields found in a line.
#[derive(Clone, Copy, Debug, Default)]
struct LineFields<'a> {
    time: &'a [u8],
    user: Text<'a>,
    database: Text<'a>,
    application: Text<'a>,
    host: Text<'a>,
    pid: &'a [u8],
    severity: &'a [u8],
    message: Text<'a>,
    detail: Text<'a>,
    statement: Text<'a>,
    /// Cloud SQL's text: a line of the text log.
    payload: Text<'a>,
}

/// End of the string whose text begins at `at`, and whether it has escapes.
fn string(line: &[u8], at: usize) -> Option<(Text<'_>, usize)> {
    let (mut from, mut is_escaped) = (at, false);
    loop {
        let found = from + memchr2(b'"', b'\\', line.get(from..)?)?;
        if line.get(found) == Some(&b'"') {
            return Some((Text { raw: line.get(at..found)?, is_escaped }, found + 1));
        }
        is_escaped = true;
        from = found + 2;
    }
}

impl<'a> LineFields<'a> {
    fn keep(&mut self, key: &[u8], text: Text<'a>) {
        match key {
            b"message" => self.message = text,
            b"detail" => self.detail = text,
            b"statement" | b"query" => self.statement = text,
            // The outer time of an export is its arrival; the inner one comes later or is the only
            // one.
            b"timestamp" | b"log_time" if time(text.raw).is_some() => self.time = text.raw,
            b"user" | b"user_name" => self.user = text,
            b"dbname" | b"database_name" => self.database = text,
            b"application_name" => self.application = text,
            b"remote_host" | b"connection_from" => self.host = text,
            b"pid" | b"process_id" => self.pid = text.raw,
            b"error_severity" => self.severity = text.raw,
            b"textPayload" => self.payload = text,
            _ => {}
        }
    }

    /// Reads the object whose brace stands before `at`; returns its end.
    fn object(&mut self, line: &'a [u8], mut at: usize, depth: usize) -> Option<usize> {
        loop {
            at += line.get(at..)?.iter().position(|byte| !matches!(byte, b' ' | b',' | b'\t'))?;
            match line.get(at)? {
                b'}' => return Some(at + 1),
                b'"' => {}
                _ => return None,
            }
            let (key, end) = string(line, at + 1)?;
            at = end + line.get(end..)?.iter().position(|byte| *byte != b' ')?;
            if line.get(at) != Some(&b':') {
                return None;
            }
            at += 1;
            at += line.get(at..)?.iter().position(|byte| *byte != b' ')?;
            at = match line.get(at)? {
                b'"' => {
                    let (text, end) = string(line, at + 1)?;
                    self.keep(key.raw, text);
                    end
                }
                b'{' if depth < MOST_DEPTH => self.object(line, at + 1, depth + 1)?,
                b'{' | b'[' => nested(line, at)?,
                _ => {
                    let rest = line.get(at..)?;
                    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b' '))?;
                    self.keep(key.raw, Text { raw: rest.get(..end)?, is_escaped: false });
                    at + end
                }
            };
        }
    }
}

/// End of the list or object at `at`.
fn nested(line: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match line.get(at)? {
            b'"' => {
                at = string(line, at + 1)?.1;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The text without its escapes; uses `room` if there are any.
fn plain<'a>(text: Text<'a>, room: &'a mut Vec<u8>) -> &'a [u8] {
    if !text.is_escaped {
        return text.raw;
    }
    room.clear();
    let mut rest = text.raw;
    while let Some(found) = memchr(b'\\', rest) {
        room.extend_from_slice(rest.get(..found).unwrap_or_default());
        let escape = rest.get(found + 1).copied().unwrap_or(b' ');
        let mut length = 2;
        match escape {
            b'n' => room.push(b'\n'),
            b't' => room.push(b'\t'),
            b'r' => room.push(b'\r'),
            b'b' | b'f' => room.push(b' '),
            b'u' => {
                let code = hex(rest.get(found + 2..found + 6).unwrap_or_default());
                let low = rest.get(found + 6..found + 12).and_then(|low| low.strip_prefix(b"\\u")).and_then(hex);
                length = 6;
                let letter = match (code, low) {
                    (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                        length = 12;
                        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                    }
                    (Some(code), _) => char::from_u32(code),
                    (None, _) => None,
                };
                let mut bytes = [0; 4];
                room.extend_from_slice(
                    letter.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes).as_bytes(),
                );
            }
            other => room.push(other),
        }
        rest = rest.get(found + length..).unwrap_or_default();
    }
    room.extend_from_slice(rest);
    room
}

fn hex(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.len() == 4)?;
    u32::from_str_radix(text, 16).ok()
}

/// Start of the last line of a block, if it is not the first.
pub fn last_boundary(data: &[u8]) -> Option<usize> {
    boundary::last(data, |_, _| true)
}

/// The first start of a line behind the beginning.
pub fn first_boundary(data: &[u8]) -> Option<usize> {
    boundary::next(data, 0, |_, _| true)
}

/// Whether a log that begins with these bytes has this format.
pub fn is_json(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').take(20).any(|line| {
        let mut found = LineFields::default();
        line.first() == Some(&b'{')
            && found.object(line, 1, 0).is_some()
            && (!found.severity.is_empty() && !found.message.raw.is_empty() || !found.payload.raw.is_empty())
    })
}

/// A reader of logs in JSON.
#[derive(Debug)]
pub struct Json {
    prefix: Prefix,
    entries: Entries,
    rooms: [Vec<u8>; 7],
}

impl Json {
    /// A reader of the log that begins with `head`.
    pub fn new(head: &[u8], prefix: Option<&Prefix>) -> Self {
        let lines = head.split(|byte| *byte == b'\n').take(200).filter_map(|line| {
            let mut found = LineFields::default();
            found.object(line, 1, 0)?;
            Some(plain(found.payload, &mut Vec::new()).to_vec())
        });
        Self { prefix: Prefix::known_or_of(prefix, lines), entries: Entries::default(), rooms: Default::default() }
    }

    /// Reads a block of whole lines.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        for (at, line, cut) in block.lines() {
            self.line(block.position(at), line, cut, tally);
        }
        self.entries.end(tally);
    }

    fn line(&mut self, position: Position, line: &[u8], cut: bool, tally: &mut Tally) {
        let line = line.trim_ascii();
        if line.is_empty() || line == b"[" || line == b"]" {
            return;
        }
        let mut found = LineFields::default();
        let is_whole = line.first() == Some(&b'{') && found.object(line, 1, 0).is_some();
        if !is_whole && (!cut || found.message.raw.is_empty()) {
            let problem = if line.first() == Some(&b'{') { Problem::CutOff } else { Problem::Malformed };
            tally.problems.add(if cut { Problem::TooLong } else { problem }, position);
            return;
        }
        let [message, user, database, application, host, detail, statement] = &mut self.rooms;
        let at_us = time(found.time).map(|(at, _)| at);
        if found.message.raw.is_empty() && !found.payload.raw.is_empty() {
            let text = plain(found.payload, message);
            let Some((begin, behind)) = severity(text) else { return };
            let mut fields = self.prefix.parse(text.get(..begin).unwrap_or_default()).unwrap_or_default();
            fields.at_us = fields.at_us.or(at_us);
            let severity = severity_word(text, begin, behind);
            let message = text.get(behind..).unwrap_or_default();
            let entry = Entry { severity, message, fields, position, cut, ..Entry::default() };
            self.entries.take(&entry, tally);
            return;
        }
        let host = plain(found.host, host);
        let port = memchr::memrchr(b':', host).unwrap_or(host.len());
        let fields = Fields {
            at_us,
            pid: number(found.pid).unwrap_or(0),
            user: plain(found.user, user),
            database: plain(found.database, database),
            application: plain(found.application, application),
            host: host.get(..port).unwrap_or_default(),
        };
        let (severity, message, detail) = (found.severity, plain(found.message, message), plain(found.detail, detail));
        let statement = if tally.listener.is_some() { plain(found.statement, statement) } else { b"" };
        let entry = Entry { severity, message, detail, statement, fields, position, cut };
        self.entries.take(&entry, tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::select::Select;
    use crate::digest::tally::Identity;

    fn read(log: &str) -> Tally {
        let mut tally = Tally::new(holdup_sql::Dialect::PostgreSql, Identity::Holdup, Select::default());
        Json::new(log.as_bytes(), None).read(&Block { data: log.as_bytes().to_vec(), ..Block::default() }, &mut tally);
        tally
    }

    #[test]
    fn objects_of_all_makers_are_read() {
        let log = concat!(
            r#"{"timestamp":"2025-11-03 10:00:00.003 UTC","user":"a","dbname":"shop","pid":12,"remote_host":"10.0.0.1","error_severity":"LOG","message":"duration: 1.5 ms  statement: select \"A\"\nfrom t where b = 'caf\u00e9 \ud83d\ude00 \\\\'","application_name":"web","query_id":0}"#,
            "\n",
            r#"{"level":"info","ts":1.5,"record":{"log_time":"2022-11-27 18:58:02.096 UTC","user_name":"a","process_id":"600","error_severity":"LOG","message":"duration: 2 ms  statement: select \"A\" from t where b = 1"},"list":[1,{"a":"]"}]}"#,
            "\n",
            r#"{"resource":{"labels":{"region":"x"}},"textPayload":"2020-05-02 13:00:20.382 UTC [24]: [1-1] db=shop,user=u LOG:  duration: 3 ms  statement: select \"A\" from t where b = 2","timestamp":"2020-05-02T13:00:20.382318Z"}"#,
            "\n{\"cut\": \"of\nnonsense\n",
        );
        let tally = read(log);
        assert_eq!(tally.shapes.len(), 1);
        assert_eq!((tally.shapes[0].text.as_str(), tally.shapes[0].calls), ("select \"A\" from t where b = ?", 3));
        let slowest = tally.shapes[0].slowest.as_ref().unwrap();
        assert_eq!((slowest.time_us, &slowest.who[0], &slowest.who[2]), (3_000, &"u".to_owned(), &"shop".to_owned()));
        let problems: Vec<_> = tally.problems.all().map(|(problem, count, _)| (problem, count)).collect();
        assert_eq!(problems, [(Problem::Malformed, 1), (Problem::CutOff, 1)]);
        assert!(is_json(log.as_bytes()) && !is_json(b"{\"a\":1}\n"));
    }
}
