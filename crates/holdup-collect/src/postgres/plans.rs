//! Requests plans: one or two statements per sample that sessions show completely are explained, in
//! a read-only transaction, within a fraction of a second. Values stay in memory: the server's
//! error text may contain one, so it is dropped.

use std::time::Instant;

use holdup_recording::plan::Node;
use holdup_recording::{Batch, Coverage, CoverageState, clock};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::address::Address;
use super::gate;
use super::resolve::path;
use super::server::{Failure, MARKER, Row, Server};
use crate::database::Trouble as _;
use crate::plans::allowed::{self, AllowedStatement};
use crate::plans::pace::Pace;
use crate::plans::{PlanMode, row};

/// Largest number of statements explained per sample.
const EXPLAINED: usize = 2;

/// Largest number of sessions whose statements are read.
const SESSIONS: usize = 100;

/// No healthy server takes longer than this to plan; waiting for a lock means an `ALTER TABLE` is
/// running.
const LIMITS: &str = "SET LOCAL statement_timeout = 200; SET LOCAL lock_timeout = 50; SET LOCAL idle_in_transaction_session_timeout = 2000";

/// Time limit of `EXPLAIN ANALYZE`.
const ANALYZE_LIMIT: &str = "SET LOCAL statement_timeout = 1000";

/// With tracking on, the extension would keep the text of every `EXPLAIN`, with its values, as a
/// separate statement, and could give an unknown statement of the application holdup's text.
const TRACK: &str = "pg_stat_statements.track";

/// State between samples.
#[derive(Default)]
pub(super) struct Plans {
    pace: Pace,
}

/// A statement that may be explained, and the account that runs it.
struct Candidate {
    session: Option<i64>,
    database: Option<String>,
    /// The schemas in which that account's statements find tables.
    search_path: Vec<String>,
    digest: String,
    digest_text: String,
    trace_id: Option<String>,
    allowed: AllowedStatement,
}

impl Plans {
    /// Explains the statements that are due.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        wish: PlanMode,
        query_size: usize,
        source: &str,
        batch: &mut Batch,
    ) -> Result<(), Failure> {
        self.pace.note(&batch.statements);
        let mut due = self.due(server, query_size)?;
        due.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        for (_, candidate) in due.into_iter().take(EXPLAINED) {
            let now = Instant::now();
            match explained(server, &candidate, wish) {
                Ok(Some((kind, tree))) => {
                    self.pace.record(&candidate.digest, true, now);
                    batch.plans.push(holdup_recording::rows::Plan {
                        observed_at: clock::now_ns(),
                        source: source.to_owned(),
                        session_id: candidate.session,
                        database: candidate.database,
                        trace_id: candidate.trace_id,
                        ..row(kind, &tree, candidate.digest_text)
                    });
                }
                Ok(None) => self.pace.record(&candidate.digest, false, now),
                // The server's message may contain values of the statement.
                Err(Failure::Server(code, _)) if code == "42501" => self.pace.record_denial(&candidate.digest, now),
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

    /// Statements that are due, without duplicates, with their urgency.
    fn due(&self, server: &Server, query_size: usize) -> Result<Vec<(f64, Candidate)>, Failure> {
        // The search path of the executing account, as configured: a path that a session sets
        // itself is invisible.
        let answer = server.rows_again(&format!(
            "SELECT holdup_a.pid, holdup_a.datname, holdup_a.usename, holdup_a.query, coalesce((SELECT substr(holdup_c, 13) \
             FROM pg_db_role_setting AS holdup_s, unnest(holdup_s.setconfig) AS holdup_c WHERE holdup_c LIKE 'search_path=%' \
             AND holdup_s.setdatabase IN (0, holdup_a.datid) AND holdup_s.setrole IN (0, holdup_a.usesysid) \
             ORDER BY holdup_s.setrole = 0, holdup_s.setdatabase = 0 LIMIT 1), \
             (SELECT reset_val FROM pg_settings WHERE name = 'search_path')) FROM pg_stat_activity AS holdup_a \
             WHERE holdup_a.datname = current_database() AND holdup_a.backend_type = 'client backend' \
             AND holdup_a.pid <> pg_backend_pid() AND octet_length(holdup_a.query) BETWEEN 8 AND {} \
             ORDER BY holdup_a.state = 'active' DESC, holdup_a.query_start DESC NULLS LAST LIMIT {SESSIONS}",
            query_size.saturating_sub(2)
        ))?;
        let now = Instant::now();
        let mut due: Vec<(f64, Candidate)> = Vec::new();
        for row in &answer.rows {
            let Some(candidate) = candidate(row) else { continue };
            let is_new = due.iter().all(|(_, other)| other.digest != candidate.digest);
            if let Some(urgency) = self.pace.urgency(&candidate.digest, now).filter(|_| is_new) {
                due.push((urgency, candidate));
            }
        }
        Ok(due)
    }
}

fn candidate(row: &Row) -> Option<Candidate> {
    let sql = row.text(3).filter(|sql| !sql.starts_with(MARKER))?;
    let allowed = allowed::check(sql, Dialect::PostgreSql)?;
    let digest_text = digest_text(sql, Dialect::PostgreSql);
    Some(Candidate {
        session: row.int(0),
        database: row.text(1).map(str::to_owned),
        search_path: path(row.text(4)?, row.text(2)?),
        digest: digest_of_text(&digest_text),
        digest_text,
        trace_id: trace_id(sql, Dialect::PostgreSql),
        allowed,
    })
}

/// The plan, and the kind of row for it.
fn explained(server: &Server, of: &Candidate, wish: PlanMode) -> Result<Option<(&'static str, Node)>, Failure> {
    let is_generic = of.allowed.parameters > 0;
    if is_generic && server.major() < 12 {
        return Ok(None);
    }
    let executes = wish == PlanMode::Analyze && of.allowed.reads_only && !is_generic;
    // Its answers are not needed.
    server.rows(&format!("BEGIN READ ONLY; {LIMITS}"))?;
    let ask = || {
        let Some(admitted) = gate::admit(server, &of.allowed, &of.search_path)? else { return Ok(None) };
        if executes {
            server.rows(ANALYZE_LIMIT)?;
        }
        admitted.plan(server, executes)
    };
    let answer = ask();
    if let Err(failure @ (Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) | Failure::Login(_))) = answer {
        return Err(failure);
    }
    server.rows("ROLLBACK")?;
    if is_generic {
        gate::forget(server)?;
    }
    let kind = if executes { "analyze" } else { "explain" };
    Ok(answer?.map(|tree| (kind, tree)))
}

/// The coverage entry of plans, and whether they may be requested.
pub(super) fn find(server: &Server, address: &Address, mut entry: Coverage) -> Result<(Coverage, bool), Failure> {
    let setting = |name: &str| server.setting(name).map(Option::unwrap_or_default);
    let logged = setting("auto_explain.log_min_duration")?;
    let format = setting("auto_explain.log_format")?;
    let is_logged =
        address.log.is_some() && !logged.is_empty() && logged != "-1" && matches!(format.as_str(), "text" | "json");
    let account = server.value("SELECT quote_ident(current_user)")?.unwrap_or_default();
    if address.plans == PlanMode::Off {
        if is_logged {
            entry.why = Some(format!("plans of executions of {logged} or more, from the log (auto_explain)"));
            return Ok((entry, false));
        }
        entry.state = CoverageState::Absent;
        entry.why = Some("plans are neither requested nor logged, so a changed plan goes unnoticed".to_owned());
        let rights = rights(server, &account)?;
        entry.enable = Some(format!(
            "add plans=explain to the address{}; or let the server log them (auto_explain.log_min_duration, with log=FILE in the address)",
            rights.map_or_else(String::new, |rights| format!(" and run: {rights}"))
        ));
        return Ok((entry, false));
    }
    if let Some(why) = gate::refuses(server)? {
        entry.state = if is_logged { CoverageState::Partial } else { CoverageState::Absent };
        (entry.why, entry.enable) =
            (Some(why), Some("CREATE ROLE holdup LOGIN; GRANT pg_monitor TO holdup;".to_owned()));
        return Ok((entry, false));
    }
    // If holdup may not switch it off, the entry says how.
    match server.rows(&format!("SET {TRACK} = none")) {
        Err(failure) if failure.is_of_connection() => return Err(failure),
        _ => {}
    }
    let is_loaded = !setting("pg_stat_statements.max")?.is_empty();
    if is_loaded && setting(TRACK)? != "none" {
        entry.state = if is_logged { CoverageState::Partial } else { CoverageState::Absent };
        entry.why = Some(
            "plans are not requested: pg_stat_statements would keep the text of every EXPLAIN, including its values"
                .to_owned(),
        );
        entry.enable = Some(format!("ALTER ROLE {account} SET {TRACK} = none;"));
        return Ok((entry, false));
    }
    let mut lacks = Vec::new();
    if let Some(rights) = rights(server, &account)? {
        lacks.push("statements on tables that the account may not read have no plans".to_owned());
        entry.enable = Some(rights);
    }
    if server.major() < 12 {
        lacks.push("PostgreSQL before 12 cannot explain statements with $1".to_owned());
    }
    if !lacks.is_empty() {
        (entry.state, entry.why) = (CoverageState::Partial, Some(lacks.join("; ")));
    } else {
        entry.why = Some(
            "INSERT and statements with views or with user-defined types, functions or operators are not explained"
                .to_owned(),
        );
    }
    Ok((entry, true))
}

/// The grant for reading all tables, if it is missing.
fn rights(server: &Server, account: &str) -> Result<Option<String>, Failure> {
    // A sample of tables is enough: checking a large catalog would take too long.
    let denied = server.value(
        "SELECT count(*) FROM (SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND oid >= 16384 LIMIT 500) AS holdup_t \
         WHERE NOT has_table_privilege(holdup_t.oid, 'SELECT')",
    )?;
    if denied.as_deref() == Some("0") {
        return Ok(None);
    }
    Ok(Some(if server.major() >= 14 {
        format!("GRANT pg_read_all_data TO {account};")
    } else {
        format!(
            "GRANT USAGE ON SCHEMA public TO {account}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {account}; (for each schema)"
        )
    }))
}
