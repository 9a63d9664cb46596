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

    /// Whether it is MySQL or MariaDB, in any mode.
    pub(crate) fn is_mysql(self) -> bool {
        self != Self::PostgreSql
    }

    /// Whether `` `…` `` is a name.
    pub(crate) fn backtick_quotes_name(self) -> bool {
        self.is_mysql()
    }

    /// Whether `#` starts a comment.
    pub(crate) fn hash_comment(self) -> bool {
        self.is_mysql()
    }

    /// Whether a carriage return also ends a `--` comment (PostgreSQL's lexer: `[^\n\r]*`).
    pub(crate) fn carriage_return_ends_comment(self) -> bool {
        matches!(self, Self::PostgreSql)
    }

    /// Whether `--` starts a comment when this byte follows it. MySQL's lexer requires white space,
    /// a control character or the end. These include 0x7f and, in latin1, 0xa0, which begins no
    /// UTF-8 character.
    pub(crate) fn dashes_start_comment(self, next: u8) -> bool {
        !self.is_mysql() || next <= b' ' || matches!(next, 0x7f | 0xa0)
    }

    /// Whether the server runs the text in `/*! … */`.
    pub(crate) fn executable_comment(self) -> bool {
        self.is_mysql()
    }

    /// Whether comments nest.
    pub(crate) fn comments_nest(self) -> bool {
        matches!(self, Self::PostgreSql)
    }

    /// Whether `@` begins a variable instead of an operator.
    pub(crate) fn at_begins_variable(self) -> bool {
        self.is_mysql()
    }

    /// Whether the server takes several words for one (`SUBSTR`, `MID`), so that its own texts may
    /// have either.
    pub(crate) fn has_synonyms(self) -> bool {
        self.is_mysql()
    }

    /// Whether letter case counts in quoted names.
    pub(crate) fn quoted_name_keeps_case(self) -> bool {
        matches!(self, Self::PostgreSql)
    }

    /// Whether the type in `'…'::type` says nothing about the statement: drivers add it to the
    /// values they fill in.
    pub(crate) fn casts_of_values_go(self) -> bool {
        matches!(self, Self::PostgreSql)
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

    /// Whether a name may begin with a digit.
    pub(crate) fn name_may_begin_with_digit(self) -> bool {
        self.is_mysql()
    }
}
