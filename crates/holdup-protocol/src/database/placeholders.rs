//! `?` -> `$1`, `$2`, …: one text of a statement for both dialects. It knows where in PostgreSQL's
//! SQL a question mark is not a parameter: in quotes, comments and names. It does not know
//! operators: for JSON's `?`, write `??`.

use std::borrow::Cow;

/// The text as PostgreSQL reads it. A text that has `$1` already, or no `?`, stays unchanged.
///
/// `E'…\'…'` strings, in which a backslash escapes a quote, are not supported.
#[must_use]
pub fn numbered(text: &str) -> Cow<'_, str> {
    if !text.contains('?') || passages(text).any(|passage| passage.is_code && has_number(passage.text)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut count = 0;
    for passage in passages(text) {
        if !passage.is_code {
            out.push_str(passage.text);
            continue;
        }
        let mut rest = passage.text;
        while let Some((before, after)) = rest.split_once('?') {
            out.push_str(before);
            rest = after;
            if let Some(after) = after.strip_prefix('?') {
                out.push('?');
                rest = after;
            } else {
                count += 1;
                out.push('$');
                out.push_str(&count.to_string());
            }
        }
        out.push_str(rest);
    }
    Cow::Owned(out)
}

/// Whether it contains a `$1`.
fn has_number(code: &str) -> bool {
    code.split('$').skip(1).any(|after| after.starts_with(|first: char| first.is_ascii_digit()))
}

/// A piece of a text.
struct Passage<'a> {
    text: &'a str,
    /// Neither a quote nor a comment.
    is_code: bool,
}

fn passages(text: &str) -> impl Iterator<Item = Passage<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let quoted = quoted_bytes(rest);
        let is_code = quoted == 0;
        let length = if is_code { code_bytes(rest) } else { quoted };
        let (passage, after) = rest.split_at(length);
        rest = after;
        Some(Passage { text: passage, is_code })
    })
}

/// Length of the code that begins here.
fn code_bytes(text: &str) -> usize {
    text.char_indices().skip(1).map(|(at, _)| at).find(|&at| quoted_bytes(&text[at..]) > 0).unwrap_or(text.len())
}

/// Length of the quote or comment that begins here; 0 if none does. An unclosed one reaches to the
/// end.
fn quoted_bytes(text: &str) -> usize {
    let until = |open: usize, close: &str| text[open..].find(close).map_or(text.len(), |at| open + at + close.len());
    match text.as_bytes() {
        // A doubled quote reads as the end of one string and the start of the next, with the same
        // result.
        [b'\'', ..] => until(1, "'"),
        [b'"', ..] => until(1, "\""),
        [b'-', b'-', ..] => until(2, "\n"),
        [b'/', b'*', ..] => until(2, "*/"),
        [b'$', ..] => {
            // `$tag$ … $tag$`; a tag is a name, so `$1` does not begin one.
            let name = text[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(text.len(), |at| at + 1);
            let is_tag = text[name..].starts_with('$') && !text[1..].starts_with(|c: char| c.is_ascii_digit());
            if is_tag { until(name + 1, &text[..=name]) } else { 0 }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_what_only_looks_so() {
        for (given, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT ?, a+?FROM t WHERE x=?", "SELECT $1, a+$2FROM t WHERE x=$3"),
            ("SELECT '?', 'it''s ?', \"a?\", ?", "SELECT '?', 'it''s ?', \"a?\", $1"),
            ("SELECT ? -- why?\n, ?", "SELECT $1 -- why?\n, $2"),
            ("SELECT /* ? */ ? /* ?", "SELECT /* ? */ $1 /* ?"),
            ("SELECT $$?$$, $x$ ? $$ $x$, ?", "SELECT $$?$$, $x$ ? $$ $x$, $1"),
            ("SELECT doc ?? 'a' AND id = ?", "SELECT doc ? 'a' AND id = $1"),
            ("SELECT doc ? 'a' AND id = $1", "SELECT doc ? 'a' AND id = $1"),
            ("SELECT '$1', ?", "SELECT '$1', $1"),
            ("SELECT 'grüße', ?, 'é", "SELECT 'grüße', $1, 'é"),
            ("?", "$1"),
            ("$", "$"),
            ("? $ü$ ? $ü$ ?", "$1 $ü$ ? $ü$ $2"),
        ] {
            assert_eq!(numbered(given), expected);
        }
    }
}
