//! Durations as people write them: `500us`, `250ms`, `30s`, `2m`. Refuses a bare number, whose unit
//! would be a guess.

use std::time::Duration;

/// Reads a whole or decimal number followed by `us`, `ms`, `s` or `m`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds_per_unit = match unit {
        "us" => 0.000_001,
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(format!("`{text}` is not a duration; write e.g. 250ms, 30s or 2m")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| format!("`{text}` is not a duration; write e.g. 250ms, 30s or 2m"))?;
    Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|_| format!("`{text}` is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_honoured_and_needed() {
        assert_eq!(parse("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert!(parse("30").is_err());
        assert!(parse("-1s").is_err());
        assert!(parse("1h").is_err());
    }
}
