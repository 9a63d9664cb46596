//! Several sources with clocks of their own: two files parted by a zero byte, each pasted text or a cloud's figures, and
//! the bytes of both as segments of connections. An offset has an error that is not negative, moving the second source
//! moves the offset by as much, and its clock then agrees.
#![no_main]

use holdup_import::aws::Figures;
use holdup_import::clocks::{Offset, Segment, Segments, offset, offset_by_segments};
use holdup_import::cloud;
use holdup_import::text::{Pasted, cut_documents};
use holdup_recording::rows::{Request, Sample};
use holdup_recording::{Batch, Labels};
use libfuzzer_sys::fuzz_target;

/// 2026-11-26 10:11:12 UTC.
const AT: i64 = 1_795_687_872_000_000_000;

/// A clock that is 90 s ahead.
const MOVED: i64 = 90_000_000_000;

/// Times and offsets of at most some decades move exactly.
const NEAR: i64 = 1_000_000_000_000_000_000;

fuzz_target!(|input: &[u8]| {
    let mut files = input.split(|byte| *byte == 0);
    let (first, second) = (files.next().unwrap_or_default(), files.next().unwrap_or_default());
    let (known, mut other) = (batch(first), batch(second));
    let found = offset(&known, &other);
    check(found);
    let is_near = other.samples.iter().all(|row| row.observed_at.saturating_sub(AT).abs() < NEAR);
    other.move_times(MOVED);
    if is_near {
        moved(found, offset(&known, &other));
    }
    let (known, mut other) = (segments(first), segments(second));
    let found = offset_by_segments(&known, &other);
    check(found);
    other.move_times(MOVED);
    moved(found, offset_by_segments(&known, &other));
});

fn check(found: Option<Offset>) {
    if let Some(found) = found {
        assert!(found.error_ns >= 0 && found.count > 0, "{found:?}");
    }
}

/// The offset of a clock that was moved.
fn moved(before: Option<Offset>, after: Option<Offset>) {
    let Some((before, after)) = before.zip(after).filter(|(before, _)| before.offset_ns.abs() < NEAR) else { return };
    // Halves of odd numbers are cut.
    let off = before.offset_ns - MOVED - after.offset_ns;
    assert!(before.by != after.by || off.abs() <= 2, "{before:?} {after:?}");
}

fn batch(file: &[u8]) -> Batch {
    let (documents, rest) = cut_documents(file, cloud::is_one);
    let mut pasted = Pasted::new(Some(2));
    pasted.read("file", &rest, AT);
    let mut batch = pasted.finish().batch;
    for document in &documents {
        if let Ok(figures) = cloud::read(document.text.as_bytes(), "file") {
            batch.samples.extend(samples(figures));
        }
    }
    // Words of the file as trace ids of requests, each a second later.
    for (word, at) in file.split(|byte| byte.is_ascii_whitespace()).zip((AT..).step_by(1_000_000_000)).take(50) {
        let length = word.len() as i64;
        batch.requests.push(Request {
            intended_at: at + length,
            sent_at: word.first().map(|byte| at + i64::from(*byte)),
            done_at: at + 1_000 * length,
            trace_id: Some(String::from_utf8_lossy(word).into_owned()),
            ..Request::default()
        });
    }
    batch
}

fn samples(figures: Figures) -> Vec<Sample> {
    let of = |series: holdup_import::aws::Series| {
        let labels = Labels::new(series.labels);
        let (source, metric, window_ns) = (series.source, series.metric, series.period_ns);
        series.points.into_iter().map(move |(observed_at, value)| Sample {
            observed_at,
            window_ns,
            source: source.clone(),
            metric: metric.clone(),
            labels: labels.clone(),
            value,
        })
    };
    figures.series.into_iter().flat_map(of).collect()
}

/// Ten bytes are a segment: its direction and connection, its number, and when it was seen.
fn segments(file: &[u8]) -> Segments {
    let mut all = Segments::default();
    for bytes in file.chunks_exact(10) {
        let port = 40_000 + u16::from(bytes[0] >> 1);
        let (client, server) = (([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 3306).into());
        let (from, to) = if bytes[0] & 1 == 0 { (client, server) } else { (server, client) };
        let seq = u32::from(bytes[1]);
        let late = bytes[2..8].iter().fold(0_i64, |all, byte| all << 8 | i64::from(*byte));
        all.add(Segment { from, to, seq }, AT.saturating_add(late));
    }
    all
}
