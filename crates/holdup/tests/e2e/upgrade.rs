//! An upgrade that makes a few statements slower: the same server twice, the second without the indexes of some. Both play the same
//! mix, in rounds, and `holdup compare --statements` has to find those, the ones in loops first, and hardly any other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::mariadb::{self, CANARY, MariaDb};
use crate::postgresql::Postgres;
use crate::program::{Running, alone, finish, holdup};

/// Rows that every statement adds up, and rows of the small table that it looks into besides: without its index that is gone through.
#[derive(Clone, Copy)]
struct Sizes {
    summed: usize,
    small: [usize; 2],
}

/// A mix: different statements, the first of them slower, some of those in loops.
#[derive(Clone, Copy)]
struct Mix {
    statements: usize,
    slower: usize,
    in_loops: usize,
    /// Executions of each; in a loop ten times as many.
    calls: usize,
    rounds: usize,
    sizes: Sizes,
}

/// Times a request runs what it runs in a loop.
const LOOP: usize = 10;

const SESSIONS: usize = 8;

/// What CI plays; all of it is played by hand: `cargo test -p holdup --test e2e -- --ignored upgrade`.
const SOME: Mix =
    Mix { statements: 80, slower: 4, in_loops: 2, calls: 100, rounds: 2, sizes: Sizes { summed: 0, small: [0, 0] } };
const ALL: Mix = Mix { statements: 400, slower: 10, in_loops: 3, calls: 100, ..SOME };

const OF_MARIADB: Sizes = Sizes { summed: 2_500, small: [700, 3_000] };
const OF_POSTGRESQL: Sizes = Sizes { summed: 5_000, small: [3_000, 11_000] };

impl Mix {
    /// Rows of the small table of the statement `number`: more of them take longer to go through.
    fn small_rows(&self, number: usize) -> usize {
        let [least, most] = self.sizes.small;
        least + (most - least) * number / self.slower.saturating_sub(1).max(1)
    }

    /// The table that a statement looks into. Those that stay as they were share one.
    fn table(&self, number: usize) -> String {
        if number < self.slower { format!("small_{number}") } else { "small_all".to_owned() }
    }

    fn statement(&self, number: usize, luck: u64) -> String {
        let from = luck % 10_000;
        let table = self.table(number);
        let tag = luck % 500;
        format!(
            "SELECT SUM(v) AS total_{number}, (SELECT COUNT(*) FROM {table} WHERE tag = {tag}) AS found FROM facts WHERE id BETWEEN {from} AND {}",
            from + self.sizes.summed as u64
        )
    }

    /// Tables and, as far as `has_indexes`, the indexes of those that will be slower. `rows` makes so many numbers from 1.
    fn schema(&self, rows: impl Fn(usize) -> String, has_indexes: bool) -> String {
        let mut sql = format!(
            "CREATE TABLE facts (id INT PRIMARY KEY, v INT); INSERT INTO facts SELECT n, n FROM {};\n",
            rows(20_000)
        );
        let mut small = |name: &str, count: usize, is_indexed: bool| {
            let filled = rows(count);
            let _ = writeln!(
                sql,
                "CREATE TABLE {name} (tag INT, filler VARCHAR(20)); INSERT INTO {name} SELECT n, 'filler' FROM {filled};"
            );
            if is_indexed {
                let _ = writeln!(sql, "CREATE INDEX {name}_tag ON {name} (tag);");
            }
        };
        small("small_all", self.sizes.small[1], true);
        (0..self.slower).for_each(|number| small(&self.table(number), self.small_rows(number), has_indexes));
        sql
    }

    /// All statements in the order they were asked for, each with its session: requests of one statement, or of ten of one.
    fn asked(&self) -> Vec<(usize, String)> {
        let mut requests: Vec<usize> = (0..self.statements).flat_map(|n| std::iter::repeat_n(n, self.calls)).collect();
        let mut luck: u64 = 42;
        let mut next = || {
            luck = luck.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            luck >> 33
        };
        for i in (1..requests.len()).rev() {
            requests.swap(i, (next() % (i as u64 + 1)) as usize);
        }
        let mut all = Vec::new();
        for (request, number) in requests.into_iter().enumerate() {
            let times = if number < self.in_loops { LOOP } else { 1 };
            for _ in 0..times {
                let trace = format!("/*traceparent='00-{:032x}-b7ad6b7169203331-01'*/", request + 1);
                all.push((request % SESSIONS, format!("{} {trace}", self.statement(number, next()))));
            }
        }
        all
    }

    /// A slow query log of it, one a millisecond.
    fn slow_log(&self) -> String {
        let mut log = String::new();
        for (at, (session, sql)) in self.asked().into_iter().enumerate() {
            let (second, ms) = (at / 1_000, at % 1_000);
            let _ = write!(
                log,
                "# Time: 2026-11-22T10:{:02}:{:02}.{ms:03}000Z\n# User@Host: app[app] @ localhost []  Id: {session}\n\
                 # Query_time: 0.000100  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\nuse shop;\nSET timestamp={};\n{sql};\n",
                second / 60,
                second % 60,
                1_795_341_600 + second
            );
        }
        log
    }

    /// The same as PostgreSQL logs it.
    fn postgres_log(&self) -> String {
        let mut log = String::new();
        for (at, (session, sql)) in self.asked().into_iter().enumerate() {
            let (second, ms) = (at / 1_000, at % 1_000);
            let _ = writeln!(
                log,
                "2026-11-22 10:{:02}:{:02}.{ms:03} UTC [{}] app@postgres LOG:  duration: 0.100 ms  statement: {sql}",
                second / 60,
                second % 60,
                session + 100
            );
        }
        log
    }

    /// Plays the log on both in turn, the first of each round another, and compares.
    fn compared(&self, log: &Path, servers: [&str; 2], dir: &Path) -> Value {
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for round in 0..self.rounds {
            let mut order = [("old", servers[0]), ("new", servers[1])];
            order.rotate_left(round % 2);
            for (name, address) in order {
                let out = dir.join(format!("{name}-{round}"));
                let mut replay = holdup(["replay", "--to", address, "--hash", "--json", "--quiet"]);
                let done = Running::start(replay.arg(log).arg("-o").arg(&out)).finish(Duration::from_secs(300));
                assert_eq!(done.code(), Some(0), "{}", done.stderr);
                groups.entry(name).or_default().push(out.display().to_string());
            }
        }
        let group = |name: &str| format!("{name}={}", groups[name].join(","));
        let both = [group("old"), group("new")];
        let compare = |more: &[&str]| {
            let done = finish(holdup(["compare", "--statements", "--json"]).args(&both).args(more), 120);
            assert_eq!(done.code(), Some(0), "{}", done.stderr);
            done.json()
        };
        let report = compare(&[]);
        let of = |key: &str| report["prediction"][key].as_f64().unwrap();
        // What carries the old mix and a little more does not carry the new one; what carries more does.
        for (carries, answer) in
            [(f64::midpoint(of("old_at_once"), of("new_at_once")), "overload"), (of("new_at_once") * 2.0, "carried")]
        {
            let told = compare(&["--carries", &carries.to_string()]);
            if of("new_at_once") > of("old_at_once") {
                assert_eq!(told["prediction"]["answer"], answer, "{}", told["prediction"]["text"]);
            }
        }
        report
    }

    fn judge(&self, report: &Value) {
        let statements = report["statements"].as_array().unwrap();
        assert_eq!(statements.len(), self.statements);
        let number = |statement: &Value| -> usize {
            let text = statement["text"].as_str().unwrap();
            let rest = text.split("total_").nth(1).unwrap();
            rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        let is = |statement: &Value, verdict: &str| statement["change"]["verdict"] == verdict;
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for statement in statements {
            assert_eq!(statement["differs"], Value::Null, "{statement}");
            match number(statement) < self.slower {
                true if is(statement, "slower") => found.push(number(statement)),
                false if is(statement, "slower") || is(statement, "faster") => others.push(number(statement)),
                _ => {}
            }
        }
        let said = |numbers: &[usize]| -> Vec<String> {
            let of = |n: &usize| statements.iter().find(|s| number(s) == *n).unwrap()["change"].to_string();
            numbers.iter().map(|n| format!("{n}: {}", of(n))).collect()
        };
        let all: Vec<usize> = (0..self.slower).collect();
        println!("found {found:?} of {all:?}, others {others:?}; common {}", report["common"]);
        said(&all).iter().for_each(|line| println!("  {line}"));
        assert!(found.len() * 100 >= self.slower * 95, "{:?}", said(&all));
        assert!(others.len() * 100 <= self.statements, "{:?}", said(&others));
        let first: Vec<usize> = statements.iter().take(self.in_loops).map(number).collect();
        assert!(first.iter().all(|n| *n < self.in_loops), "what runs in loops costs most: {first:?}");
        for statement in &statements[..self.in_loops] {
            assert_eq!(statement["runs"]["per_request"], LOOP as f64, "{statement}");
        }
    }
}

fn log_file(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("mix.log");
    std::fs::write(&path, text).unwrap();
    path
}

fn of_mariadb(mix: Mix) {
    if !mariadb::is_here() {
        return;
    }
    let _alone = alone();
    let mix = Mix { sizes: OF_MARIADB, ..mix };
    let dir = tempfile::tempdir().unwrap();
    let start = |has_indexes| {
        let server = MariaDb::start();
        let schema = mix.schema(|n| format!("(SELECT seq AS n FROM seq_1_to_{n}) AS numbers"), has_indexes);
        server.set_up_with(&format!(
            "CREATE DATABASE shop; USE shop; CREATE USER 'app'@'%' IDENTIFIED BY '{CANARY}'; GRANT ALL ON shop.* TO 'app'@'%'; {schema}"
        ));
        server
    };
    let (old, new) = (start(true), start(false));
    let log = log_file(dir.path(), &mix.slow_log());
    let to = |server: &MariaDb| format!("{}/shop", server.address("app", CANARY));
    mix.judge(&mix.compared(&log, [&to(&old), &to(&new)], dir.path()));
}

fn of_postgresql(mix: Mix) {
    let _alone = alone();
    let mix = Mix { sizes: OF_POSTGRESQL, ..mix };
    let dir = tempfile::tempdir().unwrap();
    let start = |has_indexes| {
        let server = Postgres::start(&[])?;
        server.run("CREATE ROLE app LOGIN");
        server.run(&mix.schema(|n| format!("generate_series(1, {n}) AS numbers(n)"), has_indexes));
        server.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO app");
        server.run("VACUUM ANALYZE");
        Some(server)
    };
    let (Some(old), Some(new)) = (start(true), start(false)) else { return };
    let log = log_file(dir.path(), &mix.postgres_log());
    let to = |server: &Postgres| server.address("app", "postgres");
    mix.judge(&mix.compared(&log, [&to(&old), &to(&new)], dir.path()));
}

#[test]
#[holdup_witness::judged]
fn of_eighty_statements_of_mariadb_four_are_slower() {
    of_mariadb(SOME);
}

#[test]
#[holdup_witness::judged]
fn of_eighty_statements_of_postgresql_four_are_slower() {
    of_postgresql(SOME);
}

#[test]
#[ignore = "four minutes"]
fn all_of_the_upgrade_of_mariadb() {
    of_mariadb(ALL);
}

#[test]
#[ignore = "four minutes"]
fn all_of_the_upgrade_of_postgresql() {
    of_postgresql(ALL);
}
