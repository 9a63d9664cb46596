//! The general log of MySQL and MariaDB: the commands of each connection, without their durations.
//! A connection gives its account only once, so one reader reads the whole log in order.

use std::collections::HashMap;

use holdup_sql::{Dialect, key};
use memchr::memchr;

use crate::digest::attribute::number;
use crate::digest::block::Block;
use crate::digest::boundary;
use crate::digest::event::{Event, Kind};
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;
use crate::digest::time::{date_time, short_date_time};

/// Commands as servers write them.
const COMMANDS: [&[u8]; 33] = [
    b"Query",
    b"Execute",
    b"Prepare",
    b"Connect",
    b"Quit",
    b"Init DB",
    b"Field List",
    b"Create DB",
    b"Drop DB",
    b"Refresh",
    b"Shutdown",
    b"Statistics",
    b"Processlist",
    b"Kill",
    b"Debug",
    b"Ping",
    b"Time",
    b"Delayed insert",
    b"Change user",
    b"Binlog Dump",
    b"Table Dump",
    b"Connect Out",
    b"Register Slave",
    b"Long Data",
    b"Close stmt",
    b"Reset stmt",
    b"Set option",
    b"Fetch",
    b"Daemon",
    b"Error",
    b"Sleep",
    b"Binlog Dump GTID",
    b"Reset Connection",
];

/// Number of record starts that count as text before the literal around them counts as cut off.
const MOST_IN_LITERAL: usize = 16;
/// Most connections whose account is remembered.
const MOST_CONNECTIONS: usize = 1 << 16;

/// The start of a record.
struct RecordStart {
    at_us: Option<i64>,
    connection: u64,
    command: &'static [u8],
    /// Start of its argument.
    argument: usize,
}

/// The record that begins at `at`, the start of a line, if one does.
fn begins_record(data: &[u8], at: usize) -> Option<RecordStart> {
    let line = data.get(at..)?;
    let (mut at_us, mut end) = (None, 0);
    if let Some((time, length)) = date_time(line) {
        let zone = line.get(length..)?.iter().position(|byte| byte.is_ascii_whitespace())?;
        (at_us, end) = (Some(time), length + zone);
    } else if let Some((time, length)) = short_date_time(line) {
        (at_us, end) = (Some(time), length);
    }
    let blank = line.get(end..)?.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    if blank == 0 {
        return None;
    }
    end += blank;
    let digits = line.get(end..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let connection = number(line.get(end..end + digits)?)?;
    let rest = line.get(end + digits..)?.strip_prefix(b" ")?;
    let command = COMMANDS.iter().filter(|command| rest.starts_with(command)).max_by_key(|command| command.len())?;
    let behind = rest.get(command.len()..)?;
    // A tab or padding blanks end it; the words of a statement have one blank behind them.
    let fills = behind.iter().take_while(|byte| **byte == b' ').count();
    let begins = match behind.first() {
        None | Some(b'\n' | b'\r') => 0,
        Some(b'\t') => 1,
        Some(b' ') if fills > 1 || matches!(behind.get(fills), None | Some(b'\n' | b'\r')) => fills,
        _ => return None,
    };
    Some(RecordStart { at_us, connection, command, argument: at + end + digits + 1 + command.len() + begins })
}

fn next_record(data: &[u8], from: usize) -> Option<usize> {
    boundary::next(data, from, |data, at| begins_record(data, at).is_some())
}

fn previous_record(data: &[u8], end: usize) -> Option<usize> {
    boundary::previous(data, end, |data, at| begins_record(data, at).is_some())
}

/// Start of the last record of a block before which the previous statement has certainly ended.
pub fn last_boundary(data: &[u8], dialect: Dialect) -> Option<usize> {
    let mut end = data.len();
    for _ in 0..MOST_IN_LITERAL {
        let at = previous_record(data, end)?;
        let begin = previous_record(data, at).unwrap_or(0);
        let argument = begins_record(data, begin).map_or(begin, |record| record.argument);
        if !key(data.get(argument..at).unwrap_or_default(), dialect).is_some_and(|key| key.open) {
            return Some(at);
        }
        end = at;
    }
    None
}

/// The first start of a record behind the beginning.
pub fn first_boundary(data: &[u8]) -> Option<usize> {
    next_record(data, 0)
}

/// Number of the first lines that begin a record, to recognise the log.
pub fn likeness(head: &[u8]) -> usize {
    let mut begin = 0;
    let lines = head.split(|byte| *byte == b'\n').take(400).filter(|line| {
        let at = begin;
        begin += line.len() + 1;
        begins_record(head, at).is_some()
    });
    lines.count()
}

/// Account, host and database of a connection.
#[derive(Clone, Debug, Default)]
struct Who {
    user: Vec<u8>,
    host: Vec<u8>,
    database: Vec<u8>,
}

/// A reader of general logs.
#[derive(Debug, Default)]
pub struct GeneralLog {
    connections: HashMap<u64, Who>,
    at_us: Option<i64>,
}

impl GeneralLog {
    /// Reads a block, which begins at the start of a record or of the file.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        let data = block.data.as_slice();
        let mut at = 0;
        if begins_record(data, 0).is_none() {
            at = next_record(data, 0).unwrap_or(data.len());
            let lost = data.get(..at).unwrap_or_default().trim_ascii();
            if !lost.is_empty() && !lost.ends_with(b"Argument") {
                tally.problems.add(Problem::NoBeginning, block.position(0));
            }
        }
        while at < data.len() {
            let Some(begin) = begins_record(data, at) else { break };
            let text_end = next_record(data, begin.argument.saturating_sub(1).max(at)).unwrap_or(data.len());
            // The content of an open literal stays hidden with it.
            let mut end = text_end;
            let is_open = |end: usize| {
                key(data.get(begin.argument..end).unwrap_or_default(), tally.dialect).is_some_and(|key| key.open)
            };
            if end < data.len() && is_open(end) {
                let mut longer = end;
                for _ in 0..MOST_IN_LITERAL {
                    longer = next_record(data, longer).unwrap_or(data.len());
                    if !is_open(longer) {
                        tally.problems.add(Problem::HeadInLiteral, block.position(end));
                        end = longer;
                        break;
                    }
                    if longer >= data.len() {
                        break;
                    }
                }
            }
            self.record(block, at, &begin, text_end, tally);
            at = end;
        }
    }

    fn record(&mut self, block: &Block, at: usize, begin: &RecordStart, end: usize, tally: &mut Tally) {
        let data = block.data.as_slice();
        let mut argument = data.get(begin.argument..end).unwrap_or_default().trim_ascii();
        if argument.ends_with(b"Argument")
            && let Some(banner) = memchr::memmem::rfind(argument, b", Version: ")
        {
            let line = memchr::memrchr(b'\n', argument.get(..banner).unwrap_or_default()).unwrap_or(0);
            argument = argument.get(..line).unwrap_or_default().trim_ascii();
        }
        self.at_us = begin.at_us.or(self.at_us);
        let cut = block.cut && end >= data.len();
        let position = block.position(at);
        if cut {
            tally.problems.add(Problem::TooLong, position);
        }
        if self.connections.len() > MOST_CONNECTIONS {
            self.connections.clear();
        }
        let who = self.connections.entry(begin.connection).or_default();
        match begin.command {
            b"Connect" | b"Change user" => who.connect(argument),
            b"Init DB" => who.database = argument.to_vec(),
            b"Query" if argument.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"use ")) => {
                who.database = argument
                    .get(4..)
                    .unwrap_or_default()
                    .trim_ascii()
                    .iter()
                    .copied()
                    .filter(|byte| *byte != b'`')
                    .collect();
            }
            _ => {}
        }
        let (kind, sql) = match begin.command {
            b"Query" | b"Execute" if argument.is_empty() => {
                tally.problems.add(Problem::NoStatement, position);
                return;
            }
            b"Query" | b"Execute" => (Kind::Statement, argument),
            b"Prepare" => (Kind::Parse, argument),
            command => (Kind::Command, command),
        };
        tally.add(&Event {
            kind,
            sql: sql.strip_suffix(b";").unwrap_or(sql),
            position,
            at_us: self.at_us,
            session: begin.connection,
            user: &who.user,
            host: &who.host,
            database: &who.database,
            cut,
            ..Event::default()
        });
        if begin.command == b"Quit" {
            self.connections.remove(&begin.connection);
        }
    }
}

impl Who {
    /// `user@host on database using TCP/IP`, or a message that access was denied.
    fn connect(&mut self, text: &[u8]) {
        let Some(at) = memchr(b'@', text).filter(|_| !text.starts_with(b"Access denied")) else { return };
        self.user = text.get(..at).unwrap_or_default().to_vec();
        let rest = text.get(at + 1..).unwrap_or_default();
        let host = memchr(b' ', rest).unwrap_or(rest.len());
        self.host = rest.get(..host).unwrap_or_default().to_vec();
        let behind = memchr::memmem::find(rest, b" on ").and_then(|at| rest.get(at + 4..)).unwrap_or_default();
        let database = behind.split(|byte| *byte == b' ').next().unwrap_or_default();
        self.database = database.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::select::Select;
    use crate::digest::tally::Identity;

    fn read(log: &str) -> Tally {
        let mut tally = Tally::new(holdup_sql::Dialect::MySql, Identity::Holdup, Select::default());
        GeneralLog::default().read(&Block { data: log.as_bytes().to_vec(), ..Block::default() }, &mut tally);
        tally
    }

    #[test]
    fn connections_are_remembered_and_literals_are_text() {
        let tally = read(concat!(
            "/usr/sbin/mysqld, Version: 5.7.12 (x). started with:\nTcp port: 3306  Unix socket: x\nTime                 Id Command    Argument\n",
            "2016-06-07T19:07:02.558338Z\t    3 Connect\tapp@web1 on shop using Socket\n",
            "2016-06-07T19:07:02.558713Z\t    3 Query\tselect a\n  from t where b = 'x\n2016-06-07T19:07:03.0Z\t    9 Query\tselect canary\n'\n",
            "2016-06-07T19:07:02.558713Z\t    3 Prepare\tselect a from t where b = ?\n",
            "2016-06-07T19:07:02.558713Z\t    3 Execute\tselect a from t where b = 'y'\n",
            "2016-06-07T19:07:02.558713Z\t    3 Quit\t\n"
        ));
        let texts: Vec<_> = tally
            .shapes
            .iter()
            .filter(|shape| shape.calls > 0)
            .map(|shape| (shape.text.as_str(), shape.calls))
            .collect();
        assert_eq!(
            texts,
            [
                ("administrator command: Connect", 1),
                ("select a from t where b = ?", 2),
                ("administrator command: Quit", 1)
            ]
        );
        assert_eq!(
            tally.problems.all().map(|(problem, count, _)| (problem, count)).collect::<Vec<_>>(),
            [(Problem::HeadInLiteral, 1)]
        );
        let slowest = tally.shapes[1].slowest.as_ref().unwrap();
        assert_eq!(slowest.who, ["app", "web1", "shop", ""].map(str::to_owned));
    }

    #[test]
    fn old_logs_leave_times_out() {
        let tally = read(
            "051007 21:55:24\t     42 Connect     root@localhost on db1\n\t\t                 42 Query       SELECT 1\n\t\t                 42 Quit\n",
        );
        assert_eq!(tally.events, 3);
        assert_eq!(tally.shapes.iter().map(|shape| shape.seen_us.is_some()).collect::<Vec<_>>(), [true; 3]);
    }
}
