//! The slow query log of MySQL, MariaDB and Percona Server, with all attributes that any of them
//! writes. A record begins with `# Time:` or `# User@Host:`. A line within a literal may look the
//! same; it is recognised because the literal is still open.

use holdup_sql::{Dialect, key};
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

use crate::digest::attribute::{
    Attributes, ENGINE_TIME, ERRNO, ERRORS, ID, LAST_ERRNO, PAGES_READ_TIME, SCHEMA, THREAD_ID, Unit, number, seconds,
};
use crate::digest::block::{Block, Context};
use crate::digest::event::{Event, Kind, Position};
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;
use crate::digest::time::{date_time, epoch, short_date_time};

mod head;

use head::Head;

/// Number of record heads that count as text before the literal around them counts as cut off.
const MOST_HEADS_IN_LITERAL: usize = 16;

/// Bytes at the end of a block that are searched first for a time and a database.
const LOOK_BACK: usize = 8 << 10;

/// The line before the one at `at`.
fn line_before(data: &[u8], at: usize) -> &[u8] {
    let before = data.get(..at.saturating_sub(1)).unwrap_or_default();
    before.get(memrchr(b'\n', before).map_or(0, |at| at + 1)..).unwrap_or_default()
}

/// Whether a record begins at `at`, the start of a line. A head has several lines; a single one is
/// part of a statement.
fn begins_record(data: &[u8], at: usize) -> bool {
    let rest = data.get(at..).unwrap_or_default();
    let end = || memchr(b'\n', rest).unwrap_or(rest.len());
    let goes_on = || rest.get(end() + 1..).is_some_and(|next| next.starts_with(b"# "));
    if let Some(time) = rest.strip_prefix(b"# Time: ") {
        let has_user = || memchr::memmem::find(rest.get(..end()).unwrap_or_default(), USER).is_some();
        return (time.first().is_some_and(u8::is_ascii_digit) || has_user()) && goes_on();
    }
    if rest.starts_with(USER) {
        // It continues a record that began with its time.
        return !line_before(data, at).starts_with(b"# Time: ") && goes_on();
    }
    // Servers can be configured to leave out who and when.
    let is_bare = [&b"# Query_time: "[..], b"# Thread_id: ", b"# Schema: "].iter().any(|begin| rest.starts_with(begin));
    let before = || line_before(data, at);
    is_bare && (at == 0 || !before().starts_with(b"#") || before().starts_with(COMMAND))
}

/// Start of the next record at or behind `from`, which is itself not one.
fn next_record(data: &[u8], from: usize, finder: &Finder) -> Option<usize> {
    let mut at = from;
    loop {
        at += finder.find(data.get(at..)?)? + 1;
        if begins_record(data, at) {
            return Some(at);
        }
    }
}

/// Start of the last record of a block before which the previous statement has certainly ended;
/// none if the block has only one.
pub fn last_boundary(data: &[u8], dialect: Dialect) -> Option<usize> {
    let mut end = data.len();
    for _ in 0..MOST_HEADS_IN_LITERAL {
        let at = previous_record(data, end)?;
        let begin = previous_record(data, at).unwrap_or(0);
        let record = data.get(begin..at).unwrap_or_default();
        let head = Head::default().read(record, &mut Attributes::default());
        let sql = record.get(head..).unwrap_or_default();
        if !key(statement(sql), dialect).is_some_and(|key| key.open) {
            return Some(at);
        }
        end = at;
    }
    None
}

fn previous_record(data: &[u8], mut end: usize) -> Option<usize> {
    loop {
        let found = memchr::memmem::rfind(data.get(..end)?, b"\n# ")?;
        if found + 1 < data.len() && begins_record(data, found + 1) {
            return Some(found + 1);
        }
        end = found;
    }
}

/// Whether a text that ends with a line also ends with a complete record: with its statement, or
/// with a banner.
pub fn is_whole(data: &[u8]) -> bool {
    let text = data.trim_ascii_end();
    let line = text.get(memrchr(b'\n', text).map_or(0, |at| at + 1)..).unwrap_or_default();
    text.ends_with(b";") && !line.starts_with(b"SET timestamp=") && !line.starts_with(b"use ")
        || line.starts_with(COMMAND)
        || text.ends_with(b"Argument")
}

/// The first start of a record behind `from`, for a reader that has lost its place.
pub fn first_boundary(data: &[u8]) -> Option<usize> {
    next_record(data, 0, &Finder::new(b"\n# "))
}

/// Number of the first lines that only such a log has, to recognise the log.
pub fn likeness(head: &[u8]) -> usize {
    let marks = [&b"# Query_time: "[..], USER, b"# Thread_id: ", b"# Schema: "];
    let lines = head.split(|byte| *byte == b'\n').take(400);
    lines.filter(|line| marks.iter().any(|mark| line.starts_with(mark))).count()
}

/// Context for the next block, which records need not repeat.
pub fn context(data: &[u8], before: &Context) -> Context {
    let (rest, near) = data.split_at(data.len().saturating_sub(LOOK_BACK));
    let line = |data: &[u8], at: usize| {
        let rest = data.get(at..).unwrap_or_default();
        rest.get(..memchr(b'\n', rest)?).map(<[u8]>::to_vec)
    };
    let last = |begin: &[u8]| line(near, memchr::memmem::rfind(near, begin)? + begin.len());
    // Servers name the database only when it changes; searching forwards is much faster.
    let used = last(b"\nuse ").or_else(|| {
        let at = memchr::memmem::find_iter(rest, b"\nuse ").last()?;
        line(data, at + b"\nuse ".len())
    });
    // If the time is missing for that long, it does not matter either.
    let at_us = last(b"\n# Time: ").as_deref().and_then(log_time).or(before.at_us);
    let database = used.as_deref().map(database_of_use).filter(|name| !name.is_empty());
    Context { at_us, database: database.map_or_else(|| before.database.clone(), <[u8]>::to_vec) }
}

fn log_time(text: &[u8]) -> Option<i64> {
    date_time(text).or_else(|| short_date_time(text)).map(|(at, _)| at)
}

/// The name in ``use `name`;``, without its quotes.
fn database_of_use(text: &[u8]) -> &[u8] {
    let name = text.trim_ascii().strip_suffix(b";").unwrap_or(text).trim_ascii();
    name.strip_prefix(b"`").and_then(|name| name.strip_suffix(b"`")).unwrap_or(name)
}

/// A statement without blanks and the semicolon behind it.
fn statement(sql: &[u8]) -> &[u8] {
    let sql = sql.trim_ascii();
    sql.strip_suffix(b";").unwrap_or(sql).trim_ascii_end()
}

/// Removes the text that a server writes each time it opens the log.
fn without_banner(mut sql: &[u8]) -> &[u8] {
    while sql.ends_with(b"Argument") {
        let Some(found) = memchr::memmem::rfind(sql, b"started with:") else { break };
        let line = memrchr(b'\n', sql.get(..found).unwrap_or_default()).map_or(0, |at| at + 1);
        sql = sql.get(..line).unwrap_or_default().trim_ascii_end();
    }
    sql
}

/// Begins the line with the account.
const USER: &[u8] = b"# User@Host: ";
const COMMAND: &[u8] = b"# administrator command: ";

/// Name of a logged command of the protocol. It is one of a fixed set, of words of letters.
fn command(sql: &[u8]) -> Option<&[u8]> {
    let name = sql.strip_prefix(COMMAND).or_else(|| sql.strip_prefix(b"administrator command: "))?;
    let is_name = name.len() <= 40 && name.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_'));
    is_name.then_some(name)
}

/// A reader of slow query logs.
#[derive(Debug)]
pub struct SlowLog {
    head: Head,
    finder: Finder<'static>,
}

impl Default for SlowLog {
    fn default() -> Self {
        Self { head: Head::default(), finder: Finder::new(b"\n# ") }
    }
}

impl SlowLog {
    /// Reads a block, which begins at the start of a record or of the file.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        let data = block.data.as_slice();
        self.head.context = block.context.clone();
        let mut at = 0;
        if !begins_record(data, 0) {
            let first = next_record(data, 0, &self.finder).unwrap_or(data.len());
            let lost = without_banner(data.get(..first).unwrap_or_default().trim_ascii());
            // The tail of a record, as in a log that was cut to size; not a banner.
            if !lost.is_empty() && !lost.starts_with(b"#") {
                tally.problems.add(Problem::NoBeginning, block.position(0));
            }
            at = if lost.starts_with(b"#") { 0 } else { first };
        }
        while at < data.len() {
            at = self.record(block, at, tally);
        }
    }

    /// Reads the record at `at`; returns its end.
    fn record(&mut self, block: &Block, at: usize, tally: &mut Tally) -> usize {
        let data = block.data.as_slice();
        let position = block.position(at);
        let rest = data.get(at..).unwrap_or_default();
        let from = at + self.head.read(rest, &mut tally.attributes);
        // One byte back, so that a record right behind the head is found.
        let mut end = next_record(data, from.saturating_sub(1), &self.finder).unwrap_or(data.len());
        let found = self.read_statement(data.get(from..end).unwrap_or_default(), tally);
        if found.1.is_some_and(|key| key.open)
            && end < data.len()
            && let Some(heads) = self.behind_literal(data, from, end, tally)
        {
            // The literal hides its content, in case it is not one: servers log odd quotes as they
            // are.
            for head in heads.windows(2) {
                tally.problems.add(Problem::HeadInLiteral, block.position(head[0]));
            }
            end = heads.last().copied().unwrap_or(end);
        }
        let cut = block.cut && end >= data.len();
        self.event(found, position, cut, tally);
        end
    }

    /// The heads behind a literal that is open at `end`, and the end of its record, if the literal
    /// and its statement end further on. A literal that was cut off has no such end: each record
    /// behind it opens as many literals as it closes.
    fn behind_literal(&self, data: &[u8], from: usize, end: usize, tally: &Tally) -> Option<Vec<usize>> {
        let mut heads = vec![end];
        for _ in 0..MOST_HEADS_IN_LITERAL {
            let next = next_record(data, *heads.last()?, &self.finder).unwrap_or(data.len());
            heads.push(next);
            let text = data.get(from..next).unwrap_or_default().trim_ascii_end();
            if text.ends_with(b";") && key(text, tally.dialect).is_some_and(|key| !key.open) {
                return Some(heads);
            }
            if next >= data.len() {
                return None;
            }
        }
        None
    }

    /// The statement in `text`, and the lexer's result.
    fn read_statement<'a>(&self, text: &'a [u8], tally: &Tally) -> (&'a [u8], Option<holdup_sql::Key>) {
        let mut sql = statement(text);
        if sql.ends_with(b"Argument") {
            sql = statement(without_banner(sql));
        }
        if sql.first() == Some(&b'#') && command(sql).is_some() { (sql, None) } else { (sql, key(sql, tally.dialect)) }
    }

    fn event(&self, found: (&[u8], Option<holdup_sql::Key>), position: Position, cut: bool, tally: &mut Tally) {
        let head = &self.head;
        let (mut sql, key) = found;
        if sql.is_empty() {
            // `use a` counts as a statement, too, if the record has no other.
            if head.used.is_empty() {
                tally.problems.add(if head.is_empty { Problem::Malformed } else { Problem::NoStatement }, position);
                return;
            }
            sql = b"use x";
        }
        if head.has_bad_number {
            tally.problems.add(Problem::BadNumber, position);
        }
        if cut {
            tally.problems.add(Problem::TooLong, position);
        }
        let name = command(sql);
        let event = Event {
            kind: if name.is_some() { Kind::Command } else { Kind::Statement },
            sql: name.unwrap_or(sql),
            key: if name.is_some() { None } else { key },
            position,
            at_us: head.at_us.or(head.context.at_us),
            ended_us: head.ended_us.or(head.at_us).or(head.context.at_us),
            session: head.session,
            parameters: b"",
            dialect: None,
            user: &head.user,
            host: &head.host,
            database: head.database(),
            application: b"",
            measures: &head.measures,
            flags: &head.flags,
            cut,
        };
        tally.add(&event);
    }
}

/// Times that are logged in milliseconds.
const IN_MS: [u16; 2] = [ENGINE_TIME, PAGES_READ_TIME];

/// The value of an attribute, as events have it.
fn value(head: &mut Head, attribute: u16, unit: Unit, text: &[u8]) {
    match unit {
        Unit::Time => match seconds(text).map(|us| if IN_MS.contains(&attribute) { us / 1_000 } else { us }) {
            Some(value) => head.measures.push((attribute, value)),
            None => head.has_bad_number = true,
        },
        Unit::Number => match number(text) {
            Some(value) => head.measures.push((attribute, value)),
            None => head.has_bad_number = true,
        },
        Unit::Flag => head.flags.push((attribute, text == b"Yes")),
        Unit::Text if attribute == SCHEMA => {
            head.schema.clear();
            head.schema.extend_from_slice(text);
        }
        Unit::Text if attribute == LAST_ERRNO || attribute == ERRNO => {
            head.measures.push((ERRORS, u64::from(text != b"0")));
        }
        Unit::Text if attribute == ID || attribute == THREAD_ID => head.session = number(text).unwrap_or(0),
        Unit::Text => {}
        Unit::Unknown => match (text, number(text)) {
            (b"Yes" | b"No", _) => head.flags.push((attribute, text == b"Yes")),
            (_, Some(value)) => head.measures.push((attribute, value)),
            _ => {}
        },
    }
}

/// Time of `SET …timestamp=…;`.
fn set_timestamp(line: &[u8]) -> Option<i64> {
    let at = memchr::memmem::find(line, b"timestamp=")? + b"timestamp=".len();
    epoch(line.get(at..)?).map(|(at, _)| at)
}

#[cfg(test)]
mod tests;
