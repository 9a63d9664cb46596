//! What the kernel's table of tracked connections refused: `/proc/net/stat/nf_conntrack`. Its first
//! line names the columns, whose order and number differ between versions. Then comes a row of
//! hexadecimal counters for each CPU.

use crate::ReadError;
use crate::proc::hexadecimal;

const FILE: &str = "/proc/net/stat/nf_conntrack";

/// Counters since boot, of all CPUs together. A kernel that does not name one has none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conntrack {
    /// Packets dropped because their connection found no room.
    pub dropped: Option<u64>,
    /// Connections that were forgotten to make room.
    pub early_dropped: Option<u64>,
    /// Packets dropped because two of a connection entered it at once.
    pub insert_failed: Option<u64>,
}

/// The counters of the file.
///
/// # Errors
/// If it is another file, or a row lacks one of the columns.
pub fn counters(text: &str) -> Result<Conntrack, ReadError> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    if names.first() != Some(&"entries") {
        return Err(ReadError(format!("{FILE}: its first line does not name the columns")));
    }
    let rows: Vec<&str> = lines.collect();
    let sum = |wanted: &str| {
        let Some(position) = names.iter().position(|name| *name == wanted) else { return Ok(None) };
        let of_row = |row: &&str| hexadecimal(FILE, wanted, row.split_ascii_whitespace().nth(position));
        rows.iter().map(|row| of_row(row).map(u64::from)).sum::<Result<u64, _>>().map(Some)
    };
    Ok(Conntrack { dropped: sum("drop")?, early_dropped: sum("early_drop")?, insert_failed: sum("insert_failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        let recent = "entries  clashres found new insert insert_failed drop early_drop icmp_error\n\
                      00000019  00000000 00000001 00000000 00000000 00000002 000000ff 00000010 00000000\n\
                      00000019  00000000 00000001 00000000 00000000 00000001 00000001 00000000 00000000\n";
        let all = Conntrack { dropped: Some(256), early_dropped: Some(16), insert_failed: Some(3) };
        assert_eq!(counters(recent).unwrap(), all);
        let other = "entries searched drop insert_failed\n00000019 00000007 00000002 00000001\n";
        let some = Conntrack { dropped: Some(2), early_dropped: None, insert_failed: Some(1) };
        assert_eq!(counters(other).unwrap(), some);
    }

    #[test]
    fn a_cut_row_and_another_file_are_errors() {
        for bad in ["", "drop\n00000001\n", "entries drop\n00000001\n", "entries drop\n00000001 x\n"] {
            assert!(counters(bad).is_err(), "{bad:?}");
        }
    }
}
