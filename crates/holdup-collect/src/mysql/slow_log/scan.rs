//! Tracks whether a statement's bytes are code, or part of a literal, a quoted name or a comment,
//! which may contain anything. It works line by line and stores no text, so a statement may have
//! any length. Backslashes escape, as they do unless the server's `sql_mode` has
//! `NO_BACKSLASH_ESCAPES`.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Code,
    /// Until this byte.
    Quoted(u8),
    /// Until the end of the line.
    Line,
    /// After `/*`: with `!` or `M!` it is code.
    Opened,
    Block,
}

/// The scanner's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    state: State,
    /// The previous two bytes, if they can form a token with the next ones.
    before: [u8; 2],
}

impl Scan {
    /// Scans these bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// Whether the next byte is code.
    pub(super) fn is_in_code(self) -> bool {
        self.state == State::Code
    }

    fn step(&mut self, byte: u8) {
        let [second_last, last] = self.before;
        self.before = [last, byte];
        let state = match (self.state, byte) {
            (State::Code, b'\'' | b'"' | b'`') => State::Quoted(byte),
            (State::Code, b'#') => State::Line,
            (State::Code, b'*') if last == b'/' => State::Opened,
            (State::Code, 0..=b' ') if byte != b'\n' && (second_last, last) == (b'-', b'-') => State::Line,
            // An escaped backslash does not escape the next byte.
            (State::Quoted(quote), _) if last == b'\\' && quote != b'`' => {
                self.before = [0; 2];
                return;
            }
            (State::Quoted(quote), _) if byte == quote => State::Code,
            (State::Line, b'\n') => State::Code,
            (State::Opened, b'!') => State::Code,
            (State::Opened, b'M') if last == b'*' => State::Opened,
            (State::Opened, _) => State::Block,
            (State::Block, b'/') if last == b'*' => State::Code,
            (state, _) => state,
        };
        // The end of one token cannot be part of the start of the next.
        let goes_on =
            state == State::Block && byte == b'*' || matches!((self.state, state), (State::Code, State::Opened));
        if state != self.state && !goes_on {
            self.before = [0; 2];
        }
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_literals_and_comments_are_seen() {
        for (text, is_in_code) in [
            ("SELECT 1;\n", true),
            ("'a", false),
            ("'it''s'", true),
            (r"'it\'s", false),
            (r"'it\'s'", true),
            (r"'a\\'", true),
            (r"`a\`", true),
            ("\"a'", false),
            ("# don't\n", true),
            ("# don't", false),
            ("-- don't\n", true),
            ("1--'", false),
            ("--\n'", false),
            ("/* don't", false),
            ("/* don't */", true),
            ("/*/ '", false),
            ("/**/", true),
            ("/*'**/", true),
            ("/*!50000 ' */", false),
            ("/*M!100000 '' */", true),
            ("/*M ' */", true),
            ("a*/'", false),
        ] {
            let mut scan = Scan::default();
            scan.take(text.as_bytes());
            assert_eq!(scan.is_in_code(), is_in_code, "{text:?}");
        }
    }
}
