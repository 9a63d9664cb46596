//! Decides which statements may be sent if the replay must change nothing. It is strict: a
//! statement that is not known to only read is left out and reported. As a second protection, the
//! sender also makes the sessions read-only on the server.
//!
//! It looks at words, not at grammar. It does not see a view or an operator that calls a user's own
//! function.

use holdup_sql::calls::{FUNCTIONS, KEYWORDS};
use holdup_sql::{Dialect, Lexer, TokenKind};

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// It reads.
    Reads,
    /// It begins or ends a transaction, or changes settings of its session.
    Session,
    /// It switches to another database.
    Use,
    /// It changes data, tables or the server.
    Changes,
    /// It reads, and locks what it reads.
    Locks,
    /// It calls functions that are not known to only compute.
    Calls,
    /// It has an unknown language, contains several statements, or may be read differently by the
    /// server.
    Unclear,
}

/// Functions that only return information, or wait. They are useless in a statement that is
/// planned, but a replay executes them.
const HARMLESS: &[&str] = &[
    "adddate",
    "ascii",
    "connection_id",
    "crc32",
    "curtime",
    "current_database",
    "current_schema",
    "current_user",
    "current_setting",
    "database",
    "dayname",
    "elt",
    "exp",
    "found_rows",
    "from_days",
    "gen_random_uuid",
    "hex",
    "inet6_ntoa",
    "inet_aton",
    "inet_ntoa",
    "json_array_length",
    "json_contains_path",
    "json_each",
    "json_each_text",
    "json_keys",
    "json_length",
    "json_object_agg",
    "json_overlaps",
    "json_search",
    "json_type",
    "json_valid",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_object_agg",
    "jsonb_object_keys",
    "jsonb_path_query",
    "jsonb_typeof",
    "last_day",
    "last_insert_id",
    "left",
    "ln",
    "log",
    "log10",
    "monthname",
    "nullif",
    "nvl",
    "ord",
    "pg_sleep",
    "pi",
    "rand",
    "random",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "regexp_substr",
    "repeat",
    "right",
    "row_count",
    "schema",
    "sha1",
    "sha256",
    "sleep",
    "space",
    "st_distance_sphere",
    "strcmp",
    "subdate",
    "substring_index",
    "sysdate",
    "time_format",
    "time_to_sec",
    "timediff",
    "timestampadd",
    "to_days",
    "to_seconds",
    "txid_current_if_assigned",
    "unhex",
    "user",
    "utc_date",
    "uuid",
    "var_pop",
    "var_samp",
    "std",
    "stddev_pop",
    "stddev_samp",
    "version",
    "weekday",
    "weekofyear",
    "yearweek",
    "over",
    "current_time",
    "localtime",
    "localtimestamp",
    "exists",
    "ts_headline",
    "ts_rank_cd",
    "array_to_string",
    "string_to_array",
    "array_append",
    "array_remove",
    "array_cat",
    "array_upper",
    "array_lower",
    "num_nonnulls",
    "to_hex",
    "encode",
    "decode",
    "quote_literal",
    "quote_ident",
    "nth_value",
    "corr",
    "mode",
    "grouping",
    "rollup",
    "cube",
    "sets",
    "charset",
    "collation",
    "timezone",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "benchmark",
    "any_value",
    "bin",
    "conv",
    "oct",
    "acos",
    "asin",
    "atan",
    "atan2",
    "cos",
    "cot",
    "degrees",
    "radians",
    "sin",
    "tan",
    "pg_typeof",
    "format_bytes",
    "bit_count",
    "bit_length",
    "char",
    "insert",
    "make_set",
    "maketime",
    "makedate",
    "period_add",
    "period_diff",
    "quote",
    "soundex",
    "sec_to_time",
    "time",
    "timestamp",
    "to_base64",
    "from_base64",
    "uuid_short",
    "inet6_aton",
    "is_uuid",
    "json_depth",
    "json_merge_patch",
    "json_merge_preserve",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_insert",
    "json_exists",
    "json_query",
    "json_table",
    "isfinite",
    "justify_days",
    "justify_hours",
    "div",
    "gcd",
    "lcm",
    "scale",
    "trim_scale",
    "cbrt",
    "factorial",
    "chr",
    "overlay",
    "regexp_count",
    "regexp_instr",
    "regexp_matches",
    "regexp_split_to_array",
    "regexp_split_to_table",
];

/// Words that change something anywhere in a statement that otherwise reads.
const CHANGES: &[&str] = &["insert", "update", "delete", "merge", "replace", "truncate", "call", "procedure"];

/// Words that begin a statement that only asks for information.
const ASKS: &[&str] = &["show", "describe", "desc"];

/// Words that begin a statement about the session.
const SESSION: &[&str] =
    &["begin", "start", "commit", "rollback", "end", "savepoint", "release", "abort", "set", "reset", "deallocate"];

/// Words that turn a session's statement into one for the whole server, or lift its read-only mode.
const BEYOND_SESSION: &[&str] = &[
    "global",
    "persist",
    "persist_only",
    "password",
    "role",
    "authorization",
    "statement",
    "write",
    "transaction_read_only",
    "default_transaction_read_only",
    "tx_read_only",
    "resource",
    "slave",
    "replica",
    "trigger",
    "prepared",
    "xa",
];

/// System variables of MySQL that affect the whole server.
const SERVERS_OWN: &[&str] = &["@@global", "@@persist"];

/// The kind of `sql`.
pub fn judge(sql: &[u8], dialect: Dialect) -> Judgement {
    let is_mysql = dialect != Dialect::PostgreSql;
    let read = |mark: &[u8]| memchr::memmem::find(sql, mark).is_some();
    // Text that only some versions read, or that only one of holdup and the server takes for text.
    if sql.contains(&0) || is_mysql && [&b"/*!"[..], b"/*M!"].iter().any(|mark| read(mark)) {
        return Judgement::Unclear;
    }
    let mut words: Vec<(TokenKind, String)> = Vec::new();
    let (mut depth, mut is_over) = (0_i32, false);
    for token in Lexer::new(sql, dialect) {
        let is_plain = || token.text.iter().all(|byte| *byte != b'\r' && *byte != b'$');
        match token.kind {
            TokenKind::Comment if token.text.contains(&b'\r') => return Judgement::Unclear,
            TokenKind::Comment => continue,
            TokenKind::Semicolon => {
                is_over = true;
                continue;
            }
            _ if is_over => return Judgement::Unclear,
            TokenKind::Word if is_mysql && !is_plain() => return Judgement::Unclear,
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth -= 1,
            _ => {}
        }
        let is_word = matches!(token.kind, TokenKind::Word | TokenKind::Operator);
        let word = if is_word { String::from_utf8_lossy(token.text).to_lowercase() } else { String::new() };
        words.push((token.kind, word));
    }
    if depth != 0 {
        return Judgement::Unclear;
    }
    judge_words(&words)
}

fn judge_words(words: &[(TokenKind, String)]) -> Judgement {
    let word = |at: usize| words.get(at).map_or("", |(_, word)| word.as_str());
    let begin = words.iter().position(|(kind, _)| *kind != TokenKind::Open).unwrap_or(0);
    let has = |list: &[&str]| {
        words.iter().any(|(kind, word)| *kind == TokenKind::Word && list.contains(&word.trim_start_matches('@')))
    };
    match word(begin) {
        "select" | "with" | "table" | "values" => reads(words),
        "explain" => {
            // With ANALYZE it executes.
            if has(&["analyze", "analyse"]) { Judgement::Unclear } else { Judgement::Session }
        }
        "use" => Judgement::Use,
        first if ASKS.contains(&first) => Judgement::Session,
        "" if words.is_empty() => Judgement::Session,
        "" => Judgement::Unclear,
        first if SESSION.contains(&first) => {
            let has_call = words.iter().any(|(kind, _)| *kind == TokenKind::Open);
            let is_servers = words.iter().any(|(_, word)| SERVERS_OWN.iter().any(|own| word.starts_with(own)));
            // `RESET ALL` and `DEALLOCATE ALL` concern the session, and PostgreSQL's pools use
            // them.
            let beyond = !matches!(first, "reset" | "deallocate") && has(BEYOND_SESSION);
            if has_call || is_servers || beyond { Judgement::Unclear } else { Judgement::Session }
        }
        "discard" if word(begin + 1) == "all" => Judgement::Session,
        _ => Judgement::Changes,
    }
}

fn reads(words: &[(TokenKind, String)]) -> Judgement {
    let at = |at: usize| words.get(at).map_or((TokenKind::Comment, ""), |(kind, word)| (*kind, word.as_str()));
    for index in 0..words.len() {
        let (kind, word) = at(index);
        let is_behind_dot = index > 0 && at(index - 1).0 == TokenKind::Dot;
        if kind == TokenKind::Open && index > 0 {
            let (before, name) = at(index - 1);
            let is_qualified = index >= 2 && at(index - 2).0 == TokenKind::Dot;
            let is_known = [KEYWORDS, FUNCTIONS, HARMLESS].iter().any(|list| list.contains(&name));
            match before {
                // A list of columns: `WITH "a" ("b") AS`, `USING (a)`; a call looks the same.
                TokenKind::QuotedName => return Judgement::Calls,
                TokenKind::Word if (is_qualified || !is_known) && !names_columns(words, index) => {
                    return Judgement::Calls;
                }
                _ => {}
            }
        }
        if kind != TokenKind::Word || is_behind_dot {
            continue;
        }
        match (word, at(index + 1)) {
            ("into" | "outfile" | "dumpfile", _) => return Judgement::Changes,
            ("for", (_, "update" | "share" | "no" | "key")) | ("lock", (_, "in")) => return Judgement::Locks,
            (word, (next, _)) if CHANGES.contains(&word) && next != TokenKind::Open => return Judgement::Changes,
            _ => {}
        }
    }
    Judgement::Reads
}

/// Whether the parenthesis at `open` holds the columns of a table that is being named: `WITH t (a,
/// b) AS`, `AS t (a, b)`.
fn names_columns(words: &[(TokenKind, String)], open: usize) -> bool {
    let Some(before) = open.checked_sub(2).and_then(|at| words.get(at)) else { return false };
    let holds_names = words
        .iter()
        .skip(open + 1)
        .take_while(|(kind, _)| *kind != TokenKind::Close)
        .all(|(kind, _)| matches!(kind, TokenKind::Word | TokenKind::QuotedName | TokenKind::Comma));
    holds_names && matches!(before.1.as_str(), "with" | "recursive" | "as")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_statements_are_recognised() {
        for (sql, expected) in [
            ("SELECT a FROM t WHERE b = 'INSERT; DROP' /* UPDATE */ -- DELETE", Judgement::Reads),
            ("(SELECT 1) UNION ALL (SELECT 2)", Judgement::Reads),
            ("WITH x (a, b) AS (SELECT 1, 2) SELECT a, count(*) FROM x GROUP BY a;", Judgement::Reads),
            ("SELECT replace(a, 'b', 'c'), insert_time, t.update FROM t", Judgement::Reads),
            ("select `delete` from t where id in (1, 2) and date(a) > now() - interval 1 day", Judgement::Reads),
            ("SELECT SLEEP(0.01)", Judgement::Reads),
            ("SHOW VARIABLES LIKE 'a'", Judgement::Session),
            ("EXPLAIN SELECT 1", Judgement::Session),
            ("", Judgement::Session),
            ("BEGIN", Judgement::Session),
            ("START TRANSACTION READ ONLY", Judgement::Session),
            ("COMMIT", Judgement::Session),
            ("SET NAMES utf8mb4", Judgement::Session),
            ("SET autocommit=0, sql_mode='ANSI'", Judgement::Session),
            ("USE `shop`", Judgement::Use),
        ] {
            assert_eq!(judge(sql.as_bytes(), Dialect::MySql), expected, "{sql}");
        }
        for (sql, expected) in [
            ("SELECT a FROM t WHERE b = $1 AND c = E'\\'; DROP TABLE t'", Judgement::Reads),
            ("SELECT substring(a FROM 1 FOR 3) FROM t", Judgement::Reads),
            ("DISCARD ALL", Judgement::Session),
            ("RESET ALL", Judgement::Session),
            ("SET LOCAL work_mem = '64MB'", Judgement::Session),
        ] {
            assert_eq!(judge(sql.as_bytes(), Dialect::PostgreSql), expected, "{sql}");
        }
    }

    #[test]
    fn all_else_is_left_out() {
        let both = [
            ("INSERT INTO t VALUES (1)", Judgement::Changes),
            ("CREATE TABLE t (a int)", Judgement::Changes),
            ("SELECT * INTO x FROM t", Judgement::Changes),
            ("WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x", Judgement::Changes),
            ("WITH x AS (SELECT 1) UPDATE t SET a = 1", Judgement::Changes),
            ("SELECT a FROM t FOR UPDATE", Judgement::Locks),
            ("SELECT a FROM t FOR NO KEY UPDATE SKIP LOCKED", Judgement::Locks),
            ("SELECT evil(1)", Judgement::Calls),
            ("SELECT public.lower(a) FROM t", Judgement::Calls),
            ("SELECT \"lower\"(a) FROM t", Judgement::Calls),
            ("SELECT nextval('s')", Judgement::Calls),
            ("SELECT 1; DROP TABLE t", Judgement::Unclear),
            ("SELECT 1 -- a\r; DROP TABLE t", Judgement::Unclear),
            ("SELECT (1", Judgement::Unclear),
            ("SET a = evil(1)", Judgement::Unclear),
            ("SET ROLE admin", Judgement::Unclear),
            ("START TRANSACTION READ WRITE", Judgement::Unclear),
            ("SET SESSION TRANSACTION READ WRITE", Judgement::Unclear),
            ("EXPLAIN ANALYZE DELETE FROM t", Judgement::Unclear),
            ("CALL p()", Judgement::Changes),
            ("DO $$ BEGIN END $$", Judgement::Changes),
            ("LOCK TABLES t WRITE", Judgement::Changes),
            ("KILL 5", Judgement::Changes),
            ("COPY t FROM STDIN", Judgement::Changes),
        ];
        for (sql, expected) in both {
            let found = judge(sql.as_bytes(), Dialect::PostgreSql);
            assert_eq!(found, expected, "{sql}");
        }
        for (sql, expected) in [
            ("SELECT a FROM t LOCK IN SHARE MODE", Judgement::Locks),
            ("SELECT 1 INTO OUTFILE 'x'", Judgement::Changes),
            ("SELECT 1 /*!50000 INTO OUTFILE 'x' */", Judgement::Unclear),
            ("SELECT $$ ' $$; DROP TABLE t; -- '", Judgement::Unclear),
            ("SET GLOBAL a = 1", Judgement::Unclear),
            ("SET @@global.a = 1", Judgement::Unclear),
            ("SET STATEMENT a = 1 FOR DELETE FROM t", Judgement::Unclear),
            ("SET SESSION transaction_read_only = 0", Judgement::Unclear),
            ("REPLACE INTO t VALUES (1)", Judgement::Changes),
            ("SELECT \"a\"\"; DROP TABLE t; -- ", Judgement::Reads),
        ] {
            assert_eq!(judge(sql.as_bytes(), Dialect::MySql), expected, "{sql}");
        }
    }
}
