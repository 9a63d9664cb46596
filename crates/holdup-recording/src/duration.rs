//! Durations in people's notation: `250ms`, `20s`, `1m30s`. A number needs a unit.

use std::time::Duration;

/// Parses `1m30s`, `250ms`, `1.5s`, …
///
/// # Errors
/// If it is not a duration; the message gives examples.
pub fn parse(text: &str) -> Result<Duration, String> {
    let bad = || format!("expected a duration such as 250ms, 20s, 1m30s or 2h, found \"{text}\"");
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let seconds = match rest[..letters].trim() {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            _ => return Err(bad()),
        };
        total += number * seconds;
        rest = &rest[letters..];
    }
    // At most a year, which keeps every sum of nanoseconds within 63 bits.
    if total > 31_536_000.0 {
        return Err(format!("{text} is too long: at most a year"));
    }
    Ok(Duration::from_secs_f64(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse("1m30s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(parse("1.5s").unwrap(), Duration::from_millis(1_500));
        for wrong in ["", "20", "s", "5 parsecs", "1..2s", "-1s", "2000000h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
