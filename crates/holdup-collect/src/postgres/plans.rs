//! Which statements may be explained, and how: those that sessions show completely, in a read-only
//! transaction, within a fraction of a second.

use holdup_recording::Coverage;
use holdup_recording::plan::Node;
use holdup_sql::Dialect;

use super::address::Address;
use super::gate;
use super::resolve::path;
use super::server::{Failure, MARKER, Server};
use crate::coverage::Line as _;
use crate::database::Trouble as _;
use crate::plans::PlanMode;
use crate::plans::pace::Pace;
use crate::plans::requests::{Candidate, request};
use crate::reading::Out;

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

/// Explains the statements that are due.
pub(super) fn sample(
    server: &Server,
    pace: &mut Pace,
    wish: PlanMode,
    query_size: usize,
    out: &mut Out,
) -> Result<(), Failure> {
    pace.note(&out.batch.statements);
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
    // With the schemas in which that account's statements find tables.
    let found = answer.rows.iter().filter_map(|row| {
        let sql = row.text(3).filter(|sql| !sql.starts_with(MARKER))?;
        let search_path = path(row.text(4)?, row.text(2)?);
        Some((Candidate::new(sql, Dialect::PostgreSql, row.int(0), row.text(1))?, search_path))
    });
    let is_denied = |failure: &Failure| matches!(failure, Failure::Server(code, _) if code == "42501");
    request(pace, found, out, is_denied, |candidate, path| explained(server, candidate, path, wish))
}

/// The plan, and the kind of row for it.
fn explained(
    server: &Server,
    of: &Candidate,
    search_path: &[String],
    wish: PlanMode,
) -> Result<Option<(&'static str, Node)>, Failure> {
    let is_generic = of.allowed.parameters > 0;
    if is_generic && server.major() < 12 {
        return Ok(None);
    }
    let executes = wish == PlanMode::Analyze && of.allowed.reads_only && !is_generic;
    // Its answers are not needed.
    server.rows(&format!("BEGIN READ ONLY; {LIMITS}"))?;
    let ask = || {
        let Some(admitted) = gate::admit(server, &of.allowed, search_path)? else { return Ok(None) };
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
pub(super) fn find(server: &Server, address: &Address, entry: Coverage) -> Result<(Coverage, bool), Failure> {
    let setting = |name: &str| server.setting(name).map(Option::unwrap_or_default);
    let logged = setting("auto_explain.log_min_duration")?;
    let format = setting("auto_explain.log_format")?;
    let is_logged =
        address.log.is_some() && !logged.is_empty() && logged != "-1" && matches!(format.as_str(), "text" | "json");
    let account = server.value("SELECT quote_ident(current_user)")?.unwrap_or_default();
    if address.plans == PlanMode::Off {
        if is_logged {
            let why = format!("plans of executions of {logged} or more, from the log (auto_explain)");
            return Ok((entry.note(why), false));
        }
        let rights = rights(server, &account)?;
        let enable = format!(
            "add plans=explain to the address{}; or let the server log them (auto_explain.log_min_duration, with log=FILE in the address)",
            rights.map_or_else(String::new, |rights| format!(" and run: {rights}"))
        );
        let why = "plans are neither requested nor logged, so a changed plan goes unnoticed";
        return Ok((entry.absent(why).enable(enable), false));
    }
    let without = |why: String, enable: String| {
        let entry = if is_logged { entry.clone().partial(why) } else { entry.clone().absent(why) };
        Ok((entry.enable(enable), false))
    };
    if let Some(why) = gate::refuses(server)? {
        return without(why, "CREATE ROLE holdup LOGIN; GRANT pg_monitor TO holdup;".to_owned());
    }
    // If holdup may not switch it off, the entry says how.
    match server.rows(&format!("SET {TRACK} = none")) {
        Err(failure) if failure.is_of_connection() => return Err(failure),
        _ => {}
    }
    let is_loaded = !setting("pg_stat_statements.max")?.is_empty();
    if is_loaded && setting(TRACK)? != "none" {
        let why =
            "plans are not requested: pg_stat_statements would keep the text of every EXPLAIN, including its values";
        return without(why.to_owned(), format!("ALTER ROLE {account} SET {TRACK} = none;"));
    }
    let rights = rights(server, &account)?;
    let mut lacks = Vec::new();
    if rights.is_some() {
        lacks.push("statements on tables that the account may not read have no plans");
    }
    if server.major() < 12 {
        lacks.push("PostgreSQL before 12 cannot explain statements with $1");
    }
    let entry = if lacks.is_empty() {
        entry.note(
            "INSERT and statements with views or with user-defined types, functions or operators are not explained",
        )
    } else {
        entry.partial(lacks.join("; "))
    };
    Ok((Coverage { enable: rights, ..entry }, true))
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
