//! Parses PostgreSQL's list of parameters, `$1 = 'it''s', $2 = NULL`, into values.

/// The values in their order, `None` for NULL; none at all if the text is not such a list.
pub fn parameters(text: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    let mut values = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        rest = rest.strip_prefix(b"$")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: usize = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
        if number != values.len() + 1 {
            return None;
        }
        rest = rest.get(digits..)?.strip_prefix(b" = ")?;
        if let Some(behind) = rest.strip_prefix(b"NULL") {
            values.push(None);
            rest = behind;
        } else {
            let (value, behind) = quoted(rest.strip_prefix(b"'")?)?;
            values.push(Some(value));
            rest = behind;
        }
        rest = match rest.strip_prefix(b", ") {
            Some(more) => more,
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(values)
}

/// The text up to its closing quote, and the rest behind it. A quote within it is doubled.
fn quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut value, mut rest) = (Vec::new(), text);
    loop {
        let at = rest.iter().position(|byte| *byte == b'\'')?;
        value.extend_from_slice(rest.get(..at)?);
        rest = rest.get(at + 1..)?;
        match rest.strip_prefix(b"'") {
            Some(more) => {
                value.push(b'\'');
                rest = more;
            }
            None => return Some((value, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_whatever_they_hold() {
        let some = |text: &str| Some(text.as_bytes().to_vec());
        let cases = [
            ("", Some(vec![])),
            ("$1 = '5'", Some(vec![some("5")])),
            ("$1 = 'it''s, $2 = ''x', $2 = NULL, $3 = ''", Some(vec![some("it's, $2 = 'x"), None, some("")])),
            ("$2 = '5'", None),
            ("$1 = 5", None),
            ("$1 = 'a", None),
            ("$1 = 'a' and so on", None),
            ("parameters", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parameters(text.as_bytes()), expected, "{text}");
        }
    }
}
