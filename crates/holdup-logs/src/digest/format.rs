//! The kinds of logs, how the first lines identify each, and the reader for each. A new kind is a
//! variant here, a line in each `match`, and a file.

use holdup_sql::Dialect;

use crate::digest::block::{Block, Context, Cut};
use crate::digest::general_log::{self, GeneralLog};
use crate::digest::mongod::{self, Mongod};
use crate::digest::postgres::csv::{self, Csv};
use crate::digest::postgres::json::{self, Json};
use crate::digest::postgres::prefix::Prefix;
use crate::digest::postgres::stderr::{self, Stderr};
use crate::digest::postgres::syslog::{self, Syslog};
use crate::digest::slow_log::{self, SlowLog};
use crate::digest::summary::{self, Counters, Summary};
use crate::digest::tally::Tally;
use crate::digest::wire::Wire;

/// A kind of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Slow query log of MySQL, MariaDB, Percona Server.
    SlowLog,
    /// Text log of PostgreSQL.
    PostgresStderr,
    /// PostgreSQL's csvlog.
    PostgresCsv,
    /// PostgreSQL's jsonlog, and others with one object per line.
    PostgresJson,
    /// PostgreSQL's log through syslog.
    PostgresSyslog,
    /// General log of MySQL and MariaDB.
    GeneralLog,
    /// Log of MongoDB's servers, JSON or text.
    Mongod,
    /// Captured packets.
    Packets,
    /// A dump of `performance_schema.events_statements_summary_by_digest`.
    PerformanceSchema,
    /// A dump of `pg_stat_statements`.
    PgStatStatements,
}

impl Format {
    /// All kinds, with the names that `--type` takes.
    pub const ALL: [(&'static str, Self); 10] = [
        ("slowlog", Self::SlowLog),
        ("postgresql", Self::PostgresStderr),
        ("postgresql-csv", Self::PostgresCsv),
        ("postgresql-json", Self::PostgresJson),
        ("postgresql-syslog", Self::PostgresSyslog),
        ("genlog", Self::GeneralLog),
        ("pcap", Self::Packets),
        ("mysql-summary", Self::PerformanceSchema),
        ("postgresql-summary", Self::PgStatStatements),
        ("mongodb", Self::Mongod),
    ];

    /// The names, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The kind with this name.
    ///
    /// # Errors
    ///
    /// If no kind has it: lists the names.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, format)| *format).ok_or_else(|| format!("{name} is unknown; use one of {}", Self::names()))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// The dialect of its statements.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::SlowLog | Self::GeneralLog | Self::Mongod | Self::Packets | Self::PerformanceSchema => Dialect::MySql,
            _ => Dialect::PostgreSql,
        }
    }

    /// Whether a record depends on much earlier ones: one thread must read such a log.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PostgresSyslog | Self::GeneralLog) || self.is_whole()
    }

    /// Whether it is not made of lines: it is cut anywhere, and its reader reassembles it.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Packets | Self::PerformanceSchema | Self::PgStatStatements)
    }

    /// The kind of log that begins with these bytes; `None` if it cannot be recognised. A literal
    /// may hold lines of any other log, so the kind with the most lines wins, not a single line.
    pub fn detect(head: &[u8]) -> Option<Self> {
        if holdup_protocol::packets::file::is_capture(head) {
            return Some(Self::Packets);
        }
        match summary::detect(head) {
            Some(Counters::PerformanceSchema) => return Some(Self::PerformanceSchema),
            Some(Counters::PgStatStatements) => return Some(Self::PgStatStatements),
            None => {}
        }
        if json::is_json(head) {
            return Some(Self::PostgresJson);
        }
        if csv::is_csv(head) {
            return Some(Self::PostgresCsv);
        }
        if syslog::is_syslog(head) {
            return Some(Self::PostgresSyslog);
        }
        let found = [
            (slow_log::likeness(head), Self::SlowLog),
            (stderr::likeness(head), Self::PostgresStderr),
            (general_log::likeness(head), Self::GeneralLog),
            (mongod::likeness(head), Self::Mongod),
        ];
        found.into_iter().filter(|(lines, _)| *lines > 0).max_by_key(|(lines, _)| *lines).map(|(_, format)| format)
    }
}

/// Reads blocks of one format.
#[derive(Debug)]
pub enum Reader {
    /// See [`SlowLog`].
    SlowLog(Box<SlowLog>),
    /// See [`Stderr`].
    PostgresStderr(Box<Stderr>),
    /// See [`Csv`].
    PostgresCsv(Box<Csv>),
    /// See [`Json`].
    PostgresJson(Box<Json>),
    /// See [`Syslog`].
    PostgresSyslog(Box<Syslog>),
    /// See [`GeneralLog`].
    GeneralLog(Box<GeneralLog>),
    /// See [`Mongod`].
    Mongod(Mongod),
    /// See [`Wire`].
    Packets(Box<Wire>),
    /// See [`Summary`].
    Summary(Box<Summary>),
}

impl Reader {
    /// A reader for a log that begins with `head`.
    pub fn new(format: Format, head: &[u8], prefix: Option<&Prefix>) -> Self {
        match format {
            Format::SlowLog => Self::SlowLog(Box::default()),
            Format::PostgresStderr => Self::PostgresStderr(Box::new(Stderr::new(head, prefix))),
            Format::PostgresCsv => Self::PostgresCsv(Box::default()),
            Format::PostgresJson => Self::PostgresJson(Box::new(Json::new(head, prefix))),
            Format::PostgresSyslog => Self::PostgresSyslog(Box::new(Syslog::new(head, prefix))),
            Format::GeneralLog => Self::GeneralLog(Box::default()),
            Format::Mongod => Self::Mongod(Mongod),
            Format::Packets => Self::Packets(Box::new(Wire::new(&[]))),
            Format::PerformanceSchema => Self::Summary(Box::new(Summary::new(Counters::PerformanceSchema))),
            Format::PgStatStatements => Self::Summary(Box::new(Summary::new(Counters::PgStatStatements))),
        }
    }

    /// Counts what a block holds.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        match self {
            Self::SlowLog(reader) => reader.read(block, tally),
            Self::PostgresStderr(reader) => reader.read(block, tally),
            Self::PostgresCsv(reader) => reader.read(block, tally),
            Self::PostgresJson(reader) => reader.read(block, tally),
            Self::PostgresSyslog(reader) => reader.read(block, tally),
            Self::GeneralLog(reader) => reader.read(block, tally),
            Self::Mongod(reader) => reader.read(block, tally),
            Self::Packets(reader) => reader.read(block, tally),
            Self::Summary(reader) => reader.read(block, tally),
        }
    }

    /// Ends a log.
    pub fn finish(&mut self, tally: &mut Tally) {
        match self {
            Self::PostgresSyslog(reader) => reader.finish(tally),
            Self::Packets(reader) => reader.finish(tally),
            Self::Summary(reader) => reader.finish(tally),
            _ => {}
        }
    }
}

/// The places to cut blocks of a format.
#[derive(Clone, Copy, Debug)]
pub struct Cutter {
    /// The format.
    pub format: Format,
    /// Says whether a literal is open.
    pub dialect: Dialect,
}

impl Cut for Cutter {
    fn last(&self, data: &[u8]) -> Option<usize> {
        match self.format {
            Format::SlowLog => slow_log::last_boundary(data, self.dialect),
            Format::PostgresStderr => stderr::last_boundary(data),
            Format::PostgresCsv => csv::last_boundary(data),
            Format::PostgresJson | Format::PostgresSyslog | Format::Mongod => json::last_boundary(data),
            Format::GeneralLog => general_log::last_boundary(data, self.dialect),
            _ => Some(data.len()).filter(|length| *length > 0),
        }
    }

    fn first(&self, data: &[u8]) -> Option<usize> {
        match self.format {
            Format::SlowLog => slow_log::first_boundary(data),
            Format::PostgresStderr => stderr::first_boundary(data),
            Format::PostgresCsv => csv::first_boundary(data),
            Format::PostgresJson | Format::PostgresSyslog | Format::Mongod => json::first_boundary(data),
            Format::GeneralLog => general_log::first_boundary(data),
            _ => Some(0),
        }
    }

    fn whole(&self, data: &[u8]) -> usize {
        let is_line = data.ends_with(b"\n");
        let is_whole = match self.format {
            // A statement ends with its line. The server writes several lines at once, but they may
            // be read in between.
            Format::SlowLog => is_line && slow_log::is_whole(data),
            Format::PostgresCsv => is_line && csv::is_whole(data),
            _ => is_line || self.format.is_whole(),
        };
        match self.format {
            _ if is_whole => data.len(),
            Format::PostgresJson
            | Format::PostgresSyslog
            | Format::GeneralLog
            | Format::PostgresStderr
            | Format::Mongod => memchr::memrchr(b'\n', data).map_or(0, |at| at + 1),
            _ => self.last(data).unwrap_or(0),
        }
    }

    fn context(&self, data: &[u8], before: &Context) -> Context {
        match self.format {
            Format::SlowLog => slow_log::context(data, before),
            _ => Context::default(),
        }
    }
}
