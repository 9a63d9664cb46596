//! What changed, from the catalogs of a real server: an index that goes, one that is hidden, columns, settings
//! of every level; who may not read them; thousands of tables.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use holdup_collect::run;
use holdup_recording::manifest::{Coverage, CoverageState, Host, Manifest};
use holdup_recording::rows::Event;
use holdup_recording::{Recorder, Recording, RunState, clock, events};

use crate::{Server, Which, watch};

/// What a watch recorded while `change` was made.
fn watched(address: &str, change: impl FnOnce()) -> (Recording, Vec<Coverage>) {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("recording");
    let manifest = Manifest::starting("changes", clock::now_ns(), Host::default());
    let recorder = Recorder::create(&dir, &manifest).expect("a recording");
    let sources = vec![(address.to_owned(), watch(address))];
    let asked = run::ask(sources, &AtomicBool::new(false), &mut |_| {});
    let Ok(arrivals) = asked else { panic!("it can't be watched") };
    let running = run::start(arrivals, &recorder.sink(), Duration::from_millis(200)).expect("collectors");
    std::thread::sleep(Duration::from_secs(3));
    change();
    std::thread::sleep(Duration::from_secs(4));
    let coverage = running.stop(Duration::from_secs(60));
    recorder.finish(manifest, RunState::Complete).expect("the end");
    (Recording::open(&dir).expect("it opens"), coverage)
}

fn changes(recording: &Recording) -> Vec<&Event> {
    recording.tables.events.rows.iter().filter(|event| event.kind == events::CHANGED).collect()
}

const SHOP: &str = "CREATE USER watcher; GRANT pg_monitor TO watcher; CREATE ROLE app;
     CREATE TABLE orders (id int PRIMARY KEY, customer int, state text);
     CREATE INDEX orders_customer ON orders (customer) WHERE state <> 'closed';
     CREATE INDEX orders_state ON orders (state)";

#[test]
fn changes_of_a_real_database_come_with_the_statements_that_undo_them() {
    let Some(server) = Server::of(Which::System, &[]) else { return };
    server.run(SHOP);
    let made = server.run("SELECT pg_get_indexdef('orders_customer'::regclass)");
    let (recording, _) = watched(&server.address("watcher", ""), || {
        server.run("DROP INDEX orders_customer");
        server.run("ALTER TABLE orders ALTER COLUMN customer TYPE bigint");
        server.run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'orders_state'::regclass");
        server.run("ALTER ROLE app SET enable_indexscan = off");
        server.run("ALTER SYSTEM SET random_page_cost = 40");
        server.run("SELECT pg_reload_conf()");
    });
    let told = changes(&recording);
    let text = |text: &str| {
        told.iter().find(|event| event.text.starts_with(text)).unwrap_or_else(|| panic!("{text}: {told:?}"))
    };
    let gone = text("index orders_customer of public.orders is gone");
    assert_eq!(gone.labels.get("restore"), Some(format!("{made};").as_str()));
    text("column customer of public.orders went from integer to bigint");
    text("index orders_state of public.orders is invalid");
    text("setting enable_indexscan of role app is new: off");
    text("setting random_page_cost went from 4 to 40");
    for event in &told {
        let since: i64 = event.labels.get("since_ns").and_then(|ns| ns.parse().ok()).expect("since when");
        assert!(event.observed_at - since < 6_000_000_000, "a mark tells it before the minute is over: {event:?}");
        // As printed, it undoes the change.
        event
            .labels
            .get("restore")
            .into_iter()
            .flat_map(|all| all.split_inclusive("; "))
            .for_each(|one| drop(server.run(one)));
    }
    let (again, _) = watched(&server.address("watcher", ""), || {
        drop(server.run("CREATE TABLE other (id int); COMMENT ON TABLE orders IS 'x'"))
    });
    let told = changes(&again);
    assert!(told.iter().all(|event| event.text.starts_with("table public.other is new")), "{told:?}");
    let valid = "SELECT indexdef || ' ' || indisvalid FROM pg_indexes JOIN pg_index ON indexrelid = indexname::regclass WHERE indexname LIKE 'orders%' ORDER BY 1";
    let now = server.run(valid);
    assert!(now.contains(&made) && now.matches("true").count() == 3, "{now}");
}

#[test]
fn an_account_that_may_not_read_a_catalog_says_so_and_records_the_rest() {
    let Some(server) = Server::of(Which::System, &[]) else { return };
    server.run(&format!("{SHOP}; REVOKE SELECT ON pg_db_role_setting FROM PUBLIC"));
    let (recording, coverage) = watched(&server.address("watcher", ""), || ());
    let line = coverage.iter().find(|line| line.source.ends_with(" catalogs")).expect("a line");
    assert_eq!(line.state, CoverageState::Absent, "{line:?}");
    assert!(line.enable.as_ref().is_some_and(|grant| grant.starts_with("GRANT SELECT ON")), "{line:?}");
    assert!(recording.tables.settings.rows.iter().any(|row| row.name == "work_mem"));
    let gaps: Vec<&Event> = recording.tables.events.rows.iter().filter(|event| event.kind == "gap").collect();
    assert!(gaps.is_empty(), "{gaps:?}");
}

#[test]
fn five_thousand_tables_take_bounded_time() {
    const TABLES: usize = 5_000;
    let settings = [("max_locks_per_transaction", "1024"), ("synchronous_commit", "off"), ("autovacuum", "off")];
    let Some(server) = Server::of(Which::System, &settings) else { return };
    server.run(&format!(
        "CREATE USER watcher; GRANT pg_monitor TO watcher;
         DO $$ BEGIN FOR i IN 1..{TABLES} LOOP
         EXECUTE 'CREATE UNLOGGED TABLE many_' || i || ' (id int PRIMARY KEY, a int, b text, c timestamptz, d numeric(10,2))';
         EXECUTE 'CREATE INDEX many_a_' || i || ' ON many_' || i || ' (a)';
         IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END $$;"
    ));
    let mut collector = watch(&server.address("watcher", ""));
    collector.probe().expect("it can be watched");
    let mut times = Vec::new();
    let mut batch = holdup_recording::Batch::default();
    for _ in 0..3 {
        let begun = Instant::now();
        collector.settings(&mut batch).expect("settings");
        times.push(begun.elapsed());
    }
    println!("settings and catalogs of {TABLES} tables: {times:?}");
    let objects = batch.settings.iter().filter(|row| row.name.starts_with("catalog.")).count();
    assert!((3 * TABLES..4 * TABLES).contains(&objects), "once, and not again at once: {objects}");
    assert!(times[0] < Duration::from_secs(3) && times[1] < times[0], "{times:?}");
}
