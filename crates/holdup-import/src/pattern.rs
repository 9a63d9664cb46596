//! Translates regular expressions of other engines into those that holdup reads (Rust's `regex`: no
//! look-around, no back-references), with the wanted group as the first.

/// The expression with group `wanted` as its only one (0: the whole match).
///
/// # Errors
///
/// If holdup's engine cannot use it, or it has no such group.
pub fn with_group(pattern: &str, wanted: u32) -> Result<String, String> {
    let mut out = String::new();
    let (mut group, mut in_class, mut found) = (0, false, false);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class && chars.peek() != Some(&'?') => {
                group += 1;
                if group == wanted {
                    found = true;
                } else {
                    out.push_str("?:");
                }
            }
            _ => {}
        }
    }
    if wanted > 0 && !found {
        return Err(format!("it has no group {wanted}"));
    }
    checked(out)
}

/// The expression as it is.
///
/// # Errors
///
/// If holdup's engine cannot use it.
pub fn checked(pattern: String) -> Result<String, String> {
    if pattern.contains(['\n', '\r']) {
        return Err("it has line breaks".to_owned());
    }
    let size = 1 << 20;
    match regex::RegexBuilder::new(&pattern).size_limit(size).build() {
        Ok(_) => Ok(pattern),
        Err(regex::Error::CompiledTooBig(_)) => Err("it is too large".to_owned()),
        Err(e) => {
            let text = e.to_string();
            Err(text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
        }
    }
}

/// The shortest text between two others, as the first group.
pub fn between(left: &str, right: &str) -> Result<String, String> {
    checked(format!("(?s){}(.*?){}", regex::escape(left), regex::escape(right)))
}

/// Exactly this text and nothing else.
pub fn exactly(text: &str) -> String {
    format!("(?s)^{}$", regex::escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_group_is_the_first() {
        assert_eq!(with_group("a(b)(c[(]\\()", 2).unwrap(), "a(?:b)(c[(]\\()");
        assert_eq!(with_group("id=(\\d+)", 1).unwrap(), "id=(\\d+)");
        assert_eq!(with_group("id=(\\d+)", 0).unwrap(), "id=(?:\\d+)");
        assert!(with_group("id=(\\d+)", 2).is_err());
        assert!(with_group("(?=x)(a)", 1).is_err());
        assert!(with_group("(a)\\1", 1).is_err());
        assert!(with_group("(a", 1).is_err());
    }

    #[test]
    fn boundaries_are_taken_literally() {
        let pattern = between("name=\"a.b\" value=\"", "\"").unwrap();
        let found = regex::Regex::new(&pattern).unwrap();
        assert_eq!(&found.captures("x name=\"a.b\" value=\"t\"").unwrap()[1], "t");
        assert!(found.captures("name=\"acb\" value=\"t\"").is_none());
    }
}
