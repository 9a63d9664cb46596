//! The bytes at which something other than plain text may begin, for each way to quote.

use crate::Dialect;

/// A digit.
pub(super) const DIGIT: u8 = 1;
/// May begin a string.
pub(super) const STRING_QUOTE: u8 = 2;
/// May begin a quoted name.
pub(super) const NAME_QUOTE: u8 = 4;
/// May begin a comment.
pub(super) const COMMENT: u8 = 8;
/// PostgreSQL's `$1` and `$tag$`.
pub(super) const DOLLAR: u8 = 16;
/// MySQL's placeholder; in PostgreSQL an operator, which is text.
pub(super) const QUESTION: u8 = 32;
/// May begin `VALUES`.
pub(super) const V: u8 = 64;
/// A parenthesis, which matters within a row.
pub(super) const PARENTHESIS: u8 = 128;

const fn with(mut table: [u8; 256], bytes: &[u8], kind: u8) -> [u8; 256] {
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = kind;
        at += 1;
    }
    table
}

const ALL: [u8; 256] = {
    let table = with([0; 256], b"0123456789", DIGIT);
    let table = with(table, b"'", STRING_QUOTE);
    let table = with(table, b"/-", COMMENT);
    let table = with(table, b"vV", V);
    with(table, b"()", PARENTHESIS)
};
const MYSQL_NAMES: [u8; 256] = with(with(with(ALL, b"`", NAME_QUOTE), b"#", COMMENT), b"?", QUESTION);
static MYSQL: [u8; 256] = with(MYSQL_NAMES, b"\"", STRING_QUOTE);
static MYSQL_ANSI_QUOTES: [u8; 256] = with(MYSQL_NAMES, b"\"", NAME_QUOTE);
static POSTGRESQL: [u8; 256] = with(with(ALL, b"\"", NAME_QUOTE), b"$", DOLLAR);

/// The kinds that each byte may begin in a dialect.
pub(super) fn table(dialect: Dialect) -> &'static [u8; 256] {
    match dialect {
        Dialect::MySql | Dialect::MySqlNoBackslashEscapes => &MYSQL,
        Dialect::MySqlAnsiQuotes | Dialect::MySqlAnsiQuotesNoBackslashEscapes => &MYSQL_ANSI_QUOTES,
        Dialect::PostgreSql => &POSTGRESQL,
    }
}
