//! The differences between servers' SQL, as questions that the lexer and the digest ask. Holds no
//! state.

use crate::words::{Meaning, meaning};

/// The SQL of one server and mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// MySQL, MariaDB and Percona Server with their default `sql_mode`: `"…"` is a string and
    /// backslash escapes. Under `ANSI_QUOTES` this also hides names in double quotes, which is the
    /// safe side. Under `NO_BACKSLASH_ESCAPES` a string that ends in a backslash seems to continue,
    /// so the rest is read out of step.
    #[default]
    MySql,
    /// The same under `sql_mode=ANSI_QUOTES`: `"…"` is a name.
    MySqlAnsiQuotes,
    /// The same under `sql_mode=NO_BACKSLASH_ESCAPES`: a backslash is an ordinary byte.
    MySqlNoBackslashEscapes,
    /// The same under both modes.
    MySqlAnsiQuotesNoBackslashEscapes,
    /// PostgreSQL 10 to 18 with `standard_conforming_strings` on, the default: `"…"` is a name, a
    /// backslash escapes only in `E'…'`, `$tag$ … $tag$` is a string, comments nest.
    PostgreSql,
}

impl Dialect {
    /// Whether `"…"` is a string, not a name.
    pub(crate) fn double_quote_is_string(self) -> bool {
        matches!(self, Self::MySql | Self::MySqlNoBackslashEscapes)
    }

    /// Whether a backslash in a string escapes the next byte.
    pub(crate) fn backslash_escapes(self) -> bool {
        matches!(self, Self::MySql | Self::MySqlAnsiQuotes)
    }

    /// Whether it is MySQL or MariaDB, in any mode: `` `…` `` is a name, which may begin with a digit, `#` starts a comment,
    /// the text in `/*! … */` is run, and `@` begins a variable. In PostgreSQL comments nest, `--` ends at a carriage return,
    /// too, and letter case counts in quoted names.
    pub(crate) fn is_mysql(self) -> bool {
        self != Self::PostgreSql
    }

    /// Whether `--` starts a comment when this byte follows it. MySQL's lexer requires white space,
    /// a control character or the end. These include 0x7f and, in latin1, 0xa0, which begins no
    /// UTF-8 character.
    pub(crate) fn dashes_start_comment(self, next: u8) -> bool {
        !self.is_mysql() || next <= b' ' || matches!(next, 0x7f | 0xa0)
    }

    /// The meaning of a bare word.
    pub(crate) fn meaning(self, word: &[u8]) -> Meaning {
        match meaning(word) {
            // MySQL takes `VALUE` for `VALUES`; elsewhere `value` is a column name.
            Meaning::Values if self == Self::PostgreSql && word.eq_ignore_ascii_case(b"value") => Meaning::Name,
            meaning => meaning,
        }
    }

    /// Whether an operator may follow a bare word.
    pub(crate) fn ends_operand(self, word: &[u8]) -> bool {
        matches!(self.meaning(word), Meaning::Name | Meaning::Constant)
    }
}
