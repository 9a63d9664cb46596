//! Tables and TOAST tables, indexes, processes, progress, locks, what keeps dead rows, slots, settings of tables, resets: what each of
//! three versions shows of the same things, with `pg_monitor` and nothing else.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_recording::rows::Sample;
use holdup_recording::{Batch, CoverageState};

use crate::{Server, Which};
use crate::{until, watch};

#[test]
fn postgresql_13_is_read_in_depth() {
    depth(Which::Fetched(13));
}

#[test]
fn the_systems_postgresql_is_read_in_depth() {
    depth(Which::System);
}

#[test]
fn postgresql_18_is_read_in_depth() {
    depth(Which::Fetched(18));
}

fn depth(which: Which) {
    let settings = &[
        ("shared_preload_libraries", "pg_stat_statements"),
        ("max_prepared_transactions", "3"),
        ("wal_level", "logical"),
        ("autovacuum", "off"),
        ("max_connections", "40"),
        ("superuser_reserved_connections", "4"),
    ];
    let Some(server) = Server::of(which, settings) else { return };
    server.run(
        "CREATE EXTENSION pg_stat_statements; CREATE USER watcher; GRANT pg_monitor TO watcher; CREATE DATABASE other;
         CREATE TABLE article (id int PRIMARY KEY, body text) WITH (fillfactor = 80, toast.autovacuum_vacuum_scale_factor = 0.02);
         ALTER TABLE article ALTER body SET STORAGE EXTERNAL; CREATE INDEX by_length ON article (length(body));
         INSERT INTO article SELECT n, repeat('x', 9000) FROM generate_series(1, 100) AS n; UPDATE article SET body = body || 'y';
         CREATE TABLE empty (id int); SELECT pg_create_physical_replication_slot('kept', true);",
    );
    let mut collector = watch(&server.address("watcher", ""));
    let coverage = collector.probe().expect("pg_monitor is enough");
    let tables = coverage.iter().find(|part| part.source.ends_with(" tables")).expect("an entry");
    let why = tables.why.clone().unwrap_or_default();
    assert!(tables.state == CoverageState::Partial && why.contains("database postgres only") && why.contains("other"));
    assert!(coverage.iter().any(|part| part.source.ends_with(" files") && part.state == CoverageState::Complete));
    tables_and_indexes(&server, collector.as_mut());
    server_wide(&server, collector.as_mut());
    holders(&server);
    queue_for_a_lock(&server, collector.as_mut());
    progress(&server);
    options(collector.as_mut());
    strangers(&server);
    statements(&server, collector.as_mut());
    no_strong_lock(&server, collector.as_mut());
}

fn value(batch: &Batch, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
    rows(batch, metric, labels).last().map(|row| row.value)
}

fn rows<'a>(batch: &'a Batch, metric: &str, labels: &[(&str, &str)]) -> Vec<&'a Sample> {
    batch.samples.iter().filter(|row| row.metric == metric && row.labels.contains(labels)).collect()
}

fn tables_and_indexes(server: &Server, collector: &mut dyn Collector) {
    let of = [("database", "postgres"), ("table", "public.article")];
    let toast = server.run("SELECT 'pg_toast.' || relname FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'article')");
    let of_toast = [("table", toast.as_str()), ("toast_of", "public.article")];
    let seen = until(collector, "tables and indexes", |batch| {
        value(batch, "postgresql_stat_indexes_idx_scan", &of).is_some()
            && value(batch, "postgresql_stat_tables_n_tup_upd", &of).is_some_and(|value| value > 0.0)
    });
    let value = |metric: &str, labels: &[(&str, &str)]| value(&seen, metric, labels);
    assert_eq!(value("postgresql_stat_tables_n_tup_ins", &of), Some(100.0));
    assert_eq!(value("postgresql_stat_tables_n_tup_upd", &of), Some(100.0));
    // Five chunks of 1,996 bytes a value, and as many for the next version of it, whose own are dead then.
    assert_eq!(value("postgresql_stat_tables_n_tup_ins", &of_toast), Some(1000.0));
    assert_eq!(value("postgresql_stat_tables_n_tup_del", &of_toast), Some(500.0));
    assert_eq!(value("postgresql_stat_tables_n_dead_tup", &of_toast), Some(500.0));
    assert!(value("postgresql_statio_tables_heap_blks_hit", &of_toast).is_some_and(|hits| hits > 0.0));
    assert!(value("postgresql_table_size_bytes", &of_toast).is_some_and(|bytes| bytes >= 1000.0 * 2000.0));
    let free = value("postgresql_table_free_bytes", &[of_toast[0], ("estimate", "toast_chunks")]).expect("an estimate");
    assert!((900_000.0..1_500_000.0).contains(&free), "half of two megabytes is dead: {free}");
    assert!(value("postgresql_table_free_bytes", &[of[1], ("estimate", "dead_rows")]).is_some());
    assert_eq!(value("postgresql_table_indexes", &of), Some(2.0));
    assert!(value("postgresql_table_frozen_age_transactions", &of).is_some_and(|age| (1.0..1e6).contains(&age)));
    let indexes = rows(&seen, "postgresql_index_size_bytes", &of);
    let unique: BTreeSet<_> = indexes.iter().map(|row| (row.labels.get("index"), row.labels.get("unique"))).collect();
    assert_eq!(unique, BTreeSet::from([(Some("article_pkey"), Some("1")), (Some("by_length"), None)]));
    assert!(seen.samples.iter().all(|row| row.labels.get("table") != Some("public.empty")), "nothing is in it");
    let has_times = value("postgresql_stat_tables_total_autovacuum_time", &of).is_some();
    assert_eq!(has_times, server.major() >= 18);
}

fn server_wide(server: &Server, collector: &mut dyn Collector) {
    const WANTED: [&str; 6] = [
        "wal_files",
        "wal_position_bytes",
        "next_transaction_id",
        "temporary_files",
        "locks",
        "stat_database_temp_bytes",
    ];
    // What is read seldom comes in several samples, as the time for each allows.
    let missing = RefCell::new(BTreeSet::from(WANTED));
    let seen = until(collector, "what is read seldom", |batch| {
        let mut missing = missing.borrow_mut();
        missing.retain(|metric| value(batch, &format!("postgresql_{metric}"), &[]).is_none());
        missing.is_empty()
    });
    let has = |metric: &str| value(&seen, metric, &[]).is_some();
    let major = server.major();
    // The checkpointer's figures moved to a view of their own in 17.
    assert_eq!(
        (has("postgresql_stat_bgwriter_checkpoints_timed"), has("postgresql_stat_checkpointer_num_timed")),
        (major < 17, major >= 17)
    );
    assert_eq!(has("postgresql_stat_wal_wal_bytes"), major >= 14);
    assert_eq!(has("postgresql_stat_io_reads"), major >= 16);
    assert_eq!(value(&seen, "postgresql_connections_max", &[]), Some(36.0));
    assert!(value(&seen, "postgresql_connections", &[]).is_some_and(|count| (1.0..9.0).contains(&count)));
    let background = [("backend_type", "walwriter"), ("wait_event_type", "Activity")];
    assert_eq!(value(&seen, "postgresql_activity_sessions", &background), Some(1.0));
    let slot = [("slot", "kept"), ("active", "0")];
    assert!(value(&seen, "postgresql_replication_slot_retained_bytes", &slot).is_some_and(|bytes| bytes >= 0.0));
    assert!(value(&seen, "postgresql_database_frozen_age_transactions", &[("database", "other")]).is_some());
}

/// Who keeps dead rows from being removed: a session, and a prepared transaction that nobody ends.
fn holders(server: &Server) {
    server.run("BEGIN; UPDATE empty SET id = 1; SELECT txid_current(); PREPARE TRANSACTION 'left-behind';");
    let gate = server.wait_for("holders");
    let session = server
        .begin(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1;{gate}SELECT pg_backend_pid(); COMMIT;"));
    server.run("SELECT txid_current();\nSELECT txid_current();");
    server.until_some("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'");
    // One that has read nothing yet reads at once.
    let mut collector = watch(&server.address("watcher", ""));
    collector.probe().expect("it can be watched");
    let metric = "postgresql_oldest_xmin_age_transactions";
    let prepared = [("holder", "prepared"), ("name", "left-behind")];
    let seen = until(collector.as_mut(), "both holders", |batch| {
        value(batch, metric, &[("holder", "session")]).is_some_and(|age| age >= 2.0)
            && value(batch, metric, &prepared).is_some_and(|age| age >= 3.0)
            && value(batch, "postgresql_oldest_transaction_seconds", &[]).is_some_and(|seconds| seconds > 0.0)
    });
    server.open("holders");
    let name =
        rows(&seen, metric, &[("holder", "session")]).last().and_then(|row| row.labels.get("name").map(str::to_owned));
    assert_eq!(name.as_deref(), session.end().lines().last());
    server.run("ROLLBACK PREPARED 'left-behind'");
}

/// Of several that wait for one row each waits for the one before: the holder is named to all of them.
fn queue_for_a_lock(server: &Server, collector: &mut dyn Collector) {
    let gate = server.wait_for("holder");
    let holder = server
        .begin(&format!("BEGIN; SELECT pg_backend_pid(); UPDATE article SET id = id WHERE id = 1;{gate}ROLLBACK;"));
    let updates = "UPDATE article SET id = id WHERE id = 1";
    until(collector, "holder", |batch| batch.sessions.iter().any(|row| row.true_state == "idle_in_transaction"));
    let waiters: Vec<_> = (0..3).map(|_| server.begin(updates)).collect();
    let blocked = |batch: &Batch| -> Vec<Option<i64>> {
        batch.sessions.iter().filter(|row| row.true_state == "lock_wait").map(|row| row.blocked_by).collect()
    };
    let seen = until(collector, "three waiters", |batch| {
        blocked(batch).len() == 3 && blocked(batch).iter().all(Option::is_some)
    });
    let last = seen.sessions.last().map(|row| row.observed_at);
    let of_last: BTreeSet<_> = seen
        .sessions
        .iter()
        .filter(|row| Some(row.observed_at) == last && row.true_state == "lock_wait")
        .map(|row| row.blocked_by)
        .collect();
    server.open("holder");
    waiters.into_iter().for_each(|waiter| drop(waiter.end()));
    assert_eq!(of_last, BTreeSet::from([holder.end().lines().next().and_then(|pid| pid.parse().ok())]));
}

fn progress(server: &Server) {
    // Slow enough to be seen: it rests after every page.
    let vacuum = server.begin("SET vacuum_cost_delay = '100ms'; SET vacuum_cost_limit = 1; VACUUM article;");
    server.until_some("SELECT count(*) FROM pg_stat_progress_vacuum");
    let mut collector = watch(&server.address("watcher", ""));
    collector.probe().expect("it can be watched");
    let metric = "postgresql_progress_vacuum_heap_blks_total";
    let seen = until(collector.as_mut(), "a vacuum", |batch| value(batch, metric, &[("worker", "session")]).is_some());
    let row = rows(&seen, metric, &[("worker", "session")])[0];
    let table = row.labels.get("table").unwrap_or_default();
    assert!(table == "public.article" || row.labels.get("toast_of") == Some("public.article"), "{:?}", row.labels);
    assert!(row.labels.get("phase").is_some() && row.labels.get("pid").is_some());
    let names: BTreeSet<&str> =
        seen.samples.iter().filter_map(|row| row.metric.strip_prefix("postgresql_progress_vacuum_")).collect();
    assert_eq!(
        (names.contains("max_dead_tuples"), names.contains("max_dead_tuple_bytes")),
        (server.major() < 17, server.major() >= 17),
        "{names:?}"
    );
    server.run("SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum");
    vacuum.stop();
}

fn options(collector: &mut dyn Collector) {
    let mut batch = Batch::default();
    collector.settings(&mut batch).expect("settings");
    let value = |name: &str| batch.settings.iter().find(|row| row.name.starts_with(name)).map(|row| row.value.as_str());
    assert_eq!(value("reloptions:public.article"), Some("fillfactor=80"));
    assert_eq!(value("reloptions:pg_toast.pg_toast_"), Some("autovacuum_vacuum_scale_factor=0.02"));
}

/// What an account lacks is said part by part, with the exact grant, and the rest is read.
fn strangers(server: &Server) {
    server.run("CREATE USER half; GRANT pg_read_all_stats TO half;");
    let mut half = watch(&server.address("half", ""));
    let coverage = half.probe().expect("sessions and statements are seen");
    let files = coverage.iter().find(|part| part.source.ends_with(" files")).expect("an entry");
    assert_eq!((files.state, files.enable.as_deref()), (CoverageState::Absent, Some("GRANT pg_monitor TO half;")));
    let seen = until(half.as_mut(), "slow readings", |batch| value(batch, "postgresql_locks", &[]).is_some());
    assert!(value(&seen, "postgresql_wal_files", &[]).is_none(), "it may not");
}

fn statements(server: &Server, collector: &mut dyn Collector) {
    let text = "SELECT count(*) FROM article WHERE id = 4711";
    let another = "SELECT max(id) FROM article WHERE id = 4711";
    server.run(text);
    let [digest, of_another] = [text, another].map(|text| holdup_sql::digest(text, holdup_sql::Dialect::PostgreSql));
    let has = |batch: &Batch, calls| batch.statements.iter().any(|row| row.digest == digest && row.calls == calls);
    until(collector, "its counters", |batch| has(batch, 1));
    // Another statement shows that the counters were read meanwhile.
    server.run(another);
    let quiet = until(collector, "counters of another statement", |batch| {
        batch.statements.iter().any(|row| row.digest == of_another)
    });
    assert!(!quiet.statements.iter().any(|row| row.digest == digest), "it did not run");
    server.run(text);
    let seen = until(collector, "its next execution", |batch| has(batch, 2));
    let rows: Vec<_> = seen.statements.iter().filter(|row| row.digest == digest).collect();
    assert_eq!(rows.iter().map(|row| row.calls).collect::<Vec<_>>(), [1, 2]);
    let apart = Duration::from_nanos((rows[1].observed_at - rows[0].observed_at).unsigned_abs());
    assert!(apart < Duration::from_secs(20), "the read before, not the row before");
    // Until 14 the server does not tell.
    if server.major() >= 14 {
        server.run("SELECT pg_stat_statements_reset()");
        let seen = until(collector, "the reset", |batch| batch.events.iter().any(|event| event.kind == "reset"));
        assert!(value(&seen, "postgresql_stat_statements_dealloc", &[]).is_some());
    }
}

/// EXCLUSIVE is let in beside ACCESS SHARE and beside nothing else; ACCESS EXCLUSIVE of one table beside nothing at all.
fn no_strong_lock(server: &Server, collector: &mut dyn Collector) {
    let gate = server.wait_for("locks");
    let holder = server.begin(&format!(
        "BEGIN; DO $$ DECLARE one regclass; BEGIN FOR one IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relname <> 'empty' LOOP
         EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', one); END LOOP; END $$; CREATE INDEX ON empty (id);
         LOCK TABLE article IN ACCESS EXCLUSIVE MODE;{gate}COMMIT;"
    ));
    let (deadline, locked) = (
        Instant::now() + Duration::from_secs(120),
        "SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation > 0",
    );
    while server.run(locked).parse::<u32>().expect("a number") < 50 {
        assert!(Instant::now() < deadline, "the locks were not taken");
    }
    // Longer than the longest pause between two reads of anything.
    let mut all = Batch::default();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(11_500) {
        collector.sample(&mut all).expect("nothing is waited for");
        sleep(Duration::from_millis(200));
    }
    collector.settings(&mut all).expect("nothing is waited for");
    for metric in
        ["postgresql_table_size_bytes", "postgresql_locks", "postgresql_wal_files", "postgresql_stat_tables_seq_scan"]
    {
        assert!(value(&all, metric, &[]).is_some(), "{metric} was not read at all");
    }
    assert!(
        value(&all, "postgresql_table_size_bytes", &[("table", "public.article")]).is_some(),
        "as the catalog has it"
    );
    server.open("locks");
    holder.end();
}
