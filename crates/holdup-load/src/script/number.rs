//! Texts that are numbers, so that `9 < 10` although "9" comes after "10".

use std::cmp::Ordering;
use std::io::Write as _;

/// A number as scenarios, headers and JSON write it. Integers are exact: identifiers of 20 digits
/// differ.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Without a fraction or an exponent.
    Whole(i128),
    /// With a fraction or an exponent. Always finite.
    Decimal(f64),
}

impl Number {
    /// Parses a number: a sign `-`, digits, a fraction, an exponent.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        if !digits.first()?.is_ascii_digit() || !digits.last()?.is_ascii_digit() {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        if digits.iter().all(u8::is_ascii_digit)
            && let Ok(whole) = text.parse()
        {
            return Some(Self::Whole(whole));
        }
        if !digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
            return None;
        }
        text.parse().ok().filter(|decimal: &f64| decimal.is_finite()).map(Self::Decimal)
    }

    /// The sum, unless it overflows.
    pub(crate) fn add(self, other: Self) -> Option<Self> {
        if let (Self::Whole(a), Self::Whole(b)) = (self, other) {
            return a.checked_add(b).map(Self::Whole);
        }
        Some(self.decimal() + other.decimal()).filter(|sum| sum.is_finite()).map(Self::Decimal)
    }

    /// Writes it in decimal, without an exponent.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        // Writing into memory does not fail.
        let _ = match self {
            Self::Whole(whole) => write!(out, "{whole}"),
            Self::Decimal(decimal) => write!(out, "{decimal}"),
        };
    }

    fn decimal(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Decimal(decimal) => decimal,
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(b)),
            _ => self.decimal().partial_cmp(&other.decimal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_numbers_are_numbers() {
        for text in ["0", "-1", "12.50", "1e3", "2E-2", "12345678901234567891", "007"] {
            assert!(Number::parse(text.as_bytes()).is_some(), "{text}");
        }
        for text in ["", "-", "1.", ".5", "nan", "inf", "1e999", "0x10", "1 ", "+1", "1-2", "1_000", "--1"] {
            assert!(Number::parse(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn compares_and_adds() {
        let number = |text: &str| Number::parse(text.as_bytes()).expect("a number");
        assert!(number("9") < number("10") && number("-2") < number("1.5") && number("1e1") == number("10.0"));
        assert!(number("12345678901234567890") < number("12345678901234567891"));
        let sum = |a, b| {
            let mut out = Vec::new();
            number(a).add(number(b)).expect("a sum").write(&mut out);
            String::from_utf8(out).expect("digits")
        };
        assert_eq!([sum("2", "-3"), sum("0.5", "1"), sum("1e2", "0")], ["-1", "1.5", "100"]);
        assert!(number(&i128::MAX.to_string()).add(number("1")).is_none());
        assert!(number("1e308").add(number("1e308")).is_none());
    }
}
