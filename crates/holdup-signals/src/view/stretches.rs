//! The part of a series or a table that lies in a window, without a scan of all of it: a day is far
//! longer than any window.

use crate::Window;

/// Rows whose times are checked together.
const CHUNK: usize = 1_024;

/// Time index of a table: the first and the last time of each [`CHUNK`] rows, which come nearly in
/// order.
#[derive(Default)]
pub struct Stretches(Vec<(i64, i64)>);

impl Stretches {
    /// Indexes `rows` by the time `at`.
    pub fn new<R>(rows: &[R], at: impl Fn(&R) -> i64) -> Self {
        let stretch = |chunk: &[R]| {
            let times = || chunk.iter().map(&at);
            (times().min().unwrap_or_default(), times().max().unwrap_or_default())
        };
        Self(rows.chunks(CHUNK).map(stretch).collect())
    }

    /// The rows that may lie in `window`, in order, and few others. `rows` must be the indexed
    /// ones.
    pub fn near<'r, R>(&self, rows: &'r [R], window: Window) -> impl Iterator<Item = &'r R> {
        let chunks = rows.chunks(CHUNK).zip(&self.0);
        chunks.filter(move |(_, (first, last))| *last >= window.from && *first < window.to).flat_map(|(chunk, _)| chunk)
    }
}

/// The points of `series` in `window`.
pub fn within(series: &[(i64, f64)], window: Window) -> &[(i64, f64)] {
    let from = series.partition_point(|(at, _)| *at < window.from);
    let to = series.partition_point(|(at, _)| *at < window.to);
    series.get(from..to).unwrap_or_default()
}

/// Adjacent points of `series` whose middle lies in `window`.
pub fn pairs(series: &[(i64, f64)], window: Window) -> impl Iterator<Item = ((i64, f64), (i64, f64))> + '_ {
    // The middle lies between both, so one of them may lie outside.
    let from = series.partition_point(|(at, _)| *at < window.from).saturating_sub(1);
    let to = series.partition_point(|(at, _)| *at < window.to).saturating_add(1).min(series.len());
    let near = series.get(from..to).unwrap_or_default().windows(2).map(|pair| (pair[0], pair[1]));
    near.filter(move |(a, b)| window.contains(a.0 + (b.0 - a.0) / 2))
}

/// `series` of one source added up by instant, in order of time.
pub fn added<'s>(series: impl IntoIterator<Item = &'s [(i64, f64)]>) -> Vec<(i64, f64)> {
    added_within(series, 0)
}

/// The same by rounds of reading: the processes of a server are read one after the other, and belong
/// together all the same. A round lasts at most half of the shortest time between two reads of one
/// series, and counts as its first instant.
pub fn added_by_round(series: &[&[(i64, f64)]]) -> Vec<(i64, f64)> {
    let gaps = series.iter().flat_map(|one| one.windows(2).map(|pair| pair[1].0 - pair[0].0));
    let most = gaps.filter(|gap| *gap > 0).min().unwrap_or(0) / 2;
    added_within(series.iter().copied(), most)
}

/// What lies at most `most` nanoseconds behind the first of a round belongs to it.
fn added_within<'s>(series: impl IntoIterator<Item = &'s [(i64, f64)]>, most: i64) -> Vec<(i64, f64)> {
    let mut all: Vec<(i64, f64)> = series.into_iter().flatten().map(|(at, value)| (*at, 0.0 + value)).collect();
    all.sort_by_key(|(at, _)| *at);
    all.dedup_by(|next, kept| {
        let is_same = next.0 - kept.0 <= most;
        kept.1 += if is_same { next.1 } else { 0.0 };
        is_same
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_that_are_read_one_after_the_other_belong_together() {
        // Two processes of a server, read 3 ns apart; the second ends, and another comes.
        let first: Vec<(i64, f64)> = (0..5).map(|i| (i * 10, 2.0 * i as f64)).collect();
        let (second, third) = ([(3, 7.0), (13, 8.0)], [(33, 1.0), (43, 2.0)]);
        assert_eq!(
            added_by_round(&[&first, &second, &third]),
            [(0, 7.0), (10, 10.0), (20, 4.0), (30, 7.0), (40, 10.0)]
        );
        // Read at the same instants, or once each, they are what they were.
        let together = [(0, 1.0), (10, 2.0)];
        assert_eq!(added_by_round(&[&first, &together]), added([first.as_slice(), &together]));
        assert_eq!(added_by_round(&[&[(1, 1.0)], &[(2, 1.0)]]), [(1, 1.0), (2, 1.0)]);
        assert_eq!(added_by_round(&[]), []);
    }

    #[test]
    fn series_of_one_source_add_up_where_they_meet() {
        let (a, b) = ([(1, 1.0), (3, 2.0)], [(0, 8.0), (3, 4.0), (4, 5.0)]);
        assert_eq!(added([a.as_slice(), &b]), [(0, 8.0), (1, 1.0), (3, 6.0), (4, 5.0)]);
        assert_eq!(added([]), []);
    }

    #[test]
    fn stretches_match_a_full_scan() {
        let series: Vec<(i64, f64)> = (0..300).map(|i| (i * 7 % 900 / 3, i as f64)).collect();
        let mut ordered = series.clone();
        ordered.sort_by_key(|(at, _)| *at);
        let stretches = Stretches::new(&series, |p| p.0);
        for (from, to) in [(0, 50), (3, 4), (-9, 1_000), (100, 100), (250, 90), (299, 300), (i64::MIN, i64::MAX)] {
            let window = Window { from, to };
            let is_in = |p: &&(i64, f64)| window.contains(p.0);
            assert_eq!(within(&ordered, window), ordered.iter().filter(is_in).copied().collect::<Vec<_>>());
            let near = stretches.near(&series, window).filter(is_in);
            assert_eq!(near.collect::<Vec<_>>(), series.iter().filter(is_in).collect::<Vec<_>>());
            let middle = |pair: &[(i64, f64)]| window.contains(pair[0].0 + (pair[1].0 - pair[0].0) / 2);
            let expected = ordered.windows(2).filter(|pair| middle(pair)).map(|pair| (pair[0], pair[1]));
            assert_eq!(pairs(&ordered, window).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
