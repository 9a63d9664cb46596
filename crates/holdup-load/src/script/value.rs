//! The values of a session's variables.

/// A variable's value. Text that came from a response is data: nothing expands it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// The variable exists, but has not been set yet.
    #[default]
    None,
    /// A text.
    Text(Box<str>),
    /// What a capture of all occurrences found, in order.
    List(Box<[Box<str>]>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
