//! A duration as text, for people.

/// A time in a suitable unit.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn time(micros: u128) -> String {
    let value = micros as f64;
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => digits(value / 1e3, "ms"),
        1_000_000..120_000_000 => digits(value / 1e6, "s"),
        120_000_000..7_200_000_000 => format!("{}m {:02}s", micros / 60_000_000, micros / 1_000_000 % 60),
        _ => format!("{}h {:02}m", micros / 3_600_000_000, micros / 60_000_000 % 60),
    }
}

fn digits(value: f64, unit: &str) -> String {
    match value {
        100.0.. => format!("{value:.0} {unit}"),
        10.0.. => format!("{value:.1} {unit}"),
        _ => format!("{value:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (micros, text) in [
            (0, "0 us"),
            (999, "999 us"),
            (1_500, "1.50 ms"),
            (250_000, "250 ms"),
            (61_000_000, "61.0 s"),
            (125_000_000, "2m 05s"),
            (9_000_000_000, "2h 30m"),
        ] {
            assert_eq!(time(micros), text);
        }
    }
}
