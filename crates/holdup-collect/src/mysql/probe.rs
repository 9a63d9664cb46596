//! Finds out what can be read from a server with this account and these settings, and the exact
//! grant, setting or statement for the rest. It only reads and switches nothing on.

use holdup_recording::{Coverage, CoverageState};

use super::address::Address;
use super::capture::HistoryTables;
use super::catalogs;
use super::failure::Failure;
use super::history::{History, MOST};
use super::plans;
use super::release::Flavour;
use super::server::{Row, Server};
use super::sessions::Holders;
use super::slow_log;
use super::versions::Topic;
use crate::coverage::{Line as _, complete, part};
use crate::database::Found;

/// The readable parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    /// Whether sessions other than holdup's are visible.
    pub(super) sessions: bool,
    pub(super) pool: bool,
    pub(super) locks: bool,
    pub(super) digests: bool,
    pub(super) history: Option<History>,
    /// Whether the account has PROCESS.
    pub(super) process: bool,
    /// What is known about sessions that block others.
    pub(super) holders: Holders,
    /// Where to look for statements of slow requests.
    pub(super) places: Option<HistoryTables>,
    /// Whether the replication state may be read.
    pub(super) replication: bool,
    /// Whether plans are requested.
    pub(super) plans: bool,
    /// Whether to read tables and indexes from the catalogs.
    pub(super) catalogs: bool,
    /// How to read the slow query log, if it can be.
    pub(super) slow_log: Option<slow_log::Form>,
}

/// Probes the server.
pub(super) fn find(server: &Server, address: &Address, source: &str) -> Result<Found<Parts>, Failure> {
    let account = account(server)?;
    let process_grant = format!("GRANT PROCESS ON *.* TO {account};");
    let schema_grant = format!("GRANT SELECT ON performance_schema.* TO {account};");
    let locks = access(server, "SELECT COUNT(*) FROM information_schema.INNODB_TRX")?;
    let has_process = locks != Access::Denied;
    // A server built without performance_schema does not know the variable.
    let schema_on = variable(server, "performance_schema").is_some_and(|value| value == "1" || value == "ON");
    let mut schema = access(server, "SELECT COUNT(*) FROM performance_schema.setup_consumers")?;
    if schema == Access::Granted {
        schema =
            access(server, "SELECT COUNT_STAR FROM performance_schema.events_statements_summary_by_digest LIMIT 1")?;
    }

    let mut own = complete(source);
    let (mut lacks, mut grants) = (Vec::new(), Vec::new());
    if !has_process {
        let why = "without PROCESS it sees only its own sessions, no lock waits and no thread pool queue";
        lacks.push(why.to_owned());
        grants.push(process_grant.clone());
        own = own.partial(format!("account {account}: {why}")).enable(&process_grant);
    }
    if let Some((extra, words)) = server.detour.as_ref().filter(|_| has_process) {
        let why = format!(
            "cannot connect to the extra port {extra} ({words}): through the main port holdup queues in the same thread pool as the clients"
        );
        // By default the extra port admits one connection, and another monitor may hold it.
        own = own.partial(why).enable("SET GLOBAL extra_max_connections = 10;");
    }
    if schema_on && schema == Access::Denied {
        lacks.push("without SELECT on performance_schema.* it sees no statement timing".to_owned());
        grants.push(schema_grant.clone());
    }
    let missing = (!lacks.is_empty()).then(|| (format!("account {account}: {}", lacks.join("; ")), grants.join(" ")));

    let mut parts =
        Parts { sessions: has_process, process: has_process, locks: locks == Access::Granted, ..Parts::default() };
    let pool = pool(server, source, has_process.then_some(()).ok_or(process_grant), &mut parts);
    let schema = if schema_on { readable(server, schema, &account, schema_grant) } else { Err(schema_off()) };
    let of_schema = match schema {
        Err((why, enable)) => [DIGESTS, HISTORY, STAGES, METADATA_LOCKS]
            .map(|name| part(source, name).absent(&why).enable(&enable))
            .into(),
        Ok(()) => statements(server, source, &mut parts)?,
    };
    let mut coverage = vec![own, pool];
    coverage.extend(of_schema);
    let log = slow_log::find(server, address, part(source, SLOW_LOG), parts.history.is_some())?;
    parts.slow_log = log.form;
    coverage.extend(log.coverage);
    let (plans, may_ask) =
        plans::find(address.plans, &account, has_process || parts.history.is_some(), part(source, PLANS));
    parts.plans = may_ask;
    coverage.push(plans);
    let (objects, may_read) = catalogs::find(server, source, &account)?;
    parts.catalogs = may_read;
    coverage.push(objects);
    coverage.extend(replication(server, source, &account, &mut parts)?);
    Ok(Found { parts, coverage, missing })
}

/// Why performance_schema is missing, and what would give it.
fn schema_off() -> (String, String) {
    (
        "performance_schema is OFF".to_owned(),
        "put performance_schema=ON under [mysqld] in the server's option file and restart it".to_owned(),
    )
}

/// Why performance_schema cannot be read, and what would make it readable.
fn readable(server: &Server, access: Access, account: &str, grant: String) -> Result<(), (String, String)> {
    match access {
        Access::Granted => Ok(()),
        Access::Denied => Err((format!("the account {account} lacks SELECT on performance_schema"), grant)),
        Access::Broken(words) => {
            let upgrade = if server.release.is_mariadb() { "mariadb-upgrade" } else { "mysql_upgrade" };
            Err((format!("performance_schema cannot be read: {words}"), format!("run {upgrade} on the server")))
        }
    }
}

const POOL: &str = "thread pool";
const DIGESTS: &str = "statement digests";
const HISTORY: &str = "statement history";
const STAGES: &str = "statement stages";
const METADATA_LOCKS: &str = "metadata locks";
const SLOW_LOG: &str = "slow log";
const REPLICATION: &str = "replication";
const PLANS: &str = "plans";

/// The result of a read that a part depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Access {
    Granted,
    /// The account lacks a privilege.
    Denied,
    /// Another reason: the server's message.
    Broken(String),
}

/// Tries a read. A lost connection is an error.
fn access(server: &Server, sql: &str) -> Result<Access, Failure> {
    match server.rows(sql) {
        Ok(_) => Ok(Access::Granted),
        Err(failure) if failure.is_denied() => Ok(Access::Denied),
        Err(failure @ Failure::Server(..)) => Ok(Access::Broken(failure.to_string())),
        Err(failure) => Err(failure),
    }
}

fn variable(server: &Server, name: &str) -> Option<String> {
    server.rows(&format!("SELECT @@global.{name}")).ok()?.first()?.text(0).map(str::to_owned)
}

/// The account as a GRANT names it: `'user'@'host'`.
fn account(server: &Server) -> Result<String, Failure> {
    let rows = server.rows("SELECT CURRENT_USER()")?;
    let current = rows.first().and_then(|row| row.text(0)).unwrap_or_default();
    let (user, host) = current.rsplit_once('@').unwrap_or((current, "%"));
    let quoted = |name: &str| format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"));
    Ok(format!("{}@{}", quoted(user), quoted(host)))
}

/// The coverage entry of the thread pool; `process` holds the missing grant, if any.
fn pool(server: &Server, source: &str, process: Result<(), String>, parts: &mut Parts) -> Coverage {
    let (release, own) = (server.release, part(source, POOL));
    let (major, minor, patch) = release.version;
    let handling = variable(server, "thread_handling").unwrap_or_else(|| "one-thread-per-connection".to_owned());
    if handling != "pool-of-threads" && handling != "loaded-dynamically" {
        return own.note(format!("not in use: thread_handling is {handling}, so statements do not wait for a thread"));
    }
    if !release.is_mariadb() {
        let name = if release.flavour == Flavour::Percona { "Percona Server" } else { "MySQL" };
        return own.absent(format!(
            "{name} {major}.{minor} does not show which sessions wait in its thread pool's queue: they are recorded as idle"
        ));
    }
    if release.has(Topic::QueuedConnections).is_empty() {
        let why = format!(
            "MariaDB {major}.{minor} has a thread pool but does not show its queue: sessions that wait in it are recorded as idle"
        );
        return own.absent(why).enable("upgrade the server to MariaDB 10.6.5 or later");
    }
    if let Err(grant) = process {
        return own.absent("the account lacks PROCESS").enable(grant);
    }
    for table in ["THREAD_POOL_QUEUES", "THREAD_POOL_GROUPS", "THREAD_POOL_STATS", "THREAD_POOL_WAITS"] {
        if let Err(failure) = server.rows(&format!("SELECT COUNT(*) FROM information_schema.{table}")) {
            let enable = format!("start the server with --{}=ON", table.to_ascii_lowercase().replace('_', "-"));
            return own.absent(format!("information_schema.{table}: {failure}")).enable(enable);
        }
    }
    parts.pool = true;
    if !release.hides_queued_connections() {
        return own;
    }
    own.partial(format!(
        "MariaDB {major}.{minor}.{patch} leaves THREAD_POOL_QUEUES.CONNECTION_ID empty (a bug of 10.5 before 10.5.13 and 10.6 before 10.6.5): \
         the queue's length and age are known, but not which sessions are in it; they are recorded as idle"
    ))
    .enable("upgrade the server to MariaDB 10.5.13, 10.6.5 or later")
}

/// Whether replication may be read; a coverage entry only if it may not on a server that
/// replicates.
fn replication(server: &Server, source: &str, account: &str, parts: &mut Parts) -> Result<Option<Coverage>, Failure> {
    let way = access(server, server.release.has(Topic::ReplicaStatus))?;
    parts.replication = way == Access::Granted;
    // A replica lists its replication threads to an account with PROCESS.
    let is_replica = |row: &Row| {
        let state = row.text(6).unwrap_or_default().to_ascii_lowercase();
        row.text(1).is_some_and(|user| user == "system user")
            && ["master", "relay log", "source", "replica"].iter().any(|word| state.contains(word))
    };
    if parts.replication || !parts.process || !server.rows("SHOW PROCESSLIST")?.iter().any(is_replica) {
        return Ok(None);
    }
    let grant = format!("GRANT {} ON *.* TO {account};", server.release.has(Topic::ReplicaPrivilege));
    Ok(Some(part(source, REPLICATION).absent("the account may not read this replica's lag").enable(grant)))
}

/// Entries for digests, history, stages and metadata locks, if performance_schema may be read.
fn statements(server: &Server, source: &str, parts: &mut Parts) -> Result<Vec<Coverage>, Failure> {
    let enable =
        |names: &str| format!("UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME IN ({names});");
    let on: Vec<String> = server
        .rows("SELECT NAME FROM performance_schema.setup_consumers WHERE ENABLED = 'YES'")?
        .iter()
        .filter_map(|row| row.text(0).map(str::to_owned))
        .collect();
    let is_on = |name: &str| on.iter().any(|consumer| consumer == name);
    let mut digests = part(source, DIGESTS);
    parts.digests = ["global_instrumentation", "statements_digest"].into_iter().all(is_on);
    if !parts.digests {
        let all = "'global_instrumentation', 'thread_instrumentation', 'statements_digest'";
        digests = digests.absent("the consumer statements_digest is off: no totals per statement").enable(enable(all));
    }
    let needed = ["global_instrumentation", "thread_instrumentation", "events_statements_current"];
    parts.holders.statements = needed.into_iter().all(is_on);
    let ((stages, steps), metadata) = (stages(server, source, &is_on)?, metadata_locks(server, source)?);
    parts.holders.metadata = metadata.as_ref().is_some_and(|entry| entry.state == CoverageState::Complete);
    let all = "'global_instrumentation', 'thread_instrumentation', 'events_statements_current', 'events_statements_history_long'";
    // The table of all connections, else that of each.
    let (long, each) = ("events_statements_history_long", "events_statements_history");
    let table = [long, each].into_iter().find(|name| is_on(name)).filter(|_| needed.into_iter().all(is_on));
    let mut history = part(source, HISTORY);
    if let Some(table) = table {
        let size = variable(server, &format!("performance_schema_{table}_size"));
        let size = size.and_then(|size| size.parse().ok()).unwrap_or(0);
        let per_connection = table == each;
        parts.history = Some(History { table, size, per_connection, stages: steps });
        history = if per_connection {
            let why = format!(
                "the server keeps the last {size} executions of each connection, and drops them when it closes"
            );
            history.partial(why).enable(enable("'events_statements_history_long'"))
        } else {
            history.note(format!(
                "the server keeps the last {size} executions: if more than that, or more than {MOST}, end between two reads, holdup reads a sample and says so"
            ))
        };
    } else {
        let off: Vec<&str> = needed.into_iter().chain([long]).filter(|name| !is_on(name)).collect();
        let why = format!("the consumers {} are off: single executions cannot be read", off.join(", "));
        history = history.absent(why).enable(enable(all));
    }
    parts.places = parts.history.map(|history| {
        // Ten rows per connection are read in a fraction of the time of ten thousand rows.
        let both = is_on(each) && !history.per_connection;
        let first = if both { each } else { history.table };
        HistoryTables { first, then: both.then_some(history.table), stages: steps }
    });
    Ok([digests, history, stages].into_iter().chain(metadata).collect())
}

/// The entry of statement stages, and their table.
fn stages(
    server: &Server,
    source: &str,
    is_on: &dyn Fn(&str) -> bool,
) -> Result<(Coverage, Option<&'static str>), Failure> {
    let table = ["events_stages_history_long", "events_stages_history"].into_iter().find(|name| is_on(name));
    let instruments = server.rows(
        "SELECT COUNT(*) FROM performance_schema.setup_instruments \
         WHERE NAME LIKE 'stage/sql/%' AND ENABLED = 'YES' AND TIMED = 'YES'",
    )?;
    let is_timed = instruments.first().and_then(|row| row.int(0)).is_some_and(|count| count > 0);
    if let Some(table) = table.filter(|_| is_timed && is_on("events_stages_current")) {
        return Ok((part(source, STAGES), Some(table)));
    }
    let own = part(source, STAGES).absent("stages are off: the time of a slow statement is not split by stage").enable(
        "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'stage/sql/%'; \
         UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
         WHERE NAME IN ('events_stages_current', 'events_stages_history_long');",
    );
    Ok((own, None))
}

/// The entry of metadata locks, for servers that have a table of them.
fn metadata_locks(server: &Server, source: &str) -> Result<Option<Coverage>, Failure> {
    if server.release.has(Topic::MetadataLocks).is_empty() {
        return Ok(None);
    }
    let rows = server.rows(
        "SELECT COUNT(*) FROM performance_schema.setup_instruments \
         WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES'",
    )?;
    if rows.first().and_then(|row| row.int(0)) == Some(1) {
        return Ok(Some(part(source, METADATA_LOCKS)));
    }
    let why = "metadata locks are not instrumented: holdup sees their waiters, but not their holders";
    Ok(Some(part(source, METADATA_LOCKS).absent(why).enable(
        "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' WHERE NAME = 'wait/lock/metadata/sql/mdl';",
    )))
}
