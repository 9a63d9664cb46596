//! Kubernetes' quantities: `500m`, `2`, `1.5`, `128Mi`, `1e9`, `2G`. The result is in the unit
//! itself: cores or bytes.

use serde_json::Value;

/// Suffixes and their factors.
const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

/// The value of a quantity; none if it is not one.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse(text.trim()),
        _ => None,
    }
    .filter(|number| number.is_finite() && *number >= 0.0)
}

fn parse(text: &str) -> Option<f64> {
    // `1E` is an exa, `1E3` a thousand: try to read a plain number first.
    let plain = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '+').then(|| text.parse::<f64>().ok())?
    };
    if let Some(number) = plain(text) {
        return Some(number);
    }
    let (suffix, factor) = SUFFIXES.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    Some(plain(text.strip_suffix(suffix)?)? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for (text, expected) in [
            ("500m", 0.5),
            ("2", 2.0),
            ("0.25", 0.25),
            ("100n", 1e-7),
            ("128Mi", 134_217_728.0),
            ("1.5Gi", 1_610_612_736.0),
            ("1e9", 1e9),
            ("2E3", 2_000.0),
            ("1E", 1e18),
            ("128974848", 128_974_848.0),
            ("123M", 123e6),
            ("12e6", 12e6),
        ] {
            let found = number(&Value::from(text)).unwrap();
            assert!((found - expected).abs() <= expected * 1e-12, "{text}: {found}");
        }
        assert_eq!(number(&serde_json::json!(2)), Some(2.0));
        for wrong in ["", "m", "Mi", "1Z", "-1", "inf", "NaN", "1 Gi x", "e9"] {
            assert_eq!(number(&Value::from(wrong)), None, "{wrong}");
        }
        assert_eq!(number(&Value::Null), None);
    }
}
