//! MariaDB: logins, texts and prepared statements, transactions, what goes wrong.

use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_protocol::database::{Error, MAX_PREPARED, Statement};
use holdup_testing::client::{Client, End, Seen, prepared, refused, text};
use holdup_testing::lab::MariaDb;
use holdup_testing::{PASSWORD, free_port};

/// One server for all: a second costs seconds.
#[test]
fn a_real_mariadb() {
    let Some(server) = MariaDb::start() else { return };
    logins(&server);
    texts(&mut server.client());
    kinds(&mut server.client());
    parameters(&mut server.client());
    large_results(&mut server.client());
    errors(&mut server.client());
    transactions(&server);
    many_texts(&mut server.client());
    several_results(&mut server.client());
    byte_by_byte(&server);
    closing(&server);
}

fn logins(server: &MariaDb) {
    for user in ["app", "signer"] {
        let mut client = Client::connect(&server.address(user, PASSWORD), None).expect(user);
        assert_eq!(client.value("SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"), user);
        assert_eq!(client.value("SELECT DATABASE()"), "lab");
        assert!(client.quit());
        for wrong in ["wrong-canary", ""] {
            let error = refused(&server.address(user, wrong));
            assert!(matches!(&error, Error::LoginRefused { code, .. } if code == "1045"), "{error}");
            assert!(!error.to_string().contains("canary"));
        }
        // Both ways under TLS, too.
        let address = format!("{}?tls=on", server.address(user, PASSWORD));
        let mut client = Client::connect(&address, Some(&server.certificate)).expect("TLS");
        let answer = client.query("SHOW SESSION STATUS LIKE 'Ssl_version'");
        assert!(answer.row()[1].expect("a version").starts_with("TLS"));
    }
    let no_database = format!("mysql://nobody@127.0.0.1:{}", server.port);
    assert_eq!(Client::connect(&no_database, None).expect("no password").query("SELECT DATABASE()").row(), [None]);
    assert!(
        matches!(refused(&server.address("careful", PASSWORD)), Error::LoginRefused { code, .. } if code == "1045")
    );
    let address = format!("{}?tls=on", server.address("careful", PASSWORD)).replace("/lab", "");
    Client::connect(&address, Some(&server.certificate)).expect("TLS");
    let no_right = refused(&server.address("limited", PASSWORD));
    assert!(matches!(&no_right, Error::LoginRefused { code, .. } if code == "1044"), "{no_right}");
}

fn texts(client: &mut Client) {
    let answer = client.query("SELECT id, note, NULL AS nothing, '' AS empty FROM t WHERE id <= 3 ORDER BY id");
    assert_eq!(answer.done(), (3, 0));
    let columns = ["id", "note", "nothing", "empty"].map(str::to_owned).to_vec();
    let values = vec![Some("1".to_owned()), Some("note 1".to_owned()), None, Some(String::new())];
    assert_eq!(answer.rows, [Seen::Row { statement: 0, columns, values }]);
    assert!(client.execute(&[text("SELECT * FROM t")], false).rows.is_empty());
    assert_eq!(client.query("SELECT * FROM t WHERE id > 5000").done(), (0, 0));
    assert_eq!(client.query("UPDATE t SET note = 'x' WHERE id IN (998, 999)").done(), (0, 2));
    assert_eq!(client.value("SELECT 'grüße'"), "grüße");
}

/// Binary rows are written as the server writes them.
fn kinds(client: &mut Client) {
    let as_text = client.query("SELECT * FROM kinds");
    let as_binary = client.prepared("SELECT * FROM kinds", &[]);
    assert_eq!(as_text.rows, as_binary.rows);
    assert_eq!(as_binary.row()[6], Some("18446744073709551615"));
    assert_eq!(as_binary.row().last(), Some(&None));
    assert_eq!(
        client.prepared("SELECT SUM(id), COUNT(*) FROM t WHERE id <= 1000", &[]).row(),
        [Some("500500"), Some("1000")]
    );
}

fn parameters(client: &mut Client) {
    let by_id = "SELECT note FROM t WHERE id = ?";
    for id in ["1", "500", "1"] {
        assert_eq!(client.prepared(by_id, &[Some(id)]).row(), [Some(format!("note {id}").as_str())]);
    }
    assert_eq!(client.prepared(by_id, &[None]).done(), (0, 0));
    // The index of an integer column is used although the parameter is a string: one row is looked at.
    let plan = client.prepared(&format!("EXPLAIN {by_id}"), &[Some("77")]);
    assert_eq!((plan.row()[3], plan.row()[5], plan.row()[8]), (Some("const"), Some("PRIMARY"), Some("1")));
    let range = client.prepared("EXPLAIN SELECT note FROM t WHERE id BETWEEN ? AND ?", &[Some("5"), Some("9")]);
    assert_eq!((range.row()[3], range.row()[8]), (Some("range"), Some("5")));
    assert_eq!(client.prepared("SELECT * FROM t LIMIT ? OFFSET ?", &[Some("7"), Some("2")]).done(), (7, 0));
    let many: Vec<Option<&str>> = (0..300).map(|number| (number % 3 > 0).then_some("v")).collect();
    let marks = vec!["?"; many.len()].join(", ");
    let answer = client.prepared(&format!("SELECT {marks}"), &many);
    assert_eq!(answer.row(), many);
    for size in [250, 251, 65_535, 65_536, 1_000_000] {
        let large = "y".repeat(size);
        assert_eq!(client.prepared("SELECT LENGTH(?)", &[Some(&large)]).row(), [Some(size.to_string().as_str())]);
    }
    // For this once: the server keeps none of them.
    let kept = prepared_count(client);
    let once = Statement { is_prepared: false, ..prepared("SELECT ? AS loose", &[Some("5")]) };
    for _ in 0..3 {
        assert_eq!(client.execute(std::slice::from_ref(&once), true).row(), [Some("5")]);
    }
    assert_eq!(prepared_count(client), kept);
}

fn prepared_count(client: &mut Client) -> usize {
    let answer = client.query("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
    answer.row()[1].expect("a count").parse().expect("a number")
}

fn large_results(client: &mut Client) {
    for statement in [text("SELECT * FROM seq_1_to_300000"), prepared("SELECT * FROM seq_1_to_300000", &[])] {
        let answer = client.execute(std::slice::from_ref(&statement), true);
        assert_eq!((answer.done(), answer.row()), ((300_000, 0), vec![Some("1")]));
    }
    // Below, at and above the 16 MB of a packet: counted, not kept. The length and what frames it included.
    for size in [2_000_000_usize, 16_777_210, 16_777_211, 16_777_212, 33_554_000] {
        for statement in [
            text(&format!("SELECT REPEAT('x', {size})")),
            prepared("SELECT REPEAT('x', ?)", &[Some(&size.to_string())]),
        ] {
            let answer = client.execute(&[statement], true);
            assert_eq!((answer.done(), answer.rows.len()), ((1, 0), 0));
            assert!(answer.bytes() > size as u64);
        }
    }
    assert_eq!(client.query("SELECT REPEAT('x', 1000000)").row()[0].map(str::len), Some(1_000_000));
}

fn errors(client: &mut Client) {
    assert_eq!(client.query("SELEC 1").failed(), (0, "1064"));
    assert_eq!(client.query("INSERT INTO t VALUES (1, '')").failed(), (0, "1062"));
    assert_eq!(client.prepared("SELECT * FROM nowhere WHERE id = ?", &[Some("1")]).failed(), (0, "1146"));
    assert_eq!(client.prepared("INSERT INTO t VALUES (?, '')", &[Some("1")]).failed(), (0, "1062"));
    // In the midst of rows.
    let answer = client.query("SELECT IF(id < 900, id, (SELECT 1 UNION SELECT 2)) FROM t");
    assert_eq!(answer.failed(), (0, "1242"));
    for _ in 0..2 {
        let answer = client.prepared("SELECT ?, ?", &[Some("1")]);
        assert_eq!(answer.failed(), (0, "07001"));
        assert!(answer.message().contains('2') && answer.message().contains('1'), "{}", answer.message());
    }
    assert_eq!(client.prepared("SELECT ?, ?", &[Some("1"), Some("2")]).row(), [Some("1"), Some("2")]);
    assert_eq!(client.prepared("SELECT ?, ?", &[Some("1"), Some("2"), None]).failed(), (0, "07001"));
    assert_eq!(client.prepared("SELECT ?, ?", &[Some("3"), Some("4")]).row(), [Some("3"), Some("4")]);
    let local = client.query("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t");
    assert!(["4166", "1148", "3948"].contains(&local.failed().1), "{local:?}");
    assert_eq!(client.value("SELECT 1"), "1");
}

fn transactions(server: &MariaDb) {
    let (mut client, mut other) = (server.client(), server.client());
    let transfer = [
        text("BEGIN"),
        prepared("UPDATE t SET note = ? WHERE id = ?", &[Some("moved"), Some("10")]),
        text("SELECT note FROM t WHERE id = 10"),
        prepared("INSERT INTO t VALUES (?, ?)", &[Some("2000"), None]),
        text("COMMIT"),
    ];
    let answer = client.execute(&transfer, true);
    assert_eq!((answer.done(), answer.row()), ((1, 2), vec![Some("moved")]));
    assert!(matches!(answer.rows[0], Seen::Row { statement: 2, .. }));
    assert_eq!(other.value("SELECT note FROM t WHERE id = 10"), "moved");
    // The row is there now: the fourth fails, and the second is undone.
    other.query("UPDATE t SET note = 'before' WHERE id = 10");
    let answer = client.execute(&transfer, true);
    assert_eq!((answer.failed(), answer.rows.len()), ((3, "1062"), 1));
    assert!(!client.session.is_in_transaction());
    assert_eq!(other.value("SELECT note FROM t WHERE id = 10"), "before");
    // One that is left open shows, and what fails later ends it.
    client.execute(&transfer[..2], false);
    assert!(client.session.is_in_transaction());
    assert_eq!(client.query("SELEC").failed(), (0, "1064"));
    assert!(!client.session.is_in_transaction());
    assert_eq!(other.value("SELECT note FROM t WHERE id = 10"), "before");
    // A wrong number of parameters is found here, not by the server.
    let answer = client.execute(&[transfer[0].clone(), transfer[1].clone(), prepared("SELECT ?", &[])], false);
    assert_eq!((answer.failed(), client.session.is_in_transaction()), ((2, "07001"), false));
    assert_eq!(client.value("SELECT note FROM t WHERE id = 10"), "before");
}

fn many_texts(client: &mut Client) {
    // Those of clients that have left go when the server notices.
    let deadline = Instant::now() + Duration::from_secs(120);
    while prepared_count(client) > 0 {
        assert!(Instant::now() < deadline, "statements of clients that have left stay prepared");
        sleep(Duration::from_millis(20));
    }
    for number in 0..1000 {
        let answer = client.prepared(&format!("SELECT ? + {number}"), &[Some("1")]);
        assert_eq!(answer.row(), [Some((number + 1).to_string().as_str())]);
    }
    assert_eq!(prepared_count(client), MAX_PREPARED);
    assert_eq!(client.prepared("SELECT ? + 0", &[Some("1")]).row(), [Some("1")]);
    // A table that changes below a prepared statement.
    client.query("CREATE TABLE changing (a INT)");
    client.query("INSERT INTO changing VALUES (1)");
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).row(), [Some("1")]);
    client.query("ALTER TABLE changing ADD COLUMN b INT DEFAULT 2");
    assert_eq!(client.prepared("SELECT * FROM changing", &[]).row(), [Some("1"), Some("2")]);
}

fn several_results(client: &mut Client) {
    for call in [text("CALL two()"), prepared("CALL two()", &[])] {
        let answer = client.execute(&[call], true);
        assert_eq!((answer.done().0, answer.row()), (2, vec![Some("1")]));
    }
    let answer =
        client.execute(&[text("SELECT 1"), text("SELECT 2 FROM t WHERE id = 0"), prepared("SELECT 3", &[])], true);
    assert_eq!((answer.done(), answer.rows.len()), ((2, 0), 2));
}

fn byte_by_byte(server: &MariaDb) {
    let mut client = server.client();
    for piece in [1, 2, 3, 7] {
        client.piece = piece;
        kinds(&mut client);
        texts_again(&mut client);
    }
}

fn texts_again(client: &mut Client) {
    let answer = client.query("SELECT id, note FROM t WHERE id <= 20 ORDER BY id");
    assert_eq!((answer.done(), answer.row()), ((20, 0), vec![Some("1"), Some("note 1")]));
    assert_eq!(client.query("SELEC 1").failed(), (0, "1064"));
}

fn closing(server: &MariaDb) {
    let (mut client, mut other) = (server.client(), server.client());
    let id = client.value("SELECT CONNECTION_ID()");
    other.query(&format!("KILL CONNECTION {id}"));
    match client.try_execute(&[text("SELECT 1")], false) {
        Err(End::Closed | End::Error(Error::ClosedByServer { .. })) => {}
        // Told before it closes.
        Ok(answer) => assert_eq!(answer.failed(), (0, "1927")),
        Err(other) => panic!("{other:?}"),
    }
    let mut idle = server.client();
    idle.query("SET SESSION wait_timeout = 1");
    match idle.wait_for_end() {
        End::Closed => {}
        End::Error(Error::ClosedByServer { code, .. }) => assert!(!code.is_empty()),
        End::Error(other) => panic!("{other}"),
    }
    // Nobody speaks MySQL there.
    let address = format!("mysql://u@127.0.0.1:{}", free_port());
    assert!(Client::connect(&address, None).is_err());
}
