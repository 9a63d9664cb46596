//! The server's counters by statement digest. Its digests are replaced by holdup's, so that
//! sessions, counters and executions can be joined.

use std::collections::BTreeMap;
use std::time::Instant;

use holdup_recording::rows::Statement;
use holdup_sql::{Dialect, digest_of_text, digest_text};

use super::execution::TEXT_BYTES;
use super::failure::Failure;
use super::server::Server;
use crate::pace::{Pace, Turn};
use crate::reading::Out;

/// Largest number of digests read, those with the most time first.
const DIGESTS: usize = 500;

/// Up to this many digests are read at every sample, more at every [`SPARSE`]th.
const FEW: usize = 200;

/// With more than [`FEW`] digests, one sample in this many reads them.
const SPARSE: u64 = 5;

/// Text for the row that counts all statements beyond the server's digest table.
const BEYOND: &str = "(statements beyond the server's table of digests)";

/// State between reads.
#[derive(Default)]
pub(super) struct Statements {
    reads: u64,
    digests: usize,
    pace: Pace,
}

impl Statements {
    /// Counters by digest, summed if several of the server's digests map to one of holdup's.
    pub(super) fn digests(&mut self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        self.reads += 1;
        // The server sorts all its digests to return these: with many digests that cost matters.
        let is_due = self.reads % SPARSE == 1 && self.pace.due(&Turn::default()).is_some();
        if self.digests >= FEW && !is_due {
            return Ok(());
        }
        let begun = Instant::now();
        out.begin();
        let answer = server.rows(&format!(
            "SELECT SCHEMA_NAME, LEFT(DIGEST_TEXT, {TEXT_BYTES}), COUNT_STAR, SUM_TIMER_WAIT DIV 1000, SUM_LOCK_TIME DIV 1000, SUM_ROWS_EXAMINED, \
             SUM_ROWS_SENT, SUM_ERRORS, SUM_ROWS_AFFECTED, SUM_NO_INDEX_USED + SUM_NO_GOOD_INDEX_USED, SUM_CREATED_TMP_TABLES, \
             SUM_CREATED_TMP_DISK_TABLES FROM performance_schema.events_statements_summary_by_digest \
             ORDER BY SUM_TIMER_WAIT DESC LIMIT {DIGESTS}"
        ));
        let rows = self.pace.read(&mut Turn::default(), begun, answer)?;
        out.at();
        self.digests = rows.len();
        let mut totals: BTreeMap<(Option<String>, String), Statement> = BTreeMap::new();
        for row in &rows {
            let text = row.text(1).map_or_else(|| BEYOND.to_owned(), |text| digest_text(text, Dialect::MySql));
            let digest = digest_of_text(&text);
            if server.is_own(&digest) {
                continue;
            }
            let number = |index| row.int(index).unwrap_or(0);
            let total = totals.entry((row.text(0).map(str::to_owned), digest.clone())).or_insert_with(|| Statement {
                observed_at: out.at(),
                source: out.source().to_owned(),
                kind: "digest_total".to_owned(),
                session_id: None,
                digest,
                digest_text: text,
                database: row.text(0).map(str::to_owned),
                ..Statement::default()
            });
            total.calls += number(2);
            total.duration_ns = total.duration_ns.saturating_add(number(3));
            total.lock_ns = total.lock_ns.saturating_add(number(4));
            total.rows_examined = total.rows_examined.saturating_add(number(5));
            total.rows_sent = total.rows_sent.saturating_add(number(6));
            total.errors += number(7);
            total.rows_affected = total.rows_affected.saturating_add(number(8));
            total.no_index += number(9);
            total.temporary_tables += number(10);
            total.temporary_disk_tables += number(11);
        }
        out.batch.statements.extend(totals.into_values());
        Ok(())
    }

    /// Forgets the state of a lost connection: the server may have restarted.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
