//! Requests plans: one or two statements per sample, which sessions run or ran last, are explained
//! with `EXPLAIN FORMAT=JSON`. Values stay in memory: the server's error text may contain one, so
//! it is dropped.

use std::time::Instant;

use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;
use holdup_recording::{Batch, Coverage, CoverageState, clock};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::failure::Failure;
use super::gate;
use super::server::{MARKER, Server};
use super::sessions::Texts;
use crate::plans::allowed::{self, AllowedStatement};
use crate::plans::pace::Pace;
use crate::plans::{PlanMode, mysql, row};

/// Largest number of statements explained per sample.
const EXPLAINED: usize = 2;

/// Largest number of statements read from the history.
const STATEMENTS: usize = 100;

/// A text shorter than this is complete: performance_schema keeps 1,024 bytes unless configured
/// otherwise.
const WHOLE_BYTES: usize = 1_000;

/// Length at which texts of the process list are cut.
const LISTED_BYTES: usize = 65_000;

/// Time limits for one `ANALYZE` and one planning, on servers that can limit a single statement.
const LIMITS: (&str, &str) = ("SET STATEMENT max_statement_time=1 FOR ", "SET STATEMENT max_statement_time=0.2 FOR ");

/// State between samples.
#[derive(Default)]
pub(super) struct Plans {
    pace: Pace,
}

struct Candidate {
    session: Option<i64>,
    database: String,
    digest: String,
    digest_text: String,
    trace_id: Option<String>,
    allowed: AllowedStatement,
}

impl Plans {
    /// Explains the statements that are due: those that sessions run (`texts`, with their literals)
    /// and, with `history`, those they ran last.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        wish: PlanMode,
        texts: Option<&Texts>,
        history: bool,
        source: &str,
        batch: &mut Batch,
    ) -> Result<(), Failure> {
        self.pace.note(&batch.statements);
        let mut due = Vec::new();
        for session in &batch.sessions {
            let text = texts.and_then(|texts| texts.get(&session.session_id)).filter(|text| text.len() < LISTED_BYTES);
            if let (Some(text), Some(database), "executing") = (text, &session.database, session.true_state.as_str()) {
                self.take(Some(session.session_id), database, text, &mut due);
            }
        }
        if history {
            let rows = server.rows(&format!(
                "SELECT CURRENT_SCHEMA, SQL_TEXT FROM performance_schema.events_statements_current \
                 WHERE CURRENT_SCHEMA IS NOT NULL AND LENGTH(SQL_TEXT) BETWEEN 8 AND {WHOLE_BYTES} LIMIT {STATEMENTS}"
            ))?;
            for row in &rows {
                if let (Some(database), Some(text)) = (row.text(0), row.text(1)) {
                    self.take(None, database, text, &mut due);
                }
            }
        }
        due.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        for (_, candidate) in due.into_iter().take(EXPLAINED) {
            let now = Instant::now();
            match explained(server, &candidate, wish) {
                Ok(Some((kind, tree))) => {
                    self.pace.record(&candidate.digest, true, now);
                    batch.plans.push(Plan {
                        observed_at: clock::now_ns(),
                        source: source.to_owned(),
                        session_id: candidate.session,
                        database: Some(candidate.database),
                        trace_id: candidate.trace_id,
                        ..row(kind, &tree, candidate.digest_text)
                    });
                }
                Ok(None) => self.pace.record(&candidate.digest, false, now),
                Err(failure) if failure.is_denied() => self.pace.record_denial(&candidate.digest, now),
                // The server's message may contain values of the statement.
                Err(Failure::Server(..)) => self.pace.record(&candidate.digest, false, now),
                Err(lost) => return Err(lost),
            }
        }
        Ok(())
    }

    /// Starts over with a new connection.
    pub(super) fn forget(&mut self) {
        self.pace.forget();
    }

    fn take(&self, session: Option<i64>, database: &str, sql: &str, due: &mut Vec<(f64, Candidate)>) {
        if sql.starts_with(MARKER) {
            return;
        }
        let Some(allowed) = allowed::check(sql, Dialect::MySql) else { return };
        let digest_text = digest_text(sql, Dialect::MySql);
        let digest = digest_of_text(&digest_text);
        if due.iter().any(|(_, other)| other.digest == digest) {
            return;
        }
        if let Some(urgency) = self.pace.urgency(&digest, Instant::now()) {
            let trace_id = trace_id(sql, Dialect::MySql);
            let database = database.to_owned();
            due.push((urgency, Candidate { session, database, digest, digest_text, trace_id, allowed }));
        }
    }
}

/// The plan, and the kind of row for it.
fn explained(server: &Server, of: &Candidate, wish: PlanMode) -> Result<Option<(&'static str, Node)>, Failure> {
    // MySQL's `EXPLAIN ANALYZE` has a text format, which holdup does not parse.
    let executes = wish == PlanMode::Analyze && of.allowed.reads_only && server.release.is_mariadb();
    let limit = match (server.release.is_mariadb(), executes) {
        (false, _) => "",
        (true, true) => LIMITS.0,
        (true, false) => LIMITS.1,
    };
    let how = if executes { "ANALYZE FORMAT=JSON" } else { "EXPLAIN FORMAT=JSON" };
    let Some(admitted) = gate::admit(server, &of.allowed, &of.database)? else { return Ok(None) };
    let text = admitted.plan(server, &format!("{limit}{how}"))?;
    let kind = if executes { "analyze" } else { "explain" };
    Ok(text.and_then(|text| mysql::tree(&text)).map(|tree| (kind, tree)))
}

/// The coverage entry of plans, and whether they may be requested.
pub(super) fn find(wish: PlanMode, account: &str, may_see: bool, mut entry: Coverage) -> (Coverage, bool) {
    if wish == PlanMode::Off {
        entry.state = CoverageState::Absent;
        entry.why = Some("plans are not requested, so a changed plan goes unnoticed".to_owned());
        entry.enable = Some(format!(
            "add plans=explain to the address and run, for each schema: GRANT SELECT ON `SCHEMA`.* TO {account};"
        ));
        return (entry, false);
    }
    entry.why = Some(format!(
        "for statements on tables that the account may read (if not: GRANT SELECT ON `SCHEMA`.* TO {account};); INSERT, prepared \
         statements and those with views or stored functions are not explained"
    ));
    (entry, may_see)
}
