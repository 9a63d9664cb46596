//! Styles of holdup's output. Until the text is sent, a mark that is unique to this process stands
//! for a style's escape character, so that escapes in foreign text can be told apart.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

/// A private-use character (Unicode, plane 15), drawn anew by each process.
static MARK: LazyLock<char> = LazyLock::new(|| {
    let drawn = u32::try_from(RandomState::new().hash_one(0) % 0xfff0).unwrap_or_default();
    char::from_u32(0xf_0000 + drawn).unwrap_or('\u{f0000}')
});

/// The mark that stands for the escape character.
pub fn mark() -> char {
    *MARK
}

/// The length of the style at the beginning of `text`, behind the mark; none if that is not a
/// style.
pub fn bytes(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('[')?;
    let length = rest.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    rest[length..].starts_with('m').then_some(length + 2)
}

/// A style: `{style}` begins it and `{style:#}` ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style(anstyle::Style);

impl Style {
    /// No style.
    pub const fn new() -> Self {
        Self(anstyle::Style::new())
    }

    #[must_use]
    pub const fn bold(self) -> Self {
        Self(self.0.bold())
    }

    #[must_use]
    pub const fn dimmed(self) -> Self {
        Self(self.0.dimmed())
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if f.alternate() { format!("{:#}", self.0) } else { self.0.to_string() };
        f.write_str(&text.replace('\u{1b}', &mark().to_string()))
    }
}

/// The terminal's own colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsiColor {
    Cyan,
    Green,
    Red,
    White,
    Yellow,
}

impl AnsiColor {
    /// The colour of letters.
    pub const fn on_default(self) -> Style {
        let color = match self {
            Self::Cyan => anstyle::AnsiColor::Cyan,
            Self::Green => anstyle::AnsiColor::Green,
            Self::Red => anstyle::AnsiColor::Red,
            Self::White => anstyle::AnsiColor::White,
            Self::Yellow => anstyle::AnsiColor::Yellow,
        };
        Style(color.on_default())
    }
}
