//! JSON parsing as a walk over borrowed text: values are visited and nothing is built unless
//! requested, so that a body costs no memory beyond itself. Anything other than JSON (RFC 8259) is
//! malformed, and so is deeper nesting than OTLP ever has. OTLP's JSON rules apply: 64-bit numbers
//! may be strings, and `null` counts as absent.

use std::borrow::Cow;

use crate::Malformed;

/// Largest nesting depth; an OTLP body needs a dozen levels.
const DEPTH_MAX: u32 = 64;

/// A position in a JSON text.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Json<'a> {
    /// Before the first value of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Checks that only white space follows.
    ///
    /// # Errors
    /// If other text follows.
    pub fn end(&mut self) -> Result<(), Malformed> {
        if self.peek().is_none() { Ok(()) } else { Err(Malformed("something follows the JSON")) }
    }

    /// Calls `each` with every key of an object, to read (or skip) its value. `null` counts as an
    /// object without keys.
    ///
    /// # Errors
    /// If it is not an object, or the error of `each`.
    pub fn object(&mut self, mut each: impl FnMut(&mut Self, &str) -> Result<(), Malformed>) -> Result<(), Malformed> {
        if self.null()? {
            return Ok(());
        }
        self.all(b'{', b'}', "expected an object", |json| {
            let key = json.string()?;
            json.demand(b':', "expected a colon")?;
            each(json, &key)
        })
    }

    /// Calls `each` before every element of an array, to read (or skip) it. `null` counts as an
    /// empty array.
    ///
    /// # Errors
    /// If it is not an array, or the error of `each`.
    pub fn array(&mut self, each: impl FnMut(&mut Self) -> Result<(), Malformed>) -> Result<(), Malformed> {
        if self.null()? {
            return Ok(());
        }
        self.all(b'[', b']', "expected an array", each)
    }

    fn all(
        &mut self,
        open: u8,
        close: u8,
        missing: &'static str,
        mut each: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.demand(open, missing)?;
        if self.depth == DEPTH_MAX {
            return Err(Malformed("the JSON is nested too deeply"));
        }
        self.depth += 1;
        if self.peek() == Some(close) {
            self.at += 1;
        } else {
            loop {
                each(self)?;
                if self.peek() == Some(close) {
                    self.at += 1;
                    break;
                }
                self.demand(b',', "expected a comma")?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// A string. `null` counts as empty.
    ///
    /// # Errors
    /// If it is not a string.
    pub fn string(&mut self) -> Result<Cow<'a, str>, Malformed> {
        if self.peek() == Some(b'n') && self.null()? {
            return Ok(Cow::Borrowed(""));
        }
        self.demand(b'"', "expected a string")?;
        let mut owned = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let length = rest.bytes().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
            let (plain, after) = rest.split_at(length);
            self.at += length;
            match after.as_bytes().first() {
                Some(b'"') => {
                    self.at += 1;
                    if owned.is_empty() {
                        return Ok(Cow::Borrowed(plain));
                    }
                    owned.push_str(plain);
                    return Ok(Cow::Owned(owned));
                }
                Some(b'\\') => {
                    owned.push_str(plain);
                    self.at += 1;
                    owned.push(self.escaped()?);
                }
                _ => return Err(Malformed("a string is cut off, or contains a control character")),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, Malformed> {
        let byte = self.text.as_bytes().get(self.at).copied();
        self.at += 1;
        Ok(match byte {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => {
                let unit = self.four_digits()?;
                if !(0xd800..0xe000).contains(&unit) {
                    return char::from_u32(unit).ok_or(Malformed("an escape is not a character"));
                }
                // A character beyond the first 65,536 is a surrogate pair, the high half first.
                let follows = self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u"));
                if unit >= 0xdc00 || !follows {
                    return Err(Malformed("an escape is half a surrogate pair"));
                }
                self.at += 2;
                let low = self.four_digits()?;
                if !(0xdc00..0xe000).contains(&low) {
                    return Err(Malformed("an escape is half a surrogate pair"));
                }
                let character = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                char::from_u32(character).ok_or(Malformed("an escape is not a character"))?
            }
            _ => return Err(Malformed("a string has an unknown escape")),
        })
    }

    fn four_digits(&mut self) -> Result<u32, Malformed> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Malformed("a string is cut off"))?;
        self.at += 4;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(Malformed("a string has an unknown escape"));
        }
        u32::from_str_radix(digits, 16).map_err(|_| Malformed("a string has an unknown escape"))
    }

    /// An integer, as a number or as a string; `null` is 0.
    ///
    /// # Errors
    /// If it is not one, or out of range.
    pub fn whole<N: std::str::FromStr + Default>(&mut self) -> Result<N, Malformed> {
        let text = match self.peek() {
            Some(b'n') => return self.null().map(|_| N::default()),
            Some(b'"') => self.string()?,
            _ => Cow::Borrowed(self.number()?),
        };
        text.parse().map_err(|_| Malformed("expected an integer within range"))
    }

    /// A number, as a number or as a string, which may also be `NaN` or `Infinity`; `null` is 0.
    ///
    /// # Errors
    /// If it is not a number.
    pub fn double(&mut self) -> Result<f64, Malformed> {
        let text = match self.peek() {
            Some(b'n') => return self.null().map(|_| 0.0),
            Some(b'"') => self.string()?,
            _ => Cow::Borrowed(self.number()?),
        };
        text.parse().map_err(|_| Malformed("expected a number"))
    }

    /// An integer or a name: a name's value is its index in `names`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn constant(&mut self, names: &[&str]) -> Result<u64, Malformed> {
        if self.peek() != Some(b'"') {
            return self.whole();
        }
        let name = self.string()?;
        let place = names.iter().position(|known| *known == name);
        place.map(|place| place as u64).or_else(|| name.parse().ok()).ok_or(Malformed("unknown name of a constant"))
    }

    /// `true` or `false`; `null` is false.
    ///
    /// # Errors
    /// If it is neither.
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        match self.peek() {
            Some(b't') => self.word("true").map(|()| true),
            Some(b'f') => self.word("false").map(|()| false),
            _ if self.null()? => Ok(false),
            _ => Err(Malformed("expected true or false")),
        }
    }

    /// The first byte of the next value.
    pub fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blank = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.at += blank;
        rest.get(blank).copied()
    }

    /// Skips the next value.
    ///
    /// # Errors
    /// If it is missing.
    pub fn skip(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b'{') => self.object(|json, _| json.skip()),
            Some(b'[') => self.array(Self::skip),
            Some(b'"') => self.string().map(drop),
            Some(b't' | b'f' | b'n') => self.boolean().map(drop),
            _ => self.number().map(drop),
        }
    }

    fn null(&mut self) -> Result<bool, Malformed> {
        if self.peek() == Some(b'n') { self.word("null").map(|()| true) } else { Ok(false) }
    }

    fn word(&mut self, word: &str) -> Result<(), Malformed> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(Malformed("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn demand(&mut self, byte: u8, missing: &'static str) -> Result<(), Malformed> {
        if self.peek() != Some(byte) {
            return Err(Malformed(missing));
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<&'a str, Malformed> {
        let _ = self.peek();
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
        let none = Malformed("expected a number");
        let mut length = usize::from(bytes.first() == Some(&b'-'));
        let whole = digits(length);
        if whole == 0 || (whole > 1 && bytes.get(length) == Some(&b'0')) {
            return Err(none);
        }
        length += whole;
        if bytes.get(length) == Some(&b'.') {
            let decimals = digits(length + 1);
            if decimals == 0 {
                return Err(none);
            }
            length += 1 + decimals;
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            let exponent = digits(length + 1 + sign);
            if exponent == 0 {
                return Err(none);
            }
            length += 1 + sign + exponent;
        }
        let text = self.text.get(self.at..self.at + length).unwrap_or_default();
        self.at += length;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(text: &str) -> bool {
        let mut json = Json::new(text);
        json.skip().and_then(|()| json.end()).is_ok()
    }

    /// serde_json is the judge of what is JSON.
    #[test]
    fn takes_what_is_json_and_nothing_else() {
        for text in [
            "{}",
            "[]",
            "null",
            "true",
            "fals",
            "-0.5e+3",
            "01",
            "1.",
            ".5",
            "-",
            "1e",
            "1 2",
            "[1,]",
            "[,1]",
            "{\"a\":1,}",
            "{\"a\" : [1 , {\"b\":null}] }",
            "{a:1}",
            "\"\\u00e9\\n\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\udc00\"",
            "\"\\ud83d\\u0041\"",
            "\"\\x\"",
            "\"\n\"",
            "\"open",
            "[1",
            "{\"a\"",
            "",
            " ",
            "\u{feff}1",
            "\"\\u00e\"",
            "nul",
            "[true,false]",
            "\"\\u+123\"",
            "{\"a\":}",
            "tru e",
        ] {
            assert_eq!(accepts(text), serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        }
        assert!(accepts(&("[".repeat(60) + &"]".repeat(60))));
        assert!(!accepts(&("[".repeat(100_000) + &"]".repeat(100_000))));
    }

    #[test]
    fn values_are_read() {
        assert_eq!(Json::new("\"a\\\"\\u00e9\\ud83d\\ude00\"").string().unwrap(), "a\"\u{e9}\u{1f600}");
        assert!(matches!(Json::new(" \"plain\"").string(), Ok(Cow::Borrowed("plain"))));
        assert_eq!(Json::new("\"18446744073709551615\"").whole(), Ok(u64::MAX));
        assert_eq!(Json::new("12").whole(), Ok(12_i64));
        assert_eq!(Json::new("null").whole(), Ok(0_u64));
        assert!(Json::new("1.5").whole::<u64>().is_err());
        assert!(Json::new("\"-1\"").whole::<u64>().is_err());
        assert_eq!(Json::new("\"Infinity\"").double(), Ok(f64::INFINITY));
        assert_eq!(Json::new("2.5e1").double(), Ok(25.0));
        assert_eq!(Json::new("\"B\"").constant(&["A", "B"]), Ok(1));
        assert_eq!(Json::new("7").constant(&["A", "B"]), Ok(7));
        assert!(Json::new("\"C\"").constant(&["A", "B"]).is_err());
    }

    #[test]
    fn a_value_can_be_gone_through_ahead() {
        let mut json = Json::new("[1, 2]");
        let mut sum = 0;
        let mut ahead = json;
        for json in [&mut ahead, &mut json] {
            json.array(|json| json.whole::<u64>().map(|n| sum += n)).unwrap();
        }
        assert_eq!((sum, json.end()), (6, Ok(())));
    }
}
