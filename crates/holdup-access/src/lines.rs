//! Reads the lines of a file of any size in bounded memory: a line too long for a log is skipped.

use std::io::{self, BufRead};

/// Longest line that is read. Servers cap a request line at 8 to 64 KiB (nginx `large_client_header_buffers`, Apache
/// `LimitRequestLine`), and a line quotes at most two more header fields.
pub const MAX_LINE: usize = 256 * 1024;

/// Reads one line after another into the same buffer.
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Number of the last line, from 1.
    pub number: u64,
}

/// One line.
pub enum Line<'a> {
    /// Its bytes without the line break.
    Whole(&'a [u8]),
    /// Longer than [`MAX_LINE`].
    TooLong,
}

impl<R: BufRead> Lines<R> {
    /// Before the first line of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0 }
    }

    /// The next line; none at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = chunk.iter().position(|&b| b == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.buffer.len() + part.len() > MAX_LINE {
                too_long = true;
                self.buffer.clear();
            }
            if !too_long {
                self.buffer.extend_from_slice(part);
            }
            let used = end.map_or(chunk.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.number += 1;
        if too_long {
            return Ok(Some(Line::TooLong));
        }
        let line = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        // Some editors put a byte order mark before the first line.
        let line = if self.number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        Ok(Some(Line::Whole(line)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, repeat};

    use super::*;

    #[test]
    fn lines_end_in_any_way() {
        let mut lines = Lines::new(&b"\xef\xbb\xbfa\r\n\nb"[..]);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push(match line {
                Line::Whole(line) => line.to_vec(),
                Line::TooLong => b"too long".to_vec(),
            });
        }
        assert_eq!((seen, lines.number), (vec![b"a".to_vec(), b"".to_vec(), b"b".to_vec()], 3));
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let endless = BufReader::new(repeat(b'x').take(30_000_000).chain(&b"\nnext\n"[..]));
        let mut lines = Lines::new(endless);
        assert!(matches!(lines.next_line().unwrap(), Some(Line::TooLong)));
        assert!(lines.buffer.capacity() <= 2 * MAX_LINE);
        assert!(matches!(lines.next_line().unwrap(), Some(Line::Whole(b"next"))));
        assert!(lines.next_line().unwrap().is_none());
    }
}
