//! What a fix gives back: the requests of an operation replayed with one part in half its time.
//!
//! A part is the own time of all spans of one kind: a statement, a downstream service, a step of the
//! app. The percentile is that of the replayed durations, so it may move by more than the mean, or
//! not at all.

use std::collections::HashMap;

use holdup_recording::words::{count, ms, round};
use serde::{Deserialize, Serialize};

use holdup_signals::app::accounts::label;
use holdup_signals::app::critical_path::Tree;
use holdup_signals::app::critical_path::spans::RequestTree;
use holdup_signals::app::traced::Operation;

/// The part (0-1) of its time that a shortened span keeps.
pub const KEPT: f64 = 0.5;

/// Fewer requests say nothing of the next ones.
const REQUESTS_LEAST: usize = 10;
/// Fewer have no 99th percentile: it would be the slowest one.
const REQUESTS_OF_P99: usize = 100;
/// Operations at most: those that took the most time.
const OPERATIONS: usize = 5;
/// Parts of an operation at most: the longest.
const PARTS: usize = 8;
/// Parts below this share (0-1) of the operation's time are left out.
const PART_RATIO: f64 = 0.02;

/// A gain below this share (0-1) of the operation's time counts as nothing.
const NOTHING: f64 = 0.005;

/// An operation and the critical path of its requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriticalPathReport {
    /// The name of its span.
    pub operation: String,
    /// The service that answers it.
    pub service: String,
    /// Traced requests that it rests on.
    pub requests: u64,
    /// Their mean duration in the service, milliseconds.
    pub mean_ms: f64,
    /// Their 99th percentile; none of fewer than a hundred.
    pub p99_ms: Option<f64>,
    /// Spans moved or cut because they stuck out of their parents: clocks, or a caller that gave up.
    pub clipped: u64,
    /// Spans left out because their parents ended before them.
    pub not_awaited: u64,
    /// The parts that took the most time, longest first.
    pub parts: Vec<PathPartReport>,
}

/// One part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathPartReport {
    /// `database`, `downstream`, `connection_pool_wait`, `cache`, `queue`, or `app` for a service's own
    /// time.
    pub part: String,
    /// The statement, the downstream service, or the name of the span.
    pub what: String,
    /// The service whose time it is.
    pub service: String,
    /// Requests that have it.
    pub requests: u64,
    /// Its time in a mean request, milliseconds, whether the request waits for it or not.
    pub ms: f64,
    /// The part of it that is on the critical path.
    pub path_ms: f64,
    /// How much less time it takes in a mean request if it takes half.
    pub faster_ms: f64,
    /// How much of the mean that gives back.
    pub saves_ms: f64,
    /// How much of the 99th percentile; none of fewer than a hundred requests.
    pub saves_p99_ms: Option<f64>,
    /// In words.
    pub text: String,
}

impl PathPartReport {
    /// Whether making it faster gives nothing back.
    pub fn saves_nothing(&self, of: &CriticalPathReport) -> bool {
        is_nothing(self.saves_ms, of.mean_ms) && is_nothing(self.saves_p99_ms.unwrap_or(0.0), of.mean_ms)
    }
}

/// Totals of one part, milliseconds of a mean request.
#[derive(Clone, Debug, Default)]
struct PartGain {
    service: String,
    resource: String,
    what: String,
    requests: u64,
    own_ms: f64,
    path_ms: f64,
    shortened_ms: f64,
    saves_ms: f64,
    saves_p99_ms: Option<f64>,
}

/// All requests of an operation, as they were.
struct Whole {
    requests: u64,
    mean_ms: f64,
    p99_ms: Option<f64>,
}

type PartKey<'a> = (&'a str, &'a str, &'a str);

/// A replayable request: its tree, and the part of each piece.
struct Replayable<'x> {
    tree: &'x Tree,
    part_of: Vec<usize>,
}

/// What a fix gives back in each of `operations`. Only requests that set off something have parts.
pub fn gains(operations: &[Operation<'_, '_>]) -> Vec<CriticalPathReport> {
    let enough = operations.iter().filter(|operation| operation.count() >= REQUESTS_LEAST).take(OPERATIONS);
    enough.map(of_operation).filter(|gains| !gains.parts.is_empty()).collect()
}

fn of_operation(operation: &Operation<'_, '_>) -> CriticalPathReport {
    let (mut keys, mut parts): (HashMap<PartKey<'_>, usize>, Vec<PartGain>) = (HashMap::new(), Vec::new());
    let mut requests = Vec::new();
    let (mut clipped, mut not_awaited, mut has_children) = (0, 0, false);
    let trees: Vec<RequestTree<'_>> = operation.trees().collect();
    for request in &trees {
        clipped += request.tree.clipped;
        not_awaited += request.tree.left_out;
        has_children |= request.tree.has_children();
        let mut part_of = Vec::new();
        for span in &request.spans {
            let key = (span.service.as_str(), span.resource.as_str(), label(span));
            part_of.push(*keys.entry(key).or_insert_with(|| {
                let named = |text: &str| text.to_owned();
                let (service, resource, what) = (named(key.0), named(key.1), named(key.2));
                parts.push(PartGain { service, resource, what, ..PartGain::default() });
                parts.len() - 1
            }));
        }
        for stretch in request.tree.path() {
            parts[part_of[stretch.piece]].path_ms += (stretch.to - stretch.from) as f64 / 1e6;
        }
        requests.push(Replayable { tree: &request.tree, part_of });
    }
    let durations: Vec<i64> = requests.iter().map(|request| request.tree.duration_ns()).collect();
    let count = requests.len() as f64;
    let mean_ms = mean_ms(&durations);
    parts.iter_mut().for_each(|part| part.path_ms /= count);
    let whole = Whole { requests: requests.len() as u64, mean_ms, p99_ms: p99_ms(&durations) };
    let parts = if has_children { replay_parts(parts, &requests, &whole) } else { Vec::new() };
    CriticalPathReport {
        operation: operation.name.to_owned(),
        service: operation.service.to_owned(),
        requests: whole.requests,
        mean_ms: round(mean_ms, 3),
        p99_ms: whole.p99_ms.map(|value| round(value, 3)),
        clipped,
        not_awaited,
        parts: parts.iter().map(|part| of_part(part, &whole)).collect(),
    }
}

/// The longest parts, each with what it gives back.
fn replay_parts(mut parts: Vec<PartGain>, requests: &[Replayable<'_>], whole: &Whole) -> Vec<PartGain> {
    let count = requests.len() as f64;
    let mut found = Vec::new();
    for request in requests {
        let mut own = request.tree.own_ns();
        own.sort_unstable_by_key(|(piece, _)| request.part_of[*piece]);
        for same in own.chunk_by(|a, b| request.part_of[a.0] == request.part_of[b.0]) {
            let part = &mut parts[request.part_of[same[0].0]];
            part.requests += 1;
            part.own_ms += same.iter().map(|(_, ns)| *ns as f64 / 1e6).sum::<f64>() / count;
        }
    }
    let mut longest: Vec<usize> = (0..parts.len()).collect();
    longest.sort_by(|a, b| parts[*b].own_ms.total_cmp(&parts[*a].own_ms));
    longest.retain(|part| parts[*part].own_ms >= PART_RATIO * whole.mean_ms && parts[*part].own_ms > 0.0);
    for number in longest.into_iter().take(PARTS) {
        let keep = |request: &Replayable<'_>, piece: usize| (request.part_of[piece] == number).then_some(KEPT);
        let replays = requests.iter().map(|request| request.tree.replay(|piece| keep(request, piece)));
        let (mut durations, mut shortened) = (Vec::new(), Vec::new());
        for replayed in replays {
            durations.push(replayed.duration_ns);
            shortened.push(replayed.shortened_ns);
        }
        let mut part = std::mem::take(&mut parts[number]);
        part.shortened_ms = mean_ms(&shortened);
        part.saves_ms = whole.mean_ms - mean_ms(&durations);
        part.saves_p99_ms = whole.p99_ms.zip(p99_ms(&durations)).map(|(then, now)| then - now);
        found.push(part);
    }
    found
}

fn of_part(part: &PartGain, whole: &Whole) -> PathPartReport {
    let name = match part.resource.as_str() {
        "http" => "downstream",
        "pool" => "connection_pool_wait",
        waits @ ("database" | "cache" | "queue") => waits,
        _ => "app",
    };
    let mean = (!is_nothing(part.saves_ms, whole.mean_ms)).then(|| format!("{} of the mean", ms(part.saves_ms)));
    let p99 = part.saves_p99_ms.filter(|saved| !is_nothing(*saved, whole.mean_ms));
    let p99 = p99.map(|saved| format!("{} of p99", ms(saved)));
    let saves: Vec<String> = mean.into_iter().chain(p99).collect();
    let saves = match saves.is_empty() {
        true => "nothing: what runs beside it ends later".to_owned(),
        false => saves.join(" and "),
    };
    PathPartReport {
        part: name.to_owned(),
        what: part.what.clone(),
        service: part.service.clone(),
        requests: part.requests,
        ms: round(part.own_ms, 3),
        path_ms: round(part.path_ms, 3),
        faster_ms: round(part.shortened_ms, 3),
        saves_ms: round(part.saves_ms, 3),
        saves_p99_ms: part.saves_p99_ms.map(|value| round(value, 3)),
        text: format!("{} faster saves {saves} ({} requests)", ms(part.shortened_ms), count(whole.requests)),
    }
}

fn is_nothing(saved_ms: f64, mean_ms: f64) -> bool {
    saved_ms < NOTHING * mean_ms
}

fn mean_ms(durations: &[i64]) -> f64 {
    durations.iter().map(|ns| *ns as f64 / 1e6).sum::<f64>() / durations.len().max(1) as f64
}

/// The nearest rank.
fn p99_ms(durations: &[i64]) -> Option<f64> {
    let rank = (durations.len() * 99).div_ceil(100).checked_sub(1).filter(|_| durations.len() >= REQUESTS_OF_P99)?;
    let mut sorted = durations.to_vec();
    Some(*sorted.select_nth_unstable(rank).1 as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Span;

    use super::*;
    use holdup_signals::Window;
    use holdup_signals::app::accounts::Sources;
    use holdup_signals::app::traced::Requests;
    use holdup_signals::testing::SyntheticRecording;

    fn report(made: &SyntheticRecording) -> Vec<CriticalPathReport> {
        let sources = Sources::new(made.recording());
        gains(&Requests::collect(&sources, Window { from: 0, to: i64::MAX }).operations())
    }

    /// Requests that ask two services at once, one for `slow_ms` and the other for `fast_ms`; 20 a second.
    fn made(slow_ms: i64, fast_ms: i64) -> SyntheticRecording {
        let span = |number: i64, id: &str, resource: &str, from_ms: i64, took_ms: i64| Span {
            started_at: number * 50_000_000 + from_ms * 1_000_000,
            duration_ns: took_ms * 1_000_000,
            source: "otlp".into(),
            service: "shop".into(),
            trace_id: format!("{:032x}", number + 1),
            span_id: Some(format!("{id}{number}")),
            parent_id: (resource == "http").then(|| format!("root{number}")),
            name: format!("GET /{id}"),
            kind: if resource == "http" { "client" } else { "server" }.into(),
            resource: resource.into(),
            system: (resource == "http").then(|| id.to_owned()),
            ..Span::default()
        };
        let rows = (0..200).flat_map(|n| {
            [
                span(n, "root", "request", 0, slow_ms.max(fast_ms) + 10),
                span(n, "stock", "http", 5, slow_ms),
                span(n, "price", "http", 5, fast_ms),
            ]
        });
        let rows: Vec<Span> = rows.collect();
        SyntheticRecording::new(10).tables(|tables| (tables.spans.present, tables.spans.rows) = (true, rows))
    }

    #[test]
    fn half_of_the_slower_of_two_calls_saves_until_the_other_is_the_path() {
        let paths = report(&made(80, 50));
        let [path] = paths.as_slice() else { panic!("{paths:?}") };
        assert_eq!((path.requests, path.mean_ms, path.p99_ms), (200, 90.0, Some(90.0)));
        let part = |what: &str| path.parts.iter().find(|part| part.what == what).expect("a part");
        let figures = |part: &PathPartReport| (part.ms, part.path_ms, part.faster_ms, part.saves_ms, part.saves_p99_ms);
        assert_eq!(figures(part("stock")), (80.0, 80.0, 40.0, 30.0, Some(30.0)));
        assert_eq!(figures(part("price")), (50.0, 0.0, 25.0, 0.0, Some(0.0)));
        assert_eq!(part("stock").text, "40.0 ms faster saves 30.0 ms of the mean and 30.0 ms of p99 (200 requests)");
        assert!(part("price").text.starts_with("25.0 ms faster saves nothing") && part("price").saves_nothing(path));
        assert_eq!(figures(part("GET /root")), (10.0, 10.0, 5.0, 5.0, Some(5.0)));
    }

    #[test]
    fn requests_that_set_off_nothing_and_a_handful_have_no_path() {
        let alone = made(80, 50).tables(|tables| tables.spans.rows.retain(|span| span.resource == "request"));
        assert!(report(&alone).is_empty());
        let few = made(80, 50).tables(|tables| tables.spans.rows.truncate(3 * 9));
        assert!(report(&few).is_empty());
        let some = report(&made(80, 50).tables(|tables| tables.spans.rows.truncate(3 * 99)));
        assert_eq!((some[0].p99_ms, some[0].parts[0].saves_p99_ms), (None, None));
    }
}
