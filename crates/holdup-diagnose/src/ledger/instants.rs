//! Counts at instants as shares of the time of requests: at an instant so many requests were with
//! the service, and so many of them at each part. Over many instants that is Little's law on both
//! sides (L = λW, with one λ).

use holdup_recording::rows::Request;

use super::Intervals;

/// Instants within this of a request's end describe it, nanoseconds: single ones are too few for a
/// share.
const AROUND_NS: i64 = 2_500_000_000;

/// The count at each part at one instant, and the requests that were with the service.
pub(super) struct Instant<const N: usize> {
    pub at: i64,
    pub counts: [f64; N],
    pub in_flight: f64,
}

impl<const N: usize> Instant<N> {
    pub fn new(at: i64, counts: [f64; N]) -> Self {
        Self { at, counts, in_flight: 0.0 }
    }
}

/// Index of the instant `at`, if it is one.
pub(super) fn find<const N: usize>(instants: &[Instant<N>], at: i64) -> Option<usize> {
    instants.binary_search_by_key(&at, |instant| instant.at).ok()
}

/// Counts `requests` at the `instants` (in time order) at which they were with the service.
pub(super) fn count<const N: usize>(instants: &mut [Instant<N>], requests: &[&Request]) {
    for request in requests {
        let Some(sent_at) = request.sent_at else { continue };
        let from = instants.partition_point(|instant| instant.at < sent_at);
        let to = instants.partition_point(|instant| instant.at < request.done_at);
        for instant in instants.iter_mut().take(to).skip(from) {
            instant.in_flight += request.count() as f64;
        }
    }
}

/// The shares of the first parts, which are called `names`; only those that are not empty.
pub(super) fn parts<const N: usize>(instants: &[Instant<N>], names: &[&'static str]) -> Vec<(&'static str, Intervals)> {
    let all = names.iter().enumerate().map(|(part, name)| (*name, shares(instants, part)));
    all.filter(|(_, shares)| shares.iter().any(|(.., share)| *share > 0.0))
        .map(|(name, shares)| (name, Intervals(shares)))
        .collect()
}

fn shares<const N: usize>(instants: &[Instant<N>], part: usize) -> Vec<(i64, i64, f64)> {
    let share = |here: &Instant<N>| {
        let near = around(instants, here.at).iter();
        let (own, flying, all) = near.fold((0.0, 0.0, 0.0), |(own, flying, all), instant| {
            (own + instant.counts[part], flying + instant.in_flight, all + instant.counts.iter().sum::<f64>())
        });
        // Sessions busy for others, and for requests that clients gave up, do not belong to these
        // requests.
        (here.at - AROUND_NS, here.at + AROUND_NS, own / f64::max(flying, all).max(1e-9))
    };
    disjoint(instants.iter().map(share).collect())
}

/// Those of `instants` (in time order) within [`AROUND_NS`] of `at`.
pub(super) fn around<const N: usize>(instants: &[Instant<N>], at: i64) -> &[Instant<N>] {
    let from = instants.partition_point(|instant| instant.at < at - AROUND_NS);
    let to = instants.partition_point(|instant| instant.at <= at + AROUND_NS);
    &instants[from..to]
}

/// The same intervals, each ending halfway to the next.
fn disjoint(mut shares: Vec<(i64, i64, f64)>) -> Vec<(i64, i64, f64)> {
    let middle = |(from, to, _): (i64, i64, f64)| i64::midpoint(from, to);
    for i in 1..shares.len() {
        let edge = i64::midpoint(middle(shares[i - 1]), middle(shares[i]));
        (shares[i - 1].1, shares[i].0) = (edge, edge);
    }
    shares
}
