//! Names of the attributes that logs give for an execution, and their kinds of values. Servers add
//! attributes with every release, so an unknown one is classified by its value.

use std::collections::HashMap;

/// The kind of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Decimal seconds in the log, microseconds here.
    Time,
    /// A whole number.
    Number,
    /// `Yes` or `No`.
    Flag,
    /// Who, where or which: not counted here.
    Text,
    /// Unknown: what looks like a whole number counts as one, `Yes` and `No` as flags, and other
    /// values are skipped.
    Unknown,
}

/// Number of `Query_time` in every [`Attributes`].
pub const QUERY_TIME: u16 = 0;
/// Number of `Lock_time`.
pub const LOCK_TIME: u16 = 1;
/// Number of `Rows_sent`.
pub const ROWS_SENT: u16 = 2;
/// Number of `Rows_examined`.
pub const ROWS_EXAMINED: u16 = 3;
/// Number of `Schema`, which is text.
pub const SCHEMA: u16 = 4;
/// Number of `Parse_time`, our name for PostgreSQL's.
pub const PARSE_TIME: u16 = 5;
/// Number of `Bind_time`, our name for PostgreSQL's.
pub const BIND_TIME: u16 = 6;
/// Number of `Errors`: executions that ended in one.
pub const ERRORS: u16 = 7;
/// Number of `Last_errno`.
pub const LAST_ERRNO: u16 = 8;
/// Number of `Errno`, as MySQL calls it.
pub const ERRNO: u16 = 9;

/// Number of `Id`: the connection, as MySQL calls it.
pub const ID: u16 = 10;
/// Number of `Thread_id`, as MariaDB calls it.
pub const THREAD_ID: u16 = 11;

/// Number of `Pages_read_time`, which MariaDB logs in milliseconds.
pub const PAGES_READ_TIME: u16 = 12;
/// Number of `Engine_time`, which MariaDB logs in milliseconds.
pub const ENGINE_TIME: u16 = 13;

/// The known attributes, first in the order of the numbers above and then in that of reports.
const KNOWN: &[(&str, Unit)] = &[
    ("Query_time", Unit::Time),
    ("Lock_time", Unit::Time),
    ("Rows_sent", Unit::Number),
    ("Rows_examined", Unit::Number),
    ("Schema", Unit::Text),
    ("Parse_time", Unit::Time),
    ("Bind_time", Unit::Time),
    ("Errors", Unit::Number),
    ("Last_errno", Unit::Text),
    ("Errno", Unit::Text),
    ("Id", Unit::Text),
    ("Thread_id", Unit::Text),
    ("Pages_read_time", Unit::Time),
    ("Engine_time", Unit::Time),
    ("Rows_affected", Unit::Number),
    ("Rows_read", Unit::Number),
    ("Bytes_sent", Unit::Number),
    ("Bytes_received", Unit::Number),
    ("Tmp_tables", Unit::Number),
    ("Tmp_disk_tables", Unit::Number),
    ("Tmp_table_sizes", Unit::Number),
    ("Merge_passes", Unit::Number),
    ("InnoDB_IO_r_ops", Unit::Number),
    ("InnoDB_IO_r_bytes", Unit::Number),
    ("InnoDB_IO_r_wait", Unit::Time),
    ("InnoDB_rec_lock_wait", Unit::Time),
    ("InnoDB_queue_wait", Unit::Time),
    ("InnoDB_pages_distinct", Unit::Number),
    ("QC_Hit", Unit::Flag),
    ("QC_hit", Unit::Flag),
    ("Full_scan", Unit::Flag),
    ("Full_join", Unit::Flag),
    ("Tmp_table", Unit::Flag),
    ("Tmp_table_on_disk", Unit::Flag),
    ("Filesort", Unit::Flag),
    ("Filesort_on_disk", Unit::Flag),
    ("Priority_queue", Unit::Flag),
    ("Thread_Id", Unit::Text),
    ("InnoDB_trx_id", Unit::Text),
    ("Killed", Unit::Text),
    ("Start", Unit::Text),
    ("End", Unit::Text),
    ("Stored_routine", Unit::Text),
    ("Log_slow_rate_type", Unit::Text),
    ("Log_slow_rate_limit", Unit::Text),
    ("Profile_total", Unit::Time),
    ("Profile_total_cpu", Unit::Time),
];

/// Most attributes of a log; no server has as many.
const MOST: usize = 512;

/// An attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name as logged.
    pub name: String,
    /// Its values.
    pub unit: Unit,
}

/// The attributes of a log, by number.
#[derive(Clone, Debug)]
pub struct Attributes {
    all: Vec<Attribute>,
    by_name: HashMap<Vec<u8>, u16>,
}

impl Default for Attributes {
    fn default() -> Self {
        let mut attributes = Self { all: Vec::new(), by_name: HashMap::new() };
        for (name, unit) in KNOWN {
            attributes.insert(name, *unit);
        }
        attributes
    }
}

impl Attributes {
    fn insert(&mut self, name: &str, unit: Unit) -> u16 {
        let number = u16::try_from(self.all.len()).unwrap_or(u16::MAX);
        self.all.push(Attribute { name: name.to_owned(), unit });
        self.by_name.insert(name.as_bytes().to_vec(), number);
        number
    }

    /// The number of the attribute with this name, a new one if needed. `None` if there are too
    /// many.
    pub fn number(&mut self, name: &[u8]) -> Option<u16> {
        if let Some(number) = self.by_name.get(name) {
            return Some(*number);
        }
        if self.all.len() >= MOST {
            return None;
        }
        let name = std::str::from_utf8(name).ok()?;
        let is_time = ["_time", "_wait"].iter().any(|end| name.ends_with(end));
        Some(self.insert(name, if is_time { Unit::Time } else { Unit::Unknown }))
    }

    /// The attribute with this number.
    pub fn get(&self, number: u16) -> Option<&Attribute> {
        self.all.get(usize::from(number))
    }

    /// All, by number.
    pub fn all(&self) -> &[Attribute] {
        &self.all
    }
}

/// Decimal seconds as microseconds; `None` if the text is not such a number. Rounds further digits
/// off.
pub fn seconds(text: &[u8]) -> Option<u64> {
    let (mut value, mut at) = (0_u64, 0);
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        at += 1;
    }
    value = value.checked_mul(1_000_000)?;
    if at == text.len() {
        return (at > 0).then_some(value);
    }
    let fraction = text.get(at..)?.strip_prefix(b".").filter(|_| at > 0)?;
    let mut scale = 100_000;
    for (place, byte) in fraction.iter().enumerate() {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        if place == 6 {
            value = value.checked_add(u64::from(digit >= 5))?;
        }
        value = value.checked_add(digit * scale)?;
        scale /= 10;
    }
    Some(value)
}

/// A whole number.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// Milliseconds such as `12.345 ms` (in PostgreSQL 7 seconds, `0.01 sec`) as microseconds, and the text behind.
pub fn duration(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let (number, behind) = text.split_at(digits);
    let value = seconds(number)?;
    match behind.strip_prefix(b" sec") {
        Some(behind) => Some((value, behind)),
        None => Some((value / 1_000, behind.strip_prefix(b" ms")?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly() {
        for (text, expected) in [
            ("0.000096", Some(96)),
            ("12", Some(12_000_000)),
            ("1.5", Some(1_500_000)),
            ("0.0000005", Some(1)),
            ("3.", Some(3_000_000)),
            ("", None),
            (".", None),
            ("1x", None),
            ("1.2x", None),
            ("18446744073709551616", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(
            [number(b"17"), number(b""), number(b"-1"), number(b"18446744073709551616")],
            [Some(17), None, None, None]
        );
    }

    #[test]
    fn the_numbers_of_constants_are_theirs() {
        let mut attributes = Attributes::default();
        for (name, number) in [
            ("Query_time", QUERY_TIME),
            ("Schema", SCHEMA),
            ("Errors", ERRORS),
            ("Errno", ERRNO),
            ("Bind_time", BIND_TIME),
            ("Id", ID),
            ("Thread_id", THREAD_ID),
        ] {
            assert_eq!(attributes.number(name.as_bytes()), Some(number));
        }
        let new = attributes.number(b"Some_wait").unwrap();
        assert_eq!(attributes.get(new).unwrap().unit, Unit::Time);
        assert_eq!(attributes.number(b"Some_wait"), Some(new));
        assert_eq!(attributes.number(b"\xff"), None);
    }
}
