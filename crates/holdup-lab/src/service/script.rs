//! SQL text -> steps: statements separated by `;`, and client-side waits (`SLEEP 2000ms`) between
//! them. It knows quotes, so a `;` in a literal separates nothing. It knows no further SQL.

use std::time::Duration;

use crate::service::duration;

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run this statement.
    Statement(String),
    /// Wait in the client; an open transaction stays open.
    Sleep(Duration),
}

/// The statements of `text`, without empty ones.
pub fn split_statements(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    let mut escaped = false;
    for c in text.chars() {
        if quote.is_none() && c == ';' {
            parts.push(String::new());
            continue;
        }
        match quote {
            Some(_) if escaped => escaped = false,
            Some('\'' | '"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"' | '`') => quote = Some(c),
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The steps of `text`.
///
/// # Errors
///
/// If the text after `SLEEP` is not a duration.
pub fn parse(text: &str) -> Result<Vec<Step>, String> {
    split_statements(text)
        .into_iter()
        .map(|part| match part.split_once(char::is_whitespace) {
            Some((word, rest)) if word.eq_ignore_ascii_case("sleep") => duration::parse(rest).map(Step::Sleep),
            _ => Ok(Step::Statement(part)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_semicolons() {
        assert_eq!(split_statements(r"a ';' ; b `;`;; c '\';'"), ["a ';'", "b `;`", r"c '\';'"]);
    }

    #[test]
    fn sleep_is_a_step_of_its_own() {
        let steps = parse("BEGIN; SELECT sleep(1); sleep 1500ms; COMMIT").expect("steps");
        assert_eq!(steps[1], Step::Statement("SELECT sleep(1)".to_owned()));
        assert_eq!(steps[2], Step::Sleep(Duration::from_millis(1500)));
        assert_eq!(steps.len(), 4);
        assert!(parse("SLEEP long").is_err());
    }
}
