//! Logs of databases: the first byte says which kind, the rest is the log. It is read whole and in two blocks, cut where the
//! format says. Captures and dumps are logs here, too. No record of a log is counted more often than there are lines, what comes out can be written, and where a record can't hold
//! what looks like another the two ways have the same outcome. The same bytes also as a statement: its key ends, and so do its
//! redacted text and pt-query-digest's fingerprint, bounded.
#![no_main]

use holdup_logs::digest::block::{Block, Cut};
use holdup_logs::digest::format::{Cutter, Format, Reader};
use holdup_logs::digest::postgres::entry::tie;
use holdup_logs::digest::report::{Order, Report};
use holdup_logs::digest::run::Outcome;
use holdup_logs::digest::select::Select;
use holdup_logs::digest::tally::{Identity, Tally};
use holdup_sql::rewrite::{distill, tables};
use holdup_sql::{Dialect, digest_text, key, pt_fingerprint, redact};
use libfuzzer_sys::fuzz_target;

fn read(format: Format, identity: Identity, log: &[u8], at: Option<usize>) -> String {
    let empty = || Tally::new(format.dialect(), identity, Select::default());
    let mut tally = empty();
    let mut reader = Reader::new(format, log, None);
    let cutter = Cutter { format, dialect: format.dialect() };
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
    // Of dumps one row has many; of packets there are not as many as bytes.
    let is_whole = format.is_whole();
    assert!(tally.events <= lines + 2 || is_whole, "{} events of {lines} lines", tally.events);
    assert!(format != Format::Packets || tally.events <= log.len() as u64);
    tally.settle();
    let report = Report::from_outcome(&Outcome { files: Vec::new(), tally }, &Order::TotalTime, 0);
    assert!(!report.text().chars().any(|letter| letter.is_control() && letter != '\n'));
    serde_json::to_string(&report).expect("a report can be written")
}

fuzz_target!(|input: &[u8]| {
    let Some((first, log)) = input.split_first() else { return };
    let (_, format) = Format::ALL[usize::from(*first) % Format::ALL.len()];
    let identity = if first & 0x80 == 0 { Identity::Holdup } else { Identity::Pt };
    let _ = Format::detect(log);
    let whole = read(format, identity, log, None);
    if let Some(at) = (Cutter { format, dialect: format.dialect() }).last(log).filter(|_| !format.is_whole()) {
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
    if let Some((sql, plan)) = holdup_logs::digest::plan::read(log) {
        assert!(sql.len() <= log.len() && plan.steps.len() <= 16 << 10);
        assert!(!plan.shape.contains('\''));
    }
    if let Ok(text) = std::str::from_utf8(log) {
        assert!(distill(text).len() <= 4 * text.len() + 64);
        let _ = tables(text);
    }
    let fingerprint = pt_fingerprint(log);
    assert!(fingerprint.len() <= 4 * log.len() + 32);
});
