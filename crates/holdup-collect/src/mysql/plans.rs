//! Which statements may be explained, and how: those that sessions run or ran last, with
//! `EXPLAIN FORMAT=JSON`.

use holdup_recording::Coverage;
use holdup_recording::plan::Node;
use holdup_sql::Dialect;

use super::failure::Failure;
use super::gate;
use super::server::{MARKER, Server};
use super::sessions::Texts;
use crate::coverage::Line as _;
use crate::plans::pace::Pace;
use crate::plans::requests::{Candidate, request};
use crate::plans::{PlanMode, mysql};
use crate::reading::Out;

/// Largest number of statements read from the history.
const STATEMENTS: usize = 100;

/// A text shorter than this is complete: performance_schema keeps 1,024 bytes unless configured
/// otherwise.
const WHOLE_BYTES: usize = 1_000;

/// Length at which texts of the process list are cut.
const LISTED_BYTES: usize = 65_000;

/// Time limits for one `ANALYZE` and one planning, on servers that can limit a single statement.
const LIMITS: (&str, &str) = ("SET STATEMENT max_statement_time=1 FOR ", "SET STATEMENT max_statement_time=0.2 FOR ");

/// Explains the statements that are due: those that sessions run (`texts`, with their literals)
/// and, with `history`, those they ran last.
pub(super) fn sample(
    server: &Server,
    pace: &mut Pace,
    wish: PlanMode,
    (texts, history): (Option<&Texts>, bool),
    out: &mut Out,
) -> Result<(), Failure> {
    pace.note(&out.batch.statements);
    let mut found = Vec::new();
    let mut take = |session: Option<i64>, database: &str, sql: &str| {
        let candidate = Candidate::new(sql, Dialect::MySql, session, Some(database));
        found.extend(candidate.filter(|_| !sql.starts_with(MARKER)).map(|candidate| (candidate, ())));
    };
    for session in &out.batch.sessions {
        let text = texts.and_then(|texts| texts.get(&session.session_id)).filter(|text| text.len() < LISTED_BYTES);
        if let (Some(text), Some(database), "executing") = (text, &session.database, session.true_state.as_str()) {
            take(Some(session.session_id), database, text);
        }
    }
    if history {
        let rows = server.rows(&format!(
            "SELECT CURRENT_SCHEMA, SQL_TEXT FROM performance_schema.events_statements_current \
             WHERE CURRENT_SCHEMA IS NOT NULL AND LENGTH(SQL_TEXT) BETWEEN 8 AND {WHOLE_BYTES} LIMIT {STATEMENTS}"
        ))?;
        for row in &rows {
            if let (Some(database), Some(text)) = (row.text(0), row.text(1)) {
                take(None, database, text);
            }
        }
    }
    request(pace, found, out, Failure::is_denied, |candidate, ()| explained(server, candidate, wish))
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
    let Some(admitted) = gate::admit(server, &of.allowed, of.database.as_deref().unwrap_or_default())? else {
        return Ok(None);
    };
    let text = admitted.plan(server, &format!("{limit}{how}"))?;
    let kind = if executes { "analyze" } else { "explain" };
    Ok(text.and_then(|text| mysql::tree(&text)).map(|tree| (kind, tree)))
}

/// The coverage entry of plans, and whether they may be requested.
pub(super) fn find(wish: PlanMode, account: &str, may_see: bool, entry: Coverage) -> (Coverage, bool) {
    if wish == PlanMode::Off {
        let entry = entry.absent("plans are not requested, so a changed plan goes unnoticed").enable(format!(
            "add plans=explain to the address and run, for each schema: GRANT SELECT ON `SCHEMA`.* TO {account};"
        ));
        return (entry, false);
    }
    let entry = entry.note(format!(
        "for statements on tables that the account may read (if not: GRANT SELECT ON `SCHEMA`.* TO {account};); INSERT, prepared \
         statements and those with views or stored functions are not explained"
    ));
    (entry, may_see)
}
