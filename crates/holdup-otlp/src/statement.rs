//! How to read the statements of a system: its quoting rules decide where values end, and so what
//! may be kept of a statement. A span names its system (`db.system.name`), and a source that
//! watches the server knows it; both then read alike and get the same digests.

use holdup_sql::{Dialect, Lexer, TokenKind, digest_text};

/// Systems that quote like MySQL.
const MYSQL: [&str; 4] = ["mysql", "mariadb", "percona", "tidb"];

/// Systems that quote like PostgreSQL.
const POSTGRESQL: [&str; 7] = ["postgresql", "postgres", "pgsql", "cockroachdb", "timescaledb", "yugabytedb", "edb"];

/// Derivatives of PostgreSQL with other rules for backslash escapes.
const NEAR_POSTGRESQL: [&str; 5] = ["redshift", "aws.redshift", "greenplum", "netezza", "ibm.netezza"];

/// Other systems that use SQL.
const NEAR_SQL: [&str; 30] = [
    "other_sql",
    "sqlite",
    "mssql",
    "mssqlcompact",
    "microsoft.sql_server",
    "oracle",
    "oracle.db",
    "h2",
    "h2database",
    "hsqldb",
    "derby",
    "db2",
    "ibm.db2",
    "informix",
    "ibm.informix",
    "clickhouse",
    "trino",
    "presto",
    "hive",
    "duckdb",
    "snowflake",
    "teradata",
    "vertica",
    "hanadb",
    "sap.hana",
    "maxdb",
    "sap.maxdb",
    "firebird",
    "firebirdsql",
    "sybase",
];

/// Verbs of SQL statements, without those that are also commands of other languages (`SET`).
const SQL_VERBS: [&str; 19] = [
    "select",
    "insert",
    "update",
    "delete",
    "with",
    "replace",
    "merge",
    "values",
    "call",
    "begin",
    "start",
    "commit",
    "rollback",
    "savepoint",
    "create",
    "alter",
    "drop",
    "truncate",
    "explain",
];

/// How to read a system's statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// In this dialect.
    Exact(Dialect),
    /// In this dialect, unless the statement contains something that systems read differently.
    Near(Dialect),
    /// The system is unknown: read only statements that start like SQL.
    Untold,
    /// Not at all: Redis commands, MongoDB documents. Their values cannot be recognized.
    Opaque,
}

impl Reading {
    /// The reading for `system`.
    pub fn for_system(system: Option<&str>) -> Self {
        let Some(system) = system else { return Self::Untold };
        let is_of = |known: &[&str]| known.iter().any(|name| name.eq_ignore_ascii_case(system));
        match () {
            () if is_of(&MYSQL) => Self::Exact(Dialect::MySql),
            () if is_of(&POSTGRESQL) => Self::Exact(Dialect::PostgreSql),
            () if is_of(&NEAR_POSTGRESQL) => Self::Near(Dialect::PostgreSql),
            () if is_of(&NEAR_SQL) => Self::Near(Dialect::MySql),
            () => Self::Opaque,
        }
    }

    /// The statement without its values; none if they cannot be recognized.
    pub fn without_values(self, statement: &str) -> Option<String> {
        self.dialect(statement).map(|dialect| digest_text(statement, dialect))
    }

    /// The same for a span's name, which stays unchanged if it contains no values.
    pub fn name_without_values(self, name: &str) -> Option<String> {
        let dialect = self.dialect(name)?;
        let mut tokens = Lexer::new(name.as_bytes(), dialect);
        let is_plain =
            !tokens.any(|token| matches!(token.kind, TokenKind::Literal | TokenKind::Comment | TokenKind::Variable));
        Some(if is_plain { name.to_owned() } else { digest_text(name, dialect) })
    }

    fn dialect(self, text: &str) -> Option<Dialect> {
        match self {
            Self::Exact(dialect) => Some(dialect),
            Self::Near(dialect) => (!is_ambiguous(text.as_bytes())).then_some(dialect),
            Self::Untold => (begins_as_sql(text) && !is_ambiguous(text.as_bytes())).then_some(Dialect::MySql),
            Self::Opaque => None,
        }
    }
}

/// Whether only SQL statements start like this.
fn begins_as_sql(text: &str) -> bool {
    let mut tokens = Lexer::new(text.as_bytes(), Dialect::MySql);
    let first = tokens.find(|token| !matches!(token.kind, TokenKind::Comment | TokenKind::Open));
    first.is_some_and(|token| SQL_VERBS.iter().any(|verb| verb.as_bytes().eq_ignore_ascii_case(token.text)))
}

/// Whether systems disagree on where a literal or a comment in `sql` ends: backslashes, `$tag$`,
/// Oracle's `q'[…]'`, nested comments, comments that contain code, `#` comments, and `--` without a
/// blank.
fn is_ambiguous(sql: &[u8]) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut is_in_comment = false;
    (0..sql.len()).any(|at| {
        let byte = |ahead: usize| sql.get(at + ahead).copied().unwrap_or(b' ');
        match byte(0) {
            b'\\' | b'#' => true,
            b'$' => {
                let tag = sql.iter().skip(at + 1).take_while(|byte| is_word(**byte)).count();
                byte(1 + tag) == b'$'
            }
            b'q' | b'Q' if byte(1) == b'\'' => {
                let before = at.checked_sub(1).and_then(|at| sql.get(at)).copied().unwrap_or(b' ');
                !is_word(before) || before.eq_ignore_ascii_case(&b'n')
            }
            b'-' => byte(1) == b'-' && byte(2) > b' ',
            b'/' if byte(1) == b'*' => std::mem::replace(&mut is_in_comment, true) || matches!(byte(2), b'!' | b'M'),
            b'*' if byte(1) == b'/' => {
                is_in_comment = false;
                false
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_read_as_they_quote() {
        for system in ["mysql", "mariadb", "MariaDB"] {
            assert_eq!(Reading::for_system(Some(system)), Reading::Exact(Dialect::MySql));
        }
        for system in ["postgresql", "PostgreSQL", "cockroachdb"] {
            assert_eq!(Reading::for_system(Some(system)), Reading::Exact(Dialect::PostgreSql));
        }
        assert_eq!(Reading::for_system(Some("aws.redshift")), Reading::Near(Dialect::PostgreSql));
        assert_eq!(Reading::for_system(Some("oracle.db")), Reading::Near(Dialect::MySql));
        assert_eq!(Reading::for_system(None), Reading::Untold);
        assert_eq!(Reading::for_system(Some("mongodb")), Reading::Opaque);
    }

    /// Each would come through in the other's reading, or in that of a system that reads yet another way.
    #[test]
    fn quoted_values_are_replaced_in_every_dialect() {
        for (system, statement) in [
            (Some("mysql"), r#"SELECT "s3cret", 'it\'s s3cret', `a` FROM t # s3cret"#),
            (Some("postgresql"), r"SELECT 'x\', 's3cret' FROM t"),
            (Some("postgresql"), "SELECT $$it's s3cret$$, $a$ ' s3cret ' $a$, E'it\\'s s3cret' /* a /* b */ s3cret */"),
            (Some("cockroachdb"), r"UPDATE t SET a = 'x\' WHERE b = 's3cret' --s3cret"),
            (Some("redshift"), r"SELECT 'it\'s s3cret', 1"),
            (Some("oracle"), "SELECT q'[it's s3cret]' FROM dual"),
            (Some("oracle"), "SELECT nq'[it's s3cret]' FROM dual"),
            (Some("sqlite"), r"SELECT 'x\', 's3cret'"),
            (Some("mssql"), "SELECT 1 --it's\n, 's3cret'"),
            (Some("h2"), "SELECT $$it's s3cret$$"),
            (Some("trino"), "SELECT \"s3cret\", 's3cret' /* s3cret */"),
            (None, r"SELECT 'x\', 's3cret'"),
            (None, "SELECT /* a /* it's */ */ 's3cret'"),
            (None, "SET user:1 s3cret"),
            (None, "{\"find\": \"users\", \"s3cret\": 1}"),
            (None, "/* SELECT */ HSET s3cret"),
        ] {
            let reading = Reading::for_system(system);
            for kept in [reading.without_values(statement), reading.name_without_values(statement)] {
                assert!(!kept.as_deref().unwrap_or_default().contains("s3cret"), "{system:?} {statement}: {kept:?}");
            }
        }
    }

    #[test]
    fn text_that_every_dialect_reads_alike_is_kept() {
        let text = |system, statement| Reading::for_system(system).without_values(statement);
        let plain = "SELECT a FROM t WHERE b = 'x' AND c = 1 -- why\n AND d = 2 /* who */";
        for system in [None, Some("oracle"), Some("redshift"), Some("mysql"), Some("postgresql")] {
            let kept = text(system, plain);
            assert_eq!(kept.as_deref(), Some("SELECT a FROM t WHERE b = ? AND c = ? AND d = ?"), "{system:?}");
        }
        assert_eq!(text(Some("mongodb"), plain), None);
        let name = |name| Reading::for_system(Some("postgresql")).name_without_values(name);
        assert_eq!(name("pg.query:SELECT shop").as_deref(), Some("pg.query:SELECT shop"));
        assert_eq!(name("SELECT a FROM t LIMIT 42").as_deref(), Some("SELECT a FROM t LIMIT ?"));
    }
}
