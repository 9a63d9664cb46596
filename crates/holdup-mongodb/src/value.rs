//! A value of a document, wherever the document came from: the wire, a file, or pasted text.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Null, or a kind that holdup has no use for.
    Null,
    /// True or false.
    Bool(bool),
    /// Any number. Integers beyond 2^53 lose their last digits.
    Number(f64),
    /// An instant, milliseconds since 1970.
    Time(i64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A document, in its own order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value at the end of a path of keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Names and values of a document.
    #[must_use]
    pub fn entries(&self) -> &[(String, Self)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The number; a text of digits counts as one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }

    /// Whether it is true, or a number other than 0.
    #[must_use]
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true)) || self.number().is_some_and(|number| number != 0.0)
    }
}
