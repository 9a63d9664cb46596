//! The responses of a PostgreSQL server, as far as they show where a request ends.

use std::sync::Arc;

/// The parts of an extended request so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExtendedRequest {
    /// A `Sync` follows it: it ends when the server is ready for the next.
    pub is_synced: bool,
    /// It executes something: the next message belongs to another request.
    pub is_executed: bool,
}

/// The SQLSTATE of an `ErrorResponse`: a list of fields, each with a one-byte type and a text.
pub(crate) fn error_code(content: &[u8]) -> Option<Arc<str>> {
    content.split(|byte| *byte == 0).find_map(|field| {
        let (b'C', code) = field.split_first()? else { return None };
        let is_code = code.len() == 5 && code.iter().all(u8::is_ascii_alphanumeric);
        is_code.then(|| String::from_utf8_lossy(code).as_ref().into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(error_code(b"SERROR\0VERROR\0C42P01\0Mno such\0\0").as_deref(), Some("42P01"));
        assert_eq!(error_code(b"SERROR\0C42\0"), None);
    }
}
