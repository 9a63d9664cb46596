//! The parameters of a prepared statement: values in their binary form -> a readable list, `$1 =
//! 42, $2 = 'a', $3 = NULL`. MySQL: "COM_STMT_EXECUTE" and "Binary Protocol Value" in its protocol
//! reference.

use std::fmt::Write as _;

use super::command::length_encoded;
use crate::database::answer::Column;
use crate::database::cursor::Cursor;
use crate::database::mysql::row;

/// A flag of an execution: its parameters are preceded by their number.
const COUNT_AVAILABLE: u8 = 0x08;
/// A flag after the type: the number is unsigned.
const UNSIGNED: u8 = 0x80;
/// Most bytes of the list.
const MOST: usize = 1 << 20;

/// The number and the types of a statement's values: the types are sent only when they change.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters {
    count: usize,
    types: Vec<[u8; 2]>,
}

impl Parameters {
    pub fn new(count: u16) -> Self {
        Self { count: usize::from(count), types: Vec::new() }
    }

    /// The values of an execution as a list; empty if there are none, or if they cannot be read.
    pub fn read(&mut self, content: &[u8], has_attributes: bool) -> Vec<u8> {
        self.list(content, has_attributes).map(String::into_bytes).unwrap_or_default()
    }

    fn list(&mut self, content: &[u8], has_attributes: bool) -> Option<String> {
        let has_count = has_attributes && content.get(4)? & COUNT_AVAILABLE != 0;
        let mut rest = content.get(9..)?;
        let mut count = self.count;
        if has_count {
            let (all, behind) = length_encoded(rest)?;
            (count, rest) = (usize::try_from(all).ok().filter(|all| *all < 65_536)?, behind);
        }
        if count == 0 {
            return None;
        }
        let (nulls, behind) = rest.split_at_checked(count.div_ceil(8))?;
        let (is_bound, mut rest) = behind.split_first()?;
        if *is_bound == 1 {
            self.types.clear();
            for _ in 0..count {
                let (kind, behind) = rest.split_first_chunk::<2>()?;
                rest = behind;
                if has_count {
                    let (length, behind) = length_encoded(rest)?;
                    rest = behind.get(usize::try_from(length).ok()?..)?;
                }
                self.types.push(*kind);
            }
        }
        let mut list = String::new();
        // Attributes of the query come after the statement's own values.
        for at in 0..count.min(self.count) {
            let separator = if at > 0 { ", " } else { "" };
            let _ = write!(list, "{separator}${} = ", at + 1);
            if nulls.get(at / 8)? >> (at % 8) & 1 == 1 {
                list.push_str("NULL");
            } else {
                rest = value(&mut list, *self.types.get(at)?, rest)?;
            }
            if list.len() > MOST {
                return None;
            }
        }
        Some(list)
    }
}

/// Writes the value that starts `bytes`; returns the bytes after it.
fn value<'a>(list: &mut String, [kind, flags]: [u8; 2], bytes: &'a [u8]) -> Option<&'a [u8]> {
    if kind == row::kind::NULL {
        list.push_str("NULL");
        return Some(bytes);
    }
    // What a time leaves out at its end is zero, and is not written.
    let length = bytes.first().copied().unwrap_or(0);
    let is_day = matches!(kind, row::kind::DATETIME | row::kind::TIMESTAMP) && length <= 4;
    let column = Column {
        kind: if is_day { row::kind::DATE } else { kind },
        is_unsigned: flags & UNSIGNED != 0,
        decimals: if length > 8 { row::MAX_DECIMALS } else { 0 },
    };
    let mut cursor = Cursor(bytes);
    let text = row::value(&mut cursor, &column).ok()?;
    let text = String::from_utf8_lossy(&text);
    if row::is_number(kind) {
        list.push_str(&text)
    } else {
        quoted(list, &text)
    }
    Some(cursor.0)
}

/// A text in the format of PostgreSQL's log: in quotes, with quotes in it doubled.
pub(crate) fn quoted(list: &mut String, text: &str) {
    list.push('\'');
    list.push_str(&text.replace('\'', "''"));
    list.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_a_list() {
        let mut parameters = Parameters::new(4);
        let mut first = b"\x01\0\0\0\0\x01\0\0\0\x04\x01\x03\0\xfe\0\x06\0\x0c\0\xff\xff\xff\xff\x03it'".to_vec();
        first.extend(b"\x07\xda\x07\x0b\x16\x0e\x05\x09");
        let expected = "$1 = -1, $2 = 'it''', $3 = NULL, $4 = '2010-11-22 14:05:09'";
        assert_eq!(String::from_utf8(parameters.read(&first, false)).unwrap(), expected);
        // Again, without types.
        let again = b"\x01\0\0\0\0\x01\0\0\0\x0e\0\x07\0\0\0";
        assert_eq!(parameters.read(again, false), b"$1 = 7, $2 = NULL, $3 = NULL, $4 = NULL");
        for end in 0..first.len() {
            let _ = Parameters::new(4).read(&first[..end], true);
        }
    }
}
