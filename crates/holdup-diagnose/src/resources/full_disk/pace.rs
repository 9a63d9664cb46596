//! How soon a file system or volume will be full, by the course of its free space. A level alone does
//! not tell: 400 MiB last for a month or for a minute.

use holdup_recording::words::{bytes, bytes_per_second, percent};
use holdup_signals::evidence::Evidence;

/// Standard errors of a fall that chance does not reach: temporary files and log come and go.
const CLEAR: f64 = 4.0;

/// A course says something of a time as many times as long as itself as it has steps, and at most this many
/// times: what fell once may be given back after as long, as log is by a checkpoint; what fell at each of
/// many steps is not.
const REACH: f64 = 30.0;

/// A clearance needs room for this long, seconds.
const DAY_S: f64 = 86_400.0;

/// Less free than this share (0-1), or these bytes where the size is not known, may be a minute's worth.
const LITTLE_RATIO: f64 = 0.1;
const LITTLE_BYTES: f64 = 5.0 * 1_073_741_824.0;

/// What will be full at its pace.
#[derive(Clone, Debug)]
pub struct Filling {
    /// The mount point, or the database of a cloud.
    pub name: String,
    /// Seconds until it is full at its pace.
    pub left_s: f64,
    /// Whether it is a cloud's volume.
    pub is_cloud: bool,
    /// The row that shows it.
    pub evidence: Evidence,
}

/// What a course of free space says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outlook {
    /// It will be full in so many seconds, at this pace per second.
    Fills { left_s: f64, per_second: f64 },
    /// Little is left, and nothing shows how long that lasts.
    Unknown,
    /// There is room for a day at its pace.
    Lasts,
}

/// The outlook of `readings` of free space, in bytes or as a share of 1; `size` is the whole, if known.
pub(super) fn outlook(readings: &[(i64, f64)], size: Option<f64>) -> Outlook {
    let Some((_, free)) = readings.last().copied() else { return Outlook::Unknown };
    let is_little = size.map_or(free < LITTLE_BYTES, |size| free < LITTLE_RATIO * size);
    let unknown = if is_little { Outlook::Unknown } else { Outlook::Lasts };
    let (Some(Pace { per_second, reach_s }), true) = (pace(readings), free > 0.0) else {
        // One look has no pace.
        return if readings.len() < 2 { unknown } else { Outlook::Lasts };
    };
    let left_s = free / per_second;
    match () {
        () if left_s > DAY_S => Outlook::Lasts,
        () if left_s <= reach_s => Outlook::Fills { left_s, per_second },
        () => unknown,
    }
}

/// How fast free space falls.
struct Pace {
    /// Per second, by the later half of the course, which tells more of what comes.
    per_second: f64,
    /// For how long that may go on, as far as the course tells, seconds.
    reach_s: f64,
}

/// The pace of a course; none if it does not fall by more than its steps vary.
fn pace(readings: &[(i64, f64)]) -> Option<Pace> {
    let fall = |part: &[(i64, f64)]| {
        let (first, last) = (part.first()?, part.last()?);
        Some((first.1 - last.1, last.0.saturating_sub(first.0) as f64 / 1e9))
    };
    let (fallen, span_s) = fall(readings)?;
    let steps = readings.len().saturating_sub(1) as f64;
    let mean = fallen / steps.max(1.0);
    let squares: f64 = readings.windows(2).map(|pair| (pair[0].1 - pair[1].1 - mean).powi(2)).sum();
    // The error of the sum of the steps; one step shows none.
    let error = (squares / (steps - 1.0).max(1.0) * steps).sqrt();
    if fallen <= CLEAR * error || fallen <= 0.0 || span_s <= 0.0 {
        return None;
    }
    let half = readings.get(readings.len() / 2..).filter(|half| half.len() > 1).unwrap_or(readings);
    let (fallen, recent_s) = fall(half).filter(|(fallen, seconds)| *fallen > 0.0 && *seconds > 0.0)?;
    let reach_s = span_s * steps.min(REACH);
    Some(Pace { per_second: fallen / recent_s, reach_s })
}

/// `/var has 410 MiB free and loses 0.5 MB/s: it is full in 14 min at this pace`
pub(super) fn sentence(name: &str, free: f64, left_s: f64, per_second: f64, is_share: bool) -> String {
    let (free, loses) = match is_share {
        true => (percent(free), format!("{} an hour", percent(per_second * 3_600.0))),
        false => (bytes(free), bytes_per_second(per_second)),
    };
    format!("{name} has {free} free and loses {loses}: it is full in {} at this pace", lasting(left_s))
}

/// A time in words.
fn lasting(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        120.0..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: i64 = 60 * 1_000_000_000;
    const MIB: f64 = 1_048_576.0;

    fn course(free: impl Fn(i64) -> f64) -> Vec<(i64, f64)> {
        (0..60).map(|minute| (minute * MIN, free(minute))).collect()
    }

    #[test]
    fn level_and_pace_together_tell_how_long_it_lasts() {
        // An hour of 30 MiB a minute down to 410 MiB.
        let readings = course(|minute| (410.0 + 30.0 * (59 - minute) as f64) * MIB);
        let Outlook::Fills { left_s, per_second } = outlook(&readings, None) else { panic!("{readings:?}") };
        assert_eq!((left_s / 60.0).round(), 14.0);
        let text = sentence("db", 410.0 * MIB, left_s, per_second, false);
        assert_eq!(text, "db has 410 MiB free and loses 524 kB/s: it is full in 14 min at this pace");
    }

    #[test]
    fn space_that_comes_and_goes_or_lasts_does_not_fill() {
        assert_eq!(outlook(&course(|minute| (900.0 - 400.0 * (minute % 2) as f64) * MIB), Some(1e12)), Outlook::Lasts);
        assert_eq!(outlook(&course(|minute| (9e5 - minute as f64) * MIB), None), Outlook::Lasts);
        assert_eq!(outlook(&course(|_| 410.0 * MIB), None), Outlook::Lasts);
    }

    /// Numbers between -1 and 1 that look drawn, the same each time.
    fn drawn(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((state >> 33) as u32) / f64::from(1u32 << 30) - 1.0
        }
    }

    /// Steps of a minute that vary by `noise` MiB and fall by `drift` MiB, down to 2,000 MiB.
    fn walk(seed: u64, steps: i64, noise: f64, drift: f64) -> Vec<(i64, f64)> {
        let mut next = drawn(seed);
        let mut free = 0.0;
        let mut all: Vec<(i64, f64)> = Vec::new();
        for minute in 0..=steps {
            all.push((minute * MIN, free * MIB));
            free += noise * next() - drift;
        }
        let last = all.last().map_or(0.0, |(_, free)| *free);
        all.iter().map(|(at, free)| (*at, free - last + 2_000.0 * MIB)).collect()
    }

    #[test]
    fn noise_of_any_size_does_not_fill_and_a_fall_well_above_it_does() {
        let mut filled = 0;
        for seed in 1..=200 {
            let steps = 12 + seed as i64 % 90;
            let noise = 10f64.powi(seed as i32 % 4);
            filled += usize::from(matches!(outlook(&walk(seed, steps, noise, 0.0), None), Outlook::Fills { .. }));
            // Each step falls by twice what it varies by.
            let Outlook::Fills { left_s, .. } = outlook(&walk(seed, steps, 10.0, 20.0), Some(1e12)) else {
                panic!("seed {seed}: a fall of 20 MiB a minute was not seen")
            };
            assert!((4_000.0..9_000.0).contains(&left_s), "seed {seed}: {left_s} s of 6,000 s");
        }
        assert!(filled <= 1, "{filled} of 200 courses without a drift fill");
    }

    #[test]
    fn one_step_says_no_more_than_a_time_as_long() {
        let twice = |first: f64| [(0, first * 1e9), (10 * MIN, 10e9)];
        assert!(matches!(outlook(&twice(21.0), Some(100e9)), Outlook::Fills { .. }));
        assert_eq!(outlook(&twice(15.0), Some(1e11)), Outlook::Lasts);
        assert_eq!(outlook(&twice(15.0), Some(1e12)), Outlook::Unknown);
    }

    #[test]
    fn a_level_alone_clears_only_where_much_is_left() {
        assert_eq!(outlook(&[(0, 410.0 * MIB)], None), Outlook::Unknown);
        assert_eq!(outlook(&[(0, 1e11)], Some(2e11)), Outlook::Lasts);
        // A burst of three seconds says nothing of the next hours.
        let burst = [(0, 90e9), (3_000_000_000, 89.9e9)];
        assert_eq!(outlook(&burst, Some(100e9)), Outlook::Lasts);
        assert_eq!(outlook(&burst, Some(1e12)), Outlook::Unknown);
    }
}
