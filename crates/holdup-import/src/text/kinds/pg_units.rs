//! PostgreSQL's own notations: intervals and positions in the write-ahead log.

/// Seconds of an interval: `00:00:01.5`, `1 day 02:00:00`, `-00:00:01`, `3 mons 1 day`.
pub(super) fn interval_s(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().peekable();
    let mut seconds = 0.0;
    words.peek()?;
    while let Some(word) = words.next() {
        if word.contains(':') {
            seconds += clock_s(word)?;
            continue;
        }
        let count: f64 = word.parse().ok()?;
        let unit = words.next()?.trim_end_matches('s');
        seconds += count
            * match unit {
                "year" => 31_557_600.0,
                "mon" => 2_592_000.0,
                "day" => 86_400.0,
                "hour" => 3_600.0,
                "min" => 60.0,
                "sec" => 1.0,
                _ => return None,
            };
    }
    Some(seconds).filter(|seconds| seconds.is_finite())
}

/// `-02:00:00.5`
fn clock_s(word: &str) -> Option<f64> {
    let (sign, word) = word.strip_prefix('-').map_or((1.0, word), |word| (-1.0, word));
    let parts: Vec<f64> = word.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts.as_slice() else { return None };
    let is_clock = (0.0..60.0).contains(minutes) && (0.0..60.0).contains(seconds);
    is_clock.then_some(sign * (hours * 3_600.0 + minutes * 60.0 + seconds))
}

/// Bytes of a position such as `16/B374D848`.
pub(super) fn position(text: &str) -> Option<f64> {
    let (high, low) = text.split_once('/')?;
    let (high, low) = (u64::from_str_radix(high, 16).ok()?, u64::from_str_radix(low, 16).ok()?);
    (high <= u64::from(u32::MAX) && low <= u64::from(u32::MAX)).then_some(((high << 32) + low) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_positions() {
        for (text, expected) in [
            ("00:00:01.5", Some(1.5)),
            ("1 day 02:00:00", Some(93_600.0)),
            ("-00:00:01", Some(-1.0)),
            ("3 days", Some(259_200.0)),
            ("00:61:00", None),
            ("12", None),
            ("", None),
        ] {
            assert_eq!(interval_s(text), expected, "{text}");
        }
        assert_eq!((position("1/0"), position("0/10"), position("x/1")), (Some(4_294_967_296.0), Some(16.0), None));
    }
}
