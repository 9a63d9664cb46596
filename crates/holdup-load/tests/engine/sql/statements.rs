//! What is executed is what the scenario says, and what comes back is what is checked and captured.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use holdup_sql::Dialect;

use super::{Database, await_nobody, connections, count, read, run};
use crate::play::play;

pub fn all<D: Database + Sync>(server: &D) {
    sessions(server);
    operations(server);
    feeders(server);
    checks(server);
    transactions(server);
    pools(server);
    new_connections(server);
    traced(server);
}

/// Of a server's text for a dialect.
fn text<D: Database>(mysql: &str, postgres: &str) -> String {
    if D::IS_MYSQL { mysql.to_owned() } else { postgres.to_owned() }
}

/// A session whose later statements take what its earlier ones returned, as text and as parameters.
fn sessions<D: Database>(server: &D) {
    let mut boss = server.boss();
    boss.query("CREATE TABLE seen (a int, b varchar(100), c varchar(100))").done();
    let played = run(
        server,
        "
load: {users: 3, iterations: 30, duration: 20s}
steps:
  - {name: pick, query: 'SELECT id, note FROM t WHERE id = ?', params: ['${random(1, 1000)}'], capture: {id: column id, note: column note, found: rows}}
  - {name: text, query: 'SELECT id AS again, NULL AS nothing FROM t WHERE id = ${id}', capture: {again: column again}, check: [\"column again == '${id}'\", \"rows == '${found}'\"]}
  - if: ${id} == ${again}
    steps:
      - {name: keep, query: 'INSERT INTO seen VALUES (?, ?, ?)', params: ['${id}', '${note}', \"it's \\\\ ? \\\"${number()}\\\"\"]}
  - {name: none, query: 'SELECT id FROM t WHERE id = -1', check: rows == 0}
",
    );
    for operation in ["pick", "text", "keep", "none"] {
        assert_eq!(count(&played, operation, "ok"), 30, "{operation}: {:?}", played.outcomes());
    }
    let kept = boss.query("SELECT COUNT(*), COUNT(DISTINCT c), MIN(c) FROM seen WHERE b = CONCAT('note ', a)");
    let row = kept.row();
    assert_eq!(row[..2], [Some("30"), Some("30")], "rows with different parameters");
    assert!(row[2].unwrap().starts_with(r#"it's \ ? ""#), "a parameter is data, whatever is in it: {row:?}");
    boss.query("DROP TABLE seen").done();
}

/// Operations by weight at a rate, as text and prepared, of whose names nobody thought.
fn operations<D: Database>(server: &D) {
    let question = "SELECT note, '?' FROM t WHERE id = ? AND note <> '?'";
    let played = run(
        server,
        &format!(
            "
load: {{rate: 200, duration: 1s, connections: 5}}
operations:
  - {{query: \"SELECT 1, 'canary'\", weight: 3}}
  - {{query: \"{question}\", params: [7]}}
"
        ),
    );
    played.all("ok");
    let names: Vec<&str> = played.summary.operations.iter().map(|o| o.operation.as_str()).collect();
    let expected = if D::IS_MYSQL {
        ["SELECT ?+", "SELECT note, ? FROM t WHERE id = ? AND note != ?"]
    } else {
        ["SELECT ?, ?", "SELECT note, ? FROM t WHERE id = ? AND note <> ?"]
    };
    assert_eq!(names, expected);
    let offered: Vec<u64> = played.summary.operations.iter().map(|o| o.offered).collect();
    assert_eq!(offered, [150, 50]);
    // What was received is what the rows say.
    assert!(played.rows.iter().all(|row| row.response_bytes > 20 && row.status.is_none()), "{:?}", played.rows[0]);
    // It connects when it has to, and what waited for that says so.
    let connecting: Vec<_> = played.rows.iter().filter(|row| row.connect_ns > 0).collect();
    assert!((1..=5).contains(&connecting.len()), "{} connected", connecting.len());
    for row in connecting {
        let from_ready = row.sent_at.unwrap() - row.ready_at.unwrap();
        assert!(row.connect_ns <= from_ready && row.connect_ns > 50_000, "a login takes round trips: {row:?}");
    }
}

/// Each statement and each transaction logs in and says goodbye.
fn new_connections<D: Database>(server: &D) {
    let logins = || -> (u64, u64) {
        if !D::IS_MYSQL {
            return (0, 0);
        }
        let mut boss = server.boss();
        let mut seen = |name: &str| -> u64 {
            let status = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME";
            boss.value(&format!("{status} = '{name}'")).parse().unwrap()
        };
        (seen("CONNECTIONS"), seen("ABORTED_CLIENTS"))
    };
    let before = logins();
    let played = run(
        server,
        "
load: {rate: 100, duration: 400ms, connections: 4}
http: {keep_alive: false}
operations:
  - {name: one, query: 'SELECT note FROM t WHERE id = ?', params: ['${random(1, 1000)}'], check: rows == 1}
  - {name: two, transaction: [{query: SELECT 1}, {query: SELECT 2}]}
",
    );
    played.all("ok");
    assert!(played.rows.len() == 40 && played.rows.iter().all(|row| row.connect_ns > 0), "each logged in");
    await_nobody(server);
    let after = logins();
    // The check before the load and the clients of this test connect as well, and may go without a word.
    assert!(!D::IS_MYSQL || after.0 - before.0 >= 40, "{before:?} {after:?}");
    assert!(after.1 - before.1 < 10, "holdup says goodbye: {before:?} {after:?}");
}

fn feeders<D: Database>(server: &D) {
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("ids.csv");
    std::fs::write(&csv, "id,note\n1,note 1\n2,note 2\n3,wrong\n").unwrap();
    let played = run(
        server,
        &format!(
            "
load: {{rate: 120, duration: 500ms, of: sessions, connections: 5}}
feeders: {{ids: {{csv: {}}}}}
steps:
  - {{name: fed, query: 'SELECT note FROM t WHERE id = ?', params: ['${{ids.id}}'], check: \"column note == '${{ids.note}}'\"}}
",
            csv.display()
        ),
    );
    assert_eq!((count(&played, "fed", "ok"), count(&played, "fed", "check_failed")), (40, 20));
    let dry = run(
        server,
        "
load: {rate: 100, duration: 500ms, of: sessions}
feeders: {ids: {list: [1, 2], order: unique}}
steps:
  - {name: fed, query: 'SELECT ${ids.value}'}
",
    );
    assert_eq!((count(&dry, "fed", "ok"), count(&dry, "fed", "feeder_dry")), (2, 48));
}

/// Each kind of failure is counted as what it is, and the connection goes on being used.
fn checks<D: Database>(server: &D) {
    let scenario = read(
        server,
        "
load: {users: 1, iterations: 10, duration: 20s}
steps:
  - {name: rows, query: 'SELECT id FROM t WHERE id < 4', check: [rows == 3, rows > 0, column id == 1]}
  - {name: few, query: SELECT id FROM t WHERE id < 4, check: rows > 3}
  - {name: missed, query: SELECT id FROM t WHERE id < 0, capture: {x: column id}, on_failure: go_on}
  - {name: defaulted, query: SELECT id FROM t WHERE id < 0, capture: {y: {column: id, default: none}}}
  - {name: unset, query: 'SELECT ${x}'}
  - {name: wrong, query: SELEC 1}
  - {name: counted, query: 'SELECT id FROM t WHERE id = ?', params: [1, 2]}
  - {name: late, query: 'INSERT INTO t VALUES (?, ?)', params: [1, canary]}
  - {name: last, query: SELECT 1}
",
    );
    let before = logins::<D>(server);
    let played = play(&scenario, None);
    for (operation, outcome) in [
        ("rows", "ok"),
        ("few", "check_failed"),
        ("missed", "capture_missed"),
        ("defaulted", "ok"),
        ("unset", "template_failed"),
        ("wrong", "statement_failed"),
        ("counted", "statement_failed"),
        ("late", "statement_failed"),
        ("last", "ok"),
    ] {
        assert_eq!(count(&played, operation, outcome), 10, "{operation}: {:?}", played.outcomes());
    }
    // One to see that it can be done, one for the user. (Of PostgreSQL it is not known so easily.)
    if let (Some(before), Some(after)) = (before, logins::<D>(server)) {
        assert_eq!(after - before, 3, "the pool's connection is used again after failures");
    }
    // What the server says of it first, without values.
    let said: Vec<String> =
        played.summary.refusals.iter().map(|(of, how, said)| format!("{of} {how} {said}")).collect();
    let codes = if D::IS_MYSQL { ["1064", "07001", "1062"] } else { ["42601", "08P01", "23505"] };
    for (operation, code) in ["wrong", "counted", "late"].into_iter().zip(codes) {
        let expected = format!("{operation} statement_failed {code} ");
        assert!(said.iter().any(|said| said.starts_with(&expected)), "{expected}: {said:?}");
    }
    assert!(said.len() == 3 && !said.concat().contains("canary"), "{said:?}");
}

/// Logins so far, this one among them.
fn logins<D: Database>(server: &D) -> Option<u64> {
    D::IS_MYSQL.then(|| server.boss().query("SHOW GLOBAL STATUS LIKE 'Connections'").row()[1].unwrap().parse().unwrap())
}

fn transactions<D: Database>(server: &D) {
    let mut boss = server.boss();
    boss.query("CREATE TABLE account (id int PRIMARY KEY, amount int NOT NULL)").done();
    boss.query("INSERT INTO account VALUES (1, 1000), (2, 0), (3, 0)").done();
    let played = run(
        server,
        "
load: {users: 4, iterations: 80, duration: 30s}
steps:
  - name: move
    transaction:
      - {query: 'UPDATE account SET amount = amount - 1 WHERE id = ?', params: [1]}
      - query: UPDATE account SET amount = amount + 1 WHERE id = 2
      - {query: SELECT amount AS left_over FROM account WHERE id = 1}
    capture: {left: column left_over}
    check: [rows == 1, column left_over >= 0]
  - name: fails
    transaction:
      - {query: 'UPDATE account SET amount = amount + 1000 WHERE id = ?', params: [3]}
      - query: INSERT INTO account VALUES (1, 5)
      - query: UPDATE account SET amount = amount + 1000 WHERE id = 3
  - {name: after, query: 'SELECT amount FROM account WHERE id = 3', check: column amount == 0}
",
    );
    assert_eq!(count(&played, "move", "ok"), 80, "{:?} {:?}", played.outcomes(), played.summary.refusals);
    assert_eq!(count(&played, "fails", "statement_failed"), 80, "{:?}", played.outcomes());
    assert_eq!(count(&played, "after", "ok"), 80, "the failed ones were rolled back: {:?}", played.outcomes());
    let amounts = boss.query("SELECT SUM(amount), MIN(amount), MAX(amount) FROM account");
    assert_eq!(amounts.row(), [Some("1000"), Some("0"), Some("920")]);
    // Which of its statements it was.
    let (_, _, said) = played.summary.refusals.iter().find(|(of, ..)| of == "fails").unwrap();
    assert!(said.starts_with("statement 2: "), "{said}");
    boss.query("DROP TABLE account").done();
}

/// The server sees as many connections as the scenario says, in either model.
fn pools<D: Database + Sync>(server: &D) {
    let sleep = text::<D>("SELECT SLEEP(0.02)", "SELECT pg_sleep(0.02)");
    for load in ["rate: 300, duration: 1s, connections: 4", "users: 4, duration: 1s"] {
        let over = AtomicBool::new(false);
        await_nobody(server);
        let mut seen = thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let (mut boss, mut seen) = (server.boss(), Vec::new());
                while !over.load(Ordering::Relaxed) {
                    seen.push(connections::<D>(&mut boss));
                    thread::sleep(Duration::from_millis(5));
                }
                seen
            });
            let operations = format!("operations: [{{name: op, query: '{sleep}'}}]");
            play(&read(server, &format!("load: {{{load}}}\n{operations}")), None).all("ok");
            over.store(true, Ordering::Relaxed);
            watcher.join().unwrap()
        });
        // The one that saw that it can be done may still be on its way out.
        seen.sort_unstable();
        assert_eq!(seen[seen.len() / 2], 4, "{load}: {seen:?}");
        assert!(seen.iter().all(|n| *n <= 5), "{load}: {seen:?}");
    }
}

/// A statement that is sent as text leads with the id that its row has; one that is kept prepared is found by its text, and has none.
fn traced<D: Database>(server: &D) {
    let mut boss = server.boss();
    boss.query("CREATE TABLE traced (q varchar(500))").done();
    let own = "SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
    let query = format!("INSERT INTO traced {}", text::<D>(own, "SELECT current_query()"));
    let operations =
        format!("operations: [{{name: sent, query: \"{query}\"}}, {{name: kept, query: \"{query}\", prepared: true}}]");
    let played =
        run(server, &format!("load: {{rate: 50, duration: 400ms, connections: 3, timeout: 30s}}\n{operations}"));
    played.all("ok");
    let all = text::<D>("GROUP_CONCAT(q SEPARATOR '\\n')", "string_agg(q, chr(10))");
    let all = boss.value(&format!("SELECT {all} FROM traced"));
    let dialect = if D::IS_MYSQL { Dialect::MySql } else { Dialect::PostgreSql };
    let seen: BTreeSet<String> = all.lines().filter_map(|q| holdup_sql::trace_id(q, dialect)).collect();
    let rows = |operation: &str| -> BTreeSet<String> {
        played.rows.iter().filter(|r| r.operation == operation).filter_map(|r| r.trace_id.clone()).collect()
    };
    assert_eq!((rows("sent").len(), rows("kept").len(), all.lines().count()), (10, 0, 20), "{all}");
    assert_eq!(rows("sent"), seen, "{all}");
    boss.query("DROP TABLE traced").done();
}

/// A result of a gigabyte is counted and not kept.
pub fn gigabyte<D: Database>(server: &D) {
    let query = if D::IS_MYSQL {
        "SELECT REPEAT(0x78, 1000000) AS body FROM seq_1_to_1000"
    } else {
        "SELECT repeat('x', 1000000) AS body FROM generate_series(1, 1000)"
    };
    run(server, "load: {users: 1, iterations: 10, duration: 9s}\nsteps: [query: SELECT 1]").all("ok");
    let before = peak_bytes();
    let steps = format!("steps:\n  - {{name: all, query: \"{query}\", check: rows == 1000}}");
    let load = "load: {users: 1, iterations: 1, duration: 60s, timeout: 120s}";
    let played = run(server, &format!("{load}\n{steps}"));
    played.all("ok");
    assert!(played.rows[0].response_bytes > 1_000_000_000, "{:?}", played.rows);
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < 12_000_000, "{grown} bytes more than before");
    // Above the limit it is given up, and the next has a new connection.
    let load = "http: {max_response: 5MB}\nload: {users: 1, iterations: 2, duration: 60s}";
    let steps = format!("steps:\n  - {{name: much, query: \"{query}\"}}\n  - {{name: little, query: SELECT 1}}");
    let played = run(server, &format!("{load}\n{steps}"));
    assert_eq!((count(&played, "much", "response_too_large"), count(&played, "little", "ok")), (2, 2));
}

/// The most memory the process ever had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}
