//! How far the clocks of two sets of rows are apart, by what both saw: requests with one trace id or
//! captured on both ends, counters with the same values, a device whose load rose and fell, or segments
//! of the same connections. Time stamps alone show nothing, because each is by its own clock. Pure: rows in, an offset with its error out.

mod exchanges;
mod segments;
mod traces;

use std::collections::BTreeMap;

use holdup_recording::tables::Tables;
use holdup_recording::{Batch, Labels};

use exchanges::by_exchanges;
pub use segments::{Segment, Segments, offset_by_segments};
use traces::by_traces;

const SECOND_NS: i64 = 1_000_000_000;

/// Requests that both saw, at least.
const TRACES_MIN: usize = 3;

/// Points that a counter needs to be followed.
const POINTS_MIN: usize = 4;

/// Values of a counter below this are common to many, and prove nothing.
const TELLING: f64 = 1_000.0;

/// Counters that have to agree, or readings of one.
const READINGS_MIN: usize = 3;

/// Readings agree if they are this near to their median, nanoseconds.
const AGREE_NS: i64 = 5 * SECOND_NS;

/// Seconds that two loads of a device have to share.
const OVERLAP_S: i64 = 20;

/// Longest stretch that is compared second by second.
const COMPARED_S: i64 = 3_600;

/// Most comparisons of seconds, over all devices and offsets.
const COMPARISONS_MAX: usize = 50_000_000;

/// Correlation (0-1) from which on two loads are the same one, and its lead over any other offset.
const SAME: f64 = 0.9;
const LEAD: f64 = 0.15;

/// Offsets as near as this to the best count as the same, seconds.
const NEAR_S: i64 = 8;

/// How far a clock is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// What to add to the times of the second set, nanoseconds.
    pub offset_ns: i64,
    /// How far that may be off, nanoseconds.
    pub error_ns: i64,
    /// What both saw.
    pub by: Shared,
    /// How often.
    pub count: usize,
}

/// What two sets of rows have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Requests with the same trace id.
    Traces,
    /// Segments of the same connections.
    Segments,
    /// Requests that were captured on both ends of their connection.
    Exchanges,
    /// Counters that had the same values.
    Counters,
    /// The load of the same devices.
    Loads,
}

impl Shared {
    /// In words, after a number.
    pub fn words(self) -> &'static str {
        match self {
            Self::Traces => "shared trace ids",
            Self::Segments => "segments of the same connections",
            Self::Exchanges => "requests captured on both ends",
            Self::Counters => "equal readings of the same counters",
            Self::Loads => "loads of the same device",
        }
    }
}

impl Offset {
    /// Whether the clocks differ by more than the error.
    pub fn is_known(&self) -> bool {
        self.offset_ns.saturating_abs() > self.error_ns
    }
}

/// The offset of the clock of `other` against that of `known`; none if they share nothing.
pub fn offset(known: &Batch, other: &Batch) -> Option<Offset> {
    let by_requests = nearest(by_traces(known.into(), other.into()), by_exchanges(&known.exchanges, &other.exchanges));
    by_requests.or_else(|| by_counters(known, other)).or_else(|| by_loads(known, other))
}

/// The same for two hosts: counters and loads of another machine are not those of the first.
pub fn between_hosts(known: &Tables, other: &Tables) -> Option<Offset> {
    nearest(by_traces(known.into(), other.into()), by_exchanges(&known.exchanges.rows, &other.exchanges.rows))
}

/// The one with the smaller error.
fn nearest(a: Option<Offset>, b: Option<Offset>) -> Option<Offset> {
    a.into_iter().chain(b).min_by_key(|found| found.error_ns)
}

fn median(mut all: Vec<i64>) -> Option<i64> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

/// Times and values.
type Points = Vec<(i64, f64)>;

/// Series by metric and labels; of several sources the one with the most points.
fn series(batch: &Batch) -> BTreeMap<(&str, &Labels), Points> {
    let mut by_source: BTreeMap<(&str, &Labels, &str), Points> = BTreeMap::new();
    for row in &batch.samples {
        by_source.entry((&row.metric, &row.labels, &row.source)).or_default().push((row.observed_at, row.value));
    }
    let mut all: BTreeMap<(&str, &Labels), Points> = BTreeMap::new();
    for ((metric, labels, _), mut points) in by_source {
        points.sort_by_key(|(at, _)| *at);
        let one = all.entry((metric, labels)).or_default();
        if one.len() < points.len() {
            *one = points;
        }
    }
    all
}

/// Whether it only grows, and does grow.
fn grows(points: &[(i64, f64)]) -> bool {
    points.windows(2).all(|pair| pair[0].1 <= pair[1].1)
        && points.first().zip(points.last()).is_some_and(|(first, last)| first.1 < last.1)
}

/// A value of a counter that the other set read, too, was read at the time at which it passed
/// there. Counters that holdup made of rates begin at 0 and do not count.
fn by_counters(known: &Batch, other: &Batch) -> Option<Offset> {
    let (known, other) = (series(known), series(other));
    let mut readings: Vec<(i64, i64)> = Vec::new();
    for (key, points) in &other {
        let Some(ours) = known.get(key).filter(|ours| ours.len() >= POINTS_MIN && grows(ours)) else { continue };
        let is_reading = |points: &[(i64, f64)]| points.first().is_some_and(|(_, value)| *value >= TELLING);
        if !is_reading(ours) || !is_reading(points) || points.len() > 1 && !grows(points) {
            continue;
        }
        for (at, value) in points {
            let Some(pair) = ours.windows(2).find(|pair| pair[0].1 < *value && *value <= pair[1].1) else { continue };
            let part = (value - pair[0].1) / (pair[1].1 - pair[0].1);
            let gap = pair[1].0.saturating_sub(pair[0].0);
            let passed = pair[0].0.saturating_add((part * gap as f64) as i64);
            readings.push((passed.saturating_sub(*at), gap / 2));
        }
    }
    let middle = median(readings.iter().map(|(offset, _)| *offset).collect())?;
    readings.retain(|(offset, _)| offset.saturating_sub(middle).saturating_abs() <= AGREE_NS);
    if readings.len() < READINGS_MIN {
        return None;
    }
    let offset_ns = median(readings.iter().map(|(offset, _)| *offset).collect())?;
    let spread =
        median(readings.iter().map(|(offset, _)| offset.saturating_sub(offset_ns).saturating_abs()).collect())?;
    let error_ns = readings.iter().map(|(_, error)| *error).min()?.max(spread);
    Some(Offset { offset_ns, error_ns, by: Shared::Counters, count: readings.len() })
}

/// Growth by second from the first point on.
struct Load {
    from_s: i64,
    per_second: Vec<f64>,
    /// The longest usual step between points, nanoseconds.
    step_ns: i64,
}

impl Load {
    fn of(points: &[(i64, f64)]) -> Option<Self> {
        let (first, last) = (points.first()?.0 / SECOND_NS, points.last()?.0 / SECOND_NS);
        let seconds = last - first;
        if points.len() < POINTS_MIN || !(OVERLAP_S..=COMPARED_S).contains(&seconds) || !grows(points) {
            return None;
        }
        let mut per_second = vec![0.0; usize::try_from(seconds).ok()?];
        for pair in points.windows(2) {
            let (from, to) = (pair[0].0 / SECOND_NS - first, pair[1].0 / SECOND_NS - first);
            let rate = (pair[1].1 - pair[0].1) / (to - from).max(1) as f64;
            for second in from..to {
                per_second[usize::try_from(second).ok()?] = rate;
            }
        }
        let step_ns = median(points.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect())?;
        Some(Self { from_s: first, per_second, step_ns })
    }

    /// Correlation (-1 to 1) with `other` moved by `seconds`; none if they share too little.
    fn with(&self, other: &Self, seconds: i64) -> Option<f64> {
        let shift = other.from_s + seconds - self.from_s;
        let from = usize::try_from(shift.max(0)).ok()?;
        let skipped = usize::try_from((-shift).max(0)).ok()?;
        let (ours, theirs) = (self.per_second.get(from..)?, other.per_second.get(skipped..)?);
        let shared = ours.len().min(theirs.len());
        let least = self.per_second.len().min(other.per_second.len()) / 2;
        (shared >= least.max(OVERLAP_S as usize)).then(|| correlation(&ours[..shared], &theirs[..shared]))?
    }
}

fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut both, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        (both, of_a, of_b) = (both + a * b, of_a + a * a, of_b + b * b);
    }
    let all = (of_a * of_b).sqrt();
    (all > 0.0).then(|| both / all)
}

/// The load of one device rose and fell at the same moments for every reader.
fn by_loads(known: &Batch, other: &Batch) -> Option<Offset> {
    let (known, other) = (series(known), series(other));
    let pairs: Vec<(Load, Load)> = other
        .iter()
        .filter_map(|(key, points)| Some((Load::of(known.get(key)?)?, Load::of(points)?)))
        .take(40)
        .collect();
    let first = pairs.first()?;
    let reach = (first.0.per_second.len() + first.1.per_second.len()) as i64;
    // Long stretches of many devices would take minutes: a few devices show as much.
    let each = first.0.per_second.len() * first.1.per_second.len();
    let pairs = pairs.get(..(COMPARISONS_MAX / each.max(1)).max(1)).unwrap_or(&pairs);
    let middle = first.0.from_s - first.1.from_s;
    // The sum over the devices, of those that show anything at this offset.
    let mut all: Vec<(i64, f64)> = Vec::new();
    for seconds in middle - reach..=middle + reach {
        let found: Vec<f64> = pairs.iter().filter_map(|(ours, theirs)| ours.with(theirs, seconds)).collect();
        if !found.is_empty() {
            all.push((seconds, found.iter().sum::<f64>() / found.len() as f64));
        }
    }
    let (best, how) = all.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let rival =
        all.iter().filter(|(seconds, _)| (seconds - best).abs() > NEAR_S).map(|(_, how)| *how).fold(0.0, f64::max);
    if how < SAME || rival > how - LEAD {
        return None;
    }
    let step = pairs.iter().map(|(ours, theirs)| ours.step_ns.max(theirs.step_ns)).min()?;
    let error_ns = (step / 2).max(SECOND_NS);
    Some(Offset { offset_ns: best * SECOND_NS, error_ns, by: Shared::Loads, count: pairs.len() })
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::{Request, Sample, Span};

    use super::*;

    const MS: i64 = 1_000_000;

    fn sample(source: &str, at: i64, value: f64) -> Sample {
        let (source, metric) = (source.to_owned(), "a_counter_total".to_owned());
        Sample { observed_at: at, window_ns: 0, source, metric, labels: Labels::none(), value }
    }

    #[test]
    fn the_server_side_of_a_request_lies_within_the_clients() {
        let mut client = Batch::default();
        let mut server = Batch::default();
        for n in 0..5_i64 {
            let at = n * SECOND_NS;
            let trace_id = Some(format!("trace-{n}"));
            client.requests.push(Request {
                intended_at: at,
                sent_at: Some(at),
                done_at: at + 100 * MS,
                trace_id,
                ..Request::default()
            });
            // Its clock is 7 s behind; the network takes 10 ms each way at least.
            let (from, took) = (at + 10 * MS + n * MS - 7 * SECOND_NS, 80 * MS - n * MS);
            server.spans.push(Span {
                trace_id: format!("trace-{n}"),
                started_at: from,
                duration_ns: took,
                ..Span::default()
            });
        }
        let found = offset(&client, &server).unwrap();
        assert_eq!((found.by, found.count), (Shared::Traces, 5));
        assert!((found.offset_ns - 7 * SECOND_NS).abs() <= found.error_ns && found.error_ns <= 25 * MS, "{found:?}");
        // The other way round.
        let back = offset(&server, &client).unwrap();
        assert_eq!(back.offset_ns, -found.offset_ns);
        client.requests.truncate(2);
        assert_eq!(offset(&client, &server), None);
    }

    #[test]
    fn a_counter_passes_each_value_once() {
        let mut watched = Batch::default();
        for second in 0..60_i64 {
            watched.samples.push(sample("mysql://h:3306", second * SECOND_NS, 5_000.0 + 40.0 * second as f64));
        }
        let mut pasted = Batch::default();
        for (second, value) in [(3_610, 5_400.0), (3_620, 5_800.0), (3_630, 6_200.0)] {
            pasted.samples.push(sample("mysql://pasted", second * SECOND_NS, value));
        }
        let found = offset(&watched, &pasted).unwrap();
        assert_eq!((found.by, found.count, found.offset_ns), (Shared::Counters, 3, -3_600 * SECOND_NS));
        assert_eq!(found.error_ns, SECOND_NS / 2);
        assert!(found.is_known());
        // A rate's counter begins at 0, and its values mean nothing elsewhere.
        pasted.samples.iter_mut().for_each(|row| row.value -= 5_400.0);
        assert_eq!(offset(&watched, &pasted), None);
    }

    #[test]
    fn loads_of_a_device_rise_and_fall_together() {
        let rate = |second: i64| {
            if (20..35).contains(&second) || (60..63).contains(&second) { 900.0 } else { 10.0 + (second % 3) as f64 }
        };
        let counter = |from: i64, to: i64, moved: i64| {
            let mut batch = Batch::default();
            let mut value = 0.0;
            for second in from..to {
                batch.samples.push(sample("host", (second + moved) * SECOND_NS, value));
                value += rate(second);
            }
            batch
        };
        let found = offset(&counter(0, 100, 0), &counter(10, 80, -45)).unwrap();
        assert_eq!((found.by, found.offset_ns), (Shared::Loads, 45 * SECOND_NS));
        // A steady load looks the same at any offset.
        let steady = |from: i64| {
            let mut batch = Batch::default();
            batch.samples.extend((0..60).map(|s| sample("host", (from + s) * SECOND_NS, 10.0 * s as f64)));
            batch
        };
        assert_eq!(offset(&steady(0), &steady(30)), None);
    }
}
