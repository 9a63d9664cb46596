//! `log_line_prefix`: the text before the severity of each line. Either the user gives the server's
//! setting, or the prefix is worked out from lines: times, numbers in brackets, `name=value`,
//! `user@database` and addresses are recognised by their form, and the rest is punctuation.

use super::severity;
use crate::digest::attribute::number;
use crate::digest::time::{date_time, epoch};

/// A part of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A text in every line.
    Literal(Vec<u8>),
    /// Date and time with a zone.
    Time,
    /// Seconds since 1970.
    Epoch,
    Pid,
    /// Identifies sessions, as a process id does.
    Session,
    User,
    Database,
    Application,
    Host,
    /// Something else.
    Any,
    /// Lines of the server's own processes end here.
    Stop,
}

/// The fields of one prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// Time, microseconds.
    pub at_us: Option<i64>,
    /// Process; 0 if unknown.
    pub pid: u64,
    /// Account.
    pub user: &'a [u8],
    /// Database.
    pub database: &'a [u8],
    /// Application.
    pub application: &'a [u8],
    /// Client.
    pub host: &'a [u8],
}

/// The form of the prefix of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    parts: Vec<Part>,
}

/// Names before a `=`, and the field behind each.
const NAMES: &[(&[u8], Part)] = &[
    (b"user", Part::User),
    (b"usr", Part::User),
    (b"u", Part::User),
    (b"db", Part::Database),
    (b"database", Part::Database),
    (b"dbname", Part::Database),
    (b"d", Part::Database),
    (b"app", Part::Application),
    (b"appname", Part::Application),
    (b"application", Part::Application),
    (b"application_name", Part::Application),
    (b"a", Part::Application),
    (b"client", Part::Host),
    (b"host", Part::Host),
    (b"remote", Part::Host),
    (b"clienthost", Part::Host),
    (b"h", Part::Host),
    (b"r", Part::Host),
    (b"pid", Part::Pid),
    (b"p", Part::Pid),
    (b"c", Part::Session),
    (b"s", Part::Session),
    (b"sess", Part::Session),
    (b"session", Part::Session),
];

impl Prefix {
    /// The prefix that a server's `log_line_prefix` describes.
    pub fn from_setting(setting: &str) -> Self {
        let mut prefix = Self::default();
        let mut bytes = setting.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                prefix.literal(&[byte]);
                continue;
            }
            // `%-10u` pads.
            let escape = bytes.find(|byte| !matches!(byte, b'-' | b'0'..=b'9'));
            match escape {
                Some(b'm' | b't' | b's') if !prefix.parts.contains(&Part::Time) => prefix.parts.push(Part::Time),
                Some(b'n') => prefix.parts.push(Part::Epoch),
                Some(b'p') => prefix.parts.push(Part::Pid),
                Some(b'c') => prefix.parts.push(Part::Session),
                Some(b'u') => prefix.parts.push(Part::User),
                Some(b'd') => prefix.parts.push(Part::Database),
                Some(b'a') => prefix.parts.push(Part::Application),
                Some(b'h' | b'r') => prefix.parts.push(Part::Host),
                Some(b'q') => prefix.parts.push(Part::Stop),
                Some(b'%') => prefix.literal(b"%"),
                _ => prefix.parts.push(Part::Any),
            }
        }
        prefix
    }

    fn literal(&mut self, text: &[u8]) {
        if let Some(Part::Literal(before)) = self.parts.last_mut() {
            before.extend_from_slice(text);
        } else if !text.is_empty() {
            self.parts.push(Part::Literal(text.to_vec()));
        }
    }

    /// The known form, or the one that most of `lines` have before their severity.
    pub fn known_or_of<T: AsRef<[u8]>>(known: Option<&Self>, lines: impl Iterator<Item = T>) -> Self {
        if let Some(known) = known {
            return known.clone();
        }
        let lines: Vec<T> = lines.collect();
        let prefixes = lines.iter().filter_map(|line| line.as_ref().get(..severity(line.as_ref())?.0));
        Self::from_lines(&prefixes.collect::<Vec<_>>())
    }

    /// The form that most of these prefixes have.
    fn from_lines(lines: &[&[u8]]) -> Self {
        let mut best = (0, Self::default());
        for line in lines {
            let candidate = Self::from_line(line);
            let known = candidate.parts.iter().filter(|part| !matches!(part, Part::Literal(_) | Part::Any)).count();
            if candidate == best.1 {
                continue;
            }
            let matched = lines.iter().filter(|line| candidate.parse(line).is_some()).count();
            let worth = matched * (known + 1);
            if worth > best.0 {
                best = (worth, candidate);
            }
        }
        best.1
    }

    /// The form of one prefix.
    fn from_line(line: &[u8]) -> Self {
        let mut prefix = Self::default();
        let mut at = 0;
        while let Some(byte) = line.get(at) {
            let rest = line.get(at..).unwrap_or_default();
            if !prefix.parts.contains(&Part::Time)
                && let Some(length) = time(rest).map(|(_, length)| length)
            {
                prefix.parts.push(Part::Time);
                at += length;
                continue;
            }
            if !is_value_byte(*byte) {
                prefix.literal(&[*byte]);
                at += 1;
                continue;
            }
            let length = rest.iter().position(|byte| !is_value_byte(*byte)).unwrap_or(rest.len());
            let word = rest.get(..length).unwrap_or_default();
            at += length;
            if line.get(at) == Some(&b'=') {
                prefix.literal(word);
                prefix.literal(b"=");
                at += 1;
                let part = NAMES
                    .iter()
                    .find(|(name, _)| word.eq_ignore_ascii_case(name))
                    .map_or(Part::Any, |(_, part)| part.clone());
                at += named_value(line.get(at..).unwrap_or_default(), &part);
                prefix.parts.push(part);
                continue;
            }
            let before = prefix.parts.last();
            let opened = |part: &Part| matches!(part, Part::Literal(text) if text.ends_with(b"["));
            let is_number = word.iter().all(u8::is_ascii_digit);
            let part = if line.get(at) == Some(&b'@') {
                Part::User
            } else if prefix.parts.len() > 1 && matches!(before, Some(Part::Literal(text)) if text.as_slice() == b"@") {
                Part::Database
            } else if is_number
                && line.get(at) == Some(&b']')
                && before.is_some_and(opened)
                && !prefix.parts.contains(&Part::Pid)
            {
                Part::Pid
            } else if prefix.parts.is_empty() && epoch(word).is_some_and(|(at, _)| at > 1_000_000_000_000_000) {
                Part::Epoch
            } else if is_address(word) || line.get(at) == Some(&b'(') || word == b"local" {
                if line.get(at) == Some(&b'(') {
                    let rest = line.get(at..).unwrap_or_default();
                    at += rest.iter().position(|byte| *byte == b')').map_or(0, |end| end + 1);
                }
                Part::Host
            } else {
                Part::Any
            };
            let taken = !matches!(part, Part::Any) && prefix.parts.contains(&part);
            prefix.parts.push(if taken { Part::Any } else { part });
        }
        prefix
    }

    /// Reads `text`, everything before a severity; `None` if it has another form.
    pub fn parse<'a>(&self, text: &'a [u8]) -> Option<Fields<'a>> {
        let mut fields = Fields::default();
        let mut at = 0;
        for (index, part) in self.parts.iter().enumerate() {
            let rest = text.get(at..)?;
            // Lines of the server's own processes may end early (`%q`), which one that was worked out
            // from lines of sessions does not say.
            if rest.is_empty() && (*part == Part::Stop || fields.at_us.is_some()) {
                return Some(fields);
            }
            if *part == Part::Stop {
                continue;
            }
            if let Part::Literal(literal) = part {
                at += if rest.starts_with(literal) { literal.len() } else { return None };
                continue;
            }
            if *part == Part::Time {
                let (at_us, length) = time(rest)?;
                fields.at_us = Some(at_us);
                at += length;
                continue;
            }
            let length = match self.parts.get(index + 1) {
                Some(Part::Literal(end)) if index + 2 == self.parts.len() => rest.strip_suffix(end.as_slice())?.len(),
                Some(Part::Literal(end)) => find(rest, end)?,
                None => rest.len(),
                Some(_) => rest.iter().position(|byte| !is_value_byte(*byte)).unwrap_or(rest.len()),
            };
            let value = rest.get(..length)?;
            match part {
                Part::Epoch => fields.at_us = Some(epoch(value)?.0),
                Part::Pid => fields.pid = number(value)?,
                Part::Session if fields.pid == 0 => fields.pid = session(value),
                Part::User => fields.user = known(value),
                Part::Database => fields.database = known(value),
                Part::Application => fields.application = known(value),
                Part::Host => fields.host = without_port(known(value)),
                _ => {}
            }
            at += length;
        }
        (at == text.len()).then_some(fields)
    }
}

/// A number for a session's name (FNV-1a).
fn session(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Place of `mark` in a few bytes: a faster search would not pay off.
fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    let first = *mark.first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|byte| *byte == first)?;
        if text.get(at..)?.starts_with(mark) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn is_value_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | 0x80..)
}

fn is_address(word: &[u8]) -> bool {
    word.iter().filter(|byte| **byte == b'.').count() == 3
        && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Servers write these for an empty value.
fn known(value: &[u8]) -> &[u8] {
    if value == b"[unknown]" { b"" } else { value }
}

fn without_port(host: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'(', host).unwrap_or(host.len());
    host.get(..end).unwrap_or_default()
}

/// A time with its zone, and their length.
pub(super) fn time(text: &[u8]) -> Option<(i64, usize)> {
    let (at, length) = date_time(text)?;
    let behind = text.get(length..).unwrap_or_default();
    let zone = |from: usize| {
        behind
            .iter()
            .skip(from)
            .take_while(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'+' | b'/' | b'_'))
            .count()
    };
    if behind.first() == Some(&b' ') && zone(1) > 0 {
        return Some((at, length + 1 + zone(1)));
    }
    let offset = match behind.first() {
        Some(b'Z') => 1,
        Some(b'+' | b'-') => {
            1 + behind.iter().skip(1).take_while(|byte| byte.is_ascii_digit() || **byte == b':').count()
        }
        // `+00` behind a blank.
        Some(b' ') if matches!(behind.get(1), Some(b'+' | b'-')) && behind.get(2).is_some_and(u8::is_ascii_digit) => {
            2 + behind.iter().skip(2).take_while(|byte| byte.is_ascii_digit() || **byte == b':').count()
        }
        _ => 0,
    };
    Some((at, length + offset))
}

/// Length of the value of a named part at the start of `text`.
fn named_value(text: &[u8], part: &Part) -> usize {
    // Up to the character that ends it: a comma, or a blank without an earlier comma.
    let ends = |byte: &u8| matches!(byte, b',' | b' ' | b'|' | b';' | b']' | b')');
    let length = text.iter().position(ends).unwrap_or(text.len());
    let rest = text.get(length..).unwrap_or_default();
    if *part == Part::Application && rest.first() == Some(&b' ') {
        // Names of applications may contain blanks; the fields behind them have a name.
        return length + rest.iter().position(|byte| *byte == b',').unwrap_or(0);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(fields: &Fields) -> [String; 4] {
        [fields.user, fields.database, fields.application, fields.host]
            .map(|field| String::from_utf8_lossy(field).into_owned())
    }

    #[test]
    fn prefixes_are_made_out() {
        for (line, pid, expected) in [
            (
                "2025-11-03 10:00:00.003 UTC [812]: user=app,db=shop,app=pgAdmin 4 - DB:shop,client=10.0.1.2 ",
                812,
                ["app", "shop", "pgAdmin 4 - DB:shop", "10.0.1.2"],
            ),
            ("2025-11-03 10:00:00.003 UTC [812] ", 812, ["", "", "", ""]),
            ("2025-11-03 10:00:00 CET [812] app@shop ", 812, ["app", "shop", "", ""]),
            ("2025-11-03 10:00:00 UTC:10.0.0.1(5432):app@shop:[812]:", 812, ["app", "shop", "", "10.0.0.1"]),
            ("2025-11-03 10:00:00.003 UTC [812]: [4-1] db=shop,user=app ", 812, ["app", "shop", "", ""]),
            ("1762164000.123 [812] ", 812, ["", "", "", ""]),
            ("2025-11-03 10:00:00+01 [812]: [1] u=app|d=shop|h=h1 ", 812, ["app", "shop", "", "h1"]),
        ] {
            let prefix = Prefix::from_lines(&[line.as_bytes()]);
            let fields = prefix.parse(line.as_bytes()).unwrap_or_else(|| panic!("{line}: {prefix:?}"));
            assert!(fields.at_us.is_some_and(|at| at > 1_762_000_000_000_000), "{line}");
            assert_eq!((fields.pid, words(&fields)), (pid, expected.map(str::to_owned)), "{line}: {prefix:?}");
        }
    }

    #[test]
    fn a_setting_is_read_as_the_server_reads_it() {
        let prefix = Prefix::from_setting("%m [%p] %q%u@%d 100%% ");
        let line = "2025-11-03 10:00:00.003 UTC [812] app@shop 100% ";
        assert_eq!(words(&prefix.parse(line.as_bytes()).unwrap()), ["app", "shop", "", ""].map(str::to_owned));
        let of_server = prefix.parse(b"2025-11-03 10:00:00.003 UTC [9] ").unwrap();
        assert_eq!((of_server.pid, of_server.user), (9, &b""[..]));
        assert_eq!(prefix.parse(b"2025-11-03 [9] "), None);
    }
}
