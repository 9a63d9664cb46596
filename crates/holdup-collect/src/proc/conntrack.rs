//! What the kernel's table of tracked connections refused: `/proc/net/stat/nf_conntrack`. Its first
//! line names the columns, whose order and number differ between versions. Then comes a row of
//! hexadecimal counters for each CPU.

use crate::ReadError;
use crate::proc::hexadecimal;

const FILE: &str = "/proc/net/stat/nf_conntrack";

/// The counters with these names since boot, of all CPUs together. A kernel that does not name one
/// has none of it.
///
/// # Errors
/// If it is another file, or a row lacks one of the columns.
pub fn counters(text: &str, wanted: &[&str]) -> Result<Vec<Option<u64>>, ReadError> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    if names.first() != Some(&"entries") {
        return Err(ReadError(format!("{FILE}: its first line does not name the columns")));
    }
    let rows: Vec<&str> = lines.collect();
    let sum = |wanted: &&str| {
        let Some(position) = names.iter().position(|name| name == wanted) else { return Ok(None) };
        let of_row = |row: &&str| hexadecimal(FILE, wanted, row.split_ascii_whitespace().nth(position));
        rows.iter().map(|row| of_row(row).map(u64::from)).sum::<Result<u64, _>>().map(Some)
    };
    wanted.iter().map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [&str; 3] = ["drop", "early_drop", "insert_failed"];

    #[test]
    fn columns_are_found_by_name() {
        let recent = "entries  clashres found new insert insert_failed drop early_drop icmp_error\n\
                      00000019  00000000 00000001 00000000 00000000 00000002 000000ff 00000010 00000000\n\
                      00000019  00000000 00000001 00000000 00000000 00000001 00000001 00000000 00000000\n";
        assert_eq!(counters(recent, &WANTED).unwrap(), [Some(256), Some(16), Some(3)]);
        let other = "entries searched drop insert_failed\n00000019 00000007 00000002 00000001\n";
        assert_eq!(counters(other, &WANTED).unwrap(), [Some(2), None, Some(1)]);
    }

    #[test]
    fn a_cut_row_and_another_file_are_errors() {
        for bad in ["", "drop\n00000001\n", "entries drop\n00000001\n", "entries drop\n00000001 x\n"] {
            assert!(counters(bad, &WANTED).is_err(), "{bad:?}");
        }
    }
}
