//! The server's own counters of statements (`pg_stat_statements`). Its ids are replaced by our digests, so that sessions,
//! counters and executions meet. Texts are read once for each statement and kept, since they come from a file of the server's.
//! Their comments are those of the first execution ever: a trace id there is stale and not looked at.

use std::collections::{BTreeMap, HashMap};

use holdup_recording::Batch;
use holdup_recording::rows::Statement;
use holdup_sql::{Dialect, digest_of_text, digest_text};

use super::Read;
use super::server::{Failure, Server};

/// Most statements that are read, those with the most time first.
const STATEMENTS: usize = 500;

/// Most texts that are remembered.
const TEXTS: usize = 20_000;

/// Bytes of a text that are read.
const TEXT_BYTES: usize = 65_536;

/// The server's id of a statement -> its digest text; none if it is ours.
#[derive(Default)]
pub(super) struct Texts(HashMap<i64, Option<String>>);

impl Texts {
    /// The digest text of a statement, if it was read.
    pub(super) fn of(&self, query_id: i64) -> Option<&str> {
        self.0.get(&query_id)?.as_deref()
    }

    /// Reads the texts that are not known yet.
    fn learn(&mut self, server: &Server, extension: &str, ids: &[i64]) -> Result<(), Failure> {
        let unknown: Vec<String> = ids.iter().filter(|id| !self.0.contains_key(id)).map(ToString::to_string).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        if self.0.len() + unknown.len() > TEXTS {
            self.0.clear();
        }
        let answer = server.rows(&format!(
            "SELECT DISTINCT ON (queryid) queryid, left(query, {TEXT_BYTES}) FROM {extension}.pg_stat_statements(true) \
             WHERE queryid IN ({})",
            unknown.join(",")
        ))?;
        for row in &answer.rows {
            let (Some(id), Some(text)) = (row.int(0), row.text(1)) else { continue };
            self.0.insert(id, (!server.is_own(text)).then(|| digest_text(text, Dialect::PostgreSql)));
        }
        Ok(())
    }
}

/// Counters by digest and database, summed where several of the server's statements are one of ours.
pub(super) fn digests(
    server: &Server,
    extension: &str,
    has_plan_times: bool,
    source: &str,
    texts: &mut Texts,
    batch: &mut Batch,
) -> Result<(), Failure> {
    // Since 1.8 of the extension (PostgreSQL 13) planning is counted apart.
    let time = if has_plan_times { "total_exec_time + holdup_s.total_plan_time" } else { "total_time" };
    let mut read = Read::begin(source);
    let answer = server.rows(&format!(
        "SELECT holdup_d.datname, holdup_s.queryid, holdup_s.calls, ((holdup_s.{time}) * 1e6)::bigint, holdup_s.rows \
         FROM {extension}.pg_stat_statements(false) AS holdup_s JOIN pg_database AS holdup_d ON holdup_d.oid = holdup_s.dbid \
         WHERE holdup_s.queryid IS NOT NULL ORDER BY 4 DESC LIMIT {STATEMENTS}"
    ))?;
    read.end();
    let ids: Vec<i64> = answer.rows.iter().filter_map(|row| row.int(1)).collect();
    texts.learn(server, extension, &ids)?;
    let mut totals: BTreeMap<(Option<String>, String), Statement> = BTreeMap::new();
    for row in &answer.rows {
        let Some(text) = row.int(1).and_then(|id| texts.of(id)) else { continue };
        let (database, digest) = (row.text(0).map(str::to_owned), digest_of_text(text));
        let total = totals.entry((database.clone(), digest.clone())).or_insert_with(|| Statement {
            observed_at: read.at(),
            source: source.to_owned(),
            kind: "digest_total".to_owned(),
            digest,
            digest_text: text.to_owned(),
            database,
            ..Statement::default()
        });
        let number = |index| row.int(index).unwrap_or(0);
        total.calls += number(2);
        total.duration_ns = total.duration_ns.saturating_add(number(3));
        // Of a statement that changes rows these are the changed ones; it sends them only with RETURNING.
        let changes = ["insert", "update", "delete", "merge"];
        if changes.iter().any(|word| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))) {
            total.rows_affected = total.rows_affected.saturating_add(number(4));
        } else {
            total.rows_sent = total.rows_sent.saturating_add(number(4));
        }
    }
    batch.statements.extend(totals.into_values());
    Ok(())
}
