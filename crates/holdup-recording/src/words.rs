//! Numbers for people, the same in every table, verdict and error: significant digits and the unit.

/// `12.3 ms`, `4,246 ms`: with the significant digits.
pub fn ms(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2} ms")
    } else if value < 100.0 {
        format!("{value:.1} ms")
    } else {
        format!("{} ms", thousands(value))
    }
}

/// A whole number with commas between thousands: `4,246`.
pub fn thousands(value: f64) -> String {
    // A value that rounds to zero has no sign, nor has an empty sum, which is -0.
    grouped(&format!("{:.0}", if value.abs() < 0.5 { 0.0 } else { value }))
}

/// A count with commas between thousands; every digit is kept.
pub fn count(value: impl Into<u128>) -> String {
    grouped(&value.into().to_string())
}

/// A decimal number with commas between thousands; its sign and fraction stay.
pub fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::new();
    for (at, letter) in number.char_indices() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(letter);
    }
    text
}

/// Bytes of memory or of a file, binary like the kernel's and servers' figures: `700 bytes`, `4
/// KiB`, `64 MiB`, `1.5 GiB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["bytes", "KiB", "MiB", "GiB", "TiB"])
}

/// Bytes per second, decimal like the figures of disk and network vendors: `700 bytes/s`, `12
/// kB/s`, `6.2 MB/s`, `1,200 MB/s`.
pub fn bytes_per_second(value: f64) -> String {
    scaled(value, 1_000.0, &["bytes/s", "kB/s", "MB/s"])
}

/// The value in the largest unit that makes it at least one. Each unit is `factor` times the
/// previous one; the first has no fraction.
fn scaled(mut value: f64, factor: f64, units: &[&str]) -> String {
    let mut at = 0;
    // A value that rounds up to one of the next unit gets that unit.
    while value >= factor - 0.5 && at + 1 < units.len() {
        value /= factor;
        at += 1;
    }
    let has_fraction = at > 0 && value < 9.95 && (value.fract() - 0.5).abs() <= 0.45;
    let number = if has_fraction { format!("{value:.1}") } else { thousands(value) };
    format!("{number} {}", units[at])
}

/// The text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `43 %`; `under 1 %` instead of a misleading 0.
pub fn percent(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 0.01 { "under 1 %".to_owned() } else { format!("{:.0} %", ratio * 100.0) }
}

/// `value` rounded to `digits` after the point, for printing and storing.
pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// At most 40 characters of `text`, control characters shown as `\u{..}`, for an error message.
#[must_use]
pub fn clip(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((ms(0.034), ms(42.44), ms(4246.4)), ("0.03 ms".into(), "42.4 ms".into(), "4,246 ms".into()));
        let grouped =
            [thousands(1_234_567.0), thousands(-1_234.4), thousands(-0.2), count(999_u64), grouped("-123456.789")];
        assert_eq!(grouped, ["1,234,567", "-1,234", "0", "999", "-123,456.789"]);
    }

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        let sizes = [700.0, 1_024.0, 1.5 * 1_024.0, 1_048_575.9, 64.0 * 1_048_576.0, 1.02 * 1_073_741_824.0].map(bytes);
        assert_eq!(sizes, ["700 bytes", "1 KiB", "1.5 KiB", "1 MiB", "64 MiB", "1 GiB"]);
        let rates = [0.4, 700.0, 12_300.0, 6_000_000.0, 6.21e6, 213.4e6, 1.2e9].map(bytes_per_second);
        assert_eq!(rates, ["0 bytes/s", "700 bytes/s", "12 kB/s", "6 MB/s", "6.2 MB/s", "213 MB/s", "1,200 MB/s"]);
    }
}
