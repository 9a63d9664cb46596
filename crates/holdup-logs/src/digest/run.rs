//! Reads files into one tally with a given number of threads: each takes the next block and reads
//! it. The result does not depend on their number.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use holdup_protocol::packets::Protocol;
use holdup_sql::Dialect;

use crate::digest::block::{Block, Blocks};
use crate::digest::format::{Cutter, Format, Reader};
use crate::digest::input::{Input, InputError, open, unpacked};
use crate::digest::listener::Listener;
use crate::digest::postgres::entry::{LooseEnds, tie};
use crate::digest::postgres::prefix::Prefix;
use crate::digest::problem::Problems;
use crate::digest::resume::{Mark, State, pass_over};
use crate::digest::room::Room;
use crate::digest::select::Select;
use crate::digest::tally::{Identity, Observer, Tally, Watch};
use crate::digest::wire::Wire;

/// Memory of a statement with its course over time, without its texts, roughly.
const COURSE_BYTES: u64 = 20 << 10;

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Their format, unless it is to be recognised.
    pub format: Option<Format>,
    /// The `sql_mode` of MySQL's statements, if it is not the default; other logs have their own
    /// language.
    pub dialect: Option<Dialect>,
    /// How statements are named.
    pub identity: Identity,
    /// Filters and grouping.
    pub select: Select,
    /// PostgreSQL's `log_line_prefix`, unless it is to be worked out.
    pub prefix: Option<String>,
    /// Threads that read; 0 and 1 both mean one.
    pub threads: usize,
    /// For packets: the protocols of ports without a default one.
    pub ports: Vec<(u16, Protocol)>,
    /// Memory for statements, bytes; no limit if none.
    pub most_bytes: Option<u64>,
    /// Keep the course of each statement over time.
    pub has_course: bool,
    /// Listener to a PostgreSQL server's messages about itself.
    pub listener: Option<Listener>,
}

impl Options {
    /// Where logs of a format are cut, in the language that was asked for if they may have it.
    pub fn cutter(&self, format: Format) -> Cutter {
        let asked = self.dialect.filter(|_| format.dialect() == Dialect::MySql);
        Cutter { format, dialect: asked.unwrap_or_else(|| format.dialect()) }
    }

    /// The room that statements share.
    pub fn room(&self) -> Option<Arc<Room>> {
        let room = Room::new(self.most_bytes?, self.threads);
        Some(Arc::new(if self.has_course { room.with_size(COURSE_BYTES) } else { room }))
    }

    /// A tally of logs in `dialect`.
    pub fn tally(&self, dialect: Dialect, room: Option<&Arc<Room>>) -> Tally {
        let mut tally = Tally::new(dialect, self.identity, self.select.clone());
        tally.room = room.map(Arc::clone);
        tally.has_course = self.has_course;
        tally.listener.clone_from(&self.listener);
        tally
    }
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct FileRead {
    /// Its name as given.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Bytes of it, unpacked.
    pub bytes: u64,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The files, in the given order.
    pub files: Vec<FileRead>,
    /// Their content.
    pub tally: Tally,
}

/// Reads all files, in the order of their first records: a rotated set may be named in any order.
///
/// # Errors
///
/// If one cannot be opened or is not a known log. If a file breaks off in the middle, the tally
/// reports that as a problem.
pub fn run(paths: &[PathBuf], options: &Options) -> Result<Outcome, InputError> {
    run_on(paths, options, None)
}

/// The same, from the positions in `state`, including logs that were rotated away since; writes the
/// new positions to `state`.
///
/// # Errors
///
/// As [`run`], and if a file has a format that cannot be continued.
pub fn run_on(paths: &[PathBuf], options: &Options, mut state: Option<&mut State>) -> Result<Outcome, InputError> {
    let outcome = pass(paths, options, state.as_deref_mut(), options.room())?;
    let is_again = state.is_none() && paths.iter().all(|path| path.is_file());
    match &outcome.tally.room {
        // The first statements got room, which need not be the longest. The second pass knows
        // those.
        Some(room) if is_again && outcome.tally.rest.calls > 0 => {
            let room = room.with_heaviest(&outcome.tally.weights());
            drop(outcome);
            pass(paths, options, None, Some(Arc::new(room)))
        }
        _ => Ok(outcome),
    }
}

/// Reads streams, each with its name, once.
///
/// # Errors
///
/// If one cannot be read or is not a known log.
pub fn run_streams(streams: Vec<(PathBuf, Box<dyn Read + Send>)>, options: &Options) -> Result<Outcome, InputError> {
    let mut logs = Vec::new();
    for (path, stream) in streams {
        let input = unpacked(stream).map_err(|error| InputError::Open { path: path.clone(), error })?;
        logs.push(Log::from_input(&path, input, options)?);
    }
    Ok(read_all(logs, options, None, options.room().as_ref()))
}

/// Reads all files once.
fn pass(
    paths: &[PathBuf],
    options: &Options,
    state: Option<&mut State>,
    room: Option<Arc<Room>>,
) -> Result<Outcome, InputError> {
    let mut logs = Vec::new();
    for path in paths {
        logs.push(Log::open(path, options)?);
    }
    if let Some(state) = &state {
        rotated(&mut logs, options, state);
        for log in &mut logs {
            log.go_on(options, state)?;
        }
    }
    Ok(read_all(logs, options, state, room.as_ref()))
}

fn read_all(mut logs: Vec<Log>, options: &Options, mut state: Option<&mut State>, room: Option<&Arc<Room>>) -> Outcome {
    in_order(&mut logs);
    let mut files: Vec<FileRead> = Vec::new();
    let mut whole: Option<Tally> = None;
    let mut reader = None;
    for (number, log) in logs.into_iter().enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let (sample, held_back) = (log.sample(), state.is_some());
        let (file, tally, mark) = log.read(number, options, (whole.take(), room), &mut reader, held_back);
        if let (Some(state), Some(mark)) = (&mut state, mark) {
            state.put(mark, &sample);
        }
        files.push(file);
        whole = Some(tally);
    }
    let mut tally = whole.unwrap_or_else(|| options.tally(Dialect::MySql, room));
    if let Some((_, mut reader)) = reader {
        reader.finish(&mut tally);
    }
    tie(&mut tally);
    tally.settle();
    Outcome { files, tally }
}

/// A log that is open and recognised, but not read yet.
pub struct Log {
    path: PathBuf,
    input: Input,
    format: Format,
    dialect: Dialect,
    /// Time of its first record.
    begins_us: Option<i64>,
    /// The position of the previous run.
    mark: Option<Mark>,
    /// Its first bytes, if the reader does not start with them.
    sample: Option<Vec<u8>>,
}

/// Adds logs that an earlier run read under a given name, and that have another name now.
fn rotated(logs: &mut Vec<Log>, options: &Options, state: &State) {
    let heads: Vec<Vec<u8>> = logs.iter().map(|log| log.input.head.clone()).collect();
    let given: Vec<PathBuf> = logs.iter().map(|log| log.path.clone()).collect();
    for mark in state.missing(&heads).filter(|mark| given.contains(&mark.path)) {
        let folder = mark.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let (Some(name), Ok(entries)) = (mark.path.file_name(), folder.unwrap_or(Path::new(".")).read_dir()) else {
            continue;
        };
        let mut beside: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file() && !given.contains(path))
            .filter(|path| {
                let begins = |other: &std::ffi::OsStr| other.as_encoded_bytes().starts_with(name.as_encoded_bytes());
                path.file_name().is_some_and(begins)
            })
            .collect();
        beside.sort();
        let found =
            beside.iter().find_map(|path| Log::open(path, options).ok().filter(|log| mark.matches(&log.input.head)));
        logs.extend(found);
    }
}

/// Sorts logs by their first record. A log without a time, such as a pipe, stays at its place; so
/// do logs of several servers with the same time.
pub fn in_order(logs: &mut [Log]) {
    let first = |log: &Log| log.begins_us.unwrap_or(i64::MAX);
    if logs.iter().all(|log| log.begins_us.is_some()) {
        logs.sort_by_key(first);
    }
}

impl Log {
    /// Opens a log and recognises its format.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or is not a known log.
    pub fn open(path: &Path, options: &Options) -> Result<Self, InputError> {
        Self::from_input(path, open(path)?, options)
    }

    fn from_input(path: &Path, input: Input, options: &Options) -> Result<Self, InputError> {
        let format = match options.format {
            Some(format) => format,
            None if input.head.is_empty() => Format::SlowLog,
            None => Format::detect(&input.head).ok_or_else(|| InputError::Unknown { path: path.to_owned() })?,
        };
        let dialect = options.cutter(format).dialect;
        let begins_us = first_time(format, dialect, &input.head);
        Ok(Self { path: path.to_owned(), input, format, dialect, begins_us, mark: None, sample: None })
    }

    /// Its first bytes.
    fn sample(&self) -> Vec<u8> {
        self.sample.as_ref().unwrap_or(&self.input.head).clone()
    }

    /// Skips what was read before.
    fn go_on(&mut self, options: &Options, state: &State) -> Result<(), InputError> {
        if self.format.is_whole() {
            return Err(InputError::NotResumable { path: self.path.clone(), format: self.format.name() });
        }
        let sample = self.sample();
        let failed = |error| InputError::Open { path: self.path.clone(), error };
        match pass_over(&mut self.input, state).map_err(failed)? {
            Some(mark) => (self.mark, self.sample) = (Some(mark), Some(sample)),
            // It was truncated since, and begins with the same bytes again.
            None if state.find_mark(&sample).is_some() => *self = Self::open(&self.path, options)?,
            None => {}
        }
        Ok(())
    }

    /// Reads it. `reader` comes from the previous log, and continues if the logs are parts of one.
    fn read(
        mut self,
        number: u32,
        options: &Options,
        (before, room): (Option<Tally>, Option<&Arc<Room>>),
        reader: &mut Option<(Format, Reader)>,
        held_back: bool,
    ) -> (FileRead, Tally, Option<Mark>) {
        let (format, dialect) = (self.format, self.dialect);
        let empty = || options.tally(dialect, room);
        let mut tally = before.unwrap_or_else(empty);
        tally.speak(dialect);
        let head = self.sample();
        let begin = std::mem::take(&mut self.input.head);
        let prefix = options.prefix.as_deref().map(Prefix::from_setting);
        let new = || new_reader(format, &head, prefix.as_ref(), options);
        let cutter = Cutter { format, dialect };
        let mut blocks = Blocks::new(&mut *self.input.reader, number, begin, &cutter);
        if let Some(mark) = &self.mark {
            blocks = blocks.resumed(mark.offset, mark.context());
            tally.lines.add(number, 0, mark.lines);
        }
        let blocks = Mutex::new(if held_back { blocks.held_back() } else { blocks });
        if format.is_sequential() {
            let one = match reader.take() {
                // Connections continue in the next log of a set.
                Some((before, reader)) if before == format => reader,
                Some((_, mut other)) => {
                    other.finish(&mut tally);
                    new()
                }
                None => new(),
            };
            *reader = Some((format, work(&blocks, one, &mut tally)));
        } else {
            let parts = std::thread::scope(|scope| {
                let threads: Vec<_> = (1..options.threads)
                    .map(|_| {
                        let (mut tally, blocks, new) = (empty(), &blocks, &new);
                        scope.spawn(move || {
                            work(blocks, new(), &mut tally);
                            tally
                        })
                    })
                    .collect();
                work(&blocks, new(), &mut tally);
                threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<Tally>>()
            });
            for part in parts {
                tally.merge(part);
            }
        }
        let blocks = blocks.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (offset, context) = blocks.end();
        let context = context.clone();
        let bytes = blocks.bytes;
        tally.problems.merge(blocks.problems);
        tally.lines.merge(blocks.lines);
        let mark = Mark::new(&self.path, &head, offset, tally.lines.in_file(number), &context);
        (FileRead { path: self.path, format, bytes }, tally, mark)
    }
}

impl Log {
    /// Its name as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Time of its first record, microseconds; none if unknown.
    pub fn begins_us(&self) -> Option<i64> {
        self.begins_us
    }

    /// Reads it in its own order and passes each execution to `see`, without filters or sums. After
    /// each block, `goes_on` decides whether to read on. `reader` comes from the previous log, and
    /// continues in the next one unless this `is_last`.
    pub fn each(
        mut self,
        (number, is_last): (u32, bool),
        options: &Options,
        see: Box<Observer>,
        reader: &mut Option<Reader>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> (FileRead, Problems) {
        let (format, dialect) = (self.format, self.dialect);
        let mut tally = Tally::new(dialect, options.identity, Select::default());
        tally.watch = Some(Watch(see));
        tally.is_only_watched = true;
        let head = std::mem::take(&mut self.input.head);
        let prefix = options.prefix.as_deref().map(Prefix::from_setting);
        let mut one = reader
            .take()
            .filter(|_| format.is_sequential())
            .unwrap_or_else(|| new_reader(format, &head, prefix.as_ref(), options));
        let cutter = Cutter { format, dialect };
        let mut blocks = Blocks::new(&mut *self.input.reader, number, head, &cutter);
        let (mut spare, mut ties) = (Block::default(), LooseEnds::default());
        while let Some(block) = blocks.next(spare) {
            one.read(&block, &mut tally);
            ties.take(&mut tally);
            spare = block;
            if !goes_on() {
                break;
            }
        }
        if is_last {
            one.finish(&mut tally);
        }
        ties.take(&mut tally);
        ties.end(&mut tally);
        *reader = Some(one);
        tally.problems.merge(blocks.problems);
        (FileRead { path: self.path, format, bytes: blocks.bytes }, tally.problems)
    }
}

/// A reader of a log that begins with `head`.
fn new_reader(format: Format, head: &[u8], prefix: Option<&Prefix>, options: &Options) -> Reader {
    match format {
        Format::Packets => Reader::Packets(Box::new(Wire::new(&options.ports))),
        _ => Reader::new(format, head, prefix),
    }
}

/// Takes blocks and reads them until the end. The thread that takes a block has just read it from
/// the file, so it is in the cache of the core that counts it.
fn work(blocks: &Mutex<Blocks>, mut reader: Reader, tally: &mut Tally) -> Reader {
    let mut spare = Block::default();
    loop {
        let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).next(spare);
        let Some(block) = next else { return reader };
        reader.read(&block, tally);
        tally.lines.read(&block, &tally.problems);
        spare = block;
    }
}

/// Time of the first record of a log that begins with these bytes.
fn first_time(format: Format, dialect: Dialect, head: &[u8]) -> Option<i64> {
    let mut tally = Tally::new(dialect, Identity::Holdup, Select::default());
    let mut reader = Reader::new(format, head, None);
    reader.read(&Block { data: head.get(..head.len().min(LOOKED_AT))?.to_vec(), ..Block::default() }, &mut tally);
    reader.finish(&mut tally);
    tie(&mut tally);
    tally.shapes.iter().filter_map(|shape| shape.seen_us).map(|(first, _)| first).min()
}

/// Bytes that are searched for the first time.
const LOOKED_AT: usize = 16 << 10;
