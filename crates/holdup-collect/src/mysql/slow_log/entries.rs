//! Splits lines into entries. A statement is logged as it was sent and may contain lines that look
//! like an entry. So a head counts only after a `;` at a line's end, and only if the preceding
//! statement, lexed as SQL, is not inside a literal or a comment there. If it is, either the
//! literal contains a forged entry or the statement was cut off (MariaDB logs statements it could
//! not parse). The two are indistinguishable, so nothing is trusted until an entry's end is certain
//! again. The server writes each entry in one go, so an entry ends where the file ended at a look.

use super::head::{self, Head, Next, PartialHead};
use super::scan::Scan;
use crate::log::follow::Line;

/// Bytes kept of one statement.
pub(super) const TEXT_BYTES: usize = 64 * 1024;

/// Longest head, bytes.
const HEAD_BYTES: usize = 64 * 1024;

/// One entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) head: Head,
    /// The first [`TEXT_BYTES`] of the statement, without the `;` that the server adds.
    pub(super) text: Vec<u8>,
    /// The log did not contain it at this time, nanoseconds since the epoch.
    pub(super) after: i64,
    /// The log contained it at this time; none for entries found in the present look.
    pub(super) before: Option<i64>,
}

/// A line that may be more than text.
#[derive(Debug)]
enum Opening {
    Entry(PartialHead),
    /// What a server writes when it opens the log, with the number of lines seen.
    File(usize),
}

/// The start of a head, which may still turn out to be text.
#[derive(Debug)]
struct Candidate {
    opening: Opening,
    /// Whether a statement cannot have produced it.
    is_sure: bool,
    lines: Vec<u8>,
}

/// The parser's state.
#[derive(Debug)]
pub(super) struct Entries {
    entry: Option<Entry>,
    candidate: Option<Candidate>,
    scan: Scan,
    /// Whether the boundaries of statements are unknown.
    is_lost: bool,
    /// Whether an entry certainly ends here.
    is_end: bool,
    /// Whether the previous line ended with `;`, and whether the present line began in an earlier
    /// piece.
    closed: bool,
    is_within_line: bool,
    /// The previous byte.
    last: u8,
    /// Number of apparent entries that may be forged.
    pub(super) doubtful: u64,
    /// When the log was last read.
    pub(super) looked_at: i64,
}

impl Entries {
    /// Starts at the end of a log.
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

    /// Takes the next piece; hands out the entries that are now complete.
    pub(super) fn take(&mut self, line: &Line<'_>, each: &mut dyn FnMut(Entry)) {
        match line {
            Line::Whole(line) => self.line(line, true, each),
            Line::Piece(piece) => self.line(piece, false, each),
            Line::TooLong | Line::Gap => {
                // The continuation of the open entry is unknown.
                *self = Self { is_lost: true, is_end: false, doubtful: self.doubtful, ..Self::new(self.looked_at) };
            }
            Line::FileBegins => {
                self.finish(each);
                *self = Self { doubtful: self.doubtful, ..Self::new(self.looked_at) };
            }
        }
    }

    /// Reports that all content present at `begun_at` has been read, at `now`; `is_whole` if it
    /// ended with a line end.
    pub(super) fn looked(&mut self, is_whole: bool, begun_at: i64, now: i64) {
        self.is_end = is_whole && self.closed && self.candidate.is_none();
        self.looked_at = begun_at;
        if let Some(entry) = &mut self.entry {
            entry.before.get_or_insert(now);
        }
    }

    /// Hands out the last entry, if it is complete.
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
            // An unknown head, or a comment that looks like one: the following text may belong to
            // another statement.
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
            let opening = if is_entry { Opening::Entry(PartialHead::default()) } else { Opening::File(1) };
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

    /// Takes text of a statement.
    fn text(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.closed = self.last == b';';
            }
            self.last = byte;
        }
        let Some(entry) = &mut self.entry else {
            // Its beginning precedes ours.
            self.is_lost = true;
            return;
        };
        self.scan.take(bytes);
        let room = TEXT_BYTES.saturating_sub(entry.text.len());
        entry.text.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Ends a complete head.
    fn begin(&mut self, each: &mut dyn FnMut(Entry)) {
        let Some(Candidate { opening, is_sure, .. }) = self.candidate.take() else { return };
        // The open statement extends up to here in any case.
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

/// Whether a server writes this as the first line of a log.
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
