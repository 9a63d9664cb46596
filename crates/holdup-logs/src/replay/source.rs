//! Logs as a stream of executions, in the order of the logs. A separate thread reads a few batches
//! ahead.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::attribute::{Attributes, QUERY_TIME};
use crate::digest::event::{Event, Kind};
use crate::digest::format::{Format, Reader};
use crate::digest::input::InputError;
use crate::digest::problem::Problems;
use crate::digest::run::{Log, Options, in_order};
use holdup_sql::Dialect;

/// Most batches that are read ahead; each covers a stretch of the log of about half a megabyte.
const AHEAD: usize = 2;

/// One record of a log.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// What it is.
    pub kind: Kind,
    /// The statement, or the name of a command.
    pub sql: Vec<u8>,
    /// PostgreSQL's list of parameters.
    pub parameters: Vec<u8>,
    /// The server's number of the connection; 0 if unknown.
    pub connection: u64,
    /// Its start, as far as the log has it, microseconds since 1970 in the log's own time zone.
    pub at_us: Option<i64>,
    /// Its end, if the log has it.
    pub ended_us: Option<i64>,
    /// Its duration, microseconds.
    pub took_us: Option<u64>,
    /// Account.
    pub user: Vec<u8>,
    /// Client.
    pub host: Vec<u8>,
    /// Database.
    pub database: Vec<u8>,
    /// The SQL dialect, if a log may hold several.
    pub dialect: Option<Dialect>,
    /// Whether its text was too long to be kept whole.
    pub is_cut: bool,
    /// Number of its file.
    pub file: u32,
}

impl Recorded {
    fn from_event(event: &Event) -> Self {
        Self {
            kind: event.kind,
            sql: event.sql.to_vec(),
            parameters: event.parameters.to_vec(),
            connection: event.session,
            at_us: event.at_us,
            ended_us: event.ended_us,
            took_us: event.measures.iter().find(|(number, _)| *number == QUERY_TIME).map(|(_, value)| *value),
            user: event.user.to_vec(),
            host: event.host.to_vec(),
            database: event.database.to_vec(),
            dialect: event.dialect,
            is_cut: event.cut,
            file: event.position.file,
        }
    }

    /// Its memory in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.sql.len() + self.parameters.len() + 64
    }
}

/// Logs, in order of time.
#[derive(Clone, Debug)]
pub struct Logs {
    paths: Vec<PathBuf>,
    options: Options,
    /// Their format; all have the same.
    pub format: Format,
}

/// Why logs cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// One cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// It would have to be read twice.
    #[error(
        "holdup reads a log twice, first to survey it and then to play it, which standard input does not allow; write it to a file"
    )]
    StandardInput,
    /// It has sums instead of single executions.
    #[error("{} ({}) has sums, not single executions, so it cannot be replayed", .0.display(), .1)]
    Sums(PathBuf, &'static str),
    /// The logs have two formats.
    #[error("the logs have two formats, {0} and {1}: replay them one after the other")]
    Mixed(&'static str, &'static str),
}

impl Logs {
    /// Opens logs, and orders them by the first time in each, as for a rotated set.
    ///
    /// # Errors
    ///
    /// If one cannot be read, or has another format than the first.
    pub fn open(paths: &[PathBuf], options: Options) -> Result<Self, SourceError> {
        let mut logs = Vec::new();
        for path in paths {
            if path.as_os_str() == "-" {
                return Err(SourceError::StandardInput);
            }
            logs.push(Log::open(path, &options)?);
        }
        in_order(&mut logs);
        let format = logs.first().map_or(Format::SlowLog, Log::format);
        if let Some(other) = logs.iter().map(Log::format).find(|other| *other != format) {
            return Err(SourceError::Mixed(format.name(), other.name()));
        }
        if let (Format::PerformanceSchema | Format::PgStatStatements, Some(log)) = (format, logs.first()) {
            return Err(SourceError::Sums(log.path().to_owned(), format.name()));
        }
        Ok(Self { paths: logs.iter().map(|log| log.path().to_owned()).collect(), options, format })
    }

    /// The logs, in the order in which they are read.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Starts to read them.
    pub fn read(&self) -> Source {
        let (give, batches) = sync_channel(AHEAD);
        let problems = Arc::new(Mutex::new(Problems::default()));
        let (logs, met) = (self.clone(), Arc::clone(&problems));
        std::thread::spawn(move || {
            let mut reader = None;
            for number in 0..logs.paths.len() {
                if !logs.one(number, &give, &met, &mut reader) {
                    return;
                }
            }
        });
        Source { batches, now: Vec::new().into_iter(), problems }
    }

    /// Reads one; false if the receiver wants no more.
    fn one(
        &self,
        number: usize,
        give: &SyncSender<Vec<Recorded>>,
        problems: &Mutex<Problems>,
        reader: &mut Option<Reader>,
    ) -> bool {
        let options = Options { format: Some(self.format), ..self.options.clone() };
        // It could be opened a moment ago. If it is gone since, it is missing like text behind a
        // break.
        let Some(Ok(log)) = self.paths.get(number).map(|path| Log::open(path, &options)) else { return true };
        let batch = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&batch);
        let take = || std::mem::take(&mut *batch.lock().unwrap_or_else(PoisonError::into_inner));
        let select = options.select.clone();
        let see = Box::new(move |event: &Event, attributes: &Attributes| {
            if !select.takes(event, attributes) {
                return;
            }
            keep.lock().unwrap_or_else(PoisonError::into_inner).push(Recorded::from_event(event));
        });
        let mut is_wanted = true;
        let is_last = number + 1 == self.paths.len();
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let (_, met) = log.each((number, is_last), &options, see, reader, &mut || {
            is_wanted &= give.send(take()).is_ok();
            is_wanted
        });
        is_wanted &= give.send(take()).is_ok();
        problems.lock().unwrap_or_else(PoisonError::into_inner).merge(met);
        is_wanted
    }
}

/// The executions, in the order of the logs.
pub struct Source {
    batches: Receiver<Vec<Recorded>>,
    now: std::vec::IntoIter<Recorded>,
    problems: Arc<Mutex<Problems>>,
}

impl Source {
    /// Problems so far.
    pub fn problems(&self) -> Problems {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Iterator for Source {
    type Item = Recorded;

    fn next(&mut self) -> Option<Recorded> {
        loop {
            if let Some(next) = self.now.next() {
                return Some(next);
            }
            self.now = self.batches.recv().ok()?.into_iter();
        }
    }
}
