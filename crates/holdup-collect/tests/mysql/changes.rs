//! What changed, from the catalogs of a real MariaDB: who sees them, and what thousands of tables cost.

use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::watch::{Options, collector};
use holdup_recording::{Batch, CoverageState};
use holdup_testing::{MariaDb, program};

const USERS: &str = "CREATE DATABASE shop;
     CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(100), at INT, KEY by_note (note(10), at));
     CREATE USER 'watcher'@'%' IDENTIFIED BY 'x'; GRANT PROCESS ON *.* TO 'watcher'@'%';
     GRANT SELECT ON performance_schema.* TO 'watcher'@'%';";

fn server() -> Option<MariaDb> {
    program("mariadbd", "mariadb-server")?;
    let server = MariaDb::new()?.with(["--performance-schema=ON"]).start();
    server.run(USERS);
    Some(server)
}

fn watch(server: &MariaDb) -> (Box<dyn Collector>, CoverageState, String) {
    let mut collector = collector(&server.address("watcher", "x"), &Options::default()).expect("an address");
    let coverage = collector.probe().expect("it can be watched");
    let line = coverage.into_iter().find(|line| line.source.ends_with(" catalogs")).expect("a line");
    (collector, line.state, line.enable.unwrap_or_default())
}

fn objects(batch: &Batch) -> Vec<(&str, &str)> {
    let rows = batch.settings.iter().filter(|row| row.name.starts_with("catalog.index"));
    rows.map(|row| (row.name.as_str(), row.value.as_str())).collect()
}

/// Samples until `object` is told: by the counter of ALTER, after two seconds or 200 times what the last reading took.
fn sample_until(collector: &mut dyn Collector, object: (&str, &str)) {
    let begun = Instant::now();
    loop {
        let mut batch = Batch::default();
        collector.sample(&mut batch).expect("a sample");
        if objects(&batch).contains(&object) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no {object:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn without_a_right_on_tables_the_coverage_has_the_grant_and_with_it_indexes_are_seen() {
    let Some(server) = server() else { return };
    let (mut blind, state, enable) = watch(&server);
    assert_eq!((state, enable.as_str()), (CoverageState::Absent, "GRANT REFERENCES ON *.* TO 'watcher'@'%';"));
    let mut batch = Batch::default();
    blind.settings(&mut batch).expect("the rest");
    assert!(objects(&batch).is_empty() && batch.settings.iter().any(|row| row.name == "max_connections"));
    server.run(&enable);
    let (mut seeing, state, _) = watch(&server);
    assert_eq!(state, CoverageState::Complete);
    let mut batch = Batch::default();
    seeing.sample(&mut batch).expect("a sample");
    seeing.settings(&mut batch).expect("settings");
    let made = "ALTER TABLE `shop`.`orders` ADD INDEX `by_note` (`note`(10), `at`)";
    assert!(objects(&batch).contains(&("catalog.index shop.orders: by_note", made)), "{:?}", objects(&batch));
    server.run("ALTER TABLE shop.orders DROP INDEX by_note");
    sample_until(&mut *seeing, ("catalog.index shop.orders: by_note", ""));
    server.run(made);
    sample_until(&mut *seeing, ("catalog.index shop.orders: by_note", made));
}
