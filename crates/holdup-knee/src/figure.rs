//! Formats figures for people: four significant digits and no more.

/// `x` with four significant digits and without trailing zeros: `150`, `103.7`, `0.1235`, `12346`.
pub fn figure(x: f64) -> String {
    const DIGITS: i32 = 4;
    let whole = if x == 0.0 { 1 } else { x.abs().log10().floor() as i32 + 1 };
    let decimals = (DIGITS - whole).clamp(0, 9) as usize;
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_digits_than_mean_something() {
        let shown = [150.0, 103.747_2, 0.123_456, 12_345.6, 0.0, 9.999_96, 1e-12, 20_000.0].map(figure);
        assert_eq!(shown, ["150", "103.7", "0.1235", "12346", "0", "10", "0", "20000"]);
    }
}
