//! Durations as scenarios write them.

use std::time::Duration;

/// A year: the longest duration in a scenario.
pub const LONGEST: Duration = Duration::from_secs(31_536_000);

/// `90s` as `1m30s`; whole milliseconds, or microseconds if there are any.
pub fn length(d: Duration) -> String {
    let d = d.min(LONGEST);
    let (seconds, micros) = (d.as_secs(), d.subsec_micros());
    if micros % 1_000 != 0 {
        return format!("{}us", d.as_micros());
    }
    if micros != 0 {
        return format!("{}ms", d.as_millis());
    }
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    for (count, unit) in [(hours, "h"), (minutes, "m"), (seconds, "s")] {
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// A number of seconds; none if a scenario cannot have that duration.
pub fn seconds(number: f64) -> Option<Duration> {
    (0.0..=LONGEST.as_secs_f64()).contains(&number).then(|| Duration::from_secs_f64(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let cases =
            [(0.0, "0s"), (90.0, "1m30s"), (0.25, "250ms"), (3_600.0, "1h"), (1.5, "1500ms"), (0.000_25, "250us")];
        for (number, text) in cases {
            assert_eq!(length(seconds(number).unwrap()), text);
        }
        assert_eq!((seconds(-1.0), seconds(f64::NAN), seconds(1e12)), (None, None, None));
    }
}
