//! Logs of databases: the first byte says which kind, the rest is the log. It is read whole and in two blocks, cut where the
//! format says. No record is counted more often than there are lines, what comes out can be written, and where a record can't hold
//! what looks like another the two ways have the same outcome. The same bytes also as a statement: its key ends, and so do its
//! redacted text and pt-query-digest's fingerprint, bounded.
#![no_main]

use holdup_digest::block::{Block, Cut};
use holdup_digest::format::{Cutter, Format, Reader};
use holdup_digest::postgres::entry::tie;
use holdup_digest::report::{Order, Report};
use holdup_digest::run::Outcome;
use holdup_digest::select::Select;
use holdup_digest::tally::{Identity, Tally};
use holdup_sql::{Dialect, PtOptions, digest_text, key, pt_fingerprint, redact};
use libfuzzer_sys::fuzz_target;

fn read(format: Format, identity: Identity, log: &[u8], at: Option<usize>) -> String {
    let empty = || Tally::new(format.dialect(), identity, Select::default());
    let mut tally = empty();
    let mut reader = Reader::new(format, log, None);
    let cutting = empty();
    let cutter = Cutter { format, tally: &cutting };
    let (first, second) = log.split_at(at.unwrap_or(log.len()));
    let mut block = Block { data: first.to_vec(), ..Block::default() };
    let context = cutter.context(first, &block.context);
    reader.read(&block, &mut tally);
    if !second.is_empty() {
        block = Block { data: second.to_vec(), offset: first.len() as u64, context, ..Block::default() };
        reader.read(&block, &mut tally);
    }
    reader.finish(&mut tally);
    tie(&mut tally);
    // A record begins with a line; of a JSON object or the like there is one a line.
    let lines = log.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!(tally.events <= lines + 2, "{} events of {lines} lines", tally.events);
    let report = Report::of(&Outcome { files: Vec::new(), tally }, &Order::TotalTime, 0);
    assert!(!report.text().chars().any(|letter| letter.is_control() && letter != '\n'));
    serde_json::to_string(&report).expect("a report can be written")
}

fuzz_target!(|input: &[u8]| {
    let Some((first, log)) = input.split_first() else { return };
    let (_, format) = Format::ALL[usize::from(*first) % Format::ALL.len()];
    let identity = if first & 0x80 == 0 { Identity::Holdup } else { Identity::Pt };
    let _ = Format::detect(log);
    let whole = read(format, identity, log, None);
    let tally = Tally::new(format.dialect(), identity, Select::default());
    if let Some(at) = (Cutter { format, tally: &tally }).last(log) {
        assert!(at > 0 && at < log.len());
        let parts = read(format, identity, log, Some(at));
        if matches!(format, Format::PostgresStderr | Format::PostgresJson) {
            assert_eq!(whole, parts);
        }
    }
    for dialect in [Dialect::MySql, Dialect::MySqlAnsiQuotesNoBackslashEscapes, Dialect::PostgreSql] {
        // The same without what is between its literals is the same text.
        if let Some(one) = key(log, dialect) {
            assert_eq!(Some(one), key(log, dialect));
        }
        assert!(redact(log, dialect, 1_000).len() <= 1_000 + 4 * log.len());
        let _ = digest_text(log, dialect);
    }
    let fingerprint = pt_fingerprint(log, PtOptions::default());
    assert!(fingerprint.len() <= 4 * log.len() + 32);
});
