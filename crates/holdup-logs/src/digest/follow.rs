//! Follows logs while they are written, through rotation (renamed, and a new file under the old
//! name) and truncation. Counts a record only when it is complete, and only once. The caller does
//! the waiting.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use holdup_recording::files;

use crate::digest::block::{Block, Context, Cut as _, LONGEST, SIZE};
use crate::digest::event::Position;
use crate::digest::format::{Cutter, Format, Reader};
use crate::digest::input::{self, InputError, Packing};
use crate::digest::postgres::prefix::Prefix;
use crate::digest::problem::Problem;
use crate::digest::resume::{Mark, State};
use crate::digest::run::{FileRead, Options};
use crate::digest::tally::Tally;

/// Bytes from which the kind of a log must be recognisable.
const SAMPLE: usize = 64 << 10;

/// Device and number of a file, which renaming does not change.
type Identity = (u64, u64);

/// One log that is read as it grows.
struct Tail {
    path: PathBuf,
    file: Option<File>,
    identity: Identity,
    number: u32,
    /// First bytes of the file.
    sample: Vec<u8>,
    /// Bytes that were read but not counted yet, and their place.
    pending: Vec<u8>,
    offset: u64,
    context: Context,
    known: Option<(Cutter, Reader)>,
    /// The rest of a record that was too long is skipped.
    is_skipping: bool,
    /// Another file has taken over its name: this one is dropped when no more comes.
    is_leaving: bool,
}

/// Logs that are followed.
pub struct Follow {
    tails: Vec<Tail>,
    options: Options,
    /// Number of files read so far; a log that starts anew counts as another.
    pub files: Vec<FileRead>,
}

fn identity(file: &File) -> io::Result<Identity> {
    file.metadata().map(|known| (known.dev(), known.ino()))
}

impl Follow {
    /// Starts to follow logs, from the positions in `state`, else from their beginning.
    ///
    /// # Errors
    ///
    /// If one does not exist, is packed, is a folder or is standard input.
    pub fn new(paths: &[PathBuf], options: &Options, state: &State) -> Result<Self, InputError> {
        let mut follow = Self { tails: Vec::new(), options: options.clone(), files: Vec::new() };
        for path in paths {
            if path.is_dir() {
                return Err(InputError::Folder { path: path.clone() });
            }
            let failed = |error| InputError::Open { path: path.clone(), error };
            let mut file = files::open(path).map_err(failed)?;
            let mut sample = Vec::new();
            Read::by_ref(&mut file).take(SAMPLE as u64).read_to_end(&mut sample).map_err(failed)?;
            if path.as_os_str() == "-" || input::packing(&sample) != Packing::Plain {
                return Err(InputError::NotResumable { path: path.clone(), format: "packed or piped" });
            }
            let length = file.metadata().map_err(failed)?.len();
            let mark = state.find_mark(&sample).filter(|mark| mark.offset <= length);
            let (offset, context) = mark.map_or((0, Context::default()), |mark| (mark.offset, mark.context()));
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            let identity = identity(&file).map_err(failed)?;
            let number = follow.opened(path);
            follow.tails.push(Tail {
                path: path.clone(),
                file: Some(file),
                identity,
                number,
                sample: if offset > 0 { sample } else { Vec::new() },
                pending: Vec::new(),
                offset,
                context,
                known: None,
                is_skipping: false,
                is_leaving: false,
            });
        }
        Ok(follow)
    }

    fn opened(&mut self, path: &Path) -> u32 {
        let format = self.options.format.unwrap_or(Format::SlowLog);
        self.files.push(FileRead { path: path.to_owned(), format, bytes: 0 });
        u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
    }

    /// Counts what was written since the last call. Returns whether anything was.
    ///
    /// # Errors
    ///
    /// If a log cannot be read, or its kind cannot be recognised.
    pub fn poll(&mut self, tally: &mut Tally) -> Result<bool, InputError> {
        let mut has_grown = false;
        for index in 0..self.tails.len() {
            has_grown |= self.poll_one(index, tally)?;
        }
        Ok(has_grown)
    }

    fn poll_one(&mut self, index: usize, tally: &mut Tally) -> Result<bool, InputError> {
        let Some(tail) = self.tails.get_mut(index) else { return Ok(false) };
        let path = tail.path.clone();
        let failed = |error| InputError::Open { path: path.clone(), error };
        let mut has_grown = false;
        loop {
            let count = match &mut tail.file {
                Some(file) => file.take(SIZE as u64).read_to_end(&mut tail.pending).map_err(failed)?,
                None => 0,
            };
            if count == 0 {
                break;
            }
            has_grown = true;
            if tail.sample.len() < SAMPLE && tail.offset == 0 {
                tail.sample = tail.pending.get(..SAMPLE.min(tail.pending.len())).unwrap_or_default().to_vec();
            }
            tail.learn(&self.options)?;
            if tail.pending.len() >= SIZE {
                tail.take(false, tally);
            }
        }
        if !has_grown {
            tail.take(tail.is_leaving, tally);
            tail.look_for_another(tally).map_err(failed)?;
        }
        if let Some(file) = self.files.get_mut(tail.number as usize) {
            file.bytes = tail.offset;
            file.format = tail.known.as_ref().map_or(file.format, |(cutter, _)| cutter.format);
        }
        if tail.file.is_none()
            && let Ok(file) = files::open(&tail.path)
        {
            let identity = identity(&file).map_err(failed)?;
            let number = self.opened(&path);
            if let Some(tail) = self.tails.get_mut(index) {
                tail.begin(file, identity, number);
            }
            has_grown = true;
        }
        Ok(has_grown)
    }

    /// Ends: counts complete records, and leaves the rest for a run that continues from `state`.
    pub fn finish(&mut self, tally: &mut Tally, state: &mut State) {
        for tail in &mut self.tails {
            tail.take(false, tally);
            if let Some((_, reader)) = &mut tail.known {
                reader.finish(tally);
            }
        }
        self.mark(tally, state);
    }

    /// Writes the positions of all logs to `state`.
    pub fn mark(&self, tally: &Tally, state: &mut State) {
        for tail in &self.tails {
            let lines = tally.lines.in_file(tail.number);
            if let Some(mark) = Mark::new(&tail.path, &tail.sample, tail.offset, lines, &tail.context) {
                state.put(mark, &tail.sample);
            }
        }
    }
}

impl Tail {
    /// Starts with another file of the same name.
    fn begin(&mut self, file: File, identity: Identity, number: u32) {
        (self.file, self.identity, self.number) = (Some(file), identity, number);
        (self.offset, self.is_skipping, self.is_leaving) = (0, false, false);
        self.sample.clear();
        self.pending.clear();
        self.context = Context::default();
    }

    /// Recognises the log's kind as soon as it has enough bytes.
    fn learn(&mut self, options: &Options) -> Result<(), InputError> {
        if self.known.is_some() {
            return Ok(());
        }
        let sample = if self.sample.is_empty() { &self.pending } else { &self.sample };
        let format = match options.format.or_else(|| Format::detect(sample)) {
            Some(format) if format.is_whole() => {
                return Err(InputError::NotResumable { path: self.path.clone(), format: format.name() });
            }
            Some(format) => format,
            None if sample.len() < SAMPLE => return Ok(()),
            None => return Err(InputError::Unknown { path: self.path.clone() }),
        };
        let prefix = options.prefix.as_deref().map(Prefix::from_setting);
        self.known = Some((options.cutter(format), Reader::new(format, sample, prefix.as_ref())));
        Ok(())
    }

    /// Counts the complete records that were read; all of it if no more will come.
    fn take(&mut self, is_end: bool, tally: &mut Tally) {
        let Some((cutter, reader)) = &mut self.known else { return };
        if self.is_skipping {
            let Some(at) = cutter.first(&self.pending) else {
                self.offset += self.pending.len() as u64;
                tally.lines.add(self.number, self.offset, crate::digest::block::line_breaks(&self.pending));
                return self.pending.clear();
            };
            self.pending.drain(..at);
            (self.offset, self.is_skipping) = (self.offset + at as u64, false);
        }
        let whole = match cutter.last(&self.pending) {
            _ if is_end => self.pending.len(),
            Some(at) if self.pending.len() >= SIZE => at,
            None if self.pending.len() >= LONGEST => {
                self.is_skipping = true;
                self.pending.len()
            }
            None if self.pending.len() >= SIZE => return,
            _ => cutter.whole(&self.pending),
        };
        if whole == 0 {
            return;
        }
        tally.speak(cutter.dialect);
        let rest = self.pending.split_off(whole);
        let data = std::mem::replace(&mut self.pending, rest);
        let context = cutter.context(&data, &self.context);
        let block = Block {
            data,
            file: self.number,
            offset: self.offset,
            cut: self.is_skipping,
            context: std::mem::replace(&mut self.context, context),
        };
        reader.read(&block, tally);
        tally.lines.read(&block, &tally.problems);
        self.offset += whole as u64;
    }

    /// Whether the file was renamed or truncated.
    fn look_for_another(&mut self, tally: &mut Tally) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let read = self.offset + self.pending.len() as u64;
        if file.metadata()?.len() < read {
            tally.problems.add(Problem::Truncated, Position { file: self.number, offset: self.offset });
            self.take(true, tally);
            self.file = None;
            return Ok(());
        }
        // Renamed, but the new file does not exist yet: the server still writes to it under its
        // other name.
        let is_other = std::fs::metadata(&self.path).is_ok_and(|known| (known.dev(), known.ino()) != self.identity);
        // The server may write for a moment longer.
        if is_other && std::mem::replace(&mut self.is_leaving, true) {
            self.take(true, tally);
            self.file = None;
        }
        Ok(())
    }
}
