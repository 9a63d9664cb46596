//! The values that templates are filled in from.

use crate::script::{Random, Row, Value};

/// See the module. Times are nanoseconds since the Unix epoch.
pub struct Context<'a> {
    /// The session's variables by slot.
    pub values: &'a [Value],
    /// Cells of the rows that the session has drawn, by feeder; none if it has no row of that
    /// feeder.
    pub rows: &'a [Option<Row<'a>>],
    /// The session's random numbers.
    pub random: &'a mut Random,
    /// The present time.
    pub now_unix_ns: i64,
    /// Number of the request, unique in the whole run.
    pub number: u64,
    /// Number of the session, unique in the whole run.
    pub session: u64,
}
