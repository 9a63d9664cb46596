//! Reading figures out of reports that are written for people.

/// The first number after `label` (thousands separated by commas or not), wherever it stands.
pub fn number_after(text: &str, label: &str) -> Option<f64> {
    let at = text.find(label)? + label.len();
    leading_number(text[at..].trim_start_matches([' ', '\t', ':', '='])).map(|(number, _)| number)
}

/// The first number before `label`, on the same line.
pub fn number_before(text: &str, label: &str) -> Option<f64> {
    let head = &text[..text.find(label)?];
    let line = head.lines().next_back()?.trim();
    leading_number(line.split_whitespace().next_back()?).map(|(number, _)| number)
}

/// The duration after `label`, such as `1.28ms`, in milliseconds.
pub fn duration_after(text: &str, label: &str) -> Option<f64> {
    let at = text.find(label)? + label.len();
    duration_ms(text[at..].split_whitespace().next()?)
}

/// A duration with its unit, in milliseconds.
pub fn duration_ms(word: &str) -> Option<f64> {
    let (number, unit) = leading_number(word)?;
    let factor = match unit.trim() {
        "ns" => 1e-6,
        "us" | "µs" | "μs" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 60e3,
        "h" => 3600e3,
        _ => return None,
    };
    Some(number * factor)
}

fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.').replace(',', "").parse().ok()?;
    Some((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let text = "  99%  1.28ms\nComplete requests:      1,234\n  51 requests in 2.00s\n";
        assert_eq!(number_after(text, "Complete requests:"), Some(1234.0));
        assert_eq!(number_before(text, " requests in"), Some(51.0));
        assert_eq!(duration_after(text, "99%"), Some(1.28));
        assert_eq!((duration_ms("2.5s"), duration_ms("40us"), duration_ms("7")), (Some(2500.0), Some(0.04), None));
        assert_eq!(number_after(text, "Failed"), None);
    }
}
