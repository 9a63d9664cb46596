//! Makes foreign text safe for a terminal: control characters and those that reverse text are
//! written out (`\u001b`), as in JSON. All printed text passes through here once, at the end.

use std::borrow::Cow;
use std::io::{self, Write};

use super::style;

/// Whether `c` controls the terminal or changes the direction of text.
fn is_acting(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

fn write_out(out: &mut String, c: char) {
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Whether `c` cannot be seen, so that a reader of bytes gets words that a person does not: soft hyphen,
/// joiners, variation selectors, tags.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

fn escaped(text: &str, is_escaped: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            write_out(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Makes a text of several lines safe.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_acting(c) && !is_layout(c))
}

/// Makes a text safe for a single line.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_acting)
}

/// Makes a text of several lines safe for other readers than a terminal: everything that cannot be seen is
/// written out, too.
pub fn all_written_out(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_acting(c) && !is_layout(c) || is_invisible(c))
}

/// Makes JSON safe whose strings will be shown: control characters are written out twice, so that a
/// reader of JSON does not restore them.
pub fn shown_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(|c| c == '\\' || is_acting(c) && !is_layout(c)) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let kind = rest.as_bytes().get(1).copied().unwrap_or_default();
        let code = rest.get(2..6).and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        let (acting, length) = match (rest.starts_with('\\'), kind) {
            (false, _) => (rest.chars().next(), rest.chars().next().map_or(0, char::len_utf8)),
            (true, b'u') if rest.len() >= 6 => (code.filter(|c| is_acting(*c)), 6),
            (true, b'b') => (Some('\u{8}'), 2),
            (true, b'f') => (Some('\u{c}'), 2),
            (true, b'r') => (Some('\r'), 2),
            (true, _) => (None, 1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
        };
        match acting {
            Some(c) => {
                out.push('\\');
                write_out(&mut out, c);
            }
            None => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out + rest
}

/// Prepares text with holdup's own styles and foreign words for sending.
pub fn sent(text: &str) -> String {
    let mark = style::mark();
    let mut out = String::with_capacity(text.len() + 16);
    let mut pieces = text.split(mark);
    out.push_str(&shown(pieces.next().unwrap_or_default()));
    for piece in pieces {
        match style::bytes(piece) {
            Some(length) => {
                out.push('\u{1b}');
                out.push_str(&piece[..length]);
                out.push_str(&shown(&piece[length..]));
            }
            None => {
                write_out(&mut out, mark);
                out.push_str(&shown(piece));
            }
        }
    }
    out
}

/// Writes text to a terminal in pieces, which may end within a character.
pub struct EscapingWriter<W: Write> {
    out: W,
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl<W: Write> EscapingWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let rest = self.begun.split_off(whole);
        let text = String::from_utf8_lossy(&self.begun).into_owned();
        self.begun = rest;
        self.out.write_all(shown(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::style::{AnsiColor, Style};
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(
            shown("a\u{1b}]52;c;x\u{7}\u{9b}1m\u{202e}b\u{2066}\u{200f}\r\n\tc"),
            "a\\u001b]52;c;x\\u0007\\u009b1m\\u202eb\\u2066\\u200f\\u000d\n\tc"
        );
        assert_eq!(one_line("a\nb"), "a\\u000ab");
        assert!(matches!(shown("検索 é\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn only_styles_of_our_own_act() {
        let (bold, red) = (Style::new().bold(), AnsiColor::Red.on_default());
        assert_eq!(
            sent(&format!("{bold}a\u{1b}[31mb{bold:#}{red}c{red:#}")),
            "\u{1b}[1ma\\u001b[31mb\u{1b}[0m\u{1b}[31mc\u{1b}[0m"
        );
        // A writer who guesses the mark can only produce a style.
        let mark = style::mark();
        assert!(!sent(&format!("{mark}]52;c;x\u{7}{mark}[2J")).contains('\u{1b}'));
    }

    #[test]
    fn texts_of_json_are_shown_and_stay_json() {
        let value = serde_json::json!({"a\u{202e}": "\u{1b}]52\u{8}\u{c}\r\n\t\\u001b \u{9b}検\"\\"});
        let read: serde_json::Value = serde_json::from_str(&shown_json(&value.to_string())).unwrap();
        let expected = serde_json::json!({"a\\u202e": "\\u001b]52\\u0008\\u000c\\u000d\n\t\\u001b \\u009b検\"\\"});
        assert_eq!(read, expected);
    }

    #[test]
    fn letters_may_come_in_pieces() {
        let mut out = EscapingWriter::new(Vec::new());
        for byte in "é\u{202e}検\u{9b}".bytes() {
            out.write_all(&[byte]).unwrap();
        }
        assert_eq!(String::from_utf8(out.out).unwrap(), "é\\u202e検\\u009b");
    }
}
