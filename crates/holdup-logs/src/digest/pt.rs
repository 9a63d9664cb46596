//! pt-query-digest's names for statements, fingerprint and checksum, so that users find what they
//! have stored under them.

use std::fmt::Write as _;

use holdup_sql::pt_fingerprint;
use md5::{Digest as _, Md5};

/// The fingerprint.
pub fn fingerprint(sql: &[u8]) -> String {
    pt_fingerprint(sql)
}

/// The checksum of a fingerprint, as the tool prints it behind `ID`.
pub fn checksum(fingerprint: &str) -> String {
    Md5::digest(fingerprint.as_bytes()).iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_tool_s() {
        // RFC 1321, appendix A.5.
        assert_eq!(checksum("abc"), "0x900150983CD24FB0D6963F7D28E17F72");
    }
}
