//! Conversations in bytes, those with servers that mean no good among them.

mod every_row;

use super::status::{IN_TRANSACTION, MORE_RESULTS};
use crate::database::event::{Error, ExecuteError};
use crate::database::tests::conversation::{PASSWORD, Step, have, prepared, session, text};
use crate::database::{Dialect, Statement, TlsMode};

const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";

/// All that MySQL 8 can do, TLS included.
const CAPABILITIES: u32 = 0xdfff_ffff;
const TLS: u32 = 1 << 11;

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes()[..3], &[sequence], payload].concat()
}

/// Packets numbered from `first` on.
fn packets(first: u8, payloads: &[Vec<u8>]) -> Step {
    Step::Server(payloads.iter().zip(first..).flat_map(|(payload, number)| packet(number, payload)).collect())
}

fn greeting(plugin: &str, capabilities: u32) -> Step {
    let capabilities = capabilities.to_le_bytes();
    let payload = [
        b"\x0a8.0.36\0\x07\0\0\0",
        &NONCE[..8],
        &[0],
        &capabilities[..2],
        &[45, 2, 0],
        &capabilities[2..],
        &[21],
        &[0; 10],
        &NONCE[8..],
        &[0],
        plugin.as_bytes(),
        &[0],
    ];
    packets(0, &[payload.concat()])
}

fn ok(affected: u8, status: u16) -> Vec<u8> {
    [&[0, affected, 0][..], &status.to_le_bytes(), &[0, 0]].concat()
}

fn eof(status: u16) -> Vec<u8> {
    [&[0xfe, 0, 0][..], &status.to_le_bytes()].concat()
}

fn error(number: u16, message: &str) -> Vec<u8> {
    [&[0xff][..], &number.to_le_bytes(), b"#HY000", message.as_bytes()].concat()
}

fn column(name: &str, kind: u8) -> Vec<u8> {
    let name = [&[name.len() as u8][..], name.as_bytes()].concat();
    [b"\x03def\0\0\0", name.as_slice(), &[0, 0x0c, 45, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0, 0]].concat()
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let put = |value: &Option<&str>| match value {
        None => vec![0xfb],
        Some(text) => [&[text.len() as u8][..], text.as_bytes()].concat(),
    };
    values.iter().flat_map(put).collect()
}

fn login() -> Vec<Step> {
    vec![greeting("mysql_native_password", CAPABILITIES), Step::Whatever, packets(2, &[ok(0, 2)])]
}

/// A login and what follows.
fn after_login(steps: &[Step]) -> crate::database::tests::conversation::Outcome {
    have(Dialect::Mysql, TlsMode::Off, &[&login(), steps].concat())
}

fn command(kind: u8, rest: &[u8]) -> Vec<u8> {
    packet(0, &[&[kind], rest].concat())
}

#[test]
fn texts() {
    let two = [
        vec![2],
        column("id", 3),
        column("note", 253),
        eof(2),
        row(&[Some("1"), None]),
        row(&[Some("2"), Some("b")]),
        eof(2),
    ];
    let outcome = after_login(&[
        Step::Execute(vec![text("SELECT 1")]),
        Step::Sent(command(3, b"SELECT 1")),
        packets(1, &two),
        Step::Execute(vec![text("UPDATE t")]),
        Step::Whatever,
        packets(1, &[ok(7, 2)]),
        Step::Execute(vec![text("SELEC")]),
        Step::Whatever,
        packets(1, &[error(1064, "syntax")]),
        // Results behind results: rows, rows again, OK.
        Step::Execute(vec![text("CALL p()")]),
        Step::Whatever,
        packets(
            1,
            &[
                vec![1],
                column("a", 3),
                eof(2),
                eof(2 | MORE_RESULTS),
                vec![1],
                column("b", 3),
                eof(2),
                row(&[Some("5")]),
                eof(2 | MORE_RESULTS),
                ok(1, 2),
            ],
        ),
        // An error in the midst of rows.
        Step::Execute(vec![text("SELECT late()")]),
        Step::Whatever,
        packets(1, &[vec![1], column("a", 3), eof(2), row(&[Some("")]), error(1242, "late")]),
        Step::Quit,
        Step::Sent(command(1, b"")),
    ]);
    let events = [
        "LoggedIn",
        "0: id,note=1,NULL",
        "done 2 0",
        "done 0 7",
        "failed 0 1064 syntax",
        "0: b=5",
        "done 1 1",
        "0: a=",
        "failed 0 1242 late",
    ];
    assert_eq!((outcome.events, outcome.error), (events.map(str::to_owned).to_vec(), None));
}

fn prepare_ok(id: u8, columns: u8, parameters: u8) -> Vec<u8> {
    vec![0, id, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0]
}

#[test]
fn prepared_statements() {
    let statement = prepared("SELECT ?, ?", &[Some("x"), None]);
    let definitions = [prepare_ok(9, 1, 2), column("?", 253), column("?", 253), eof(2), column("n", 8), eof(2)];
    // Statement 9, no cursor, once; the second parameter is NULL, types follow, both strings.
    let execute = b"\x09\0\0\0\0\x01\0\0\0\x02\x01\xfe\0\xfe\0\x01x";
    let answer = [vec![1], column("n", 8), eof(2), vec![0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], eof(2)];
    let outcome = after_login(&[
        Step::Execute(vec![statement.clone()]),
        Step::Sent(command(0x16, b"SELECT ?, ?")),
        packets(1, &definitions),
        Step::Sent(command(0x17, execute)),
        packets(1, &answer),
        // It is known now.
        Step::Execute(vec![statement.clone()]),
        Step::Sent(command(0x17, execute)),
        packets(1, &answer),
        // For this once: closed when it has ended.
        Step::Execute(vec![Statement { is_prepared: false, ..statement.clone() }]),
        Step::Sent(command(0x16, b"SELECT ?, ?")),
        packets(1, &definitions),
        Step::Whatever,
        packets(1, &answer),
        Step::Sent(command(0x19, b"\x09\0\0\0")),
        // The server has lost it: the next time it is prepared again.
        Step::Execute(vec![statement.clone()]),
        Step::Whatever,
        packets(1, &[error(1243, "unknown")]),
        Step::Sent(command(0x19, b"\x09\0\0\0")),
        Step::Execute(vec![statement]),
        Step::Sent(command(0x16, b"SELECT ?, ?")),
        packets(1, &[prepare_ok(10, 0, 0)]),
    ]);
    let events =
        ["LoggedIn", "0: n=-1", "done 1 0", "0: n=-1", "done 1 0", "0: n=-1", "done 1 0", "failed 0 1243 unknown"];
    let last = "failed 0 07001 the statement has 0 parameters, and 2 were given".to_owned();
    assert_eq!((outcome.events, outcome.error), ([events.map(str::to_owned).to_vec(), vec![last]].concat(), None));
}

#[test]
fn a_failure_in_a_transaction_is_rolled_back_before_it_is_told() {
    let transaction = ["BEGIN", "UPDATE a", "UPDATE b", "COMMIT"].map(text).to_vec();
    let (open, over) = (2 | IN_TRANSACTION, 2);
    let outcome = after_login(&[
        Step::Execute(transaction.clone()),
        Step::Sent(command(3, b"BEGIN")),
        packets(1, &[ok(0, open)]),
        Step::Sent(command(3, b"UPDATE a")),
        packets(1, &[ok(1, open)]),
        Step::Sent(command(3, b"UPDATE b")),
        packets(1, &[error(1205, "lock")]),
        Step::Sent(command(3, b"ROLLBACK")),
        packets(1, &[ok(0, over)]),
        Step::Execute(transaction),
        Step::Whatever,
        packets(1, &[ok(0, open)]),
        packets(1, &[ok(1, open)]),
        packets(1, &[ok(2, open)]),
        packets(1, &[ok(0, over)]),
    ]);
    assert_eq!(
        (outcome.events, outcome.error),
        (["LoggedIn", "failed 2 1205 lock", "done 0 3"].map(str::to_owned).to_vec(), None)
    );
}

#[test]
fn a_row_is_given_up_at_its_first_value_too_many() {
    // A packet of 16 MiB may hold as many values, each of 16 bytes once it is read.
    assert!(super::row::text(&[0xfb; 2], 2).is_ok() && super::row::text(&[0xfb; 3], 2).is_err());
}

#[test]
fn logins() {
    let login = |steps: &[Step]| have(Dialect::Mysql, TlsMode::Off, steps);
    let sha2 = || greeting("caching_sha2_password", CAPABILITIES);
    let fast = login(&[sha2(), Step::Whatever, packets(2, &[vec![1, 3], ok(0, 2)])]);
    assert_eq!((fast.events, fast.error), (vec!["LoggedIn".to_owned()], None));
    let full = login(&[sha2(), Step::Whatever, packets(2, &[vec![1, 4]])]).error.expect("no TLS");
    assert!(matches!(full, Error::NeedsTls(_)) && full.to_string().contains("?tls=on"));
    let switch = |name: &str| packets(2, &[[&[0xfe][..], name.as_bytes(), &[0], NONCE, &[0]].concat()]);
    let switched =
        login(&[sha2(), Step::Whatever, switch("mysql_native_password"), Step::Whatever, packets(4, &[ok(0, 2)])]);
    assert_eq!((switched.events.len(), switched.error), (1, None));
    let unknown = login(&[sha2(), Step::Whatever, switch("dialog")]).error;
    assert_eq!(unknown, Some(Error::UnsupportedAuth("dialog".to_owned())));
    let again = login(&[
        sha2(),
        Step::Whatever,
        switch("caching_sha2_password"),
        Step::Server(packet(4, b"\xfecaching_sha2_password\0")),
    ]);
    assert!(matches!(again.error, Some(Error::Protocol(_))));
    let full = login(&[packets(0, &[b"\xff\x10\x04Too many connections".to_vec()])]).error;
    assert_eq!(full, Some(Error::LoginRefused { code: "1040".to_owned(), message: "Too many connections".to_owned() }));
}

#[test]
fn tls_comes_before_the_account() {
    let greeting = || greeting("caching_sha2_password", CAPABILITIES);
    let secure = |steps: &[Step]| have(Dialect::Mysql, TlsMode::On, steps);
    let outcome = secure(&[
        greeting(),
        Step::Whatever,
        Step::TlsStarted,
        Step::Whatever,
        packets(3, &[vec![1, 4]]),
        Step::Sent(packet(4, format!("{PASSWORD}\0").as_bytes())),
        packets(5, &[ok(0, 2)]),
    ]);
    assert_eq!((outcome.events, outcome.error), (["StartTls", "LoggedIn"].map(str::to_owned).to_vec(), None));
    let mut asked = session(Dialect::Mysql, TlsMode::On);
    let Step::Server(bytes) = greeting() else { unreachable!("it is the server's") };
    asked.feed(&bytes, &mut |_| ()).unwrap();
    assert_eq!((asked.output().len(), asked.output()[3]), (36, 1), "nothing of the account is in the clear");
    // What is said in the clear behind that is somebody else's.
    for stray in [&packet(2, &ok(0, 2))[..], b"\x07", b"\x07\0\0"] {
        let outcome = secure(&[greeting(), Step::Server(stray.to_vec()), Step::TlsStarted, packets(2, &[ok(0, 2)])]);
        assert!(matches!(outcome.error, Some(Error::Protocol(_))), "{stray:?}");
        assert_eq!(outcome.events, ["StartTls"]);
    }
    let none = secure(&[self::greeting("", CAPABILITIES & !TLS)]);
    assert_eq!(none.error, Some(Error::TlsNotOffered));
}

#[test]
fn servers_that_do_not_keep_to_it() {
    let is_broken = |steps: &[Step]| matches!(after_login(steps).error, Some(Error::Protocol(_)));
    let query = || Step::Execute(vec![text("SELECT 1")]);
    assert!(is_broken(&[packets(0, &[ok(0, 2)])]), "unasked");
    assert!(is_broken(&[query(), packets(2, &[ok(0, 2)])]), "out of order");
    assert!(is_broken(&[query(), packets(1, &[vec![]])]), "empty");
    assert!(is_broken(&[query(), packets(1, &[vec![1], column("a", 3), column("b", 3)])]), "a column too many");
    assert!(
        is_broken(&[query(), packets(1, &[vec![1], column("a", 3), eof(2), row(&[None, None])])]),
        "a value too many"
    );
    assert!(
        is_broken(&[query(), packets(1, &[vec![1], column("a", 3), eof(2), vec![0xfc, 0xff]])]),
        "a row that ends early"
    );
    assert!(is_broken(&[query(), packets(1, &[vec![1], vec![3]])]), "a column that ends early");
    let file = after_login(&[query(), packets(1, &[b"\xfb/etc/passwd".to_vec()])]);
    assert_eq!(file.error, Some(Error::Refused("a file of the client")));
    let columns = after_login(&[query(), packets(1, &[b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff".to_vec()])]);
    assert_eq!(columns.error, Some(Error::TooLarge("the number of columns")));
    let killed = after_login(&[packets(0, &[error(4031, "inactive")])]);
    assert_eq!(killed.error, Some(Error::ClosedByServer { code: "4031".to_owned(), message: "inactive".to_owned() }));
    for greeting in
        [&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], b"SSH-2.0-x\r\n", &packet(0, b"\x09old\0")]
    {
        let outcome = have(Dialect::Mysql, TlsMode::Off, &[Step::Server(greeting.to_vec())]);
        assert!(matches!(outcome.error, None | Some(Error::Protocol(_) | Error::TooLarge(_))), "{outcome:?}");
        assert!(outcome.events.is_empty());
    }
}

/// Rows of any size are counted, and hardly anything of them is held.
#[test]
fn memory_is_bounded() {
    let mut session = session(Dialect::Mysql, TlsMode::Off);
    let mut done = 0;
    let mut feed = |session: &mut crate::database::Session, bytes: &[u8]| {
        session.feed(bytes, &mut |event| {
            done += u32::from(matches!(event, crate::database::Event::Done { rows: 4, .. }));
            assert!(!matches!(event, crate::database::Event::Row { .. }), "a row of 16 MB is kept");
        })
    };
    for step in login() {
        if let Step::Server(bytes) = step {
            feed(&mut session, &bytes).unwrap();
        }
    }
    session.execute(&[text("SELECT")], true).unwrap();
    let Step::Server(start) = packets(1, &[vec![1], column("a", 252), eof(2)]) else {
        unreachable!("it is the server's")
    };
    feed(&mut session, &start).unwrap();
    let mut sequence = 4_u8;
    let mut send = |session: &mut crate::database::Session, length: usize| {
        feed(session, &[&(length as u32).to_le_bytes()[..3], &[sequence]].concat()).unwrap();
        sequence += 1;
        // The bytes could be taken for ends and errors.
        for chunk in vec![0xfe; length].chunks(1000) {
            feed(session, chunk).unwrap();
            assert!(session.inbox.room() < 1 << 21);
        }
    };
    // A row of two full packets and an empty one; one of a full packet and a short; one that fits no limit; a short
    // one.
    for length in [0xff_ffff, 0xff_ffff, 0, 0xff_ffff, 5, 0xff_fffe, 2 << 20] {
        send(&mut session, length);
    }
    let end = packet(sequence, &eof(2));
    feed(&mut session, &end).unwrap();
    assert!(session.is_ready() && session.inbox.room() < 1 << 15);
    assert_eq!(done, 1);
    // Names without end: the row is given up, the statement is not.
    session.execute(&[text("SELECT")], true).unwrap();
    session.feed(&packet(1, &[0xfc, 0x00, 0x10]), &mut |_| ()).unwrap();
    let long =
        [b"\x03def\0\0\0\xfc\x50\xc3", &[b'n'; 50_000][..], &[0, 0x0c, 45, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0]].concat();
    for number in 0..4096_u32 {
        session.feed(&packet((2 + number % 256) as u8, &long), &mut |_| ()).unwrap();
    }
    for (number, payload) in [(2, eof(2)), (3, vec![0xfb; 4096]), (4, eof(2))] {
        session
            .feed(&packet(number, &payload), &mut |event| assert!(!matches!(event, crate::database::Event::Row { .. })))
            .unwrap();
    }
    assert!(session.is_ready());
}

#[test]
fn statements_out_of_turn_are_refused() {
    let mut session = session(Dialect::Mysql, TlsMode::Off);
    assert_eq!(session.execute(&[text("SELECT 1")], false), Err(ExecuteError::NotReady));
    for step in login() {
        if let Step::Server(bytes) = step {
            session.feed(&bytes, &mut |_| ()).unwrap();
        }
    }
    session.consumed(usize::MAX);
    assert_eq!(session.execute(&[], false), Err(ExecuteError::Empty));
    let many = Statement { parameters: vec![None; 65_536], ..text("SELECT") };
    assert_eq!(session.execute(&[text("BEGIN"), many], false), Err(ExecuteError::TooManyParameters));
    let large = Statement { parameters: vec![Some(vec![0; 9 << 20]); 2], ..text("SELECT") };
    assert_eq!(session.execute(&[large], false), Err(ExecuteError::TooLarge));
    assert!(session.is_ready() && session.output().is_empty());
    let secret = prepared("SELECT 'canary-a'", &[Some("canary-b")]);
    assert!(!format!("{secret:?}").contains("canary"));
    session.execute(&[secret], false).unwrap();
    assert_eq!(session.execute(&[text("SELECT 1")], false), Err(ExecuteError::NotReady));
    assert!(!format!("{session:?}").contains("canary"));
}
