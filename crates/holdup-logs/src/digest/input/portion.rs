//! A log as `aws rds download-db-log-file-portion --output json` prints it: a JSON object whose text
//! `LogFileData` is a part of the log. Several objects one after the other are the parts of one log.
//! The text is unpacked as it comes; everything else in the objects is left out.

use std::io::{self, BufRead, Read};

/// The key of the log's text.
const KEY: &[u8] = b"LogFileData";

/// Bytes of a key that are compared.
const LONGEST_KEY: usize = 32;

/// Whether a file that begins with these bytes is such an object.
pub fn is_portion(begin: &[u8]) -> bool {
    let key = [b"\"".as_slice(), KEY, b"\""].concat();
    begin.trim_ascii_start().first() == Some(&b'{') && memchr::memmem::find(begin, &key).is_some()
}

/// Where the reader stands.
enum At {
    /// Between texts; `true` once the key of the log's text has been read.
    Between(bool),
    /// In a text that is not the log.
    Other(Vec<u8>),
    /// In the log.
    Log,
}

/// Reads the log out of the objects.
pub struct Portions<R: BufRead> {
    source: R,
    at: At,
    /// Unpacked bytes that did not fit.
    left: Vec<u8>,
    /// The last text between two others, which may turn out to be a key.
    last: Vec<u8>,
}

impl<R: BufRead> Portions<R> {
    /// The log in `source`.
    pub fn new(source: R) -> Self {
        Self { source, at: At::Between(false), left: Vec::new(), last: Vec::new() }
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.source.fill_buf()?.first().copied();
        if byte.is_some() {
            self.source.consume(1);
        }
        Ok(byte)
    }

    /// The character behind a backslash, in UTF-8.
    fn escaped(&mut self) -> io::Result<Vec<u8>> {
        let single = match self.byte()? {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'u') => return self.unicode(),
            Some(other) => other,
            None => return Ok(Vec::new()),
        };
        Ok(vec![single])
    }

    fn unicode(&mut self) -> io::Result<Vec<u8>> {
        let mut units = vec![self.unit()?];
        // The second half of a pair follows as an escape of its own.
        if (0xd800..0xdc00).contains(&units[0]) && self.source.fill_buf()?.starts_with(b"\\u") {
            self.source.consume(2);
            units.push(self.unit()?);
        }
        Ok(String::from_utf16_lossy(&units).into_bytes())
    }

    fn unit(&mut self) -> io::Result<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.byte()?.and_then(|byte| char::from(byte).to_digit(16)).unwrap_or(0);
            unit = unit * 16 + digit as u16;
        }
        Ok(unit)
    }

    /// Goes on by one byte or escape; false at the end.
    fn step(&mut self) -> io::Result<bool> {
        let Some(byte) = self.byte()? else { return Ok(false) };
        let text = if byte == b'\\' && !matches!(self.at, At::Between(_)) { self.escaped()? } else { vec![byte] };
        let is_end = byte == b'"';
        match &mut self.at {
            At::Between(is_log) => match byte {
                b'"' => self.at = if *is_log { At::Log } else { At::Other(Vec::new()) },
                b':' => *is_log = self.last == KEY,
                b',' | b'{' | b'}' => *is_log = false,
                _ => {}
            },
            At::Other(read) if is_end => {
                self.last = std::mem::take(read);
                self.at = At::Between(false);
            }
            At::Other(read) if read.len() < LONGEST_KEY => read.extend(text),
            At::Other(_) => {}
            At::Log if is_end => self.at = At::Between(false),
            At::Log => self.left.extend(text),
        }
        Ok(true)
    }
}

impl<R: BufRead> Read for Portions<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.left.len() < room.len() && self.step()? {}
        let count = self.left.len().min(room.len());
        room[..count].copy_from_slice(&self.left[..count]);
        self.left.drain(..count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut log = String::new();
        Portions::new(io::Cursor::new(text)).read_to_string(&mut log).unwrap();
        log
    }

    #[test]
    fn the_text_is_the_log_and_nothing_else_is() {
        let first = r##"{"LogFileData": "# Time: a\nSELECT \"x\" \u00e4 \ud83d\ude00;\n", "Marker": "3:LogFileData", "AdditionalDataPending": true}"##;
        let second = r##"{ "AdditionalDataPending": false, "Marker": "LogFileData", "LogFileData": "SELECT 2;\n" }"##;
        assert_eq!(read(first), "# Time: a\nSELECT \"x\" ä 😀;\n");
        assert_eq!(read(&format!("{first}\n{second}\n")), "# Time: a\nSELECT \"x\" ä 😀;\nSELECT 2;\n");
        assert!(is_portion(first.as_bytes()) && is_portion(second.as_bytes()));
        assert!(!is_portion(b"{\"timestamp\": 1}") && !is_portion(b"# \"LogFileData\""));
        // Cut short, it ends where it is cut.
        for end in 0..first.len() {
            if first.is_char_boundary(end) {
                read(&first[..end]);
            }
        }
    }
}
