//! Access logs and traces in files. The first byte says which: with bit 7 traces, of the kind in its two lowest bits;
//! with bit 6 the first line is the log's format; else the format is found by the lines. What comes out is finite and
//! never falls, the same again, and of a size that is bounded.
#![no_main]

use holdup_access::lines::Lines;
use holdup_access::{AccessLog, Account, Format};
use holdup_import::traces::{TraceKind, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    if first & 128 != 0 {
        let kind = [TraceKind::Otlp, TraceKind::Jaeger, TraceKind::Zipkin, TraceKind::Csv][usize::from(first % 4)];
        let mut total = 0;
        let _ = read(kind, bytes, "file", None, &mut |body| total += body.len());
        assert!(total <= 4_000 + 600 * bytes.len(), "{total} bytes");
        return;
    }
    let (format, bytes) = if first & 64 != 0 {
        let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
        let (line, rest) = bytes.split_at(end);
        (Format::from_user(&String::from_utf8_lossy(line)).ok(), rest)
    } else {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().take(20).collect();
        (Format::detect(&lines).map(|(format, _)| format), bytes)
    };
    let Some(format) = format else { return };
    assert_eq!(rows(&account(format.clone(), bytes)), rows(&account(format, bytes)));
});

fn account(format: Format, bytes: &[u8]) -> Account {
    let mut log = AccessLog::new(format);
    let mut lines = Lines::new(bytes);
    loop {
        let number = lines.number + 1;
        let Ok(Some(line)) = lines.next_line() else { break };
        log.line("file", number, line);
    }
    log.finish()
}

fn rows(account: &Account) -> Vec<(i64, String, String, f64)> {
    assert!(account.counts.unreadable + account.counts.untimed <= account.counts.lines);
    let mut rows: Vec<(i64, String, String, f64)> = Vec::new();
    account.timeline.samples("access_log:file", &mut |row| {
        assert!(row.value.is_finite() && row.value >= 0.0 && row.observed_at > 0, "{row:?}");
        rows.push((row.observed_at, row.metric, format!("{:?}", row.labels), row.value));
    });
    let mut last = std::collections::HashMap::new();
    for (_, metric, labels, value) in &rows {
        let before = last.insert((metric, labels), *value).unwrap_or(0.0);
        assert!(before <= *value, "{metric} {labels} fell");
    }
    rows
}
