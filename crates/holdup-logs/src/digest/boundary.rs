//! Where a block of a log may be cut: at lines that begin a record. What begins one is for each log's reader.

use memchr::{memchr, memrchr};

/// Where the last record of a block begins, if it is not the first.
pub fn last(data: &[u8], begins: fn(&[u8], usize) -> bool) -> Option<usize> {
    // The last line may be a part of one.
    let mut end = memrchr(b'\n', data)?;
    loop {
        let at = memrchr(b'\n', data.get(..end)?)?;
        if begins(data, at + 1) {
            return Some(at + 1);
        }
        end = at;
    }
}

/// The first place behind the beginning where a record begins.
pub fn first(data: &[u8], begins: fn(&[u8], usize) -> bool) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'\n', data.get(at..)?)? + 1;
        if begins(data, at) {
            return Some(at);
        }
    }
}
