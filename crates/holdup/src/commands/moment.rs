//! Parses a time within a recording: by the clock, or from the recording's start.

use std::time::Duration;

use holdup_recording::clock;

use super::duration;

const S: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * S;

/// A time within a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// This long after the start.
    After(Duration),
    /// At this time of the day (UTC), nanoseconds since midnight: the first one from the start on.
    Clock(i64),
    /// At this instant, nanoseconds since 1970.
    At(i64),
}

/// Parses `90s`, `14:05`, `14:05:30` or an RFC 3339 time.
///
/// # Errors
/// If it has another form; the message lists the valid ones.
pub fn moment(text: &str) -> Result<Moment, String> {
    if !text.contains(':') {
        return duration(text)
            .map(Moment::After)
            .map_err(|why| format!("{why}; or a time: 14:05, 14:05:30 (UTC), RFC 3339"));
    }
    if let Some(at) = clock::parse_rfc3339(text) {
        return Ok(Moment::At(at));
    }
    let parts: Option<Vec<i64>> = text.split(':').map(|part| part.parse::<u8>().ok().map(i64::from)).collect();
    let of_day = match parts.as_deref() {
        Some([h @ 0..24, m @ 0..60]) => Some(h * 3_600 + m * 60),
        Some([h @ 0..24, m @ 0..60, s @ 0..60]) => Some(h * 3_600 + m * 60 + s),
        _ => None,
    };
    of_day.map(|of_day| Moment::Clock(of_day * S)).ok_or_else(|| {
        "expected a time: 14:05 or 14:05:30 (UTC), RFC 3339 (2026-11-25T14:05:30Z), or 90s after the start".to_owned()
    })
}

impl Moment {
    /// Nanoseconds since 1970, in a recording that began at `start`.
    pub fn within(self, start: i64) -> i64 {
        match self {
            Self::After(after) => start.saturating_add(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX)),
            Self::At(at) => at,
            Self::Clock(of_day) => {
                let at = start - start.rem_euclid(DAY) + of_day;
                // A person who copies the start from the screen leaves out the fraction of a
                // second.
                if at + S <= start { at + DAY } else { at }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_the_day_is_the_first_one_within_the_recording() {
        let start = clock::parse_rfc3339("2026-11-25T23:50:00.400Z").unwrap();
        let at = |text: &str| clock::rfc3339(moment(text).unwrap().within(start));
        assert_eq!(at("23:55"), "2026-11-25T23:55:00.000Z");
        assert_eq!(at("23:50:00"), "2026-11-25T23:50:00.000Z");
        assert_eq!(at("00:10:05"), "2026-11-26T00:10:05.000Z");
        assert_eq!(at("90s"), "2026-11-25T23:51:30.400Z");
        assert_eq!(at("2026-11-25T23:59:00Z"), "2026-11-25T23:59:00.000Z");
        for wrong in ["25:00", "12:60", "1:2:3:4", "12:", "a:b", "-1:00", "soon"] {
            assert!(moment(wrong).unwrap_err().contains("14:05"), "{wrong}");
        }
    }
}
