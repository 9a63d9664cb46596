//! Decimal numbers of 128 bits in BSON's form (IEEE 754-2008, binary integer decimal): from text and to
//! text. It does not calculate with them.

/// The exponent is stored with this added.
const BIAS: i32 = 6_176;

/// Largest stored exponent.
const EXPONENT_MAX: i32 = 12_287;

/// Most digits of a coefficient.
const DIGITS_MAX: usize = 34;

/// Bits of the coefficient in the usual form.
const COEFFICIENT_BITS: u32 = 113;

/// The five bits after the sign that begin infinities, and those that begin what is not a number.
const INFINITY: u128 = 0b11110 << 122;
const NOT_A_NUMBER: u128 = 0b11111 << 122;

/// The bytes of `text`, such as `19.99`, `-1E+3` or `Infinity`; none if it is not a decimal number, or
/// has more than 34 digits.
#[must_use]
pub fn decimal(text: &str) -> Option<[u8; 16]> {
    let (is_negative, rest) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)?),
        [b'+', ..] => (false, text.get(1..)?),
        _ => (false, text),
    };
    let sign = u128::from(is_negative) << 127;
    match rest {
        "Infinity" | "Inf" => return Some((sign | INFINITY).to_le_bytes()),
        "NaN" => return Some(NOT_A_NUMBER.to_le_bytes()),
        _ => {}
    }
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + part.len() == 0 || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let digits = format!("{whole}{part}");
    let digits = digits.trim_start_matches('0');
    if digits.len() > DIGITS_MAX {
        return None;
    }
    let coefficient: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let exponent = exponent.checked_sub(i32::try_from(part.len()).ok()?)?.checked_add(BIAS)?;
    if !(0..=EXPONENT_MAX).contains(&exponent) {
        return None;
    }
    Some((sign | (exponent as u128) << COEFFICIENT_BITS | coefficient).to_le_bytes())
}

/// The number as text, in the form that MongoDB's shells print.
#[must_use]
pub fn decimal_text(bytes: &[u8; 16]) -> String {
    let bits = u128::from_le_bytes(*bytes);
    let sign = if bits >> 127 == 1 { "-" } else { "" };
    match bits & (0b11111 << 122) {
        INFINITY => return format!("{sign}Infinity"),
        NOT_A_NUMBER => return "NaN".to_owned(),
        _ => {}
    }
    // The other form is only for coefficients above 34 digits, which count as 0.
    let is_usual = bits >> 125 & 0b11 != 0b11;
    let (coefficient, exponent) = if is_usual {
        (bits & ((1 << COEFFICIENT_BITS) - 1), bits >> COEFFICIENT_BITS & 0x3fff)
    } else {
        (0, bits >> (COEFFICIENT_BITS - 2) & 0x3fff)
    };
    let exponent = exponent as i32 - BIAS;
    let digits = coefficient.to_string();
    let adjusted = exponent + digits.len() as i32 - 1;
    if exponent > 0 || adjusted < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E{adjusted:+}");
    }
    let places = exponent.unsigned_abs() as usize;
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, part) = padded.split_at(padded.len() - places);
    format!("{sign}{whole}.{part}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes from the test corpus of the BSON specification.
    #[test]
    fn known_bytes() {
        for (text, hex) in [
            ("0", "00000000000000000000000000004030"),
            ("1", "01000000000000000000000000004030"),
            ("0.1", "01000000000000000000000000003E30"),
            ("-1", "010000000000000000000000000040B0"),
            ("0.1234567890123456789012345678901234", "F2AF967ED05C82DE3297FF6FDE3CFC2F"),
            ("Infinity", "00000000000000000000000000000078"),
            ("NaN", "0000000000000000000000000000007C"),
        ] {
            let bytes = decimal(text).unwrap();
            let written: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            assert_eq!(written, hex, "{text}");
            assert_eq!(decimal_text(&bytes), text);
        }
    }

    #[test]
    fn text_and_back() {
        for text in ["19.99", "-0.000001", "1E+3", "1.5E-10", "9999999999999999999999999999999999", "-Infinity"] {
            assert_eq!(decimal_text(&decimal(text).unwrap()), text);
        }
        for bad in ["", ".", "1x", "--1", "1e", "12345678901234567890123456789012345", "1e99999", "1,5"] {
            assert_eq!(decimal(bad), None, "{bad}");
        }
    }
}
