//! pt-query-digest's names for statements: its checksum, so that what people keep by it is found again.

/// The fingerprint.
pub fn fingerprint(sql: &[u8]) -> String {
    holdup_sql::digest_text(sql, holdup_sql::Dialect::MySql)
}

/// The checksum of a fingerprint.
pub fn checksum(fingerprint: &str) -> String {
    holdup_sql::digest_of_text(fingerprint)
}
