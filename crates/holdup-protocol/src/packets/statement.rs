//! Statements without their literals, each kept once. Texts of statements come in, and only digests
//! leave.

use std::collections::HashMap;
use std::sync::Arc;

use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

/// Most statements that are kept; beyond this, all are forgotten and learned again.
const KEPT_MAX: usize = 8192;
/// Most bytes of a digest text that are kept. The digest covers all of it.
const TEXT_BYTES_MAX: usize = 4096;

/// holdup's own collectors put this in front of each of their statements.
pub const OWN: &str = "/* holdup */";

/// A statement without its literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub digest: String,
    pub digest_text: String,
}

/// One statement as it was sent: its digest, and the request it belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentSql {
    pub statement: Option<Arc<Statement>>,
    pub trace_id: Option<Arc<str>>,
    /// holdup itself uses it to watch the server.
    pub is_own: bool,
    /// Its text as it was sent, if that is wanted.
    pub sql: Option<Arc<[u8]>>,
}

impl SentSql {
    /// The statement for the next execution of this preparation. Its text is the same for all. Its
    /// trace id is that of the preparing request and belongs to the first execution only: later
    /// ones may come from any request.
    pub fn lend(&mut self) -> Self {
        Self { trace_id: self.trace_id.take(), ..self.without_trace() }
    }

    /// The same without a trace id, for a request that is unknown.
    pub fn without_trace(&self) -> Self {
        Self { statement: self.statement.clone(), trace_id: None, is_own: self.is_own, sql: self.sql.clone() }
    }
}

/// Most cursors that are kept; beyond this, all are forgotten.
const CURSORS_MAX: usize = 8192;

/// All statements that were seen.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    /// Whether texts leave unchanged: the caller who wants that has to hide literals.
    pub in_full: bool,
    pub by_text: HashMap<String, Arc<Statement>>,
    /// The queries behind open cursors of MongoDB. A driver may read on from any of its connections.
    pub cursors: HashMap<i64, SentSql>,
}

impl Statements {
    /// The statement in `sql`.
    pub fn digest(&mut self, sql: &[u8], dialect: Dialect) -> SentSql {
        if self.in_full {
            let is_own = sql.trim_ascii_start().starts_with(OWN.as_bytes());
            return SentSql { sql: Some(Arc::from(sql)), is_own, ..SentSql::default() };
        }
        let text = digest_text(sql, dialect);
        if text.is_empty() {
            return SentSql::default();
        }
        let is_own = sql.trim_ascii_start().starts_with(OWN.as_bytes());
        let statement = Some(self.keep(text));
        SentSql { statement, trace_id: trace_id(sql, dialect).map(Arc::from), is_own, sql: None }
    }

    /// The statement of a text that never had literals, such as the shape of MongoDB's commands.
    pub fn shaped(&mut self, text: String, trace_id: Option<String>) -> SentSql {
        if self.in_full {
            return SentSql { sql: Some(Arc::from(text.into_bytes())), ..SentSql::default() };
        }
        let statement = Some(self.keep(text));
        SentSql { statement, trace_id: trace_id.map(Arc::from), is_own: false, sql: None }
    }

    /// Remembers the query whose answer left `cursor` open.
    pub fn opened(&mut self, cursor: i64, by: &SentSql) {
        if self.cursors.len() >= CURSORS_MAX {
            self.cursors.clear();
        }
        self.cursors.insert(cursor, by.without_trace());
    }

    /// The query behind `cursor`, for a request that reads on.
    pub fn behind(&self, cursor: i64) -> Option<SentSql> {
        self.cursors.get(&cursor).map(SentSql::without_trace)
    }

    /// Forgets a cursor that has been read to its end.
    pub fn closed(&mut self, cursor: i64) {
        self.cursors.remove(&cursor);
    }

    fn keep(&mut self, text: String) -> Arc<Statement> {
        if let Some(known) = self.by_text.get(text.as_str()) {
            return Arc::clone(known);
        }
        let statement = Arc::new(Statement { digest: digest_of_text(&text), digest_text: cut(&text) });
        if self.by_text.len() >= KEPT_MAX {
            self.by_text.clear();
        }
        // A long text is rare, and would take memory for a single entry.
        if text.len() <= TEXT_BYTES_MAX {
            self.by_text.insert(text, Arc::clone(&statement));
        }
        statement
    }
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_whatever_its_values() {
        let mut statements = Statements::default();
        let first = statements.digest(b"SELECT 'secret' FROM t WHERE id = 7", Dialect::MySql).statement.unwrap();
        let second = statements.digest(b"SELECT 'other' FROM t WHERE id = 8", Dialect::MySql).statement.unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!first.digest_text.contains("secret"));
    }

    #[test]
    fn bounded() {
        let mut statements = Statements::default();
        for n in 0..KEPT_MAX + 10 {
            statements.digest(format!("SELECT a{n}").as_bytes(), Dialect::MySql);
        }
        assert!(statements.by_text.len() <= KEPT_MAX);
        let long = format!("SELECT {}", (0..2000).map(|n| format!("ä{n}")).collect::<Vec<_>>().join(" + "));
        let sent = statements.digest(long.as_bytes(), Dialect::MySql).statement.unwrap();
        assert!(sent.digest_text.len() <= TEXT_BYTES_MAX + 3);
        assert_eq!(sent.digest, digest_of_text(&digest_text(long.as_bytes(), Dialect::MySql)));
    }
}
