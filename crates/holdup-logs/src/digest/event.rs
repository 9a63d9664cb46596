//! One execution as a reader found it: borrowed from the log, nothing of it kept. It is the vocabulary that all readers share.

/// Where something stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Number of the file among those that were given.
    pub file: u32,
    /// Bytes before it in the (unpacked) file.
    pub offset: u64,
}

/// What was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A statement.
    #[default]
    Statement,
    /// A command of the protocol that is none, such as `Quit`: its name stands where a statement would.
    Command,
    /// PostgreSQL's reading of a statement that is executed later.
    Parse,
    /// PostgreSQL's filling in of a statement's values.
    Bind,
}

/// One execution.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// What it is.
    pub kind: Kind,
    /// The statement as it was logged.
    pub sql: &'a [u8],
    /// What the lexer said of it already, if it was asked.
    pub key: Option<holdup_sql::Key>,
    /// Where its record begins.
    pub position: Position,
    /// Begin (or what is logged for it), microseconds since 1970 in the log's own time zone.
    pub at_us: Option<i64>,
    /// When it ended, as the log says, if that is what it says: `at_us` may be coarser than this and its duration are.
    pub ended_us: Option<i64>,
    /// The server's number of the connection; 0 if unknown.
    pub session: u64,
    /// PostgreSQL's list of what was filled in: `$1 = 'a', $2 = NULL`; empty if there was nothing, or nobody wants to know.
    pub parameters: &'a [u8],
    /// Whose SQL it is, where a log may hold that of several.
    pub dialect: Option<holdup_sql::Dialect>,
    /// Account; empty if unknown.
    pub user: &'a [u8],
    /// Client's host or address; empty if unknown.
    pub host: &'a [u8],
    /// Database; empty if unknown.
    pub database: &'a [u8],
    /// Application; empty if unknown.
    pub application: &'a [u8],
    /// Attributes with numbers, by their numbers in [`crate::digest::attribute::Attributes`].
    pub measures: &'a [(u16, u64)],
    /// Attributes that are yes or no.
    pub flags: &'a [(u16, bool)],
    /// Whether its text was too long to be kept whole.
    pub cut: bool,
}
