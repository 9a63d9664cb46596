//! PostgreSQL through syslog: a syslog header on every line, `[number-part]` behind it, long
//! messages in parts, parts of several processes mixed. One reader reassembles them, in order.

use std::collections::HashMap;

use super::entry::{Entries, Entry};
use super::prefix::Prefix;
use super::{continues, severity, severity_word};
use crate::digest::attribute::number;
use crate::digest::block::Block;
use crate::digest::event::Position;
use crate::digest::tally::Tally;
use crate::digest::time::date_time;

/// Most bytes kept of a message.
const MOST_BYTES: usize = 4 << 20;
/// Bytes of the shortest part that was cut for its length: old servers cut at 128, newer ones at
/// 900.
const LEAST_PART: usize = 100;
/// Lines from which the prefix is worked out.
const LOOKED_AT: usize = 400;

/// A line.
struct Line<'a> {
    pid: u64,
    /// Number of the part in its message, from 1; 0 if the line has none.
    part: u64,
    at_us: Option<i64>,
    text: &'a [u8],
}

/// Reads the header of a line; `None` if it does not come from PostgreSQL.
fn line(text: &[u8]) -> Option<Line<'_>> {
    let head = text.get(..text.len().min(256))?;
    // `postgres[123]: `, `app[postgres.123]: ` or the same without the colon.
    let mut from = 0;
    let (pid, mut at) = loop {
        from += memchr::memmem::find(head.get(from..)?, b"postgres")? + b"postgres".len();
        let rest = head.get(from..)?;
        let rest = rest.strip_prefix(b"ql").unwrap_or(rest);
        let Some(rest) = rest.strip_prefix(b"[").or(rest.strip_prefix(b".")) else { continue };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let Some(behind) = rest.get(digits..)?.strip_prefix(b"]") else { continue };
        let behind = behind.strip_prefix(b":").unwrap_or(behind);
        break (number(rest.get(..digits)?)?, head.len() - behind.len());
    };
    if text.get(at) == Some(&b' ') {
        at += 1;
    }
    let mut part = 0;
    while text.get(at) == Some(&b'[') {
        let rest = text.get(at + 1..)?;
        let end = memchr::memchr(b']', rest.get(..rest.len().min(64))?)?;
        let inner = rest.get(..end)?;
        at += end + 2;
        if text.get(at) == Some(&b' ') {
            at += 1;
        }
        let dash = inner.iter().position(|byte| *byte == b'-');
        if let Some(found) = dash.and_then(|dash| number(inner.get(dash + 1..)?)) {
            part = found;
            break;
        }
    }
    Some(Line { pid, part, at_us: time(text), text: text.get(at..)? })
}

/// Time of the header: with a year, or none.
fn time(text: &[u8]) -> Option<i64> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    if let Some((at, _)) = date_time(text) {
        return Some(at);
    }
    // `2008 Jan  9 16:16:34`
    let year = number(text.get(..4)?)?;
    let month = MONTHS.chunks(3).position(|month| Some(month) == text.get(5..8))? + 1;
    let day = number(text.get(9..11)?.trim_ascii())?;
    let clock = std::str::from_utf8(text.get(12..20)?).ok()?;
    date_time(format!("{year:04}-{month:02}-{day:02} {clock}").as_bytes()).map(|(at, _)| at)
}

/// Whether a log that begins with these bytes went through syslog.
pub fn is_syslog(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(LOOKED_AT);
    let (mut yes, mut all) = (0, 0);
    for text in lines {
        all += 1;
        yes += usize::from(line(text).is_some());
    }
    yes * 2 > all
}

/// A message of which more parts may come.
#[derive(Debug)]
struct Open {
    text: Vec<u8>,
    /// Bytes of its last part.
    last: usize,
    at_us: Option<i64>,
    position: Position,
}

/// A reader of logs that went through syslog.
#[derive(Debug)]
pub struct Syslog {
    prefix: Prefix,
    entries: Entries,
    open: HashMap<u64, Open>,
}

impl Syslog {
    /// A reader of the log that begins with `head`.
    pub fn new(head: &[u8], prefix: Option<&Prefix>) -> Self {
        let texts = head.split(|byte| *byte == b'\n').take(LOOKED_AT).filter_map(|text| Some(line(text)?.text));
        Self { prefix: Prefix::known_or_of(prefix, texts), entries: Entries::default(), open: HashMap::new() }
    }

    /// Reads a block of whole lines.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        // Lines of other programs in the same file are not an error.
        for (at, text, _) in block.lines() {
            if let Some(found) = line(text) {
                self.line(&found, block.position(at), tally);
            }
        }
    }

    fn line(&mut self, line: &Line, position: Position, tally: &mut Tally) {
        let begins = line.part <= 1 && severity(line.text).is_some()
            || severity(line.text).is_some_and(|(begin, end)| continues(severity_word(line.text, begin, end)));
        if begins {
            let open = Open { text: line.text.to_vec(), last: line.text.len(), at_us: line.at_us, position };
            if let Some(before) = self.open.insert(line.pid, open) {
                self.entry(line.pid, &before, tally);
            }
            return;
        }
        let Some(open) = self.open.get_mut(&line.pid) else {
            tally.problems.add(crate::digest::problem::Problem::NoBeginning, position);
            return;
        };
        if open.text.len() < MOST_BYTES {
            // Syslog writes a tab like this. A further line begins with it; without it, a long line
            // continues.
            let behind_tab =
                |text: &'_ [u8]| [&b"#011"[..], b"^I"].iter().find(|tab| text.starts_with(tab)).map(|tab| tab.len());
            let mut text = line.text;
            if behind_tab(text).is_some() || open.last < LEAST_PART {
                open.text.push(b'\n');
            }
            while let Some(tab) = behind_tab(text) {
                open.text.push(b'\t');
                text = text.get(tab..).unwrap_or_default();
            }
            open.text.extend_from_slice(text);
            open.last = line.text.len();
        }
    }

    fn entry(&mut self, pid: u64, open: &Open, tally: &mut Tally) {
        let Some((begin, message)) = severity(&open.text) else { return };
        let severity = severity_word(&open.text, begin, message);
        if continues(severity) && !tally.wants(severity) {
            return;
        }
        let mut fields = self.prefix.parse(open.text.get(..begin).unwrap_or_default()).unwrap_or_default();
        fields.at_us = fields.at_us.or(open.at_us);
        fields.pid = pid;
        let cut = open.text.len() >= MOST_BYTES;
        let entry = Entry {
            severity,
            message: open.text.get(message..).unwrap_or_default(),
            fields,
            position: open.position,
            cut,
            ..Entry::default()
        };
        self.entries.take(&entry, tally);
    }

    /// Ends the log: messages that waited for more parts are complete.
    pub fn finish(&mut self, tally: &mut Tally) {
        let mut rest: Vec<(u64, Open)> = self.open.drain().collect();
        rest.sort_by_key(|(_, open)| open.position);
        for (pid, open) in rest {
            self.entry(pid, &open, tally);
        }
        self.entries.end(tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::select::Select;
    use crate::digest::tally::Identity;

    #[test]
    fn parts_of_processes_are_put_together() {
        let log = concat!(
            "Feb 12 06:00:54 debian postgres[27]: [8-1] 2010-02-12 06:00:54.566 EST s=1,u=fred,D=shop LOG:  duration: 2 ms  statement: select a\n",
            "Feb 12 06:00:54 debian postgres[28]: [1-1] 2010-02-12 06:00:54.566 EST s=2,u=anna,D=shop LOG:  duration: 3 ms  statement: select 'x\n",
            "Feb 12 06:00:54 debian postgres[27]: [8-2] #011from t where b = 'c\n",
            "Feb 12 06:00:54 debian cron[1]: nothing\n",
            "Feb 12 06:00:54 debian postgres[28]: [1-2]  canary'\n",
            "Feb 12 06:00:54 debian postgres[27]: [8-3] canary'\n",
        );
        assert!(is_syslog(log.as_bytes()));
        let mut tally = Tally::new(holdup_sql::Dialect::PostgreSql, Identity::Holdup, Select::default());
        let mut reader = Syslog::new(log.as_bytes(), None);
        reader.read(&Block { data: log.as_bytes().to_vec(), ..Block::default() }, &mut tally);
        reader.finish(&mut tally);
        let mut texts: Vec<_> = tally
            .shapes
            .iter()
            .map(|shape| (shape.text.as_str(), shape.slowest.as_ref().unwrap().who[0].as_str()))
            .collect();
        texts.sort_unstable();
        assert_eq!(texts, [("select ?", "anna"), ("select a from t where b = ?", "fred")]);
        assert_eq!(
            time(b"2008 Jan  9 16:16:34 host").map(crate::digest::time::written),
            Some("2008-01-09 16:16:34".to_owned())
        );
    }
}
