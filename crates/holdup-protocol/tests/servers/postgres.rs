//! PostgreSQL: logins, texts and prepared statements, transactions, what goes wrong.

use holdup_protocol::database::{Error, MAX_PREPARED, Statement};
use holdup_testing::PASSWORD;
use holdup_testing::client::{Answer, Client, End, Seen, prepared, refused, text};
use holdup_testing::lab::Postgres;

fn done(client: &mut Client, text: &str) -> Answer {
    let answer = client.query(text);
    answer.done();
    answer
}

/// One server for all: a second costs seconds.
#[test]
fn a_real_postgres() {
    let Some(server) = Postgres::start() else { return };
    logins(&server);
    texts(&mut server.client());
    parameters(&mut server.client());
    large_results(&mut server.client());
    errors(&mut server.client());
    transactions(&server);
    many_texts(&mut server.client());
    copies(&mut server.client());
    byte_by_byte(&server);
    closing(&server);
}

fn logins(server: &Postgres) {
    for (user, password) in [("app", PASSWORD), ("hashed", PASSWORD), ("trusted", "")] {
        for tls in ["", "?tls=on"] {
            let address = format!("{}{tls}", server.address(user, password, "lab"));
            let mut client = Client::connect(&address, Some(&server.certificate)).expect(user);
            let answer = client
                .query("SELECT current_user, current_database(), ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
            assert_eq!(answer.row(), [Some(user), Some("lab"), Some(if tls.is_empty() { "f" } else { "t" })]);
            assert_eq!(client.value("SHOW application_name"), "holdup");
            assert!(client.quit());
        }
    }
    for user in ["app", "hashed"] {
        for wrong in ["wrong-canary", ""] {
            let error = refused(&server.address(user, wrong, "lab"));
            assert!(matches!(&error, Error::LoginRefused { code, .. } if code == "28P01"), "{error}");
            assert!(!error.to_string().contains("canary"));
        }
    }
    // In the clear only under TLS.
    assert_eq!(refused(&server.address("plain", PASSWORD, "lab")), Error::NeedsTls("password"));
    let address = format!("{}?tls=on", server.address("plain", PASSWORD, "lab"));
    let mut client = Client::connect(&address, Some(&server.certificate)).expect("TLS");
    assert_eq!(client.value("SELECT 1"), "1");
    for (user, database, expected) in
        [("barred", "lab", "28000"), ("careful", "lab", "28000"), ("trusted", "nowhere", "3D000")]
    {
        let error = refused(&server.address(user, PASSWORD, database));
        assert!(matches!(&error, Error::LoginRefused { code, .. } if code == expected), "{error}");
    }
    let address = format!("{}?tls=on", server.address("careful", PASSWORD, "lab"));
    Client::connect(&address, Some(&server.certificate)).expect("TLS");
}

fn texts(client: &mut Client) {
    let answer = client.query("SELECT id, note, NULL AS nothing, '' AS empty FROM t WHERE id <= 3 ORDER BY id");
    assert_eq!(answer.done(), (3, 0));
    let columns = ["id", "note", "nothing", "empty"].map(str::to_owned).to_vec();
    let values = vec![Some("1".to_owned()), Some("note 1".to_owned()), None, Some(String::new())];
    assert_eq!(answer.rows, [Seen::Row { statement: 0, columns, values }]);
    for statement in [text("SELECT * FROM t WHERE id <= 1000"), prepared("SELECT * FROM t WHERE id <= 1000", &[])] {
        let answer = client.execute(&[statement], false);
        assert_eq!((answer.done(), answer.rows.len()), ((1000, 0), 0));
    }
    assert_eq!(client.query("SELECT * FROM t WHERE id > 5000").done(), (0, 0));
    assert_eq!(client.query("UPDATE t SET note = 'x' WHERE id IN (998, 999)").done(), (0, 2));
    assert_eq!(client.query("INSERT INTO t VALUES (3001, 'y') RETURNING id").row(), [Some("3001")]);
    assert_eq!(client.query("DELETE FROM t WHERE id = 3001").done(), (0, 1));
    assert_eq!(client.value("SELECT 'grüße'"), "grüße");
    assert_eq!(client.query("").done(), (0, 0));
    assert_eq!(client.prepared("", &[]).done(), (0, 0));
    let two = client.query("SELECT 1 WHERE false; SELECT 2; SELECT 3");
    assert_eq!((two.done(), two.row()), ((2, 0), vec![Some("2")]));
    // A notice in between.
    assert_eq!(client.query("DO $$ BEGIN RAISE NOTICE 'hm'; END $$").done(), (0, 0));
}

fn parameters(client: &mut Client) {
    let by_id = "SELECT note FROM t WHERE id = $1";
    for id in ["1", "500", "1"] {
        assert_eq!(client.prepared(by_id, &[Some(id)]).row(), [Some(format!("note {id}").as_str())]);
    }
    assert_eq!(client.prepared(by_id, &[None]).done(), (0, 0));
    let plan = client.prepared(&format!("EXPLAIN {by_id}"), &[Some("77")]);
    assert!(plan.row()[0].expect("a plan").starts_with("Index Scan"), "{plan:?}");
    assert_eq!(client.prepared("SELECT * FROM t LIMIT $1 OFFSET $2", &[Some("7"), Some("2")]).done(), (7, 0));
    let many: Vec<Option<&str>> = (0..300).map(|number| (number % 3 > 0).then_some("v")).collect();
    let marks: Vec<String> = (1..=many.len()).map(|number| format!("${number}::text")).collect();
    assert_eq!(client.prepared(&format!("SELECT {}", marks.join(", ")), &many).row(), many);
    let large = "y".repeat(1_000_000);
    assert_eq!(client.prepared("SELECT length($1)", &[Some(&large)]).row(), [Some("1000000")]);
    let kept = prepared_count(client);
    let once = Statement { is_prepared: false, ..prepared("SELECT $1::int", &[Some("5")]) };
    for _ in 0..3 {
        assert_eq!(client.execute(std::slice::from_ref(&once), true).row(), [Some("5")]);
    }
    assert_eq!(prepared_count(client), kept);
}

fn prepared_count(client: &mut Client) -> usize {
    client.value("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''").parse().expect("a number")
}

fn large_results(client: &mut Client) {
    let many = "SELECT * FROM generate_series(1, 300000)";
    for statement in [text(many), prepared(many, &[])] {
        let answer = client.execute(&[statement], true);
        assert_eq!((answer.done(), answer.row()), ((300_000, 0), vec![Some("1")]));
    }
    for size in [2_000_000_u64, 40_000_000] {
        let answer = client.query(&format!("SELECT repeat('x', {size})"));
        assert_eq!((answer.done(), answer.rows.len()), ((1, 0), 0));
        assert!(answer.bytes() > size);
    }
    assert_eq!(client.query("SELECT repeat('x', 1000000)").row()[0].map(str::len), Some(1_000_000));
}

fn errors(client: &mut Client) {
    assert_eq!(client.query("SELEC 1").failed(), (0, "42601"));
    assert_eq!(client.prepared("SELEC $1", &[Some("1")]).failed(), (0, "42601"));
    assert_eq!(client.query("INSERT INTO t VALUES (1, '')").failed(), (0, "23505"));
    for _ in 0..2 {
        assert_eq!(client.prepared("INSERT INTO t VALUES ($1, '')", &[Some("1")]).failed(), (0, "23505"));
        assert_eq!(client.prepared("SELECT * FROM t WHERE id = $1", &[Some("no number")]).failed(), (0, "22P02"));
        assert_eq!(client.prepared("SELECT $1::int, $2::int", &[Some("1")]).failed(), (0, "08P01"));
    }
    assert_eq!(client.prepared("SELECT * FROM t WHERE id = $1", &[Some("1")]).done(), (1, 0));
    // In the midst of rows.
    assert_eq!(client.query("SELECT late(id) FROM t ORDER BY id").failed(), (0, "P0001"));
    // The server forgets what is prepared; what it tells then is learned from.
    assert_eq!(client.prepared("SELECT $1::int", &[Some("1")]).done(), (1, 0));
    done(client, "DISCARD ALL");
    assert_eq!(client.prepared("SELECT $1::int", &[Some("1")]).failed(), (0, "26000"));
    assert_eq!(client.prepared("SELECT $1::int", &[Some("1")]).done(), (1, 0));
    done(client, "CREATE TABLE changing AS SELECT 1 AS a");
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).row(), [Some("1")]);
    done(client, "ALTER TABLE changing ADD COLUMN b int DEFAULT 2");
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).failed(), (0, "0A000"));
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).row(), [Some("1"), Some("2")]);
    assert!(client.session.execute(&[text("SELECT 1\0; DROP TABLE t")], false).is_err());
    assert_eq!(client.value("SELECT 1"), "1");
}

fn transactions(server: &Postgres) {
    let (mut client, mut other) = (server.client(), server.client());
    let transfer = [
        text("BEGIN"),
        prepared("UPDATE t SET note = $1 WHERE id = $2", &[Some("moved"), Some("10")]),
        text("SELECT note FROM t WHERE id = 10"),
        prepared("INSERT INTO t VALUES ($1, $2)", &[Some("2000"), None]),
        text("COMMIT"),
    ];
    let answer = client.execute(&transfer, true);
    assert_eq!((answer.done(), answer.row()), ((1, 2), vec![Some("moved")]));
    assert!(matches!(answer.rows[0], Seen::Row { statement: 2, .. }));
    assert_eq!(other.value("SELECT note FROM t WHERE id = 10"), "moved");
    other.query("UPDATE t SET note = 'before' WHERE id = 10");
    let answer = client.execute(&transfer, true);
    assert_eq!((answer.failed(), answer.rows.len()), ((3, "23505"), 1));
    assert!(!client.session.is_in_transaction());
    assert_eq!(other.value("SELECT note FROM t WHERE id = 10"), "before");
    client.execute(&transfer[..2], false);
    assert!(client.session.is_in_transaction());
    assert_eq!(client.query("SELEC").failed(), (0, "42601"));
    assert!(!client.session.is_in_transaction());
    // What is only found out at the end.
    done(&mut client, "CREATE TABLE late_check (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    let twice = [text("BEGIN"), text("INSERT INTO late_check VALUES (1), (1)"), text("COMMIT")];
    assert_eq!(client.execute(&twice, false).failed(), (2, "23505"));
    assert_eq!(client.query("SELECT * FROM late_check").done(), (0, 0));
}

fn many_texts(client: &mut Client) {
    for number in 0..1000 {
        let answer = client.prepared(&format!("SELECT $1::int + {number}"), &[Some("1")]);
        assert_eq!(answer.row(), [Some((number + 1).to_string().as_str())]);
    }
    assert_eq!(prepared_count(client), MAX_PREPARED);
    assert_eq!(client.prepared("SELECT $1::int + 0", &[Some("1")]).row(), [Some("1")]);
}

fn copies(client: &mut Client) {
    for copy in [text("COPY t FROM STDIN"), prepared("COPY t FROM STDIN", &[])] {
        let answer = client.execute(&[copy], true);
        assert_eq!(answer.failed(), (0, "57014"));
        assert!(answer.message().contains("holdup copies nothing"), "{answer:?}");
    }
    let answer = client.query("COPY (SELECT * FROM generate_series(1, 1000)) TO STDOUT");
    assert_eq!(answer.done(), (0, 0));
    assert!(answer.bytes() > 5000);
}

fn byte_by_byte(server: &Postgres) {
    let mut client = server.client();
    for piece in [1, 2, 3, 7] {
        client.piece = piece;
        texts(&mut client);
        assert_eq!(client.query("SELEC 1").failed(), (0, "42601"));
        assert_eq!(client.prepared("SELECT note FROM t WHERE id = $1", &[Some("5")]).row(), [Some("note 5")]);
    }
}

fn closing(server: &Postgres) {
    let (mut client, mut other) = (server.client(), server.client());
    let id = client.value("SELECT pg_backend_pid()");
    assert_eq!(other.value(&format!("SELECT pg_terminate_backend({id})")), "t");
    let is_shut_down = |end: &End| match end {
        End::Error(Error::ClosedByServer { code, .. }) => code == "57P01",
        End::Error(_) => false,
        // Its words were lost with the connection.
        End::Closed => true,
    };
    let end = client.try_execute(&[text("SELECT 1")], false).expect_err("it is closed");
    assert!(is_shut_down(&end), "{end:?}");
    // While a statement is being executed, and while none is.
    let mut suicidal = server.client();
    let end =
        suicidal.try_execute(&[text("SELECT pg_terminate_backend(pg_backend_pid())")], false).expect_err("closed");
    assert!(is_shut_down(&end), "{end:?}");
    let mut idle = server.client();
    idle.query("SET idle_session_timeout = '100ms'");
    match idle.wait_for_end() {
        End::Error(Error::ClosedByServer { code, .. }) => assert_eq!(code, "57P05"),
        other => panic!("{other:?}"),
    }
}
