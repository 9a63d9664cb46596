//! Checks a file's bounds before it is parsed: its size, the length of one text in it, its depth. A
//! JSON parser would hold a text of any length.

use std::cell::Cell;
use std::io::{Error, Read};

/// Longest text, bytes. For comparison, an event of enhanced monitoring with sixty processes has 8
/// KB.
const LONGEST_TEXT: usize = 4 << 20;
/// Deepest nesting.
const DEEPEST: usize = 64;

/// How far a file was read.
#[derive(Debug, Default)]
pub(super) struct ReadPosition {
    lines: Cell<usize>,
}

impl ReadPosition {
    /// The current line, from 1.
    pub fn line(&self) -> usize {
        self.lines.get() + 1
    }
}

/// Passes a file through, up to the bounds.
pub(super) struct Guard<'a, R> {
    input: R,
    position: &'a ReadPosition,
    bytes: u64,
    bytes_max: u64,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    text: usize,
}

impl<'a, R: Read> Guard<'a, R> {
    pub fn new(input: R, position: &'a ReadPosition, bytes_max: u64) -> Self {
        Self { input, position, bytes: 0, bytes_max, depth: 0, in_text: false, is_escaped: false, text: 0 }
    }

    fn byte(&mut self, byte: u8) -> Result<(), String> {
        if self.in_text {
            self.text += 1;
            if self.text > LONGEST_TEXT {
                return Err(format!("a text is longer than {LONGEST_TEXT} bytes, which no output of aws is"));
            }
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => (self.in_text, self.text) = (true, 0),
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err(format!("it is nested deeper than {DEEPEST}, which no output of aws is"));
                    }
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if byte == b'\n' {
            self.position.lines.set(self.position.lines.get() + 1);
        }
        Ok(())
    }
}

impl<R: Read> Read for Guard<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(into)?;
        let is_first = self.bytes == 0;
        self.bytes += count as u64;
        if self.bytes > self.bytes_max {
            let why = format!("more than {} bytes; request shorter periods, in several files", self.bytes_max);
            return Err(Error::other(why));
        }
        let piece = into.get_mut(..count).unwrap_or_default();
        if is_first && piece.starts_with(b"\xef\xbb\xbf") {
            // Some programs write UTF-8's byte order mark first. JSON parsers do not skip it, so it
            // becomes white space.
            piece[..3].fill(b' ');
        }
        for byte in piece {
            self.byte(*byte).map_err(Error::other)?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> std::io::Result<String> {
        let (position, mut read) = (ReadPosition::default(), String::new());
        Guard::new(text.as_bytes(), &position, 40).read_to_string(&mut read).map(|_| read)
    }

    #[test]
    fn no_more_is_let_through_than_is_read() {
        assert_eq!(all("{\"a\": [1]}").unwrap(), "{\"a\": [1]}");
        assert_eq!(all("\u{feff}{}").unwrap(), "   {}");
        assert!(all(&" ".repeat(41)).unwrap_err().to_string().contains("more than 40 bytes"));
        assert!(all(&"[]".repeat(20)).is_ok(), "what is closed is not deep");
        assert!(all(&format!("\"{}\"", "[".repeat(38))).is_ok(), "nor is what is text");
        assert!(all("\"\\\"[\"").is_ok());
    }
}
