//! The only path to a plan: foreign statements reach the planner only through here. The planner
//! evaluates functions of constants in the statement and in the indexes, constraints, partitions,
//! policies and statistics of its tables, all with holdup's rights; the parser runs the checks of
//! domains. So each name in the statement, and each part of its tables, must be plain or built-in.
//! Built-in objects are recognized by their object ids, not by their names.
//!
//! Between this check and the planning a table's owner could still add another index; see
//! `docs/security.md`.

use holdup_recording::plan::Node;

use super::resolve::{BETWEEN, ResolvedTable, resolve};
use super::server::{Failure, Server};
use crate::plans::allowed::AllowedStatement;
use crate::plans::names::Names;
use crate::plans::postgresql::tree;

/// Whether the planner would run only built-in code. $1: ids of tables; $2 and $3: dotted names by
/// their first two parts; $4: all names; $5: names after dots. Ids from 16384 on belong to objects
/// that users created.
const JUDGE: &str = "WITH RECURSIVE holdup_named(oid) AS (SELECT unnest(string_to_array($1, chr(31))::oid[])), \
     holdup_t(oid) AS (SELECT oid FROM holdup_named UNION \
       SELECT holdup_i.inhrelid FROM pg_inherits AS holdup_i JOIN holdup_t ON holdup_i.inhparent = holdup_t.oid), \
     holdup_parts(class, oid) AS (SELECT 'pg_class'::regclass, oid FROM holdup_t \
       UNION ALL SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM holdup_t) \
       UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE contype = 'c' AND conrelid IN (SELECT oid FROM holdup_t) \
       UNION ALL SELECT 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxrelid IN (SELECT oid FROM holdup_t)) \
     SELECT NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) \
     AND NOT EXISTS (SELECT FROM pg_class AS holdup_c WHERE holdup_c.oid IN (SELECT oid FROM holdup_t) \
       AND (holdup_c.relkind NOT IN ('r', 'p') OR holdup_c.relpersistence = 't' OR holdup_c.relrowsecurity)) \
     AND NOT EXISTS (SELECT FROM holdup_parts JOIN pg_depend AS holdup_d ON holdup_d.classid = holdup_parts.class AND holdup_d.objid = holdup_parts.oid \
       WHERE holdup_d.refobjid >= 16384 AND holdup_d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)) \
     AND NOT EXISTS (SELECT FROM unnest(string_to_array($2, chr(31)), string_to_array($3, chr(31))) AS holdup_q(first, second) \
       LEFT JOIN pg_namespace AS holdup_n ON lower(holdup_n.nspname) = lower(holdup_q.first) \
       WHERE lower(holdup_q.first) = lower(current_database()) OR holdup_n.oid IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class AS holdup_c \
         WHERE holdup_c.oid IN (SELECT oid FROM holdup_named) AND holdup_c.relnamespace = holdup_n.oid AND holdup_c.relname = holdup_q.second::name)) \
     AND NOT EXISTS (SELECT FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oid >= 16384) \
     AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc >= 16384 AND castsource < 16384 AND casttarget < 16384) \
     AND NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND (oid >= 16384 \
       AND proname = ANY (string_to_array($4, chr(31))::name[]) OR provolatile = 'v' AND proname = ANY (string_to_array($5, chr(31))::name[]))) \
     AND NOT EXISTS (SELECT FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND oid >= 16384 \
       AND typname = ANY (string_to_array($4, chr(31))::name[]))";

/// Why holdup explains no foreign statements with this account, if that is so.
pub(super) fn refuses(server: &Server) -> Result<Option<String>, Failure> {
    let is_super = server.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")?;
    let why = "holdup does not plan other users' statements with a superuser's rights: create a separate account for holdup (docs/security.md)";
    Ok((is_super.as_deref() != Some("f")).then(|| why.to_owned()))
}

/// A statement that may be planned; only [`admit`] creates one.
pub(super) struct Admitted {
    sql: String,
    parameters: usize,
}

/// Admits `allowed` if its tables, found along `path`, and everything else in it are plain; none if
/// not. It must run in the transaction that plans the statement.
pub(super) fn admit(server: &Server, allowed: &AllowedStatement, path: &[String]) -> Result<Option<Admitted>, Failure> {
    let Some(names) = allowed.names() else { return Ok(None) };
    let wanted: Vec<_> = names.tables.iter().map(|table| (table.schema.clone(), table.name.clone())).collect();
    let Some(found) = resolve(server, path, &wanted)?.into_iter().collect::<Option<Vec<ResolvedTable>>>() else {
        return Ok(None);
    };
    if !is_plain(server, &names, &found)? {
        return Ok(None);
    }
    let places = names.tables.into_iter().zip(found).map(|(table, found)| (table.at, found.schema, found.name));
    let sql = allowed.sql(&places.collect::<Vec<_>>());
    Ok(Some(Admitted { sql, parameters: allowed.parameters }))
}

fn is_plain(server: &Server, names: &Names, found: &[ResolvedTable]) -> Result<bool, Failure> {
    let oids: Vec<String> = found.iter().map(|table| table.oid.to_string()).collect();
    let part = |which: fn(&(String, String)) -> &str| names.dotted.iter().map(which).collect::<Vec<_>>().join(BETWEEN);
    let values = [
        oids.join(BETWEEN),
        part(|(first, _)| first),
        part(|(_, second)| second),
        names.all.join(BETWEEN),
        names.behind_dots.join(BETWEEN),
    ];
    let answer = server.rows_with(JUDGE, &values.each_ref().map(String::as_str))?;
    Ok(answer.rows.first().and_then(|row| row.text(0)) == Some("t"))
}

impl Admitted {
    /// Whether the plan also holds for other values.
    pub(super) fn is_generic(&self) -> bool {
        self.parameters > 0
    }

    /// Its plan; with `executes` by executing it, if it has all its values. Foreign text goes only
    /// into messages that hold exactly one statement. A statement without values is planned
    /// generically (`EXPLAIN (GENERIC_PLAN)` accepts `$1` only in messages that may hold several
    /// statements).
    pub(super) fn plan(&self, server: &Server, executes: bool) -> Result<Option<Node>, Failure> {
        let value = |sql: &str| Ok(server.rows_again(sql)?.rows.first().and_then(|row| row.text(0)).and_then(tree));
        let sql = &self.sql;
        if !self.is_generic() {
            let how = if executes { "ANALYZE, TIMING OFF, " } else { "" };
            return value(&format!("EXPLAIN ({how}FORMAT JSON, VERBOSE) {sql}"));
        }
        server.rows_again(&format!("PREPARE holdup_plan AS {sql}"))?;
        server.rows("SET LOCAL plan_cache_mode = force_generic_plan")?;
        let nulls = vec!["NULL"; self.parameters].join(", ");
        let plan = value(&format!("EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE holdup_plan({nulls})"))?;
        server.rows("DEALLOCATE holdup_plan")?;
        Ok(plan)
    }
}

/// Deallocates the session's prepared statement; it may not exist, or may be gone already.
pub(super) fn forget(server: &Server) -> Result<(), Failure> {
    match server.rows("DEALLOCATE holdup_plan") {
        Ok(_) | Err(Failure::Server(..)) => Ok(()),
        Err(lost) => Err(lost),
    }
}
