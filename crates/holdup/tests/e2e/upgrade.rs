//! An upgrade that makes a few statements slower: the same server twice, the second without the indexes of some. Both play the same
//! mix, in rounds, and `holdup replay` has to find those, the ones in loops first, hardly any other, and what became of their plans.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdup_testing::{Postgres, Which};
use serde_json::Value;

use crate::mariadb::{self, CANARY, MariaDb, USER};
use crate::program::{Running, finish, holdup, manifest, send};

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

/// What CI plays; all of it is played by hand: `cargo test --profile=ci -p holdup --test e2e -- --ignored all_of_the_upgrade`.
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

    /// Plays the log on both in turn, and compares: what holdup says of it, and where it is.
    fn played(&self, log: &Path, servers: [&str; 2], more: &[&str], dir: &Path) -> (Value, PathBuf) {
        let out = dir.join("upgrade");
        let mut replay = holdup(["replay", "--to", servers[0], "--to", servers[1], "--json", "--quiet"]);
        replay.args(["--rounds", &self.rounds.to_string()]).args(more).arg(log).arg("-o").arg(&out);
        let done = Running::start(&mut replay).finish(Duration::from_secs(1_200));
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
        (done.json(), out)
    }

    /// The same, and whether the new server carries it.
    fn compared(&self, log: &Path, servers: [&str; 2], dir: &Path) -> Value {
        let (report, out) = self.played(log, servers, &["--hash"], dir);
        let compare = |more: &[&str]| {
            let done = finish(holdup(["compare", "--statements", "--json"]).arg(&out).args(more), 120);
            assert_eq!(done.code(), Some(0), "{}", done.stderr);
            done.json()
        };
        assert_eq!(compare(&[]), report, "from disk it is the same");
        assert_eq!((report["old"].as_str(), report["rounds"].as_u64()), (Some("old"), Some(self.rounds as u64)));
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
        assert!(others.len() <= self.statements.div_ceil(100), "{:?}", said(&others));
        let first: Vec<usize> = statements.iter().take(self.in_loops).map(number).collect();
        assert!(first.iter().all(|n| *n < self.in_loops), "what runs in loops costs most: {first:?}");
        for statement in &statements[..self.in_loops] {
            assert_eq!(statement["runs"]["per_request"], LOOP as f64, "{statement}");
        }
    }
}

/// Which of a mix's statements it is.
fn number(statement: &Value) -> usize {
    let text = statement["text"].as_str().unwrap();
    let rest = text.split("total_").nth(1).unwrap();
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

fn log_file(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("mix.log");
    std::fs::write(&path, text).unwrap();
    path
}

/// Two MariaDBs, the second without the indexes.
fn mariadbs(mix: &Mix) -> [MariaDb; 2] {
    [true, false].map(|has_indexes| {
        let server = mariadb::start();
        let schema = mix.schema(|n| format!("(SELECT seq AS n FROM seq_1_to_{n}) AS numbers"), has_indexes);
        server.run(&format!(
            "CREATE DATABASE shop; USE shop; CREATE USER 'app'@'%' IDENTIFIED BY '{CANARY}'; GRANT ALL ON shop.* TO 'app'@'%'; {schema}"
        ));
        server
    })
}

/// The same of PostgreSQL.
fn postgresqls(mix: &Mix) -> Option<[Postgres; 2]> {
    let start = |has_indexes| {
        let server = Postgres::of(Which::System, &[])?;
        server.run("CREATE ROLE app LOGIN");
        server.run(&mix.schema(|n| format!("generate_series(1, {n}) AS numbers(n)"), has_indexes));
        server.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO app");
        server.run("VACUUM ANALYZE");
        Some(server)
    };
    Some([start(true)?, start(false)?])
}

fn of_mariadb(mix: Mix) {
    if !mariadb::is_here() {
        return;
    }
    let mix = Mix { sizes: OF_MARIADB, ..mix };
    let dir = tempfile::tempdir().unwrap();
    let servers = mariadbs(&mix);
    let log = log_file(dir.path(), &mix.slow_log());
    let [old, new] = servers.each_ref().map(|server| format!("{}/shop", server.address("app", CANARY)));
    mix.judge(&mix.compared(&log, [&old, &new], dir.path()));
}

fn of_postgresql(mix: Mix) {
    let mix = Mix { sizes: OF_POSTGRESQL, ..mix };
    let dir = tempfile::tempdir().unwrap();
    let Some(servers) = postgresqls(&mix) else { return };
    let log = log_file(dir.path(), &mix.postgres_log());
    let [old, new] = servers.each_ref().map(|server| server.url("app", "postgres"));
    mix.judge(&mix.compared(&log, [&old, &new], dir.path()));
}

#[test]
#[ignore = "full: two servers under load for a minute"]
fn of_eighty_statements_of_mariadb_four_are_slower() {
    of_mariadb(SOME);
}

#[test]
#[ignore = "full: two servers under load for a minute"]
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

/// A few statements often: each is seen while it runs.
const FEW: Mix = Mix { statements: 12, slower: 2, in_loops: 0, calls: 500, rounds: 1, ..SOME };

/// Of what lost its index the plan is another one, of nothing else.
fn has_other_plans(mix: &Mix, log: &Path, servers: [&str; 2], watched: [String; 2], dir: &Path) {
    let [old, new] = watched;
    let more = ["--watch", &old, "--watch", &new, "--interval", "200ms", "--order-seed", "1"];
    let (report, out) = mix.played(log, servers, &more, dir);
    let statements = report["statements"].as_array().unwrap();
    let known: Vec<_> = statements.iter().filter(|statement| !statement["plans"].is_null()).collect();
    assert!(known.len() * 2 > statements.len(), "{report:#}");
    for statement in known {
        let (number, plans) = (number(statement), &statement["plans"]);
        assert_eq!(plans["is_other"], number < mix.slower, "{statement:#}");
        if number < mix.slower {
            let index = format!("small_{number}_tag");
            let has_index = |key: &str| plans[key].as_str().unwrap().contains(&index);
            assert!(has_index("old") && !has_index("new"), "{statement:#}");
        }
    }
    let is_told = |statement: &&Value| number(statement) < mix.slower && !statement["plans"].is_null();
    assert_eq!(statements.iter().filter(is_told).count(), mix.slower, "{report:#}");
    let told = finish(holdup(["compare", "--statements", "--all"]).arg(&out), 120);
    assert!(told.stdout.contains("plan changed: "), "{}", told.stdout);
}

#[test]
fn a_plan_of_mariadb_that_is_another_one_is_told() {
    if !mariadb::is_here() {
        return;
    }
    let mix = Mix { sizes: OF_MARIADB, ..FEW };
    let dir = tempfile::tempdir().unwrap();
    let servers = mariadbs(&mix);
    for server in &servers {
        server.run(&format!(
            "GRANT SELECT, SHOW VIEW ON shop.* TO '{USER}'@'%';
             UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME LIKE 'events_statements%'"
        ));
    }
    let log = log_file(dir.path(), &mix.slow_log());
    let [old, new] = servers.each_ref().map(|server| format!("{}/shop", server.address("app", CANARY)));
    let watched = ["old", "new"].into_iter().zip(&servers);
    let watched: Vec<String> =
        watched.map(|(name, server)| format!("{name}={}?plans=explain", server.address(USER, CANARY))).collect();
    has_other_plans(&mix, &log, [&old, &new], watched.try_into().unwrap(), dir.path());
}

#[test]
fn a_plan_of_postgresql_that_is_another_one_is_told() {
    let mix = Mix { sizes: OF_POSTGRESQL, ..FEW };
    let dir = tempfile::tempdir().unwrap();
    let Some(servers) = postgresqls(&mix) else { return };
    for server in &servers {
        server.run("GRANT pg_monitor TO app");
    }
    let log = log_file(dir.path(), &mix.postgres_log());
    let [old, new] = servers.each_ref().map(|server| server.url("app", "postgres"));
    let watched = [format!("old={old}?plans=explain"), format!("new={new}?plans=explain")];
    has_other_plans(&mix, &log, [&old, &new], watched, dir.path());
}

/// One server in both places: nothing is slower there, whatever is broken off.
#[test]
fn what_was_played_is_kept_and_no_password_with_it() {
    if !mariadb::is_here() {
        return;
    }
    let mix = Mix { statements: 20, slower: 0, in_loops: 0, calls: 60, rounds: 50, sizes: OF_MARIADB };
    let dir = tempfile::tempdir().unwrap();
    let [server, _] = mariadbs(&mix);
    let log = log_file(dir.path(), &mix.slow_log());
    let address = format!("{}/shop", server.address("app", CANARY));
    let without = address.replace(&format!(":{CANARY}@"), "@");
    let to = dir.path().join("runs");
    let replay = |servers: [&str; 2]| {
        let mut command = holdup(["replay", "--json", "--rounds", "50", "--to", servers[0], "--to", servers[1]]);
        command.env("HOLDUP_MYSQL_PASSWORD_STAGING", CANARY).env("HOLDUP_MYSQL_PASSWORD", "wr0ng");
        command.arg(&log).arg("-o").arg(&to);
        command
    };
    // The second is tried before the first has played anything.
    let refused = finish(replay([&address, &without]), 60);
    assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("new: ") && !to.exists(), "{}", refused.stderr);
    let staging = format!("staging={without}");
    let running = Running::start(&mut replay([&address, &staging]));
    let turns = || -> Vec<Value> {
        let text = std::fs::read_to_string(to.join("interleave.json")).unwrap_or_default();
        serde_json::from_str(&text).map_or_else(|_| Vec::new(), |v: Value| v["order"].as_array().unwrap().clone())
    };
    while turns().len() < 3 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let line = std::fs::read(format!("/proc/{}/cmdline", running.pid())).unwrap();
    send(running.pid(), libc::SIGINT);
    let done = running.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(130), "{}", done.stderr);
    let order = turns();
    let rounds = order.len() / 2;
    let report = done.json();
    assert_eq!((&report["old"], &report["new"]), (&"old".into(), &"staging".into()));
    assert_eq!(report["rounds"], rounds, "{order:?}");
    let slower = |s: &&Value| s["change"]["verdict"] == "slower" && s["change"]["ratio"].as_f64() > Some(3.0);
    assert_eq!(report["statements"].as_array().unwrap().iter().filter(slower).count(), 0, "{report:#}");
    for turn in &order {
        assert_eq!(manifest(&to.join(turn["path"].as_str().unwrap()))["state"], "complete");
    }
    let bytes = |folder: &Path| -> Vec<u8> {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files.flat_map(|file| std::fs::read(file).unwrap()).collect()
    };
    let mut all = [line, done.stderr.into_bytes(), bytes(&to)].concat();
    for entry in std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        all.extend(bytes(&entry));
    }
    assert!(!all.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()));
    // Again from disk, with one recording of a round that the other has not.
    let again = finish(holdup(["compare", "--statements", "--json"]).arg(&to), 120);
    assert_eq!((again.code(), &again.json()["rounds"]), (Some(0), &rounds.into()), "{}", again.stderr);
}
