//! Finds the places where a block of a log may be cut: lines that begin a record. Each log's reader
//! knows which lines do.

use memchr::{memchr, memrchr};

/// Start of the last record of a block, if it is not the first.
pub fn last(data: &[u8], begins: fn(&[u8], usize) -> bool) -> Option<usize> {
    // The last line may be incomplete.
    let mut end = memrchr(b'\n', data)?;
    loop {
        let at = memrchr(b'\n', data.get(..end)?)?;
        if begins(data, at + 1) {
            return Some(at + 1);
        }
        end = at;
    }
}

/// The first start of a record behind the beginning.
pub fn first(data: &[u8], begins: fn(&[u8], usize) -> bool) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'\n', data.get(at..)?)? + 1;
        if begins(data, at) {
            return Some(at);
        }
    }
}
