//! The counters: their times, their order, and the bounds of memory.

use super::*;

const S: i64 = 1_000_000_000;

fn samples(timeline: &Timeline, metric: &str) -> Vec<(i64, f64)> {
    let mut found = Vec::new();
    timeline.samples("access_log:x", &mut |row| {
        if row.metric == metric {
            found.push((row.observed_at / S, row.value));
        }
    });
    found
}

fn served(timeline: &mut Timeline, route: &str) -> SeriesId {
    timeline.series(Family::Server, &vec![("http_route", route.to_owned())], Pairs::new)
}

#[test]
fn counters_grow_at_the_ends_of_seconds_in_any_order_of_lines() {
    let mut timeline = Timeline::default();
    let id = served(&mut timeline, "/");
    for (at, ms) in [(12 * S, 500), (10 * S, 20), (10 * S + 999_999_999, 40), (12 * S, 100)] {
        timeline.add(at, id, ms * 1_000_000);
    }
    let name = Family::Server.metric().name;
    assert_eq!(samples(&timeline, &format!("{name}_count")), [(10, 0.0), (11, 2.0), (12, 2.0), (13, 4.0)]);
    let sums = samples(&timeline, &format!("{name}_sum"));
    assert!((sums[1].1 - 0.06).abs() < 1e-9 && (sums[3].1 - 0.66).abs() < 1e-9, "{sums:?}");
    assert_eq!((timeline.span(), timeline.width_ns()), (Some((10 * S, 13 * S)), S));
    let mean = timeline.mean_ms(Family::Server).map(|(ms, count)| (ms.round(), count));
    assert_eq!(mean, Some((165.0, 4)));
}

#[test]
fn buckets_are_cumulative_and_only_those_between_the_least_and_the_most() {
    let mut timeline = Timeline::default();
    let id = served(&mut timeline, "/");
    for ms in [20, 21, 500] {
        timeline.add(5 * S, id, ms * 1_000_000);
    }
    let mut last: Vec<(f64, f64)> = Vec::new();
    timeline.samples("x", &mut |row| {
        if let (Some(bound), 6) = (row.labels.get("le"), row.observed_at / S) {
            last.push((bound.parse().unwrap_or(f64::INFINITY), row.value));
        }
    });
    assert!(last.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{last:?}");
    assert_eq!((last[0].1, last.last().unwrap()), (0.0, &(f64::INFINITY, 3.0)));
    assert!(last[0].0 > 0.015 && last[last.len() - 2].0 < 0.56 && last.len() < 40, "{last:?}");
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let mut timeline = Timeline::default();
    let id = served(&mut timeline, "/");
    for second in 0..100_000 {
        timeline.add(second * S, id, S / 10);
    }
    assert!(timeline.slots.len() <= SLOTS_MAX);
    assert_eq!((timeline.width_ns(), timeline.mean_ms(Family::Server).unwrap().1), (8 * S, 100_000));
    for number in 0..10_000 {
        let id = served(&mut timeline, &format!("/{number}"));
        timeline.add(0, id, 1);
    }
    assert!(timeline.series.len() <= SERIES_MAX);
}

#[test]
fn a_wrong_clock_is_left_out_and_a_quiet_night_is_not() {
    let mut timeline = Timeline::default();
    let all = timeline.series(Family::Requests, &Pairs::new(), Pairs::new);
    for second in 0..1_000 {
        timeline.add((100_000_000 + second) * S, all, 0);
        timeline.add((100_080_000 + second) * S, all, 0);
    }
    timeline.add(5 * S, all, 0);
    timeline.add(4_000_000_000 * S, all, 0);
    assert_eq!(timeline.drop_strays(), 2);
    assert_eq!(timeline.span(), Some((100_000_000 * S, 100_081_000 * S)));
}
