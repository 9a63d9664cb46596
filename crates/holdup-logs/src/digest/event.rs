//! One execution as a reader found it, borrowed from the log. All readers share this vocabulary.

/// A place in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Number of the file among the given ones.
    pub file: u32,
    /// Bytes before it in the (unpacked) file.
    pub offset: u64,
}

/// The kind of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A statement.
    #[default]
    Statement,
    /// A command of the protocol that is not a statement, such as `Quit`: its name stands in place
    /// of one.
    Command,
    /// PostgreSQL's parsing of a statement that is executed later.
    Parse,
    /// PostgreSQL's binding of a statement's values.
    Bind,
    /// An operation of MongoDB: its shape, without values, stands in place of a statement.
    Shaped,
}

/// One execution.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The statement as logged.
    pub sql: &'a [u8],
    /// The lexer's result, if it was already asked.
    pub key: Option<holdup_sql::Key>,
    /// Place of its record.
    pub position: Position,
    /// Its start (or the time that the log has for it), microseconds since 1970 in the log's own
    /// time zone.
    pub at_us: Option<i64>,
    /// Its end, if the log has that; `at_us` may be coarser than this and its duration.
    pub ended_us: Option<i64>,
    /// The server's number of the connection; 0 if unknown.
    pub session: u64,
    /// PostgreSQL's list of bound values: `$1 = 'a', $2 = NULL`; empty if there were none, or the
    /// caller does not need them.
    pub parameters: &'a [u8],
    /// The SQL dialect, if a log may hold several.
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
