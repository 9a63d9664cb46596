//! The meaning of an entry in PostgreSQL's log, in any format: an execution, a part of one, or a
//! message about the server (connections, checkpoints, temporary files, locks, vacuums, errors).

use std::collections::HashMap;

use holdup_sql::Dialect;

use crate::digest::attribute::{QUERY_TIME, duration};
use crate::digest::event::{Event, Kind, Position};
use crate::digest::listener::{Listener, Message};
use crate::digest::loose::{LooseEnd, Waiting};
use crate::digest::plan;
use crate::digest::postgres::fact;
use crate::digest::postgres::prefix::Fields;
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;

/// An entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry<'a> {
    /// `LOG`, `ERROR`, …
    pub severity: &'a [u8],
    /// Its text.
    pub message: &'a [u8],
    /// Its detail, if the same record has it.
    pub detail: &'a [u8],
    /// The statement that it is about, if the same record has it.
    pub statement: &'a [u8],
    /// Who and when.
    pub fields: Fields<'a>,
    /// Its place.
    pub position: Position,
    /// Whether its text was too long to be kept whole.
    pub cut: bool,
}

/// State of one process within a block.
#[derive(Clone, Debug, Default)]
struct Process {
    waiting: Option<Waiting>,
    is_known: bool,
}

/// Reads entries in their order within a block.
#[derive(Debug, Default)]
pub struct Entries {
    processes: HashMap<u64, Process>,
    /// An execution whose parameters may follow in the next entry.
    held: Option<(Waiting, u64, bool)>,
    joined: Joined,
}

/// The parameters, if a detail contains them.
fn parameters(detail: &[u8]) -> &[u8] {
    let named = [&b"parameters: "[..], b"Parameters: "].iter().find_map(|begin| detail.strip_prefix(*begin));
    named.unwrap_or_default()
}

/// The statement behind `execute name: `. The name may contain a colon without being quoted.
fn behind_name(text: &[u8]) -> Option<&[u8]> {
    let at = text.windows(2).position(|pair| pair == b": ")?;
    text.get(at + 2..)
}

/// A part of an extended query, and the statement.
fn execution(text: &[u8]) -> Option<(Kind, &[u8])> {
    for (begin, kind, has_name) in [
        (&b"statement:"[..], Kind::Statement, false),
        (b"query: ", Kind::Statement, false),
        (b"execute ", Kind::Statement, true),
        (b"parse ", Kind::Parse, true),
        (b"bind ", Kind::Bind, true),
        (b"execute fetch from ", Kind::Statement, true),
        (b"fastpath function call: ", Kind::Statement, false),
    ] {
        if let Some(rest) = text.strip_prefix(begin) {
            return Some((kind, if has_name { behind_name(rest)? } else { rest }));
        }
    }
    None
}

/// A statement without its trailing semicolon.
fn statement(sql: &[u8]) -> &[u8] {
    let sql = sql.trim_ascii();
    sql.strip_suffix(b";").unwrap_or(sql)
}

impl Entries {
    /// Counts an entry.
    pub fn take(&mut self, entry: &Entry, tally: &mut Tally) {
        if let Some(listener) = &tally.listener {
            self.joined.take(entry, listener);
        }
        let is_detail = |pid| entry.severity == b"DETAIL" && entry.fields.pid == pid;
        let detail = if self.held.as_ref().is_some_and(|(held, ..)| is_detail(held.pid)) { entry.message } else { b"" };
        self.let_go(detail, tally);
        if entry.cut {
            tally.problems.add(Problem::TooLong, entry.position);
        }
        let is_asked_for = tally.select.takes_time(entry.fields.at_us);
        if entry.severity != b"LOG" {
            if is_asked_for && matches!(entry.severity, b"ERROR" | b"FATAL" | b"PANIC" | b"WARNING") {
                error(entry, tally);
            }
            return;
        }
        let message = entry.message;
        if let Some(rest) = message.strip_prefix(b"duration: ") {
            let Some((time_us, rest)) = duration(rest) else {
                tally.problems.add(Problem::BadNumber, entry.position);
                return;
            };
            let rest = rest.trim_ascii_start();
            match execution(rest) {
                Some((kind, sql)) => {
                    let sql = statement(sql);
                    if tally.watch.is_some() && kind == Kind::Statement && rest.starts_with(b"execute") {
                        self.hold(entry, sql, time_us, tally);
                    } else {
                        add(entry, kind, sql, Some(time_us), entry.fields.at_us, tally);
                    }
                }
                None if rest.is_empty() => self.bare_duration(entry, time_us, tally),
                None if rest.starts_with(b"plan:") => {
                    tally.server.figure("auto_explain_us", time_us);
                    match plan::read(rest.get(b"plan:".len()..).unwrap_or_default()) {
                        Some((sql, logged)) => add_plan(entry, &sql, &logged, time_us, tally),
                        None => tally.server.count("plans_not_read"),
                    }
                }
                None => tally.problems.add(Problem::Malformed, entry.position),
            }
        } else if message.starts_with(b"statement:")
            || message.starts_with(b"execute ")
            || message.starts_with(b"query: ")
        {
            if let Some((_, sql)) = execution(message) {
                self.bare_statement(entry, statement(sql), tally);
            }
        } else if is_asked_for {
            fact::take(message, tally);
        }
    }

    /// Keeps an execution until its parameters are known. Unless this entry has them, the next one
    /// may.
    fn hold(&mut self, entry: &Entry, sql: &[u8], time_us: u64, tally: &mut Tally) {
        if !entry.detail.is_empty() {
            return add(entry, Kind::Statement, sql, Some(time_us), entry.fields.at_us, tally);
        }
        let fields = &entry.fields;
        let who = [fields.user, fields.host, fields.database, fields.application].map(<[u8]>::to_vec);
        let (pid, at_us, position) = (fields.pid, fields.at_us, entry.position);
        self.held = Some((Waiting { sql: sql.to_vec(), who, pid, at_us, position }, time_us, entry.cut));
    }

    /// Counts the kept execution, which is now complete.
    fn let_go(&mut self, detail: &[u8], tally: &mut Tally) {
        let Some((held, time_us, cut)) = self.held.take() else { return };
        let [user, host, database, application] = &held.who;
        let fields = Fields { at_us: held.at_us, pid: held.pid, user, database, application, host };
        let entry = Entry { fields, position: held.position, detail, cut, ..Entry::default() };
        add(&entry, Kind::Statement, &held.sql, Some(time_us), held.at_us, tally);
    }

    fn bare_statement(&mut self, entry: &Entry, sql: &[u8], tally: &mut Tally) {
        let fields = &entry.fields;
        // Without a process id, only the order of entries remains.
        let process = self.processes.entry(fields.pid).or_default();
        process.is_known = true;
        let who = [fields.user, fields.host, fields.database, fields.application].map(<[u8]>::to_vec);
        let pid = fields.pid;
        let waiting = Waiting { sql: sql.to_vec(), who, pid, at_us: fields.at_us, position: entry.position };
        if let Some(before) = process.waiting.replace(waiting) {
            add_waiting(&before, None, tally);
        }
    }

    fn bare_duration(&mut self, entry: &Entry, time_us: u64, tally: &mut Tally) {
        let process = self.processes.entry(entry.fields.pid).or_default();
        match process.waiting.take() {
            Some(waiting) => add_waiting(&waiting, Some(time_us), tally),
            None if process.is_known => tally.problems.add(Problem::DurationWithoutStatement, entry.position),
            None => tally.loose.push((entry.position, entry.fields.pid, LooseEnd::Duration(time_us))),
        }
        process.is_known = true;
    }

    /// Ends a block: open statements continue in the next one.
    pub fn end(&mut self, tally: &mut Tally) {
        if let Some(listener) = &tally.listener {
            self.joined.end(listener);
        }
        self.let_go(b"", tally);
        for (pid, process) in self.processes.drain() {
            if let Some(waiting) = process.waiting {
                tally.loose.push((waiting.position, pid, LooseEnd::Statement(waiting)));
            }
        }
    }
}

/// Joins the loose ends of blocks, in the order of the log.
#[derive(Debug, Default)]
pub struct LooseEnds {
    waiting: HashMap<u64, Waiting>,
}

impl LooseEnds {
    /// Takes the loose ends of the blocks so far. A statement whose duration may be in the next one
    /// keeps waiting.
    pub fn take(&mut self, tally: &mut Tally) {
        let mut loose = std::mem::take(&mut tally.loose);
        if loose.is_empty() {
            return;
        }
        // Other logs may have been read since.
        tally.speak(Dialect::PostgreSql);
        loose.sort_by_key(|(position, pid, _)| (*position, *pid));
        for (position, pid, end) in loose {
            match end {
                LooseEnd::Statement(statement) => {
                    if let Some(before) = self.waiting.insert(pid, statement) {
                        add_waiting(&before, None, tally);
                    }
                }
                LooseEnd::Duration(time_us) => match self.waiting.remove(&pid) {
                    Some(statement) => add_waiting(&statement, Some(time_us), tally),
                    None => tally.problems.add(Problem::DurationWithoutStatement, position),
                },
            }
        }
    }

    /// All blocks were read.
    pub fn end(self, tally: &mut Tally) {
        let mut rest: Vec<Waiting> = self.waiting.into_values().collect();
        if !rest.is_empty() {
            tally.speak(Dialect::PostgreSql);
        }
        rest.sort_by_key(|waiting| waiting.position);
        for statement in rest {
            add_waiting(&statement, None, tally);
        }
    }
}

/// The same for all blocks at once.
pub fn tie(tally: &mut Tally) {
    let mut ties = LooseEnds::default();
    ties.take(tally);
    ties.end(tally);
}

fn add_waiting(waiting: &Waiting, time_us: Option<u64>, tally: &mut Tally) {
    let [user, host, database, application] = &waiting.who;
    let fields = Fields { at_us: waiting.at_us, pid: waiting.pid, user, database, application, host };
    let entry = Entry { fields, position: waiting.position, ..Entry::default() };
    // The logged time is its start.
    add(&entry, Kind::Statement, &waiting.sql, time_us, None, tally);
}

/// Counts an execution that `entry` reports.
fn add(entry: &Entry, kind: Kind, sql: &[u8], time_us: Option<u64>, ended_us: Option<i64>, tally: &mut Tally) {
    let fields = &entry.fields;
    let measures = [(QUERY_TIME, time_us.unwrap_or(0))];
    tally.add(&Event {
        kind,
        sql,
        key: None,
        position: entry.position,
        at_us: match ended_us {
            Some(ended) => Some(ended - time_us.and_then(|time| i64::try_from(time).ok()).unwrap_or(0)),
            None => fields.at_us,
        },
        ended_us,
        session: fields.pid,
        parameters: parameters(entry.detail),
        dialect: None,
        user: fields.user,
        host: fields.host,
        database: fields.database,
        application: fields.application,
        measures: measures.get(..usize::from(time_us.is_some())).unwrap_or_default(),
        flags: &[],
        cut: entry.cut,
    });
}

/// Keeps a plan with its statement. The execution is a separate entry, if it is logged.
fn add_plan(entry: &Entry, sql: &[u8], logged: &plan::LoggedPlan, time_us: u64, tally: &mut Tally) {
    let fields = &entry.fields;
    let event = Event {
        kind: Kind::Parse,
        sql: statement(sql),
        position: entry.position,
        at_us: fields.at_us.map(|at| at - i64::try_from(time_us).unwrap_or(0)),
        user: fields.user,
        host: fields.host,
        database: fields.database,
        application: fields.application,
        cut: entry.cut,
        ..Event::default()
    };
    tally.add_plan(&event, logged, time_us);
}

fn error(entry: &Entry, tally: &mut Tally) {
    tally.server.error(entry.severity, entry.message);
    if entry.message == b"deadlock detected" {
        tally.server.count("deadlocks");
    }
}

/// Joins entries to messages.
#[derive(Debug, Default)]
struct Joined(Option<Message>);

/// Whether an entry reports an execution, without its plan.
fn is_execution(text: &[u8]) -> bool {
    let behind = text.strip_prefix(b"duration: ").and_then(|rest| rest.get(..rest.len().min(64)));
    behind.is_some_and(|rest| memchr::memmem::find(rest, b" plan:").is_none())
        || [&b"statement:"[..], b"execute "].iter().any(|begin| text.starts_with(begin))
}

impl Joined {
    /// Takes the next entry.
    fn take(&mut self, entry: &Entry, listener: &Listener) {
        // The server begins each further line of a text with a tab.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\n\t", "\n");
        if super::continues(entry.severity) {
            if let Some(open) = self.0.as_mut().filter(|open| open.pid == entry.fields.pid) {
                match entry.severity {
                    b"DETAIL" => open.detail = text(entry.message),
                    b"STATEMENT" => open.statement = text(entry.message),
                    _ => {}
                }
            }
            return;
        }
        self.end(listener);
        if is_execution(entry.message) {
            return;
        }
        self.0 = Some(Message {
            at_us: entry.fields.at_us,
            pid: entry.fields.pid,
            database: text(entry.fields.database),
            severity: text(entry.severity),
            text: text(entry.message),
            detail: text(entry.detail),
            statement: text(entry.statement),
        });
    }

    /// No part of the last message is to come.
    fn end(&mut self, listener: &Listener) {
        if let Some(message) = self.0.take() {
            listener.hear(&message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_to_the_microsecond() {
        for (text, expected) in [
            ("12.345 ms", Some(12_345)),
            ("0.005 ms  plan", Some(5)),
            ("7 ms", Some(7_000)),
            ("1.2 ms", Some(1_200)),
            ("1.23456 ms", Some(1_234)),
            ("x ms", None),
            ("5 s", None),
        ] {
            assert_eq!(duration(text.as_bytes()).map(|(micros, _)| micros), expected, "{text}");
        }
    }
}
