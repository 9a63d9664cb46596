//! A text that rows share: among a million rows few texts are new, and repeated ones are stored
//! once.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A text that rows share. Cloning it copies no characters.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<String>);

impl Text {
    /// Its characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Arc::new(text.to_owned()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// Slots for recently seen addresses; a power of two. A row group's dictionary of metrics has some
/// 1,500 entries.
const PLACES: usize = 4_096;

/// Numbers for texts, in order of appearance.
///
/// Repeated values of a column come from its dictionary, so equal texts have one address, which is
/// compared before the characters.
#[derive(Default)]
pub(crate) struct Names {
    texts: Vec<Text>,
    numbers: HashMap<Text, u32>,
    places: Vec<(usize, usize, u32)>,
}

impl Names {
    /// The number of the text `bytes`. It must not move before [`Self::forget_places`].
    pub fn number(&mut self, bytes: &[u8]) -> u32 {
        let place = (bytes.as_ptr() as usize, bytes.len());
        // Multiplied by 2^64 divided by the golden ratio, adjacent addresses are far apart (D.
        // Knuth, TAOCP 3, 6.4).
        let slot = ((place.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize % PLACES;
        match self.places.get(slot) {
            Some(&(at, length, number)) if (at, length) == place => return number,
            None => self.places = vec![(0, usize::MAX, 0); PLACES],
            Some(_) => {}
        }
        let number = self.number_of(&String::from_utf8_lossy(bytes));
        self.places[slot] = (place.0, place.1, number);
        number
    }

    /// The number of `text`, at any address.
    pub fn number_of(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (number, text) = (self.texts.len() as u32, Text::from(text));
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    /// Forgets addresses, because earlier texts may have been freed.
    pub fn forget_places(&mut self) {
        self.places.clear();
    }

    /// The text with `number`.
    pub fn text(&self, number: u32) -> &Text {
        &self.texts[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number_wherever_they_lie() {
        let mut names = Names::default();
        let (a, other_a, b) = ("abc".to_owned(), "abc".to_owned(), "b".to_owned());
        let numbers = [&a, &b, &other_a, &a].map(|text| names.number(text.as_bytes()));
        assert_eq!(numbers, [0, 1, 0, 0]);
        assert_eq!((names.text(1), names.text(0).as_str()), (&Text::from("b"), "abc"));
    }

    #[test]
    fn a_place_may_hold_another_text_once_it_is_forgotten() {
        let mut names = Names::default();
        let mut text = *b"abc";
        assert_eq!(names.number(&text), 0);
        text[0] = b'x';
        names.forget_places();
        assert_eq!(names.number(&text), 1);
        assert_eq!(names.text(1).as_str(), "xbc");
    }
}
