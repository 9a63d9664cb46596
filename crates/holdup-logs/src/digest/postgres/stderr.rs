//! PostgreSQL's plain text log, as the server writes it to stderr or into files: a line with prefix
//! and severity begins an entry, and lines with a tab continue it. Clouds and containers may drop
//! the tabs.

use memchr::memchr;

use super::entry::{Entries, Entry};
use super::prefix::Prefix;
use super::{continues, severity, severity_word};
use crate::digest::block::Block;
use crate::digest::boundary;
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;

/// Lines from which the prefix is worked out.
const LOOKED_AT: usize = 400;

/// Whether an entry begins at `at`, the start of a line.
fn begins_entry(data: &[u8], at: usize) -> bool {
    let rest = data.get(at..).unwrap_or_default();
    !matches!(rest.first(), None | Some(b'\t' | b' ' | b'\n'))
        && severity(rest.get(..memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or_default()).is_some()
}

/// Whether the entry at `at` does not continue the previous one: parameters must not be separated
/// from their statement.
fn may_be_cut(data: &[u8], at: usize) -> bool {
    let rest = data.get(at..).unwrap_or_default();
    let line = rest.get(..memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or_default();
    begins_entry(data, at)
        && severity(line).is_some_and(|(begin, message)| !continues(severity_word(line, begin, message)))
}

/// Start of the last entry of a block, if it is not the first.
pub fn last_boundary(data: &[u8]) -> Option<usize> {
    boundary::last(data, may_be_cut)
}

/// The first start of an entry behind the beginning.
pub fn first_boundary(data: &[u8]) -> Option<usize> {
    boundary::next(data, 0, may_be_cut)
}

/// Number of the first lines that begin an entry, to recognise the log.
pub fn likeness(head: &[u8]) -> usize {
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"\t"));
    lines.take(LOOKED_AT).filter(|line| severity(line).is_some()).count()
}

/// A reader of PostgreSQL's text logs.
#[derive(Debug)]
pub struct Stderr {
    prefix: Prefix,
    entries: Entries,
}

impl Stderr {
    /// A reader of the log that begins with `head`, from which the prefix is worked out unless it
    /// is known.
    pub fn new(head: &[u8], prefix: Option<&Prefix>) -> Self {
        let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
        Self { prefix: Prefix::known_or_of(prefix, lines), entries: Entries::default() }
    }

    /// Reads a block, which begins at the start of an entry or of the file.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        let data = block.data.as_slice();
        let mut at = 0;
        while at < data.len() {
            at = self.entry(block, at, tally);
        }
        self.entries.end(tally);
    }

    /// Reads the entry at `at`; returns its end.
    fn entry(&mut self, block: &Block, at: usize, tally: &mut Tally) -> usize {
        let data = block.data.as_slice();
        let rest = data.get(at..).unwrap_or_default();
        let line = memchr(b'\n', rest).unwrap_or(rest.len());
        let Some((begin, message)) = severity(rest.get(..line).unwrap_or_default()) else {
            let text = rest.get(..line).unwrap_or_default().trim_ascii();
            if !text.is_empty() {
                tally.problems.add(Problem::Malformed, block.position(at));
            }
            return at + line + 1;
        };
        let mut end = line;
        // A continuation begins with a tab, or is not a line of a log.
        while let Some(next) = rest.get(end + 1) {
            if *next != b'\t' && begins_entry(rest, end + 1) {
                break;
            }
            let behind = rest.get(end + 1..).unwrap_or_default();
            end = end + 1 + memchr(b'\n', behind).unwrap_or(behind.len());
        }
        let severity = severity_word(rest, begin, message);
        let is_end = at + end >= data.len();
        if tally.wants(severity) || !continues(severity) {
            let prefix = rest.get(..begin).unwrap_or_default();
            let fields = self.prefix.parse(prefix).unwrap_or_default();
            let text = rest.get(message..end.min(rest.len())).unwrap_or_default();
            let (position, cut) = (block.position(at), block.cut && is_end);
            let entry = Entry { severity, message: text, fields, position, cut, ..Entry::default() };
            self.entries.take(&entry, tally);
        }
        at + end + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::attribute::{BIND_TIME, PARSE_TIME, QUERY_TIME};
    use crate::digest::postgres::entry::tie;
    use crate::digest::select::Select;
    use crate::digest::tally::Identity;
    use holdup_sql::Dialect;

    fn read(blocks: &[&str]) -> Tally {
        let mut tally = Tally::new(Dialect::PostgreSql, Identity::Holdup, Select::default());
        let whole = blocks.concat();
        let mut reader = Stderr::new(whole.as_bytes(), None);
        let mut offset = 0;
        for block in blocks {
            reader.read(&Block { data: block.as_bytes().to_vec(), offset, ..Block::default() }, &mut tally);
            offset += block.len() as u64;
        }
        tie(&mut tally);
        tally
    }

    fn texts(tally: &Tally) -> Vec<(&str, u64, u128)> {
        let time = |shape: &crate::digest::shape::Shape| shape.measure(QUERY_TIME).map_or(0, |time| time.sum);
        tally.shapes.iter().map(|shape| (shape.text.as_str(), shape.calls, time(shape))).collect()
    }

    const P: &str = "2025-11-03 10:00:00.003 UTC [812]: user=app,db=shop,app=web,client=10.0.0.1 ";

    #[test]
    fn executions_and_their_parts_are_read() {
        let tally = read(&[&format!(
            "{P}LOG:  duration: 1.500 ms  statement: SELECT a\n\tFROM t WHERE b = 'LOG:  x'\n\
             {P}LOG:  duration: 0.010 ms  parse <unnamed>: select $1\n{P}LOG:  duration: 0.020 ms  bind <unnamed>: select $1\n\
             {P}DETAIL:  parameters: $1 = 'canary'\n{P}LOG:  duration: 2.000 ms  execute S_1: select $1\n{P}DETAIL:  parameters: $1 = 'canary'\n\
             {P}ERROR:  duplicate key value violates unique constraint \"k\"\n{P}DETAIL:  Key (a)=(canary) already exists.\n{P}STATEMENT:  select canary\n\
             {P}LOG:  temporary file: path \"base/x\", size 2048\n{P}LOG:  connection received: host=h port=1\n"
        )]);
        assert_eq!(texts(&tally), [("SELECT a FROM t WHERE b = ?", 1, 1_500), ("select ?", 1, 2_000)]);
        let parts = [PARSE_TIME, BIND_TIME].map(|part| tally.shapes[1].measure(part).map(|time| time.sum));
        assert_eq!(parts, [Some(10), Some(20)]);
        assert_eq!(tally.server.counts.get("connections_received"), Some(&1));
        assert_eq!(tally.server.figures["temporary_file_bytes"].sum, 2_048);
        assert_eq!(tally.server.messages.len(), 1);
        let slowest = tally.shapes[0].slowest.as_ref().unwrap();
        assert_eq!(slowest.who, ["app", "10.0.0.1", "shop", "web"].map(str::to_owned));
        assert_eq!(tally.problems.all().count(), 0);
    }

    #[test]
    fn a_duration_finds_its_statement_also_in_another_block() {
        let parts = [
            format!("{P}LOG:  statement: select 1\n"),
            format!("{P}LOG:  duration: 3.000 ms\n{P}LOG:  statement: select a\n"),
            format!("{P}LOG:  duration: 4.000 ms\n{P}LOG:  duration: 5.000 ms\n"),
        ];
        let expected = [("select ?", 1, 3_000), ("select a", 1, 4_000)];
        let apart = read(&[&parts[0], &parts[1], &parts[2]]);
        assert_eq!(texts(&apart), expected);
        assert_eq!(texts(&read(&[&parts.concat()])), expected);
        assert_eq!(
            apart.problems.all().map(|(problem, count, _)| (problem, count)).collect::<Vec<_>>(),
            [(Problem::DurationWithoutStatement, 1)]
        );
    }

    #[test]
    fn lines_that_lost_their_tab_go_on() {
        let tally = read(&[&format!(
            "{P}LOG:  duration: 1.000 ms  statement: SELECT a\nFROM t\n\nWHERE b = 1\n{P}LOG:  duration: 1.000 ms  statement: x\n"
        )]);
        assert_eq!(texts(&tally)[0].0, "SELECT a FROM t WHERE b = ?");
        let text = format!("{P}LOG:  a\n\tb\n{P}LOG:  c\n\td");
        assert_eq!(last_boundary(text.as_bytes()), Some(P.len() + 11));
        assert_eq!(first_boundary(text.as_bytes()), Some(P.len() + 11));
        // What goes on with an entry stays with it.
        let text = format!("{P}LOG:  a\n{P}LOG:  c\n{P}DETAIL:  parameters: $1 = '5'\n");
        assert_eq!(last_boundary(text.as_bytes()), Some(P.len() + 8));
    }
}
