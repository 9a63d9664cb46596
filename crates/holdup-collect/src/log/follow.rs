//! Follows a growing file: whole lines as they arrive, across rotation by rename and by truncation.
//! It does not interpret lines. A line longer than the limit is reported by its number only, or
//! handed out in pieces.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Longest line kept in memory.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;

/// Bytes per read call.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes of a file read per look. Anything further behind is skipped: otherwise holdup would never
/// catch up with a log that grows faster than it reads.
const LOOK_BYTES_MAX: u64 = 32 << 20;

/// A file up to this size is scanned once at the start, so that lines can be reported by number.
const COUNTED_BYTES_MAX: u64 = 64 << 20;

/// The position of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePosition {
    /// Its number, from 1; none if the file was too large to count, or if a part of it was skipped.
    pub number: Option<u64>,
    /// Its first byte, from 0.
    pub offset: u64,
}

/// A line, or a note about lines.
pub(crate) enum Line<'a> {
    /// Without its line end.
    Whole(&'a [u8]),
    /// Longer than [`LINE_BYTES_MAX`].
    TooLong,
    /// A piece of a longer line, not its last. This and the following variants come only when
    /// pieces are requested.
    Piece(&'a [u8]),
    /// The next line is the first of a file.
    FileBegins,
    /// Something was skipped before the next line.
    Gap,
}

struct Open {
    file: File,
    identity: (u64, u64),
    /// Bytes read so far.
    offset: u64,
    /// Where the newest line begins.
    place: LinePosition,
}

/// Follows one file.
pub(crate) struct Follow {
    path: PathBuf,
    open: Option<Open>,
    /// The beginning of a line whose end has not arrived yet.
    begun: Vec<u8>,
    is_too_long: bool,
    in_pieces: bool,
    piece: Vec<u8>,
}

impl Follow {
    /// For the file at `path`, with nothing read yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, open: None, begun: Vec::new(), is_too_long: false, in_pieces: false, piece: Vec::new() }
    }

    /// The same, but a long line is handed out in pieces, and breaks between lines are reported.
    pub fn in_pieces(path: PathBuf) -> Self {
        Self { in_pieces: true, ..Self::new(path) }
    }

    /// Whether everything read so far ends with a line end.
    pub fn is_between_lines(&self) -> bool {
        self.begun.is_empty() && !self.is_too_long
    }

    /// Skips the existing content except the last `bytes`, which are handed out as lines.
    ///
    /// # Errors
    /// If the file cannot be opened or read.
    pub fn begin(&mut self, bytes: u64, each: &mut dyn FnMut(LinePosition, Line<'_>)) -> io::Result<()> {
        let mut open = open(&self.path)?;
        let length = open.file.metadata()?.len();
        let from = length.saturating_sub(bytes);
        let mut number = Some(1);
        if from > 0 {
            number = (length <= COUNTED_BYTES_MAX).then_some(1);
            if let Some(number) = &mut number {
                *number += count_lines(&open.file, from)?;
            }
        }
        open.file.seek(SeekFrom::Start(from))?;
        (open.offset, open.place) = (from, LinePosition { number, offset: from });
        self.open = Some(open);
        // The first line is the end of one, if anything precedes it.
        let mut is_first = from > 0;
        self.read(length - from, &mut |place, line| {
            if !std::mem::take(&mut is_first) {
                each(place, line);
            }
        })
    }

    /// Hands out the lines that arrived since the last look; returns the number of skipped bytes.
    ///
    /// # Errors
    /// If the file does not exist or cannot be read.
    pub fn look(&mut self, each: &mut dyn FnMut(LinePosition, Line<'_>)) -> io::Result<u64> {
        let mut skipped = 0;
        let there = std::fs::metadata(&self.path);
        if let (Some(open), Ok(there)) = (&self.open, &there)
            && open.identity != identity(there)
            // The service keeps writing to the old file until it opens the new one.
            && there.len() > 0
        {
            skipped += self.catch_up(each)?;
            // Its last line will not be completed any more.
            if let Some(open) = self.open.take()
                && !self.begun.is_empty()
            {
                let begun = std::mem::take(&mut self.begun);
                self.hand_out(open.place, &begun, each);
            }
            self.forget_line();
        }
        if self.open.is_none() {
            self.open = Some(open(&self.path)?);
            self.say(Line::FileBegins, each);
        }
        skipped += self.catch_up(each)?;
        Ok(skipped)
    }

    fn catch_up(&mut self, each: &mut dyn FnMut(LinePosition, Line<'_>)) -> io::Result<u64> {
        let Some(open) = &mut self.open else { return Ok(0) };
        let length = open.file.metadata()?.len();
        if length < open.offset {
            // It was truncated in place.
            (open.offset, open.place) = (0, LinePosition { number: Some(1), offset: 0 });
            (self.begun, self.is_too_long) = (Vec::new(), false);
            self.say(Line::FileBegins, each);
        }
        let Some(open) = &mut self.open else { return Ok(0) };
        let behind = length - open.offset;
        let skipped = behind.saturating_sub(LOOK_BYTES_MAX);
        open.offset += skipped;
        open.file.seek(SeekFrom::Start(open.offset))?;
        if skipped == 0 {
            self.read(behind, each)?;
            return Ok(0);
        }
        open.place = LinePosition { number: None, offset: open.offset };
        self.forget_line();
        self.say(Line::Gap, each);
        let mut is_first = true;
        self.read(behind - skipped, &mut |place, line| {
            let is_cut = is_first;
            is_first &= matches!(line, Line::Piece(_));
            if !is_cut {
                each(place, line);
            }
        })?;
        Ok(skipped)
    }

    /// Reads up to `bytes` from the current position.
    fn read(&mut self, bytes: u64, each: &mut dyn FnMut(LinePosition, Line<'_>)) -> io::Result<()> {
        let mut left = bytes;
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(PIECE_BYTES, 0);
        let mut result = Ok(());
        while left > 0 {
            let Some(open) = &mut self.open else { break };
            let room = left.min(piece.len() as u64) as usize;
            match open.file.read(&mut piece[..room]) {
                Ok(0) => break,
                Ok(count) => {
                    left -= count as u64;
                    self.take(&piece[..count], each);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.piece = piece;
        result
    }

    fn take(&mut self, bytes: &[u8], each: &mut dyn FnMut(LinePosition, Line<'_>)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let Some(open) = &mut self.open else { return };
            open.offset += piece.len() as u64;
            let place = open.place;
            let Some(end) = piece.strip_suffix(b"\n") else {
                if self.in_pieces && self.begun.len() + piece.len() > LINE_BYTES_MAX {
                    let mut begun = std::mem::take(&mut self.begun);
                    begun.extend_from_slice(piece);
                    each(place, Line::Piece(&begun));
                    return;
                }
                if self.begun.len() + piece.len() > LINE_BYTES_MAX {
                    self.is_too_long = true;
                    self.begun.clear();
                }
                if !self.is_too_long {
                    self.begun.extend_from_slice(piece);
                }
                return;
            };
            open.place = LinePosition { number: place.number.map(|n| n + 1), offset: open.offset };
            if self.begun.is_empty() {
                self.hand_out(place, end, each);
            } else {
                let mut begun = std::mem::take(&mut self.begun);
                begun.extend_from_slice(end);
                self.hand_out(place, &begun, each);
                begun.clear();
                self.begun = begun;
            }
        }
    }

    fn hand_out(&mut self, place: LinePosition, line: &[u8], each: &mut dyn FnMut(LinePosition, Line<'_>)) {
        if !self.in_pieces && (std::mem::take(&mut self.is_too_long) || line.len() > LINE_BYTES_MAX) {
            return each(place, Line::TooLong);
        }
        each(place, Line::Whole(line.strip_suffix(b"\r").unwrap_or(line)));
    }

    fn say(&self, what: Line<'_>, each: &mut dyn FnMut(LinePosition, Line<'_>)) {
        if let Some(open) = self.open.as_ref().filter(|_| self.in_pieces) {
            each(open.place, what);
        }
    }

    fn forget_line(&mut self) {
        (self.begun, self.is_too_long) = (Vec::new(), false);
    }
}

fn open(path: &Path) -> io::Result<Open> {
    let file = holdup_recording::files::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file, so it cannot be followed"));
    }
    Ok(Open { identity: identity(&metadata), file, offset: 0, place: LinePosition { number: Some(1), offset: 0 } })
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Line ends within the first `bytes`.
fn count_lines(file: &File, bytes: u64) -> io::Result<u64> {
    let mut from = file.take(bytes);
    let mut piece = vec![0; PIECE_BYTES];
    let mut count = 0;
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(count),
            read => count += piece[..read].iter().filter(|&&byte| byte == b'\n').count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::path::Path;

    use super::*;

    fn add(path: &Path, bytes: &[u8]) {
        OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    /// What a look finds, as number and text.
    fn look(follow: &mut Follow) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        let skipped = follow.look(&mut |place, line| lines.push(shown(place, &line))).unwrap();
        assert_eq!(skipped, 0);
        lines
    }

    fn shown(place: LinePosition, line: &Line<'_>) -> (u64, String) {
        let text = match line {
            Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Line::TooLong => "too long".to_owned(),
            Line::Piece(bytes) => format!("a piece of {} bytes", bytes.len()),
            Line::FileBegins => "a file begins".to_owned(),
            Line::Gap => "a gap".to_owned(),
        };
        (place.number.unwrap_or(0), text)
    }

    fn lines(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
        expected.iter().map(|(number, text)| (*number, (*text).to_owned())).collect()
    }

    #[test]
    fn lines_come_once_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        add(&path, b"old 1\nold 2\nol");
        let mut follow = Follow::new(path.clone());
        let mut before = Vec::new();
        follow.begin(9, &mut |place, line| before.push(shown(place, &line))).unwrap();
        assert_eq!(before, lines(&[(2, "old 2")]), "the first of them is cut, and left out");
        assert_eq!(look(&mut follow), []);
        add(&path, b"d 3\r\nnew 4\nha");
        assert_eq!(look(&mut follow), lines(&[(3, "old 3"), (4, "new 4")]));
        add(&path, b"l");
        assert_eq!(look(&mut follow), []);
        add(&path, b"f 5\n\n\xff\xfe\0\n");
        assert_eq!(look(&mut follow), lines(&[(5, "half 5"), (6, ""), (7, "\u{fffd}\u{fffd}\0")]));
    }

    #[test]
    fn a_file_that_is_renamed_is_read_to_its_end_and_the_new_one_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("a.log"), dir.path().join("a.log.1"));
        add(&path, b"1\n");
        let mut follow = Follow::new(path.clone());
        follow.begin(0, &mut |_, _| panic!("nothing is asked for")).unwrap();
        add(&path, b"2\n");
        fs::rename(&path, &old).unwrap();
        // The writer goes on with the file it has open.
        add(&old, b"3\n");
        assert_eq!(look(&mut follow), lines(&[(2, "2"), (3, "3")]));
        add(&path, b"");
        add(&old, b"4\n5 without an end");
        assert_eq!(look(&mut follow), lines(&[(4, "4")]));
        add(&path, b"new 1\nnew");
        assert_eq!(look(&mut follow), lines(&[(5, "5 without an end"), (1, "new 1")]));
        add(&path, b" 2\n");
        assert_eq!(look(&mut follow), lines(&[(2, "new 2")]));
    }

    #[test]
    fn a_file_that_is_emptied_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        add(&path, b"1\n2\nhalf a line");
        let mut follow = Follow::new(path.clone());
        assert_eq!(look(&mut follow), lines(&[(1, "1"), (2, "2")]));
        File::create(&path).unwrap();
        add(&path, b"a\n");
        assert_eq!(look(&mut follow), lines(&[(1, "a")]));
        fs::remove_file(&path).unwrap();
        assert_eq!(look(&mut follow), [], "what is open stays open");
        let mut other = Follow::new(path);
        assert!(other.look(&mut |_, _| ()).is_err());
    }

    #[test]
    fn a_line_without_end_is_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut follow = Follow::new(path.clone());
        add(&path, b"1\n");
        for _ in 0..4 {
            add(&path, &vec![b'x'; LINE_BYTES_MAX - 1]);
            look(&mut follow);
            assert!(follow.begun.capacity() <= 2 * LINE_BYTES_MAX);
        }
        add(&path, b"\n3\n");
        assert_eq!(look(&mut follow), lines(&[(2, "too long"), (3, "3")]));
        // However a line of just the most bytes is cut, it is one.
        let most = [&vec![b'y'; LINE_BYTES_MAX][..], b"\n"].concat();
        add(&path, &most[..PIECE_BYTES - 7]);
        look(&mut follow);
        add(&path, &most[PIECE_BYTES - 7..]);
        assert_eq!(look(&mut follow)[0].1.len(), LINE_BYTES_MAX);
    }

    #[test]
    fn a_long_line_in_pieces_and_where_lines_do_not_follow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        add(&path, b"1\n");
        let mut follow = Follow::in_pieces(path.clone());
        assert_eq!(look(&mut follow), lines(&[(1, "a file begins"), (1, "1")]));
        add(&path, &vec![b'x'; LINE_BYTES_MAX + 1]);
        assert_eq!(look(&mut follow), lines(&[(2, "a piece of 65537 bytes")]));
        add(&path, b"rest\n3");
        assert_eq!(look(&mut follow), lines(&[(2, "rest")]));
        assert!(!follow.is_between_lines());
        add(&path, b"\n");
        assert_eq!((look(&mut follow), follow.is_between_lines()), (lines(&[(3, "3")]), true));
        fs::write(&path, "new\n").unwrap();
        assert_eq!(look(&mut follow), lines(&[(1, "a file begins"), (1, "new")]));
    }

    #[test]
    fn a_log_that_grew_too_far_is_skipped_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut follow = Follow::new(path.clone());
        add(&path, b"1\n");
        look(&mut follow);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(LOOK_BYTES_MAX + 1_000).unwrap();
        add(&path, b"end of the hole\nlast\n");
        let mut found = Vec::new();
        let skipped = follow.look(&mut |place, line| found.push(shown(place, &line))).unwrap();
        assert_eq!((skipped, found), (1_019, lines(&[(0, "last")])));
    }
}
