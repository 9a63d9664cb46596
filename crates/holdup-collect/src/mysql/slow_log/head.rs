//! The head of an entry, line by line, as MySQL, Percona Server and MariaDB write it: from `# Time`
//! or `# User@Host` to `SET timestamp=…;`. Another order, or a line that no server writes, makes it
//! invalid.

use crate::log::moment;

/// The fields of a head. Missing numbers are 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Head {
    /// When it was written, nanoseconds since the epoch; only from servers that write the full
    /// time.
    pub(super) written_at: Option<i64>,
    /// `SET timestamp`, nanoseconds since the epoch.
    pub(super) stamp_at: i64,
    /// The stamp's resolution: it may be this much later, nanoseconds.
    pub(super) stamp_grain_ns: i64,
    pub(super) session_id: Option<i64>,
    pub(super) database: Option<String>,
    pub(super) duration_ns: i64,
    pub(super) lock_ns: i64,
    pub(super) rows_sent: i64,
    pub(super) rows_examined: i64,
    pub(super) rows_affected: i64,
    /// Whether a table was scanned in full; also 0 if the log does not say.
    pub(super) no_index: i64,
    pub(super) temporary_tables: i64,
    pub(super) temporary_disk_tables: i64,
    pub(super) errors: i64,
    /// Whether it has warnings, which repeat values of the statement, line feeds included.
    pub(super) has_warnings: bool,
}

/// The position within a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum HeadState {
    #[default]
    Nothing,
    Time,
    User,
    Query,
    Use,
    Stamp,
}

/// The effect of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The head continues.
    More,
    /// That was its last line.
    Done,
    /// It is not a head.
    Wrong,
}

/// A partial head.
#[derive(Clone, Debug, Default)]
pub(super) struct PartialHead {
    pub(super) head: Head,
    at: HeadState,
}

/// Whether a head may start with this line.
pub(super) fn begins(line: &[u8]) -> bool {
    line.starts_with(b"# Time: ") || line.starts_with(b"# User@Host: ")
}

impl PartialHead {
    /// Parses the next line.
    pub(super) fn take(&mut self, line: &[u8]) -> Next {
        self.next(line).unwrap_or(Next::Wrong)
    }

    fn next(&mut self, line: &[u8]) -> Option<Next> {
        // Only names may be in another character set, and none is kept.
        let line = String::from_utf8_lossy(line);
        if self.at == HeadState::Nothing
            && let Some(time) = line.strip_prefix("# Time: ")
        {
            if time.contains('T') {
                self.head.written_at = Some(moment(time)?);
            } else if !is_old_time(time) {
                return None;
            }
            self.at = HeadState::Time;
        } else if let Some(user) = line.strip_prefix("# User@Host: ") {
            if self.at > HeadState::Time || !(user.contains(" @ ") && user.contains('[') && user.contains(']')) {
                return None;
            }
            let id = user.rsplit_once("]  Id: ");
            self.head.session_id = id.and_then(|(_, id)| id.trim().parse().ok());
            self.at = HeadState::User;
        } else if let Some(rest) = line.strip_prefix('#') {
            if !matches!(self.at, HeadState::User | HeadState::Query) {
                return None;
            }
            self.fields(rest)?;
        } else if let Some(name) = line.strip_prefix("use ").and_then(|rest| rest.strip_suffix(';')) {
            if self.at != HeadState::Query {
                return None;
            }
            let bare = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
            self.head.database = Some(bare.map_or_else(|| name.to_owned(), |name| name.replace("``", "`")));
            self.at = HeadState::Use;
        } else {
            if !matches!(self.at, HeadState::Query | HeadState::Use) {
                return None;
            }
            self.stamp(line.strip_prefix("SET ")?.strip_suffix(';')?)?;
            self.at = HeadState::Stamp;
            return Some(Next::Done);
        }
        Some(Next::More)
    }

    /// `Name: value  Name: value`, or one of the lines without pairs.
    fn fields(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.split_ascii_whitespace().peekable();
        let Some(first) = words.peek() else { return Some(()) };
        let name = first.strip_suffix(':').unwrap_or_default();
        if rest == " Warnings" || self.head.has_warnings && is_warning(rest) {
            self.head.has_warnings = true;
            return Some(());
        }
        if rest.trim() == "No InnoDB statistics available for this query" {
            return Some(());
        }
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        if name == "explain" {
            return Some(());
        }
        if name == "Query_time" {
            if self.at != HeadState::User {
                return None;
            }
            self.at = HeadState::Query;
        }
        while let Some(name) = words.next() {
            let Some(name) = name.strip_suffix(':') else { continue };
            // An empty value, e.g. no schema, is left out of the line.
            if let Some(value) = words.next_if(|word| !word.ends_with(':')) {
                self.field(name, value)?;
            }
        }
        Some(())
    }

    fn field(&mut self, name: &str, value: &str) -> Option<()> {
        let number = || value.parse::<i64>().ok().filter(|number| *number >= 0);
        let head = &mut self.head;
        match name {
            "Thread_id" => head.session_id = Some(number()?),
            "Schema" => head.database = Some(value.to_owned()),
            "Query_time" => head.duration_ns = nanoseconds(value)?.0,
            "Lock_time" => head.lock_ns = nanoseconds(value)?.0,
            "Rows_sent" => head.rows_sent = number()?,
            "Rows_examined" => head.rows_examined = number()?,
            "Rows_affected" => head.rows_affected = number()?,
            "Tmp_tables" | "Created_tmp_tables" => head.temporary_tables = number()?,
            "Tmp_disk_tables" | "Created_tmp_disk_tables" => head.temporary_disk_tables = number()?,
            "Full_scan" | "Full_join" if value == "Yes" => head.no_index = 1,
            "Last_errno" | "Errno" | "Killed" if number()? > 0 => head.errors = 1,
            _ => {}
        }
        Some(())
    }

    /// `timestamp=…`, possibly after the ids of inserted rows.
    fn stamp(&mut self, assignments: &str) -> Option<()> {
        let mut found = None;
        for assignment in assignments.split(',') {
            let (name, value) = assignment.split_once('=')?;
            match name {
                "timestamp" => found = Some(nanoseconds(value)?),
                "last_insert_id" | "insert_id" => drop(value.parse::<u64>().ok()?),
                _ => return None,
            }
        }
        (self.head.stamp_at, self.head.stamp_grain_ns) = found?;
        Some(())
    }
}

/// `1.000250` seconds as nanoseconds, and the value of its last possible digit.
fn nanoseconds(text: &str) -> Option<(i64, i64)> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole = seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?;
    let grain = 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<i64>().ok()? };
    Some((whole.checked_add(part * grain)?, grain))
}

/// ` Warning 1292 Truncated …`
fn is_warning(rest: &str) -> bool {
    let mut words = rest.split(' ').skip(1);
    let level = words.next().is_some_and(|level| matches!(level, "Warning" | "Note" | "Error"));
    level && words.next().is_some_and(|code| code.parse::<u32>().is_ok())
}

/// `261122  9:05:01`, in the server's time zone.
fn is_old_time(text: &str) -> bool {
    text.len() == 15
        && text.bytes().enumerate().all(|(at, byte)| match at {
            6 => byte == b' ',
            7 => byte == b' ' || byte.is_ascii_digit(),
            9 | 12 => byte == b':',
            _ => byte.is_ascii_digit(),
        })
}
