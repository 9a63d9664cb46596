//! Statements of others that try to have something of theirs run while holdup plans them. Each was planned, and run, before.

use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::catalog::Catalog;
use holdup_recording::{Batch, CoverageState};
use holdup_sql::{Dialect, digest};

use holdup_testing::Running;

use super::watch;
use super::{Server, Which};

/// Everything that the attacker may do: connect, temporary objects, a schema of its own that its statements look into first.
const ACCOUNTS: &str = "CREATE EXTENSION pg_stat_statements; CREATE EXTENSION hypopg;
CREATE TABLE orders (id int PRIMARY KEY, customer int, note text);
INSERT INTO orders SELECT i, i % 400, 'n' FROM generate_series(1, 6000) AS i;
CREATE INDEX orders_customer ON orders (customer); ANALYZE orders;
CREATE ROLE mallory LOGIN; CREATE SCHEMA mine AUTHORIZATION mallory; ALTER ROLE mallory SET search_path = mine, public;
CREATE USER watcher PASSWORD 's3cr3t-canary'; GRANT pg_monitor TO watcher;
ALTER ROLE watcher SET pg_stat_statements.track = none; GRANT SELECT ON orders TO watcher;";

/// What it makes there. Of the function's own runs the log says whose they are.
const TRAPS: &str = "SET ROLE mallory; SET search_path = mine, public;
CREATE FUNCTION mine.evil(which text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
  'BEGIN RAISE LOG ''% was executed by %'', which, current_user; RETURN 1; END';
CREATE VIEW mine.seen AS SELECT mine.evil('view') AS a;
CREATE TABLE mine.indexed (a int); CREATE INDEX ON mine.indexed ((a + mine.evil('index')));
CREATE TABLE mine.part_index (a int); CREATE INDEX ON mine.part_index (a) WHERE mine.evil('predicate') = 1;
CREATE TABLE mine.policed (a int); ALTER TABLE mine.policed ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON mine.policed USING (mine.evil('policy') = 1);
CREATE TABLE mine.parent (a int); CREATE TABLE mine.child (CHECK (a > mine.evil('constraint'))) INHERITS (mine.parent);
CREATE TABLE mine.parts (a int) PARTITION BY LIST ((a + mine.evil('partition')));
CREATE TABLE mine.inner_part (a int) PARTITION BY LIST (a); CREATE TABLE mine.leaf PARTITION OF mine.inner_part FOR VALUES IN (1);
CREATE INDEX ON mine.leaf ((a + mine.evil('leaf')));
CREATE DOMAIN mine.checked AS int CHECK (VALUE > mine.evil('domain') - 5);
CREATE TABLE mine.typed (a mine.checked[]);
CREATE FUNCTION mine.same(a int, b int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN mine.evil(''operator'') = 1; END';
CREATE OPERATOR mine.=== (FUNCTION = mine.same, LEFTARG = int, RIGHTARG = int);
CREATE FUNCTION mine.lower(varchar) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN mine.evil(''overload''); END';
CREATE FUNCTION mine.dotted(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN mine.evil(''attribute''); END';
CREATE TYPE mine.pair AS (a int);
CREATE FUNCTION mine.paired(int) RETURNS mine.pair IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN row(mine.evil(''cast'')); END';
CREATE CAST (int AS mine.pair) WITH FUNCTION mine.paired(int);
GRANT USAGE ON SCHEMA mine TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA mine TO PUBLIC;";

/// Extended statistics of expressions, from 14 on.
const STATISTICS: &str = "SET ROLE mallory; CREATE TABLE mine.counted (a int);
CREATE STATISTICS mine.s ON (a + mine.evil('statistics')) FROM mine.counted; GRANT SELECT ON mine.counted TO PUBLIC;";

/// By a name for the test's words: what the attacker runs, and leaves to be seen.
const ATTACKS: &[&str] = &[
    "SELECT a FROM seen WHERE a > 0",
    "SELECT a FROM indexed WHERE a = 471147",
    "SELECT a FROM part_index WHERE a = 471147",
    "SELECT a FROM policed WHERE a = 471147",
    "SELECT a FROM parent WHERE a = 471147",
    "SELECT a FROM parts WHERE a = 471147",
    "SELECT a FROM inner_part WHERE a = 1",
    "SELECT '{1}'::mine.checked[]",
    "SELECT '{1}'::postgres.mine.checked[]",
    "SELECT '(\"{1}\")'::mine.typed",
    "SELECT a FROM typed WHERE a = '{1}'",
    "SELECT note FROM orders WHERE 1 === 1",
    "SELECT note FROM orders WHERE lower('x'::varchar) = 'x'",
    "SELECT note FROM orders WHERE (1).dotted = 1",
    "SELECT note FROM orders WHERE 1::mine.pair IS NOT NULL",
    "SELECT g.pg_sleep FROM generate_series(1, 2) AS g",
    "SELECT (TABLE mine.seen) FROM orders",
    "SELECT 1 FROM orders AS mine WHERE '{1}'::mine.checked[] IS NOT NULL",
];

/// Opens a session of the attacker's that has run `sql` last.
fn left(server: &Server, sql: &str) -> Running {
    server.begin_as("mallory", &format!("\\set ON_ERROR_STOP 0\n{sql}\n\\! sleep 60\n"))
}

fn nobodys_statement_runs(which: Which) {
    let options = &[("shared_preload_libraries", "pg_stat_statements"), ("autovacuum", "off")];
    let Some(server) = Server::of(which, options) else { return };
    let has = server.run("SELECT count(*) FROM pg_available_extensions WHERE name = 'hypopg'") == "1";
    server.run(&if has { ACCOUNTS.to_owned() } else { ACCOUNTS.replace("CREATE EXTENSION hypopg;", "") });
    server.run(TRAPS);
    if server.major() >= 14 {
        server.run(STATISTICS);
        server.run("GRANT pg_read_all_data TO watcher");
    }
    let mut sessions: Vec<Running> = ATTACKS.iter().map(|sql| left(&server, &format!("{sql};"))).collect();
    sessions.push(left(&server, "SELECT a FROM counted WHERE a = 471147;"));
    // Temporary objects are there for as long as their session is, for all who know its number.
    let temporary = "CREATE VIEW pg_temp.v AS SELECT mine.evil('temporary view') AS a;
        SELECT format('SELECT a FROM %s.v WHERE a > 0', pg_my_temp_schema()::regnamespace) \\gexec";
    sessions.push(left(&server, temporary));
    let temporary = "CREATE TYPE pg_temp.pair AS (a int);
        CREATE FUNCTION pg_temp.pair(int) RETURNS pg_temp.pair IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN row(mine.evil(''temporary cast'')); END';
        CREATE CAST (int AS pg_temp.pair) WITH FUNCTION pg_temp.pair(int);
        SELECT format('SELECT note FROM orders WHERE 1::%s.pair IS NOT NULL', pg_my_temp_schema()::regnamespace) \\gexec";
    sessions.push(left(&server, temporary));
    let continued = "E'SELECT E''a'' --\\r''x\\\\'' || '' || evil($$continuation$$)::text --'''";
    sessions.push(left(&server, &format!("SELECT {continued} \\gexec")));

    let innocent = "SELECT note FROM orders WHERE customer = 471147";
    sessions.push(left(&server, &format!("{innocent};")));
    let shown = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'mallory' AND state = 'idle' AND query LIKE 'SELECT%' \
         AND query NOT LIKE 'SELECT format%' AND query NOT LIKE 'SELECT E''SELECT%'";
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.run(shown) != sessions.len().to_string() {
        assert!(Instant::now() < deadline, "not all are there: {}", server.run(shown));
        sleep(Duration::from_millis(50));
    }
    for query in ["plans=explain", "plans=analyze"] {
        let mut collector = watch(&server.address("watcher", query));
        collector.probe().expect("it can be watched");
        let mut planned = 0;
        for _ in 0..=sessions.len() {
            let mut batch = Batch::default();
            collector.sample(&mut batch).expect("a sample");
            let is_attack = |sql: &&str| batch.plans.iter().any(|plan| plan.digest == digest(sql, Dialect::PostgreSql));
            // One of them means a function of the server's own to us, and is planned with that.
            assert_eq!(ATTACKS.iter().find(|sql| is_attack(sql) && !sql.contains("lower")), None, "{query}");
            planned += batch.plans.iter().filter(|plan| plan.digest == digest(innocent, Dialect::PostgreSql)).count();
        }
        assert!(planned > 0, "what harms nobody is planned");
        let log = std::fs::read_to_string(server.log()).expect("its log");
        let mut ran: Vec<&str> = log.lines().filter(|line| line.contains("executed by watcher")).collect();
        ran.sort_unstable();
        ran.dedup_by_key(|line| line.split("LOG:").nth(1));
        assert!(ran.is_empty(), "{query}: {ran:#?}");
        assert!(log.contains("index was executed by mallory"), "the traps work");
    }
}

#[test]
fn no_users_function_runs_as_holdup_on_13() {
    nobodys_statement_runs(Which::Fetched(13));
}

#[test]
fn no_users_function_runs_as_holdup_on_the_systems_version() {
    nobodys_statement_runs(Which::System);
}

#[test]
fn no_users_function_runs_as_holdup_on_18() {
    nobodys_statement_runs(Which::Fetched(18));
}

/// Out of a log, by an account that may run programs of the server's host.
#[test]
fn advice_runs_no_function_of_a_logs_statement() {
    let options = &[("shared_preload_libraries", "pg_stat_statements")];
    let Some(server) = Server::of(Which::System, options) else { return };
    if server.run("SELECT count(*) FROM pg_available_extensions WHERE name = 'hypopg'") != "1" {
        assert!(std::env::var_os("CI").is_none(), "hypopg is missing; run: cargo xtask setup");
        return eprintln!("skipped: hypopg is not installed; run: cargo xtask setup");
    }
    server.run(ACCOUNTS);
    let out = server.folder().join("data").join("ran");
    server.run(&format!(
        "SET ROLE mallory; CREATE FUNCTION mine.ran() RETURNS int LANGUAGE plpgsql AS
           'BEGIN IF current_user <> ''mallory'' THEN COPY (SELECT current_user) TO PROGRAM ''cat > {}''; END IF; RETURN 1; END';
         CREATE FUNCTION mine.evil() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN mine.ran(); END';
         CREATE TABLE mine.indexed (customer int); CREATE INDEX ON mine.indexed ((customer + mine.evil()));
         RESET ROLE; ALTER DATABASE postgres SET search_path = mine, public;",
        out.display()
    ));
    server.run("GRANT pg_execute_server_program, pg_read_all_data TO watcher");
    let catalog = Catalog::connect(&server.address("watcher", "")).expect("it connects");
    assert_eq!(catalog.cannot_try().expect("it answers"), None);
    let tried =
        |sql: &str, table: &str| catalog.try_index((sql, 1), table, &["customer".to_owned()]).expect("it answers");
    for (sql, table) in [
        ("SELECT note FROM orders WHERE customer = $1 AND mine.evil() = 1", "orders"),
        ("SELECT note FROM orders WHERE customer = $1 AND evil() = 1", "orders"),
        ("SELECT customer FROM indexed WHERE customer = $1", "indexed"),
        ("SELECT customer FROM mine.indexed WHERE customer = $1", "mine.indexed"),
    ] {
        let trial = tried(sql, table);
        assert!(!out.exists(), "it ran as {:?}: {sql}", std::fs::read_to_string(&out));
        assert_eq!(trial, None, "{sql}");
    }
    server.run("DROP INDEX orders_customer");
    assert!(tried("SELECT note FROM orders WHERE customer = $1", "orders").is_some_and(|trial| trial.is_used));
    let boss = Catalog::connect(&server.address("boss", "")).expect("it connects");
    assert!(boss.cannot_try().expect("it answers").is_some_and(|why| why.contains("superuser")));
    let innocent = ("SELECT note FROM orders WHERE customer = $1", 1);
    assert_eq!(boss.try_index(innocent, "orders", &["customer".to_owned()]).expect("it answers"), None);
    let coverage = watch(&server.address("boss", "plans=explain")).probe().expect("it can be watched");
    let plans = coverage.iter().find(|part| part.source.ends_with(" plans")).expect("an entry");
    assert_eq!(
        (plans.state, plans.why.as_ref().is_some_and(|why| why.contains("superuser"))),
        (CoverageState::Absent, true)
    );
}
