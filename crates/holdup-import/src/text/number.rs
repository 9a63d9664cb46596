//! Numbers and sizes as tools print them, in any locale: `3.58`, `3,58`, `99%`, `1.9g`, `2Gi`.

/// A finite number; a comma is a decimal point, unless points or further commas follow it.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('%');
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',') || body.len() > 40 {
        return None;
    }
    if body.contains(|c: char| !c.is_ascii_digit() && c != '.' && c != ',') {
        return None;
    }
    let commas = text.matches(',').count();
    let plain = match (text.rfind(','), text.rfind('.')) {
        (Some(comma), Some(point)) if comma < point => text.replace(',', ""),
        (Some(_), Some(_)) => text.replace('.', "").replace(',', "."),
        (Some(_), None) if commas > 1 => text.replace(',', ""),
        (Some(_), None) => text.replace(',', "."),
        _ => text.to_owned(),
    };
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Bytes of a size: `unit_bytes` count for a number without a suffix, powers of `base` for one with.
pub(super) fn size(text: &str, unit_bytes: f64, base: f64) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let value = number(digits)?;
    let power = match suffix.trim_end_matches(['b', 'B']).trim_end_matches('i') {
        "" if suffix.is_empty() => return Some(value * unit_bytes),
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        "p" | "P" => 5,
        "e" | "E" => 6,
        _ => return None,
    };
    Some(value * base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_locale() {
        for (text, value) in [
            ("3.58", Some(3.58)),
            ("3,58", Some(3.58)),
            ("1,234.5", Some(1234.5)),
            ("1.234,5", Some(1234.5)),
            ("1,234,567", Some(1_234_567.0)),
            ("99%", Some(99.0)),
            ("-1", Some(-1.0)),
            ("", None),
            ("-", None),
            ("inf", None),
            ("1e9", None),
            ("12k", None),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
    }

    #[test]
    fn sizes_by_their_suffix() {
        assert_eq!(size("12", 1024.0, 1024.0), Some(12_288.0));
        assert_eq!(size("1.5g", 1024.0, 1024.0), Some(1_610_612_736.0));
        assert_eq!(size("2Gi", 1.0, 1024.0), Some(2_147_483_648.0));
        assert_eq!(size("512B", 1024.0, 1024.0), Some(512.0));
        assert_eq!(size("3,9G", 1.0, 1000.0), Some(3_900_000_000.0));
        assert_eq!(size("7x", 1.0, 1024.0), None);
    }
}
