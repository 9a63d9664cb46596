//! How soon a file system or volume will be full, by the course of its free space. A level alone does
//! not tell: 400 MiB last for a month or for a minute.

use holdup_recording::words::{bytes, bytes_per_second, percent};
use holdup_signals::evidence::Evidence;

/// Share (0-1) of all movement that must be downward: temporary files and log come and go.
const DOWN: f64 = 0.7;

/// A course says something of a time so many times as long as itself.
const REACH: f64 = 30.0;

/// A pace shows over minutes: checkpoints and purges give log back that often, seconds.
const LEAST_S: f64 = 300.0;

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
    let (Some((per_second, span_s)), true) = (pace(readings), free > 0.0) else {
        // One look has no pace.
        return if readings.len() < 2 { unknown } else { Outlook::Lasts };
    };
    let left_s = free / per_second;
    match () {
        () if left_s > DAY_S => Outlook::Lasts,
        () if span_s >= LEAST_S && left_s <= REACH * span_s => Outlook::Fills { left_s, per_second },
        () => unknown,
    }
}

/// How fast free space falls, per second, and over how many seconds that was seen: the later half of the
/// course tells more of what comes. None if it does not fall.
fn pace(readings: &[(i64, f64)]) -> Option<(f64, f64)> {
    let fall = |part: &[(i64, f64)]| {
        let (first, last) = (part.first()?, part.last()?);
        Some((first.1 - last.1, last.0.saturating_sub(first.0) as f64 / 1e9))
    };
    let (fallen, span_s) = fall(readings)?;
    let moved: f64 = readings.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs()).sum();
    if fallen <= 0.0 || fallen < DOWN * moved || span_s <= 0.0 {
        return None;
    }
    let half = readings.get(readings.len() / 2..).filter(|half| half.len() > 1).unwrap_or(readings);
    let (fallen, recent_s) = fall(half).filter(|(fallen, seconds)| *fallen > 0.0 && *seconds > 0.0)?;
    Some((fallen / recent_s, span_s))
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
