//! What differs between the languages of servers, as questions the lexer and the digest ask. It holds no state.

use crate::words::{Meaning, meaning};

/// Whose SQL it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// MySQL, MariaDB and Percona Server with their default `sql_mode`: `"…"` is a string and backslash
    /// escapes. Under `ANSI_QUOTES` names in double quotes are hidden too, which is the safe side. Under
    /// `NO_BACKSLASH_ESCAPES` a string that ends in a backslash is taken to go on, so the rest is read out of step.
    #[default]
    MySql,
    /// The same under `sql_mode=ANSI_QUOTES`: `"…"` is a name.
    MySqlAnsiQuotes,
    /// The same under `sql_mode=NO_BACKSLASH_ESCAPES`: a backslash is a byte like others.
    MySqlNoBackslashEscapes,
    /// Under both.
    MySqlAnsiQuotesNoBackslashEscapes,
    /// PostgreSQL 10 to 18 with `standard_conforming_strings` on, as it is by default: `"…"` is a name, a backslash
    /// escapes in `E'…'` only, `$tag$ … $tag$` is a string, comments nest.
    PostgreSql,
}

impl Dialect {
    /// Whether `"…"` is a string, not a name.
    pub(crate) fn double_quote_is_string(self) -> bool {
        matches!(self, Self::MySql | Self::MySqlNoBackslashEscapes)
    }

    /// Whether a backslash in a string takes the next byte with it.
    pub(crate) fn backslash_escapes(self) -> bool {
        matches!(self, Self::MySql | Self::MySqlAnsiQuotes)
    }

    /// Whether it is MySQL's or MariaDB's, under whichever mode.
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

    /// Whether a comment behind `--` ends with a carriage return, too (PostgreSQL's lexer: `[^\n\r]*`).
    pub(crate) fn carriage_return_ends_comment(self) -> bool {
        matches!(self, Self::PostgreSql)
    }

    /// Whether `--` starts a comment with this byte behind it. MySQL's lexer asks for white space, a control character or the end:
    /// among them 0x7f and, in latin1, 0xa0, which begins no character of UTF-8.
    pub(crate) fn dashes_start_comment(self, next: u8) -> bool {
        !self.is_mysql() || next <= b' ' || matches!(next, 0x7f | 0xa0)
    }

    /// Whether what stands in `/*! … */` is run.
    pub(crate) fn executable_comment(self) -> bool {
        self.is_mysql()
    }

    /// Whether comments may stand in a comment.
    pub(crate) fn comments_nest(self) -> bool {
        matches!(self, Self::PostgreSql)
    }

    /// Whether `@` begins a variable and is no operator.
    pub(crate) fn at_begins_variable(self) -> bool {
        self.is_mysql()
    }

    /// Whether several words are one to the server (`SUBSTR`, `MID`), so that its own texts have either.
    pub(crate) fn has_synonyms(self) -> bool {
        self.is_mysql()
    }

    /// Whether letter case counts in names that stand in quotes.
    pub(crate) fn quoted_name_keeps_case(self) -> bool {
        matches!(self, Self::PostgreSql)
    }

    /// Whether the type behind `'…'::type` says nothing about the statement: drivers add it to the values they fill in.
    pub(crate) fn casts_of_values_go(self) -> bool {
        matches!(self, Self::PostgreSql)
    }

    /// What a bare word means.
    pub(crate) fn meaning(self, word: &[u8]) -> Meaning {
        match meaning(word) {
            // MySQL takes `VALUE` for `VALUES`; elsewhere it is what columns are called.
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
