//! A large catalog: 10,000 tables and 5,000 statements. What a sample takes of the server's time, and that the catalog is not walked
//! through with every sample.

use std::fmt::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_recording::Batch;

use crate::watch;
use crate::{Server, Which};

/// Most of the server's CPU time that a sample may take.
const BUDGET: Duration = Duration::from_millis(100);

const TABLES: usize = 10_000;
const STATEMENTS: usize = 5_000;

#[test]
#[ignore = "full: ten thousand tables are made"]
fn a_sample_of_ten_thousand_tables() {
    let settings = &[
        ("shared_preload_libraries", "pg_stat_statements"),
        ("pg_stat_statements.max", "6000"),
        ("pg_stat_statements.track_planning", "on"),
        ("autovacuum", "off"),
        ("max_locks_per_transaction", "1024"),
        ("synchronous_commit", "off"),
    ];
    let Some(server) = Server::of(Which::System, settings) else { return };
    server.run(&format!(
        "CREATE EXTENSION pg_stat_statements; CREATE USER watcher; GRANT pg_monitor TO watcher;
         DO $$ BEGIN FOR i IN 1..{TABLES} LOOP EXECUTE 'CREATE UNLOGGED TABLE many_' || i || ' (id int PRIMARY KEY, note text)';
         EXECUTE 'INSERT INTO many_' || i || ' VALUES (1)'; IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END $$;"
    ));
    let mut statements = String::new();
    for number in 1..=STATEMENTS {
        let _ = writeln!(statements, "SELECT note FROM many_{number} WHERE id = 1;");
    }
    server.run(&statements);
    assert!(server.run("SELECT count(*) FROM pg_stat_statements").parse::<usize>().expect("a number") >= STATEMENTS);
    let mut collector = watch(&server.address("watcher", ""));
    collector.probe().expect("it can be watched");
    // By the server's own account: what its process for us has done. Its clock ticks a hundred times a second.
    let pid = server.run("SELECT pid FROM pg_stat_activity WHERE application_name = 'holdup'");
    let walks = || server.run("SELECT pg_stat_get_numscans('pg_class'::regclass)").parse::<i64>().expect("a number");
    let (walked, mut took, mut all) = (walks(), Vec::new(), Batch::default());
    let (begun, cpu) = (Instant::now(), cpu_time(&pid));
    let statements = |all: &Batch| all.statements.iter().filter(|row| row.kind == "digest_total").count();
    while took.len() < 15 {
        let (sample, before) = (Instant::now(), cpu_time(&pid));
        collector.sample(&mut all).expect("a sample");
        took.push(cpu_time(&pid).saturating_sub(before));
        sleep(Duration::from_secs(1).saturating_sub(sample.elapsed()));
    }
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_time(&pid).saturating_sub(cpu));
    println!("the server's CPU time of each sample: {took:?}; {cpu:?} of CPU in {seconds:.1} s");
    assert!(took.iter().all(|took| *took < BUDGET), "{took:?}");
    let share = cpu.as_secs_f64() / seconds;
    assert!(share < 0.05, "{share} of a core");
    // The list of tables is made in the first sample and at most once more; what else is counted here is psql's start.
    let walked = walks() - walked;
    assert!(walked <= 4, "the catalog was walked through {walked} times in 15 samples");
    let of = |metric: &str| all.samples.iter().filter(|row| row.metric == metric).count();
    assert!(of("postgresql_stat_tables_n_tup_ins") >= 100, "{}", of("postgresql_stat_tables_n_tup_ins"));
    assert!(of("postgresql_stat_indexes_idx_scan") >= 50);
    assert!(statements(&all) >= 500, "{}", statements(&all));
}

/// User and system time of a process.
pub fn cpu_time(pid: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server's process");
    let fields: Vec<i64> =
        stat.rsplit(") ").next().unwrap_or_default().split(' ').filter_map(|field| field.parse().ok()).collect();
    // State is a letter: what is 14th and 15th in the manual, counted from there.
    Duration::from_millis((fields[10] + fields[11]).unsigned_abs() * 10)
}
