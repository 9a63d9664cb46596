//! Commands against a server by hand: cursors, writes that fail in part, transactions. No socket.

use super::super::tests::answer;
use super::*;
use crate::database::{Dialect, Login, Secret, Session, TlsMode};
use std::sync::Arc;

/// A connection to a server by hand, which has answered the greeting with `greeting`.
fn connection(greeting: Writer) -> Session {
    let login = Login::new(String::new(), Secret::default(), Some("shop".to_owned()));
    let mut session = Session::new(Dialect::Mongodb, Arc::new(login), TlsMode::Off);
    let (number, hello) = sent(&mut session);
    // A source would leave out what has its own name.
    assert_eq!(hello.at(&["client", "application", "name"]).unwrap().text(), Some("holdup load"));
    assert_eq!(told(&mut session, number, greeting.int("ok", 1)), ["LoggedIn"]);
    session
}

/// The next message: its number, and its command.
fn sent(session: &mut Session) -> (i32, holdup_mongodb::Value) {
    let out = session.output().to_vec();
    session.consumed(out.len());
    let command = Document::read(&out[21..]).unwrap().value().unwrap();
    (i32::from_le_bytes(out[4..8].try_into().unwrap()), command)
}

/// Answers message `number`, a few bytes at a time; what happened.
fn told(session: &mut Session, number: i32, document: Writer) -> Vec<String> {
    let mut events = Vec::new();
    for bytes in answer(number, document).chunks(7) {
        session.feed(bytes, &mut |event| events.push(format!("{event:?}"))).unwrap();
    }
    events
}

fn command(name: &str, document: Writer) -> Command {
    Command { database: "shop".to_owned(), name: name.to_owned(), batch: None, has_comment: false, document }
}

fn find() -> Command {
    Command { batch: Some(2), ..command("find", Writer::new().text("find", "orders").int("batchSize", 2)) }
}

fn documents(ids: std::ops::Range<i32>) -> Writer {
    ids.enumerate()
        .fold(Writer::new(), |list, (place, id)| list.document(&place.to_string(), Writer::new().int("_id", id)))
}

fn cursor(id: i64, batch: &str, ids: std::ops::Range<i32>) -> Writer {
    let cursor = Writer::new().long("id", id).text("ns", "shop.orders.eu").list_of(batch, documents(ids));
    Writer::new().document("cursor", cursor).int("ok", 1)
}

#[test]
fn a_cursor_is_read_to_its_end() {
    let mut session = connection(Writer::new());
    session.execute_commands(&[find()], false, true, b"traceparent='00-1'").unwrap();
    assert_eq!(session.execute_commands(&[find()], false, true, b""), Err(ExecuteError::NotReady));
    let (number, asked) = sent(&mut session);
    assert_eq!(asked.get("comment").unwrap().text(), Some("traceparent='00-1'"));
    assert_eq!(asked.get("$db").unwrap().text(), Some("shop"));
    let row = "Row { statement: 0, columns: [\"_id\"], values: [Some([49])] }";
    // Numbers of cursors may be below zero.
    let answers = [cursor(-7, "firstBatch", 1..3), cursor(-7, "nextBatch", 3..5), cursor(0, "nextBatch", 5..6)];
    let bytes: usize = answers.iter().map(|it| answer(1, it.clone()).len()).sum();
    let [first, second, last] = answers;
    assert_eq!(told(&mut session, number, first), [row]);
    let (number, more) = sent(&mut session);
    assert_eq!(
        (more.get("getMore").unwrap().number(), more.get("batchSize").unwrap().number()),
        (Some(-7.0), Some(2.0))
    );
    let text = |name: &str| more.get(name).unwrap().text();
    assert_eq!((text("collection"), text("$db")), (Some("orders.eu"), Some("shop")));
    assert!(told(&mut session, number, second).is_empty() && !session.is_ready());
    let (number, _) = sent(&mut session);
    let done = told(&mut session, number, last);
    assert_eq!(done, [format!("Done {{ rows: 5, affected: 0, bytes: {bytes}, warnings: 0, hash: 0 }}")]);
    assert!(session.is_ready() && session.output().is_empty());
    session.keep_every_row();
    session.execute_commands(&[find()], false, true, b"").unwrap();
    let (number, _) = sent(&mut session);
    assert_eq!(told(&mut session, number, cursor(0, "firstBatch", 1..3)).len(), 3, "each row, and the end");
}

#[test]
fn single_answers_are_rows_or_numbers() {
    let mut session = connection(Writer::new());
    let found = || Writer::new().document("value", Writer::new().int("_id", 7)).int("ok", 1);
    for (name, answer, row, done) in [
        ("findAndModify", found(), "columns: [\"_id\"]", "rows: 1, affected: 0"),
        (
            "findandmodify",
            Writer::new().null("value").int("ok", 1),
            "columns: [\"value\", \"ok\"]",
            "rows: 0, affected: 0",
        ),
        ("count", Writer::new().int("n", 5).int("ok", 1), "columns: [\"n\", \"ok\"]", "rows: 0, affected: 0"),
        ("delete", Writer::new().int("n", 5).int("ok", 1), "columns: [\"n\", \"ok\"]", "rows: 0, affected: 5"),
    ] {
        let asked = command(name, Writer::new().text(name, "orders"));
        session.execute_commands(&[asked], false, true, b"").unwrap();
        let (number, _) = sent(&mut session);
        let said = told(&mut session, number, answer);
        assert!(said.len() == 2 && said[0].contains(row) && said[1].contains(done), "{name}: {said:?}");
    }
}

#[test]
fn a_write_that_was_refused_in_part_has_failed() {
    let mut session = connection(Writer::new());
    let insert = command("insert", Writer::new().text("insert", "orders").list_of("documents", documents(0..2)));
    let own = Command { has_comment: true, ..insert.clone() };
    session.execute_commands(&[own, insert, find()], false, true, b"c").unwrap();
    let (number, asked) = sent(&mut session);
    assert_eq!(asked.get("comment"), None);
    assert_eq!(told(&mut session, number, Writer::new().int("n", 2).int("ok", 1)).len(), 1, "its row: n");
    let (number, asked) = sent(&mut session);
    assert!(asked.get("comment").is_some());
    let error = Writer::new().int("index", 1).int("code", 11000).text("errmsg", "E11000");
    let errors = Writer::list(|list| list.document("0", error));
    let failed = told(&mut session, number, Writer::new().int("n", 1).list_of("writeErrors", errors).int("ok", 1));
    assert_eq!(failed, ["Failed { statement: 1, code: \"11000\", message: \"E11000\" }"]);
    assert!(session.is_ready() && session.output().is_empty(), "the next one is not sent");
    let concern = Writer::new().int("code", 64).text("errmsg", "waiting for replication timed out");
    session.execute_commands(&[find()], false, false, b"").unwrap();
    let (number, _) = sent(&mut session);
    let failed = told(&mut session, number, Writer::new().document("writeConcernError", concern).int("ok", 1));
    assert!(failed[0].contains("code: \"64\""), "{failed:?}");
}

#[test]
fn a_transaction_is_committed_or_rolled_back() {
    let mut session = connection(Writer::new().text("setName", "rs0"));
    let insert = command("insert", Writer::new().text("insert", "a").list_of("documents", documents(0..1)));
    for (round, fails) in [(1.0, false), (2.0, true)] {
        session.execute_commands(&[insert.clone(), insert.clone()], true, false, b"").unwrap();
        let (number, first) = sent(&mut session);
        let name = |command: &holdup_mongodb::Value| format!("{:?}", command.get("lsid"));
        assert_eq!(first.get("txnNumber").unwrap().number(), Some(round));
        assert!(first.get("startTransaction").unwrap().is_true() && !first.get("autocommit").unwrap().is_true());
        assert!(told(&mut session, number, Writer::new().int("n", 1).int("ok", 1)).is_empty());
        let (number, second) = sent(&mut session);
        assert_eq!((second.get("startTransaction"), name(&second)), (None, name(&first)));
        let answer = match fails {
            false => Writer::new().int("n", 1).int("ok", 1),
            true => Writer::new().int("ok", 0).int("code", 112).text("errmsg", "WriteConflict"),
        };
        assert!(told(&mut session, number, answer).is_empty() && !session.is_ready());
        let (number, last) = sent(&mut session);
        let expected = if fails { "abortTransaction" } else { "commitTransaction" };
        assert_eq!((last.entries()[0].0.as_str(), last.get("$db").unwrap().text()), (expected, Some("admin")));
        // The server has rolled back by itself, so it knows no such transaction.
        let answer = if fails { Writer::new().int("ok", 0).int("code", 251) } else { Writer::new().int("ok", 1) };
        let ended = told(&mut session, number, answer);
        let words = if fails { "Failed { statement: 1, code: \"112\"" } else { "Done { rows: 0, affected: 2" };
        assert!(ended[0].starts_with(words), "{ended:?}");
    }
    session.quit();
    assert_eq!(sent(&mut session).1.entries()[0].0, "endSessions");
}

#[test]
fn a_cursor_is_read_on_in_its_transaction_whose_end_is_no_row() {
    let mut session = connection(Writer::new().text("setName", "rs0"));
    session.execute_commands(&[find()], true, true, b"").unwrap();
    let (number, first) = sent(&mut session);
    assert!(told(&mut session, number, cursor(7, "firstBatch", 0..0)).is_empty());
    let (number, more) = sent(&mut session);
    assert_eq!((more.get("lsid"), more.get("txnNumber")), (first.get("lsid"), first.get("txnNumber")));
    assert!(more.get("getMore").is_some() && more.get("startTransaction").is_none());
    assert!(told(&mut session, number, cursor(0, "nextBatch", 0..0)).is_empty());
    let (number, _) = sent(&mut session);
    let ended = told(&mut session, number, Writer::new().int("ok", 1));
    assert!(ended.len() == 1 && ended[0].starts_with("Done { rows: 0"), "{ended:?}");
    let name = new_uuid().unwrap();
    assert_eq!((name[6] >> 4, name[8] >> 6), (4, 2), "a random UUID says so");
}

#[test]
fn invalid_command_lists_are_refused() {
    let mut session = connection(Writer::new());
    assert_eq!(session.execute_commands(&[], false, false, b""), Err(ExecuteError::Empty));
    assert_eq!(session.execute_commands(&[find()], true, false, b""), Err(ExecuteError::NoTransactions));
    assert_eq!(session.execute(&[], false), Err(ExecuteError::OtherKind));
    let large = command("insert", Writer::new().text("insert", &"x".repeat(COMMAND_BYTES_MAX)));
    assert_eq!(session.execute_commands(&[large], false, false, b""), Err(ExecuteError::TooLarge));
    assert!(session.is_ready() && session.output().is_empty());
}
