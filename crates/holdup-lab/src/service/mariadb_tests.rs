//! The service and its noisy neighbour on a real MariaDB of their own: private folder, private port, gone with the test.

use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use holdup_protocol::database::Address;
use holdup_testing::MariaDb;

use crate::service::mysql;
use crate::service::service_tests::{Client, metric, start};
use crate::service::{NoisyNeighbourOptions, run_noisy_neighbour};

#[derive(Parser)]
struct NoisyNeighbourLine {
    #[command(flatten)]
    options: NoisyNeighbourOptions,
}

/// A server with the table that is locked.
struct Database(MariaDb);

impl Database {
    fn start() -> Option<Self> {
        let server = MariaDb::new()?.start();
        server.run(
            "CREATE DATABASE jobs; CREATE TABLE jobs.counter (id INT PRIMARY KEY, n INT);
             INSERT INTO jobs.counter VALUES (1, 0), (2, 0)",
        );
        Some(Self(server))
    }

    fn root(&self) -> mysql::Client {
        let address = Address::parse(&format!("mysql://root@127.0.0.1:{}", self.0.port)).expect("an address");
        mysql::Client::connect(&address).expect("a login")
    }

    fn address(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/jobs", self.0.port)
    }
}

/// The first value of each row of a statement.
fn numbers(client: &mut mysql::Client, sql: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let number = |value: Option<&[u8]>| String::from_utf8_lossy(value.expect("no NULL")).parse().expect("a number");
    client.run(sql, &mut |_, values| found.push(number(values[0]))).expect(sql);
    found
}

#[test]
fn a_lock_that_the_hog_holds_is_waited_for_and_a_killed_connection_comes_back() {
    let Some(database) = Database::start() else { return };
    let route = "/count=UPDATE counter SET n = n + 1 WHERE id = {id}; SELECT id, n FROM counter WHERE id = {id}";
    let server = start(&["--database", &database.address(), "--pool", "2", "--rows", "2", "--route", route]);
    let mut client = Client::connect(server.listen);
    assert_eq!(client.get("/count?id=2"), (200, "{\"id\":2,\"rows\":[{\"id\":\"2\",\"n\":\"1\"}]}".to_owned()));

    // Held for most of its life, by steps: were SLEEP not the client's, the transaction would end at once.
    let script = "BEGIN; UPDATE counter SET n = n + 100 WHERE id = 1; SLEEP 2500ms; COMMIT; SLEEP 30s";
    let line = ["hog", "--database", &database.address(), "--script", script, "--for", "4s"];
    let options = NoisyNeighbourLine::try_parse_from(line).expect("good options").options;
    let noise = thread::spawn(move || run_noisy_neighbour(options));
    let mut root = database.root();
    let deadline = Instant::now() + Duration::from_secs(120);
    let open = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_modified = 1";
    while numbers(&mut root, open) != [1] {
        assert!(Instant::now() < deadline, "the noisy neighbour opens no transaction");
        // InnoDB refreshes these rows only after 100 ms without a read: a faster look never sees a change.
        thread::sleep(Duration::from_millis(150));
    }
    let asked = Instant::now();
    assert!(client.get("/count?id=1").1.contains("\"n\":\"101\""), "not after the noisy neighbour's commit");
    let waited = asked.elapsed().as_secs_f64();
    assert!((0.1..40.0).contains(&waited), "waited {waited} s for a lock held 2.5 s");
    let update = "db_client_operation_duration_seconds_sum{db_system_name=\"mariadb\",db_operation_name=\"UPDATE\"}";
    let share = metric(&server, update) / waited;
    assert!((0.5..1.5).contains(&share), "the statement is not what took so long: {share} of it");
    assert!(noise.join().expect("no panic").is_ok());

    let own = numbers(&mut root, "SELECT CONNECTION_ID()");
    let mut sessions: Vec<u32> = Vec::new();
    // The noisy neighbour has hung up; on a busy machine its session lives for a moment more.
    let deadline = Instant::now() + Duration::from_secs(120);
    while sessions.len() != 2 {
        assert!(Instant::now() < deadline, "{} sessions", sessions.len());
        sessions = numbers(&mut root, "SELECT id FROM information_schema.processlist WHERE db = 'jobs'");
        thread::sleep(Duration::from_millis(10));
    }
    for session in sessions.into_iter().filter(|id| !own.contains(id)) {
        numbers(&mut root, &format!("KILL {session}"));
    }
    let statuses: Vec<u16> = (0..4).map(|_| client.get("/count?id=2").0).collect();
    assert!(statuses[..2].contains(&500), "{statuses:?}: the connections were cut");
    assert_eq!(statuses[2..], [200, 200], "{statuses:?}");
    server.stop();
}
