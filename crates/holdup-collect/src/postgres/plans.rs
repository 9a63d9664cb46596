//! Plans that are asked for: statements that sessions show whole, explained one or two a sample, in a transaction that can't write,
//! within a fraction of a second. Values stay in memory: the server's words of a failure may hold one, and go nowhere.

use std::time::Instant;

use holdup_recording::plan::Node;
use holdup_recording::{Batch, Coverage, CoverageState, clock};
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::address::Address;
use super::gate;
use super::resolve::path;
use super::server::{Failure, MARKER, Row, Server};
use crate::plans::allowed::{self, Allowed};
use crate::plans::pace::Pace;
use crate::plans::{Wish, row};

/// Most statements that are explained in a sample.
const EXPLAINED: usize = 2;

/// Most sessions whose statements are looked at.
const SESSIONS: usize = 100;

/// Planning takes longer than this in no healthy server; a lock that is waited for is somebody's `ALTER TABLE`.
const LIMITS: &str = "SET LOCAL statement_timeout = 200; SET LOCAL lock_timeout = 50; SET LOCAL idle_in_transaction_session_timeout = 2000";

/// Longest execution of `EXPLAIN ANALYZE`.
const ANALYZE_LIMIT: &str = "SET LOCAL statement_timeout = 1000";

/// The extension would keep the text of every `EXPLAIN`, values and all, as a statement of its own; and give a statement of the
/// application that it does not know yet our text: so it has to leave us out.
const TRACK: &str = "pg_stat_statements.track";

/// What is remembered between samples.
#[derive(Default)]
pub(super) struct Plans {
    pace: Pace,
}

/// A statement that may be explained, and who runs it.
struct Candidate {
    session: Option<i64>,
    database: Option<String>,
    /// Where the account's statements look for tables.
    search_path: Vec<String>,
    digest: String,
    digest_text: String,
    trace_id: Option<String>,
    allowed: Allowed,
}

impl Plans {
    /// Explains what is due.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        wish: Wish,
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
                    self.pace.asked(&candidate.digest, true, now);
                    batch.plans.push(holdup_recording::rows::Plan {
                        observed_at: clock::now_ns(),
                        source: source.to_owned(),
                        session_id: candidate.session,
                        database: candidate.database,
                        trace_id: candidate.trace_id,
                        ..row(kind, &tree, candidate.digest_text)
                    });
                }
                Ok(None) => self.pace.asked(&candidate.digest, false, now),
                // Its words may hold values of the statement.
                Err(Failure::Server(code, _)) if code == "42501" => self.pace.denied(&candidate.digest, now),
                Err(Failure::Server(..)) => self.pace.asked(&candidate.digest, false, now),
                Err(lost) => return Err(lost),
            }
        }
        Ok(())
    }

    /// The connection is a new one.
    pub(super) fn forget(&mut self) {
        self.pace.forget();
    }

    /// Statements that are due, each once, with how urgent they are.
    fn due(&self, server: &Server, query_size: usize) -> Result<Vec<(f64, Candidate)>, Failure> {
        // The search path of whoever runs it, as far as it is set for the account: a path that a session has set itself is not seen.
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
    let allowed = allowed::of(sql, Dialect::PostgreSql)?;
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

/// The plan, and which kind of row it makes.
fn explained(server: &Server, of: &Candidate, wish: Wish) -> Result<Option<(&'static str, Node)>, Failure> {
    let is_generic = of.allowed.parameters > 0;
    if is_generic && server.major() < 12 {
        return Ok(None);
    }
    let executes = wish == Wish::Analyze && of.allowed.reads_only && !is_generic;
    // Not one of the answers is needed.
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

/// The entry of plans, and whether they may be asked for.
pub(super) fn find(server: &Server, address: &Address, mut entry: Coverage) -> Result<(Coverage, bool), Failure> {
    let setting = |name: &str| server.setting(name).map(Option::unwrap_or_default);
    let logged = setting("auto_explain.log_min_duration")?;
    let format = setting("auto_explain.log_format")?;
    let is_logged =
        address.log.is_some() && !logged.is_empty() && logged != "-1" && matches!(format.as_str(), "text" | "json");
    let account = server.value("SELECT quote_ident(current_user)")?.unwrap_or_default();
    if address.plans == Wish::Off {
        if is_logged {
            entry.why = Some(format!("of executions of {logged} and more, from the log (auto_explain)"));
            return Ok((entry, false));
        }
        entry.state = CoverageState::Absent;
        entry.why =
            Some("no plans are asked for, and none are logged: whether one has changed can't be told".to_owned());
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
    // Who may not switch it off is told how.
    match server.rows(&format!("SET {TRACK} = none")) {
        Err(failure @ (Failure::Lost(_) | Failure::Silent(_) | Failure::Refused(_) | Failure::Login(_))) => {
            return Err(failure);
        }
        Ok(_) | Err(Failure::Server(..)) => {}
    }
    let is_loaded = !setting("pg_stat_statements.max")?.is_empty();
    if is_loaded && setting(TRACK)? != "none" {
        entry.state = if is_logged { CoverageState::Partial } else { CoverageState::Absent };
        entry.why = Some(
            "no plans are asked for: pg_stat_statements would keep the text of every EXPLAIN, values and all"
                .to_owned(),
        );
        entry.enable = Some(format!("ALTER ROLE {account} SET {TRACK} = none;"));
        return Ok((entry, false));
    }
    let mut lacks = Vec::new();
    if let Some(rights) = rights(server, &account)? {
        lacks.push("plans of statements on tables that the account may not read are not seen".to_owned());
        entry.enable = Some(rights);
    }
    if server.major() < 12 {
        lacks.push("before PostgreSQL 12 statements with $1 are not explained".to_owned());
    }
    if !lacks.is_empty() {
        (entry.state, entry.why) = (CoverageState::Partial, Some(lacks.join("; ")));
    } else {
        entry.why = Some(
            "INSERT and statements with views, types, functions or operators of your own are not explained".to_owned(),
        );
    }
    Ok((entry, true))
}

/// What would give the right to read all tables, if that is missing.
fn rights(server: &Server, account: &str) -> Result<Option<String>, Failure> {
    // A look at some tells: on a large catalog all of them would take their time.
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
            "GRANT USAGE ON SCHEMA public TO {account}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {account}; (of each schema)"
        )
    }))
}
