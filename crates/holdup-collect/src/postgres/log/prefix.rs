//! `log_line_prefix` as a pattern: which part of a line's start is the time, the process, the
//! database. Values that clients choose (`%a`, `%u`, `%d`) can be anything, so all ways to match a
//! line are tried, within limits.

use std::cell::Cell;

use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;

/// Severities of messages.
const SEVERITIES: &[&str] = &[
    "LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5",
    "DEBUG",
];

/// Names of the further parts of a message.
const PARTS: &[&str] = &["DETAIL", "HINT", "QUERY", "CONTEXT", "STATEMENT", "LOCATION", "BACKTRACE"];

/// Largest number of matching steps.
const STEPS: u32 = 2_000;

/// Bytes of a line in which the prefix is searched.
const HEAD_BYTES: usize = 1_024;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// The letter of a `%` escape.
    Field(char),
    /// `%q`: processes without a session stop here.
    SessionsOnly,
}

/// A `log_line_prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::postgres) struct Prefix(Vec<Part>);

/// The parsed start of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) at: Option<i64>,
    pub(super) pid: Option<i64>,
    pub(super) database: Option<&'a str>,
    /// SQLSTATE.
    pub(super) code: Option<&'a str>,
    pub(super) severity: &'a str,
    pub(super) message: &'a str,
}

impl Head<'_> {
    /// Whether it is a further part of the previous message.
    pub(super) fn goes_on(&self) -> bool {
        PARTS.contains(&self.severity)
    }
}

impl Prefix {
    /// Parses the setting's value.
    pub(in crate::postgres) fn parse(setting: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut chars = setting.chars().peekable();
        let mut literal = String::new();
        while let Some(char) = chars.next() {
            if char != '%' {
                literal.push(char);
                continue;
            }
            // A width pads with blanks, on either side.
            while chars.next_if(|c| *c == '-' || c.is_ascii_digit()).is_some() {}
            match chars.next() {
                Some('%') => literal.push('%'),
                Some(letter) => {
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(if letter == 'q' { Part::SessionsOnly } else { Part::Field(letter) });
                }
                None => {}
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Self(parts)
    }

    pub(in crate::postgres) fn has_time(&self) -> bool {
        ['m', 't', 'n'].iter().any(|letter| self.0.contains(&Part::Field(*letter)))
    }

    pub(in crate::postgres) fn has_pid(&self) -> bool {
        self.0.contains(&Part::Field('p'))
    }

    /// The start of `line`, if it begins an entry or a further part of one.
    pub(super) fn head<'a>(&self, line: &'a str, zone_seconds: i64) -> Option<Head<'a>> {
        let search = Search { zone_seconds, steps: Cell::new(STEPS) };
        search.step(&self.0, line, line.len(), Head::default())
    }
}

struct Search {
    zone_seconds: i64,
    steps: Cell<u32>,
}

impl Search {
    fn step<'a>(&self, parts: &[Part], text: &'a str, line_bytes: usize, head: Head<'a>) -> Option<Head<'a>> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        let Some((part, rest)) = parts.split_first() else { return end(text, head) };
        match part {
            Part::Literal(literal) => self.step(rest, text.strip_prefix(literal.as_str())?, line_bytes, head),
            Part::SessionsOnly => self.step(rest, text, line_bytes, head.clone()).or_else(|| end(text, head)),
            Part::Field(letter) => self.field(*letter, rest, text, line_bytes, head),
        }
    }

    fn field<'a>(
        &self,
        letter: char,
        rest: &[Part],
        text: &'a str,
        line_bytes: usize,
        mut head: Head<'a>,
    ) -> Option<Head<'a>> {
        let text = text.trim_start_matches(' ');
        let digits = || text.bytes().take_while(u8::is_ascii_digit).count();
        let length = match letter {
            'm' | 't' | 's' => {
                let (at, length) = time(text, self.zone_seconds)?;
                if letter != 's' {
                    head.at = Some(at);
                }
                length
            }
            'n' => {
                let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
                let seconds: f64 = text.get(..length)?.parse().ok()?;
                head.at = Some(((seconds * 1e3).round() as i64).checked_mul(1_000_000)?);
                length
            }
            'p' => {
                let length = digits();
                head.pid = Some(text.get(..length)?.parse().ok()?);
                length
            }
            'l' | 'x' | 'P' => digits(),
            'Q' => {
                usize::from(text.starts_with('-'))
                    + text.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit).count()
            }
            _ => return self.any(letter, rest, text, line_bytes, head),
        };
        // Skip padding blanks, unless they match the next part.
        let behind = text.get(length..)?;
        self.step(rest, behind, line_bytes, head.clone())
            .or_else(|| self.step(rest, behind.trim_start_matches(' '), line_bytes, head))
    }

    /// Matches an arbitrary value, the shortest first.
    fn any<'a>(
        &self,
        letter: char,
        rest: &[Part],
        text: &'a str,
        line_bytes: usize,
        head: Head<'a>,
    ) -> Option<Head<'a>> {
        let used = line_bytes - text.len();
        for (end, _) in text.char_indices().take(HEAD_BYTES.saturating_sub(used)) {
            let behind = text.get(end..)?;
            // A cheap check first.
            if let Some(Part::Literal(literal)) = rest.first()
                && !behind.starts_with(literal.as_str())
            {
                continue;
            }
            let mut with = head.clone();
            if letter == 'e' {
                with.code = text.get(..end).map(str::trim_end).filter(|code| code.len() == 5);
            }
            if letter == 'd' {
                with.database =
                    text.get(..end).map(str::trim_end).filter(|name| !name.is_empty() && *name != "[unknown]");
            }
            if let Some(found) = self.step(rest, behind, line_bytes, with) {
                return Some(found);
            }
        }
        None
    }
}

/// The text after the prefix: severity, colon, two blanks, message.
fn end<'a>(text: &'a str, head: Head<'a>) -> Option<Head<'a>> {
    let (severity, message) = text.split_once(":  ")?;
    let known = SEVERITIES.iter().chain(PARTS).any(|known| *known == severity);
    known.then_some(Head { severity, message, ..head })
}

/// The time at the start of `text`, e.g. `2026-11-22 11:10:19.123 CET`, in nanoseconds since the
/// epoch, and its length.
pub(super) fn time(text: &str, zone_seconds: i64) -> Option<(i64, usize)> {
    let (found, from) = BrokenDownTime::parse_prefix("%Y-%m-%d %H:%M:%S%.f", text).ok()?;
    let zone = text.get(from..)?.strip_prefix(' ')?;
    let length = zone.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-')).count();
    let above = match zone.get(..length)? {
        "" => return None,
        "UTC" | "GMT" => 0,
        // Zones without a name: `+03`, `-0330`.
        named => match named.strip_prefix(['+', '-']) {
            Some(digits) => {
                let hours: i64 = digits.get(..2)?.parse().ok()?;
                let minutes: i64 = digits.get(2..4).and_then(|minutes| minutes.parse().ok()).unwrap_or(0);
                (hours * 3600 + minutes * 60) * if named.starts_with('-') { -1 } else { 1 }
            }
            None => zone_seconds,
        },
    };
    let above = Offset::from_seconds(i32::try_from(above).ok()?).ok()?;
    // Nanoseconds overflow after the year 2262; such a time is not plausible.
    let at = i64::try_from(above.to_timestamp(found.to_datetime().ok()?).ok()?.as_nanosecond()).ok()?;
    Some((at, from + 1 + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time("1970-01-02 00:00:01.500 UTC x", 0), Some((86_401_500_000_000, 27)));
        assert_eq!(time("2026-11-22 11:10:19 CET", 3600), time("2026-11-22 10:10:19 UTC", 0));
        assert_eq!(time("2026-11-22 11:10:19 +0330", 0).map(|t| t.0), time("2026-11-22 07:40:19 GMT", 0).map(|t| t.0));
        assert_eq!(time("2024-02-29 00:00:00 UTC", 0).map(|t| t.0), Some(1_709_164_800_000_000_000));
        for wrong in [
            "",
            "2026-11-22",
            "2026-13-22 11:10:19 UTC",
            "2026-11-22 11:10:19",
            "2026-11-22T11:10:19 UTC",
            "é026-11-22 11:10:19 UTC",
        ] {
            assert_eq!(time(wrong, 0), None, "{wrong}");
        }
    }

    #[test]
    fn prefixes_of_all_kinds() {
        for (setting, line, pid, database) in [
            ("%m [%p] ", "2026-11-22 11:10:19.123 UTC [42] LOG:  hello", 42, None),
            (
                "%m [%p]: user=%u,db=%d,app=%a,client=%h ",
                "2026-11-22 11:10:19.123 UTC [42]: user=a,db=shop,app=LOG:  x, y,client=10.0.0.1 LOG:  hello",
                42,
                Some("shop"),
            ),
            ("%t %p %q%u@%d/%a ", "2026-11-22 11:10:19 UTC 42 me@shop/[unknown] LOG:  hello", 42, Some("shop")),
            ("%t %p %q%u@%d/%a ", "2026-11-22 11:10:19 UTC 42 LOG:  hello", 42, None),
            (
                "%n %-10p|%10d|%l %e %c ",
                "1795345819.123 42        |      shop|7 00000 6921a.2a LOG:  hello",
                42,
                Some("shop"),
            ),
            (
                "%m:%r:%u@%d:[%p]:%Q:",
                "2026-11-22 11:10:19.123 UTC:10.0.0.1(4711):me@shop:[42]:-55:LOG:  hello",
                42,
                Some("shop"),
            ),
            ("%m [%p] %d", "2026-11-22 11:10:19.123 UTC [42] shopLOG:  hello", 42, Some("shop")),
        ] {
            let prefix = Prefix::parse(setting);
            let head = prefix.head(line, 0).unwrap_or_else(|| panic!("{setting}: {line}"));
            assert_eq!((head.pid, head.database, head.message), (Some(pid), database, "hello"), "{setting}");
            assert!(head.at.is_some() && prefix.has_time() && prefix.has_pid());
            assert_eq!(prefix.head(&line.replace("LOG:  hello", "TALE: hello"), 0), None);
        }
        assert!(!Prefix::parse("%d %%p ").has_pid());
    }

    #[test]
    fn a_hostile_line_ends_soon() {
        let prefix = Prefix::parse("%a %u %d %h %i %b ");
        assert_eq!(prefix.head(&" a".repeat(100_000), 0), None);
    }
}
