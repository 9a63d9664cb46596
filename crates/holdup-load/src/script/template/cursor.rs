//! Reads a text from its start: words, numbers, quoted texts. It does not know what they mean.

use std::borrow::Cow;

/// A place in a text.
pub(crate) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Bytes before the place.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text read since `start`, an earlier place of this cursor.
    pub(crate) fn since(&self, start: usize) -> &'t str {
        &self.text[start..self.at]
    }

    /// Goes back to an earlier place of this cursor.
    pub(crate) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The unread rest.
    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Consumes `text` if it is next.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Reads while the characters are `wanted`.
    pub(crate) fn run(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    pub(crate) fn skip_spaces(&mut self) {
        self.run(char::is_whitespace);
    }

    /// The characters of a name; empty if none comes next.
    pub(crate) fn word(&mut self) -> &'t str {
        self.run(is_of_word)
    }

    /// A number that is not the start of a name.
    pub(crate) fn number(&mut self) -> Option<&'t str> {
        let start = self.at;
        self.eat("-");
        let whole = self.run(|c| c.is_ascii_digit());
        let fraction = self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if fraction {
            self.eat(".");
            self.run(|c| c.is_ascii_digit());
        }
        if whole.is_empty() || self.peek().is_some_and(is_of_word) {
            self.at = start;
            return None;
        }
        Some(self.since(start))
    }

    /// A text in quotes of either kind, without them; none if the end is missing. A backslash
    /// escapes the quote and itself, and `\n`, `\r` and `\t` have their usual meaning; before
    /// anything else it is a plain backslash, so that patterns need not double theirs.
    pub(crate) fn quoted(&mut self) -> Option<Cow<'t, str>> {
        let quote = self.next()?;
        let start = self.at;
        let mut changed: Option<String> = None;
        loop {
            let before = self.at;
            let next = self.next()?;
            if next == quote {
                return Some(changed.map_or(Cow::Borrowed(&self.text[start..before]), Cow::Owned));
            }
            let meant = match (next, self.peek()) {
                ('\\', Some(c)) if c == quote || c == '\\' => Some(c),
                ('\\', Some('n')) => Some('\n'),
                ('\\', Some('r')) => Some('\r'),
                ('\\', Some('t')) => Some('\t'),
                _ => None,
            };
            if meant.is_some() {
                self.next();
                changed.get_or_insert_with(|| self.text[start..before].to_owned());
            }
            if let Some(text) = &mut changed {
                text.push(meant.unwrap_or(next));
            }
        }
    }
}

/// Whether a name may contain the character.
pub(crate) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts() {
        for (text, meant, rest) in [
            (r#"'a' b"#, "a", " b"),
            (r#""it's""#, "it's", ""),
            (r#"'it\'s'"#, "it's", ""),
            (r#"'\d+\\\n\"'"#, "\\d+\\\n\\\"", ""),
            ("'ä€\\t'x", "ä€\t", "x"),
        ] {
            let mut cursor = Cursor::new(text);
            assert_eq!(cursor.quoted().as_deref(), Some(meant), "{text}");
            assert_eq!(cursor.rest(), rest);
        }
        for text in ["'", "'a", r"'a\'", ""] {
            assert_eq!(Cursor::new(text).quoted(), None, "{text}");
        }
    }

    #[test]
    fn numbers_and_words() {
        for (text, number, rest) in
            [("12)", Some("12"), ")"), ("-1.5 ", Some("-1.5"), " "), ("200..299", Some("200"), "..299")]
        {
            let mut cursor = Cursor::new(text);
            assert_eq!((cursor.number(), cursor.rest()), (number, rest));
        }
        for text in ["", "-", "2fa", "a", ".5", "1.5x", "-x"] {
            let mut cursor = Cursor::new(text);
            assert_eq!((cursor.number(), cursor.rest()), (None, text));
        }
        assert_eq!(Cursor::new("größe_1-a.b").word(), "größe_1-a");
    }
}
