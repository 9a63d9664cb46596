//! What people paste in an incident: outputs of standard tools as text, several in one paste, in
//! any order, with prompts, colours and cut columns. They become the rows that collectors write, so
//! that rules judge them unchanged. Each kind of output is one file in `kinds`. This module finds
//! them; lines that no kind reads are kept and counted. Pure: bytes in, rows out.

mod clock;
mod command;
mod commands;
mod context;
mod documents;
mod headed;
mod json;
mod kinds;
mod number;
mod out;
mod paste;
mod table;

use holdup_recording::Batch;

pub use documents::{Document, cut_documents, is_only_commands};

use commands::{Command, commands};
use context::Context;
use kinds::Kind;
use paste::Line;
use table::Select;

/// Lines kept of those that were not understood.
const UNREAD_KEPT: usize = 1_000;

/// Characters kept of such a line.
const UNREAD_CHARS: usize = 160;

/// Lines at the beginning of a file in which a kind must be recognised.
const HEAD_LINES: usize = 400;

/// An output that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file that it is in.
    pub file: String,
    /// The kind, e.g. `iostat`.
    pub kind: &'static str,
    /// Its first line, from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// Times of its first and last rows, nanoseconds since the epoch; none if it gave none.
    pub span: Option<(i64, i64)>,
    /// Number of rows.
    pub rows: usize,
}

/// A line that no reader understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The file that it is in.
    pub file: String,
    /// Its number, from 1.
    pub line: usize,
    /// Its beginning.
    pub text: String,
}

/// All that pasted outputs say.
#[derive(Clone, Debug, Default)]
pub struct Understood {
    /// Rows for a recording.
    pub batch: Batch,
    /// The outputs found, in order.
    pub parts: Vec<Part>,
    /// The first lines that were not understood.
    pub unread: Vec<Unread>,
    /// The number of all such lines.
    pub unread_total: usize,
    /// Assumptions and omissions.
    pub notes: Vec<String>,
    /// Times of the first and the last row.
    pub span: Option<(i64, i64)>,
}

/// Reads pasted outputs, file by file.
#[derive(Default)]
pub struct Pasted {
    context: Context,
    parts: Vec<Part>,
    /// Number of parts before the present file, whose name another file may share.
    parts_before: usize,
    unread: Vec<Unread>,
    unread_total: usize,
}

/// Whether the beginning of a file holds an output that is understood here.
pub fn recognises(head: &[u8]) -> bool {
    let lines = headed::with_headers(paste::lines(head, kinds::is_heading));
    let lines = lines.get(..HEAD_LINES).unwrap_or(&lines);
    outline(lines, &commands(lines)).iter().any(|place| place.found.is_some())
}

/// How a kind was recognised.
#[derive(Clone, Copy)]
struct Recognised<'c> {
    kind: &'static Kind,
    /// The statement whose result it is.
    above: Option<&'c Select>,
    /// Whether its header was cut.
    is_headless: bool,
}

/// What begins at a line, and where that must end: at a command or at an output of another kind.
struct Place<'c> {
    found: Option<Recognised<'c>>,
    end: usize,
}

/// The places of all lines. Outputs may follow each other without an empty line.
fn outline<'c>(lines: &[Line], commands: &'c [Command]) -> Vec<Place<'c>> {
    let mut places: Vec<Place<'_>> = Vec::with_capacity(lines.len());
    let mut block_end = lines.len();
    // The next output: its first line, its kind, its end.
    let mut next: Option<(usize, &'static Kind, usize)> = None;
    let mut command = commands.iter().rev().peekable();
    for (at, line) in lines.iter().enumerate().rev() {
        if line.is_command {
            (block_end, next) = (at, None);
        }
        while command.peek().is_some_and(|command| command.last >= at) {
            command.next();
        }
        let above = command.peek().filter(|command| {
            let between = lines.get(command.last + 1..at).unwrap_or_default();
            between.iter().all(Line::is_blank)
        });
        let rest = lines.get(at..block_end).unwrap_or_default();
        let above = above.and_then(|command| command.select.as_ref());
        let found = if line.is_blank() { None } else { Kind::of(rest, above) };
        let mut end = at + 1;
        if let Some((kind, _)) = found {
            end = match next {
                // Lines within a document may look like other outputs.
                _ if kind.is_document() => at + json::read(rest).map_or(1, |document| document.used),
                Some((first, other, _)) if other.name != kind.name => first,
                Some((_, _, end)) => end,
                None => block_end,
            };
            // A message may stand within another output, which reads it.
            if !kind.stands_within() {
                next = Some((at, kind, end));
            }
        }
        let found = found.map(|(kind, is_headless)| Recognised { kind, above, is_headless });
        places.push(Place { found, end });
    }
    places.reverse();
    places
}

impl Pasted {
    /// A reader of outputs of a host with `cpus` CPUs, if that is known.
    pub fn new(cpus: Option<u32>) -> Self {
        let mut pasted = Self::default();
        pasted.context.out.cpus = cpus.map(f64::from);
        pasted
    }

    /// Reads a file, and returns how many outputs it holds. `at` is the time of outputs without a
    /// time stamp, nanoseconds since the epoch.
    pub fn read(&mut self, file: &str, bytes: &[u8], at: i64) -> usize {
        self.context.begin_file(file, at);
        self.read_lines(file, bytes)
    }

    /// Reads a file that a collecting tool wrote: all that one tool printed, from its start.
    /// Returns how many outputs it holds.
    pub fn read_output(&mut self, file: &str, bytes: &[u8], at: i64) -> usize {
        self.context.begin_file(file, at);
        self.context.begin_output();
        self.read_lines(file, bytes)
    }

    fn read_lines(&mut self, file: &str, bytes: &[u8]) -> usize {
        self.parts_before = self.parts.len();
        let lines = headed::with_headers(paste::lines(bytes, kinds::is_heading));
        let commands = commands(&lines);
        let outline = outline(&lines, &commands);
        let mut next = 0;
        let mut coming = commands.iter().peekable();
        while let (Some(line), Some(place)) = (lines.get(next), outline.get(next)) {
            match line.stamp {
                Some(stamp) if self.context.takes_boot(stamp) => {}
                Some(stamp) => self.context.set_time(stamp),
                None => {}
            }
            while coming.peek().is_some_and(|command| command.first < next) {
                coming.next();
            }
            if let Some(command) = coming.next_if(|command| command.first == next) {
                self.context.begin_command(&command.text);
                next = command.last + 1;
                continue;
            }
            if line.is_blank() {
                next += 1;
                continue;
            }
            let own = lines.get(next..place.end).unwrap_or_default();
            next += match place.found {
                _ if self.context.takes_answer(&line.text) => {
                    self.push(file, "answer to a command", own.get(..1).unwrap_or_default(), 1, None);
                    1
                }
                Some(found) => self.read_output_of(found, file, own).max(1),
                None => {
                    if !self.context.takes_time(&line.text) {
                        self.keep_unread(file, line);
                    }
                    1
                }
            };
        }
        self.parts.len() - self.parts_before
    }

    /// Reads the output of a kind; returns the number of lines read.
    fn read_output_of(&mut self, found: Recognised<'_>, file: &str, lines: &[Line]) -> usize {
        let Recognised { kind, above, is_headless } = found;
        let before = self.context.mark();
        let used = kind.read(lines, (above, is_headless), &mut self.context).min(lines.len());
        let (rows, span) = self.context.since(before);
        for place in std::mem::take(&mut self.context.unread) {
            if let Some(line) = lines.get(place) {
                self.keep_unread(file, line);
            }
        }
        self.push(file, kind.name, lines.get(..used.max(1)).unwrap_or_default(), rows, span);
        used
    }

    fn keep_unread(&mut self, file: &str, line: &Line) {
        self.unread_total += 1;
        if self.unread.len() < UNREAD_KEPT {
            let text = line.text.chars().take(UNREAD_CHARS).collect();
            self.unread.push(Unread { file: file.to_owned(), line: line.number, text });
        }
    }

    /// Adds a part, or extends the one before if that has the same kind.
    fn push(&mut self, file: &str, kind: &'static str, lines: &[Line], rows: usize, span: Option<(i64, i64)>) {
        let (Some(first), Some(last)) = (lines.first(), lines.iter().rfind(|line| !line.is_blank())) else { return };
        let join = |a: Option<(i64, i64)>, b: Option<(i64, i64)>| match (a, b) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        match self
            .parts
            .get_mut(self.parts_before..)
            .and_then(|parts| parts.last_mut())
            .filter(|part| part.kind == kind)
        {
            Some(part) => {
                part.last_line = last.number;
                part.rows += rows;
                part.span = join(part.span, span);
            }
            None => self.parts.push(Part {
                file: file.to_owned(),
                kind,
                first_line: first.number,
                last_line: last.number,
                span,
                rows,
            }),
        }
    }

    /// Everything that was read.
    pub fn finish(self) -> Understood {
        let Self { context, parts, unread, unread_total, .. } = self;
        let (batch, notes) = context.out.finish();
        let times = batch.samples.iter().map(|row| row.observed_at);
        let times = times.chain(batch.sessions.iter().map(|row| row.observed_at));
        let times = times.chain(batch.threads.iter().map(|row| row.observed_at));
        let times = times.chain(batch.settings.iter().map(|row| row.observed_at));
        let times = times.chain(batch.events.iter().map(|row| row.observed_at));
        let times = times.chain(batch.plans.iter().map(|row| row.observed_at));
        let span = times.fold(None, |span: Option<(i64, i64)>, at| {
            Some(span.map_or((at, at), |(first, last)| (first.min(at), last.max(at))))
        });
        Understood { batch, parts, unread, unread_total, notes: notes.into_iter().collect(), span }
    }
}
