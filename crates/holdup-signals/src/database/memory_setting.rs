//! Sizes as PostgreSQL writes them in its settings: `128MB`, `16GB`, `8kB`, or a plain number in the setting's own unit.

/// `text` in bytes; a number without a unit counts units of `plain` bytes.
pub fn bytes_of(text: &str, plain: f64) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" => plain,
        "B" => 1.0,
        "kB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        "TB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|n| n * factor)
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        assert_eq!(
            (bytes_of("128MB", 8_192.0), bytes_of("16384", 8_192.0)),
            (Some(134_217_728.0), Some(134_217_728.0))
        );
        assert_eq!((bytes_of("1GB", 1.0), bytes_of("8kB", 1.0)), (Some(1_073_741_824.0), Some(8_192.0)));
        assert_eq!((bytes_of("on", 1.0), bytes_of("5min", 1.0)), (None, None));
    }
}
