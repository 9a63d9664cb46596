//! Lines -> entries. A statement stands in the log as it was sent, and may hold lines that look like an entry. So a head counts
//! only behind a `;` that ends a line, and only if the statement before it, read as SQL, is not in the middle of a literal or a
//! comment there. If it is, either the literal holds a forged entry or the statement is broken off (MariaDB logs what it could not
//! parse): which of them can't be told, so nothing is believed from there on until it is known again where an entry ends.
//! The server writes an entry at once: that is where the file ended when it was looked at.

use super::head::{self, Begun, Head, Next};
use super::scan::Scan;
use crate::log::follow::Line;

/// Most bytes of one statement that are kept.
pub(super) const TEXT_BYTES: usize = 64 * 1024;

/// Most bytes of one head.
const HEAD_BYTES: usize = 64 * 1024;

/// One entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) head: Head,
    /// The statement, its first [`TEXT_BYTES`], without the `;` that the server adds.
    pub(super) text: Vec<u8>,
    /// It was not in the log at this time, nanoseconds since the epoch.
    pub(super) after: i64,
    /// It was there at this time; none of what was found at the present look.
    pub(super) before: Option<i64>,
}

/// What may be more than text.
#[derive(Debug)]
enum Opening {
    Entry(Begun),
    /// What a server writes when it opens the log, and how many lines of it were there.
    File(usize),
}

/// A head that has begun, which may turn out to be text.
#[derive(Debug)]
struct Candidate {
    opening: Opening,
    /// Whether a statement can't have written it.
    is_sure: bool,
    lines: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Entries {
    entry: Option<Entry>,
    candidate: Option<Candidate>,
    scan: Scan,
    /// Whether nothing can be told of where statements begin and end.
    is_lost: bool,
    /// Whether an entry is known to end here.
    is_end: bool,
    /// Whether the line before ended with `;`, and whether this one began with another piece.
    closed: bool,
    is_within_line: bool,
    /// The last byte before this one.
    last: u8,
    /// What looks like an entry and may be none.
    pub(super) doubtful: u64,
    /// When the log was looked at before.
    pub(super) looked_at: i64,
}

impl Entries {
    /// At the end of a log that is read from now on.
    pub(super) fn new(now: i64) -> Self {
        Self {
            entry: None,
            candidate: None,
            scan: Scan::default(),
            is_lost: false,
            is_end: true,
            closed: true,
            is_within_line: false,
            last: 0,
            doubtful: 0,
            looked_at: now,
        }
    }

    /// Takes what was found next; hands out the entries that are whole by now.
    pub(super) fn take(&mut self, line: &Line<'_>, each: &mut dyn FnMut(Entry)) {
        match line {
            Line::Whole(line) => self.line(line, true, each),
            Line::Piece(piece) => self.line(piece, false, each),
            Line::TooLong | Line::Gap => {
                // Of what was open nobody knows how it went on.
                *self = Self { is_lost: true, is_end: false, doubtful: self.doubtful, ..Self::new(self.looked_at) };
            }
            Line::FileBegins => {
                self.finish(each);
                *self = Self { doubtful: self.doubtful, ..Self::new(self.looked_at) };
            }
        }
    }

    /// All that was there at `begun_at` has been read, at `now`; `is_whole` if it ended with the end of a line.
    pub(super) fn looked(&mut self, is_whole: bool, begun_at: i64, now: i64) {
        self.is_end = is_whole && self.closed && self.candidate.is_none();
        self.looked_at = begun_at;
        if let Some(entry) = &mut self.entry {
            entry.before.get_or_insert(now);
        }
    }

    /// Hands out the last entry, if it is whole.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(Entry)) {
        if self.closed
            && self.candidate.is_none()
            && let Some(entry) = self.entry.take()
        {
            each(entry);
        }
    }

    fn line(&mut self, line: &[u8], is_whole: bool, each: &mut dyn FnMut(Entry)) {
        let is_end = std::mem::take(&mut self.is_end);
        let begins_here = !std::mem::replace(&mut self.is_within_line, !is_whole) && is_whole;
        if let Some(candidate) = &mut self.candidate {
            candidate.lines.extend_from_slice(line);
            candidate.lines.push(b'\n');
            let next = match &mut candidate.opening {
                _ if !begins_here || candidate.lines.len() > HEAD_BYTES => Next::Wrong,
                Opening::Entry(begun) => begun.take(line),
                Opening::File(lines) => file_head(lines, line),
            };
            match next {
                Next::More => return,
                Next::Done => return self.begin(each),
                Next::Wrong => {}
            }
            // A head that we don't know, or a comment that looks like one: what follows may be another's statement.
            if let Some(Candidate { lines, .. }) = self.candidate.take() {
                self.doubtful += u64::from(!self.is_lost);
                if let Some(entry) = self.entry.take() {
                    each(entry);
                }
                self.text(lines.get(..lines.len().saturating_sub(line.len() + 1)).unwrap_or_default());
            }
        }
        let (is_entry, is_file) = (head::begins(line), is_file_head(line));
        if begins_here && (self.closed || self.is_lost) && (is_entry || is_file) {
            let opening = if is_entry { Opening::Entry(Begun::default()) } else { Opening::File(1) };
            let is_sure = is_end || !self.is_lost && self.scan.is_in_code();
            let mut candidate = Candidate { opening, is_sure, lines: [line, b"\n"].concat() };
            let next = match &mut candidate.opening {
                Opening::Entry(begun) => begun.take(line),
                Opening::File(_) => Next::More,
            };
            if next == Next::More {
                self.candidate = Some(candidate);
                return;
            }
        }
        self.text(line);
        if is_whole {
            self.text(b"\n");
        }
    }

    /// What belongs to a statement.
    fn text(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.closed = self.last == b';';
            }
            self.last = byte;
        }
        let Some(entry) = &mut self.entry else {
            // It began before we did.
            self.is_lost = true;
            return;
        };
        self.scan.take(bytes);
        let room = TEXT_BYTES.saturating_sub(entry.text.len());
        entry.text.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// A head is whole.
    fn begin(&mut self, each: &mut dyn FnMut(Entry)) {
        let Some(Candidate { opening, is_sure, .. }) = self.candidate.take() else { return };
        // Up to here it is the same statement, whatever this is.
        if let Some(entry) = self.entry.take() {
            each(entry);
        }
        (self.scan, self.last) = (Scan::default(), 0);
        self.is_lost = !is_sure;
        self.closed = matches!(opening, Opening::File(_));
        match opening {
            Opening::Entry(_) if !is_sure => self.doubtful += 1,
            Opening::Entry(begun) => {
                self.entry = Some(Entry { head: begun.head, after: self.looked_at, ..Entry::default() });
            }
            Opening::File(_) => {}
        }
    }
}

/// Whether a server that opens its log begins with this line.
fn is_file_head(line: &[u8]) -> bool {
    line.ends_with(b"started with:") && line.windows(11).any(|window| window == b", Version: ")
}

fn file_head(lines: &mut usize, line: &[u8]) -> Next {
    *lines += 1;
    match *lines {
        2 if line.starts_with(b"Tcp port: ") || line.starts_with(b"TCP Port: ") => Next::More,
        3 if line.starts_with(b"Time") && line.ends_with(b"Argument") => Next::Done,
        _ => Next::Wrong,
    }
}
