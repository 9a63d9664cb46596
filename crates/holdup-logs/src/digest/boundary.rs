//! Finds the places where a block of a log may be cut: lines that begin a record. Each log's reader
//! knows which lines do.

use memchr::{memchr, memrchr};

/// The first start of a record in a line behind `from`.
pub fn next(data: &[u8], from: usize, begins: impl Fn(&[u8], usize) -> bool) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr(b'\n', data.get(at..)?)? + 1;
        if begins(data, at) {
            return Some(at);
        }
    }
}

/// The last start of a record in a line that begins before `end`, if it is not the first.
pub fn previous(data: &[u8], mut end: usize, begins: impl Fn(&[u8], usize) -> bool) -> Option<usize> {
    loop {
        let at = memrchr(b'\n', data.get(..end)?)?;
        if begins(data, at + 1) {
            return Some(at + 1);
        }
        end = at;
    }
}

/// Start of the last record of a block, if it is not the first. The last line may be incomplete.
pub fn last(data: &[u8], begins: impl Fn(&[u8], usize) -> bool) -> Option<usize> {
    previous(data, memrchr(b'\n', data)?, begins)
}
