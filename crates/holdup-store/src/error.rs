//! Why something with a store failed. Each message says what to do; none holds a password.

use std::path::PathBuf;

use holdup_recording::{OpenError, SegmentError};

/// Why something with a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address cannot be used.
    #[error("{0}")]
    BadAddress(String),
    /// No complete answer came.
    #[error("{server}: {why}")]
    Unreachable {
        /// The server, without its account.
        server: String,
        /// Why, in words.
        why: String,
    },
    /// The server refused.
    #[error("{server}: {why}{hint}")]
    Refused {
        /// The server, without its account.
        server: String,
        /// ClickHouse's number of the error; 0 if it gave none.
        code: u32,
        /// Its own words, shortened.
        why: String,
        /// What to do.
        hint: &'static str,
    },
    /// The answer has more bytes than allowed.
    #[error("{server}: the answer has more than {most_bytes} bytes")]
    TooLarge {
        /// The server, without its account.
        server: String,
        /// The limit.
        most_bytes: u64,
    },
    /// The answer is not what was asked for.
    #[error("{0}: the server's answer cannot be read as rows of this table; is it a table of `holdup store init`?")]
    BadAnswer(String),
    /// Wrong names, missing or other recordings.
    #[error("{0}")]
    Recording(String),
    /// The folder of the recording cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A table of the folder cannot be read or written.
    #[error(transparent)]
    Table(#[from] SegmentError),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The user stopped it.
    #[error("stopped; what is in the store stays, and the same command goes on from there")]
    Stopped,
}

/// ClickHouse's numbers of errors that pass: time-outs, too many queries, parts, or bytes at once, a
/// lost network, a replica that is not ready; and what a full disk shows as: a failed write (75, 1000)
/// or too little space for a part (243). `src/Common/ErrorCodes.cpp` lists them.
const PASSING: [u32; 11] = [75, 159, 202, 209, 210, 225, 241, 242, 243, 252, 1_000];

impl StoreError {
    /// Whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { code, .. } => PASSING.contains(code),
            _ => false,
        }
    }
}

/// What to do about an error of ClickHouse, where that is known.
pub(crate) fn hint(code: u32) -> &'static str {
    match code {
        // It gave no code of ClickHouse's.
        0 => "; is this the port of ClickHouse's HTTP interface (8123, with TLS 8443)?",
        16 | 47 | 60 | 81 => "; create the tables first: holdup store init URL",
        164 | 497 => "; docs/store.md lists the grants of readers and writers",
        192..=195 | 516 => "; put the password into HOLDUP_CLICKHOUSE_PASSWORD, or name a file with password_file=PATH",
        _ => "",
    }
}
