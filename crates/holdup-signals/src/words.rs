//! Numbers as sentences have them.

/// `12.3 ms`, `4,246 ms`: as many digits as matter.
pub fn ms(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2} ms")
    } else if value < 100.0 {
        format!("{value:.1} ms")
    } else {
        format!("{} ms", thousands(value))
    }
}

/// `4,246`.
pub fn thousands(value: f64) -> String {
    // Half of nothing below nothing, and an empty sum, are nothing.
    let digits = format!("{:.0}", if value.abs() < 0.5 { 0.0 } else { value });
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |d| ("-", d));
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

/// `4 KB`, `64 MB`, `1.5 GB`: binary multiples, as kernel and servers count.
pub fn bytes(value: f64) -> String {
    let (mut value, mut unit) = (value, "bytes");
    for larger in ["KB", "MB", "GB", "TB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    let digits = usize::from(value < 10.0 && value.fract() >= 0.05 && unit != "bytes");
    format!("{value:.digits$} {unit}")
}

/// The text as the beginning of a sentence.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `43 %`; `under 1 %` rather than a 0 that is none.
pub fn percent(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 0.01 { "under 1 %".to_owned() } else { format!("{:.0} %", ratio * 100.0) }
}

/// `value` with `digits` after the point: what is printed and stored is what was meant.
pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((ms(0.034), ms(42.44), ms(4246.4)), ("0.03 ms".into(), "42.4 ms".into(), "4,246 ms".into()));
        assert_eq!(thousands(1234567.0), "1,234,567");
        assert_eq!(
            (bytes(1024.0), bytes(1.5 * 1024.0), bytes(700.0)),
            ("1 KB".into(), "1.5 KB".into(), "700 bytes".into())
        );
    }
}
