//! What differs between the languages of servers, as questions the lexer asks. It holds no state.

/// Whose SQL it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// MySQL, MariaDB and Percona Server with their default `sql_mode`: `"…"` is a string and backslash
    /// escapes. Under `ANSI_QUOTES` names in double quotes are hidden too, which is the safe side. Under
    /// `NO_BACKSLASH_ESCAPES` a string that ends in a backslash is taken to go on, so the rest is read out of step.
    #[default]
    MySql,
}

impl Dialect {
    /// Whether `"…"` is a string, not a name.
    pub(crate) fn double_quote_is_string(self) -> bool {
        matches!(self, Self::MySql)
    }

    /// Whether a backslash in a string takes the next byte with it.
    pub(crate) fn backslash_escapes(self) -> bool {
        matches!(self, Self::MySql)
    }

    /// Whether `` `…` `` is a name.
    pub(crate) fn backtick_quotes_name(self) -> bool {
        matches!(self, Self::MySql)
    }

    /// Whether `#` starts a comment.
    pub(crate) fn hash_comment(self) -> bool {
        matches!(self, Self::MySql)
    }

    /// Whether `--` starts a comment only with white space (or the end) behind it.
    pub(crate) fn dashes_need_space(self) -> bool {
        matches!(self, Self::MySql)
    }

    /// Whether what stands in `/*! … */` is run.
    pub(crate) fn executable_comment(self) -> bool {
        matches!(self, Self::MySql)
    }

    /// Whether a name may begin with a digit.
    pub(crate) fn name_may_begin_with_digit(self) -> bool {
        matches!(self, Self::MySql)
    }
}
