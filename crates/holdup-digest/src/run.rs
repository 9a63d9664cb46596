//! Files in, one tally out, by as many threads as are given: this one cuts, the others read. What comes out does not
//! depend on how many there are.

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use holdup_sql::Dialect;

use crate::block::{self, Block};
use crate::format::{Cutter, Format, Reader};
use crate::input::{InputError, open};
use crate::postgres::entry::tie;
use crate::postgres::prefix::Prefix;
use crate::problem::Problems;
use crate::select::Select;
use crate::tally::{Identity, Tally};

/// What to do with the files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What they are, if it need not be found out.
    pub format: Option<Format>,
    /// How MySQL's statements are to be read, if not as by its default `sql_mode`; other logs have their own language.
    pub dialect: Option<Dialect>,
    /// By what statements are called.
    pub identity: Identity,
    /// What is counted and how it is grouped.
    pub select: Select,
    /// PostgreSQL's `log_line_prefix`, if it need not be made out.
    pub prefix: Option<String>,
    /// Threads that read; 0 and 1 are one.
    pub threads: usize,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct FileRead {
    /// As it was given.
    pub path: PathBuf,
    /// What it was.
    pub format: Format,
    /// Bytes of it, unpacked.
    pub bytes: u64,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// The files, in the order they were given.
    pub files: Vec<FileRead>,
    /// What they held.
    pub tally: Tally,
}

/// Reads all files.
///
/// # Errors
/// If one can't be opened or is no log that is known. What breaks off in the middle is a problem of the tally instead.
pub fn run(paths: &[PathBuf], options: &Options) -> Result<Outcome, InputError> {
    let mut files: Vec<FileRead> = Vec::new();
    let mut whole: Option<Tally> = None;
    for (number, path) in paths.iter().enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let (file, tally) = one(path, number, options, whole.take())?;
        files.push(file);
        whole = Some(tally);
    }
    let tally = whole.unwrap_or_else(|| Tally::new(Dialect::MySql, options.identity, options.select.clone()));
    Ok(Outcome { files, tally })
}

fn one(path: &Path, number: u32, options: &Options, before: Option<Tally>) -> Result<(FileRead, Tally), InputError> {
    let mut input = open(path)?;
    let head = std::mem::take(&mut input.head);
    let format = match options.format {
        Some(format) => format,
        None if head.is_empty() => Format::SlowLog,
        None => Format::detect(&head).ok_or_else(|| InputError::Unknown { path: path.to_owned() })?,
    };
    let asked = options.dialect.filter(|_| format.dialect() == Dialect::MySql);
    let dialect = asked.unwrap_or_else(|| format.dialect());
    let empty = || Tally::new(dialect, options.identity, options.select.clone());
    let mut tally = before.unwrap_or_else(empty);
    tally.speak(dialect);
    let cutting = empty();
    let cutter = Cutter { format, tally: &cutting };
    let mut problems = Problems::default();
    let mut bytes = 0;
    let first_head = head.clone();
    let prefix = options.prefix.as_deref().map(Prefix::of_setting);
    if options.threads <= 1 || format.is_sequential() {
        let mut reader = Reader::new(format, &first_head, prefix.as_ref());
        let end = block::each(&mut *input.reader, number, head, &cutter, &mut problems, |block| {
            bytes += block.data.len() as u64;
            reader.read(&block, &mut tally);
            block
        });
        drop(end);
        reader.finish(&mut tally);
    } else {
        let parts = std::thread::scope(|scope| {
            let (free, blocks_free) = mpsc::channel::<Block>();
            let mut work = Vec::new();
            let mut threads = Vec::new();
            for _ in 0..options.threads {
                let (give, take) = mpsc::sync_channel::<Block>(2);
                let (free, first_head, prefix, mut tally) = (free.clone(), &first_head, &prefix, empty());
                work.push(give);
                threads.push(scope.spawn(move || {
                    let mut reader = Reader::new(format, first_head, prefix.as_ref());
                    for block in take {
                        reader.read(&block, &mut tally);
                        drop(free.send(block));
                    }
                    tally
                }));
            }
            let mut turn = 0;
            let end = block::each(&mut *input.reader, number, head, &cutter, &mut problems, |block| {
                bytes += block.data.len() as u64;
                give(&work, &mut turn, block);
                blocks_free.try_recv().unwrap_or_default()
            });
            drop(end);
            drop(work);
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<Tally>>()
        });
        for part in parts {
            tally.merge(part);
        }
    }
    tie(&mut tally);
    tally.problems.merge(problems);
    Ok((FileRead { path: path.to_owned(), format, bytes }, tally))
}

/// Hands a block to the first thread with room for it, beginning with the one whose turn it is.
fn give(work: &[mpsc::SyncSender<Block>], turn: &mut usize, block: Block) {
    let mut block = Some(block);
    for step in 0..work.len() {
        let index = (*turn + step) % work.len();
        let (Some(thread), Some(one)) = (work.get(index), block.take()) else { break };
        match thread.try_send(one) {
            Ok(()) => {
                *turn = index + 1;
                return;
            }
            Err(mpsc::TrySendError::Full(one) | mpsc::TrySendError::Disconnected(one)) => block = Some(one),
        }
    }
    if let (Some(block), Some(thread)) = (block, work.get(*turn % work.len().max(1))) {
        drop(thread.send(block));
        *turn += 1;
    }
}
