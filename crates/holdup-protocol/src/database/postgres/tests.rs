//! Conversations in bytes, those with servers that mean no good among them.

use crate::database::event::{Error, ExecuteError};
use crate::database::tests::conversation::{Outcome, PASSWORD, Step, have, prepared, session, text};
use crate::database::{Dialect, Event, Session, Statement, TlsMode};

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn server(messages: &[Vec<u8>]) -> Step {
    Step::Server(messages.concat())
}

fn asks(what: u8, more: &[u8]) -> Vec<u8> {
    message(b'R', &[&[0, 0, 0, what], more].concat())
}

fn ready(transaction: u8) -> Vec<u8> {
    message(b'Z', &[transaction])
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn error(severity: &str, code: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SFEHLER\0V{severity}\0C{code}\0M{text}\0Ddetail\0\0").as_bytes())
}

fn columns(names: &[&str]) -> Vec<u8> {
    let column = |name: &&str| [name.as_bytes(), &[0; 19]].concat();
    let body: Vec<u8> = names.iter().flat_map(column).collect();
    message(b'T', &[&(names.len() as u16).to_be_bytes()[..], &body].concat())
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let put = |value: &Option<&str>| {
        let length = value.map_or(-1, |value| value.len() as i32);
        [&length.to_be_bytes()[..], value.unwrap_or_default().as_bytes()].concat()
    };
    let body: Vec<u8> = values.iter().flat_map(put).collect();
    message(b'D', &[&(values.len() as u16).to_be_bytes()[..], &body].concat())
}

fn start_up() -> Vec<u8> {
    let settings = "user\0me\0application_name\0holdup\0client_encoding\0UTF8\0database\0lab\0\0";
    [&(settings.len() as u32 + 8).to_be_bytes()[..], &[0, 3, 0, 0], settings.as_bytes()].concat()
}

fn login() -> Vec<Step> {
    let setting = message(b'S', b"server_version\x0015\0");
    let key = message(b'K', &[0; 8]);
    vec![Step::Sent(start_up()), server(&[asks(0, b""), setting, key, ready(b'I')])]
}

/// A login and what follows.
fn after_login(steps: &[Step]) -> Outcome {
    have(Dialect::Postgres, TlsMode::Off, &[&login(), steps].concat())
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

#[test]
fn texts() {
    let outcome = after_login(&[
        Step::Execute(vec![text("SELECT 1")]),
        Step::Sent(query("SELECT 1")),
        server(&[
            columns(&["id", "note"]),
            row(&[Some("1"), None]),
            row(&[Some("2"), Some("b")]),
            complete("SELECT 2"),
            ready(b'I'),
        ]),
        // Whatever comes at any time.
        server(&[message(b'N', b"Mhm\0\0"), message(b'S', b"a\0b\0"), message(b'A', b"\0\0\0\0a\0b\0")]),
        Step::Execute(vec![text("INSERT")]),
        Step::Whatever,
        server(&[
            message(b'N', b"Mhm\0\0"),
            complete("INSERT 0 7"),
            complete("CREATE TABLE"),
            complete("UPDATE 1"),
            ready(b'I'),
        ]),
        Step::Execute(vec![text("SELEC")]),
        Step::Whatever,
        server(&[error("ERROR", "42601", "syntax"), ready(b'I')]),
        Step::Execute(vec![text("")]),
        Step::Whatever,
        server(&[message(b'I', b""), ready(b'I')]),
        Step::Quit,
        Step::Sent(message(b'X', b"")),
    ]);
    let events = ["LoggedIn", "0: id,note=1,NULL", "done 2 0", "done 0 8", "failed 0 42601 syntax", "done 0 0"];
    assert_eq!((outcome.events, outcome.error), (events.map(str::to_owned).to_vec(), None));
}

#[test]
fn prepared_statements() {
    let statement = prepared("SELECT $1, $2", &[Some("x"), None]);
    let parse = |name: &str| message(b'P', format!("{name}\0SELECT $1, $2\0\0\0").as_bytes());
    let execute = |name: &str| {
        let values = b"\0\0\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\0";
        let bind = message(b'B', &[format!("\0{name}\0").as_bytes(), values].concat());
        [bind, message(b'D', b"P\0"), message(b'E', &[0; 5]), message(b'S', b"")].concat()
    };
    let result = [message(b'2', b""), columns(&["n"]), row(&[Some("-1")]), complete("SELECT 1"), ready(b'I')].concat();
    let parsed = message(b'1', b"");
    let close = |name: &str| message(b'C', format!("S{name}\0").as_bytes());
    let outcome = after_login(&[
        Step::Execute(vec![statement.clone()]),
        Step::Sent([parse("holdup_1"), execute("holdup_1")].concat()),
        server(&[parsed.clone(), result.clone()]),
        // It is known now.
        Step::Execute(vec![statement.clone()]),
        Step::Sent(execute("holdup_1")),
        Step::Server(result.clone()),
        // For this once: it has no name.
        Step::Execute(vec![Statement { is_prepared: false, ..statement.clone() }]),
        Step::Sent([parse(""), execute("")].concat()),
        server(&[parsed.clone(), result.clone()]),
        // Its result has changed: the next time it is prepared again.
        Step::Execute(vec![statement.clone()]),
        Step::Whatever,
        server(&[error("ERROR", "0A000", "cached plan"), ready(b'I')]),
        Step::Execute(vec![statement.clone()]),
        Step::Sent([close("holdup_1"), parse("holdup_2"), execute("holdup_2")].concat()),
        // What could not be prepared is not kept.
        server(&[message(b'3', b""), error("ERROR", "42P01", "no table"), ready(b'I')]),
        Step::Execute(vec![statement]),
        Step::Sent([parse("holdup_3"), execute("holdup_3")].concat()),
        server(&[parsed, result]),
    ]);
    let events = [
        "LoggedIn",
        "0: n=-1",
        "done 1 0",
        "0: n=-1",
        "done 1 0",
        "0: n=-1",
        "done 1 0",
        "failed 0 0A000 cached plan",
        "failed 0 42P01 no table",
        "0: n=-1",
        "done 1 0",
    ];
    assert_eq!((outcome.events, outcome.error), (events.map(str::to_owned).to_vec(), None));
}

#[test]
fn a_failure_in_a_transaction_is_rolled_back_before_it_is_told() {
    let transaction = ["BEGIN", "UPDATE a", "UPDATE b", "COMMIT"].map(text).to_vec();
    let outcome = after_login(&[
        Step::Execute(transaction),
        Step::Sent(query("BEGIN")),
        server(&[complete("BEGIN"), ready(b'T')]),
        Step::Sent(query("UPDATE a")),
        server(&[complete("UPDATE 1"), ready(b'T')]),
        Step::Sent(query("UPDATE b")),
        server(&[error("ERROR", "40P01", "deadlock"), ready(b'E')]),
        Step::Sent(query("ROLLBACK")),
        server(&[complete("ROLLBACK"), ready(b'I')]),
        Step::Execute(vec![text("SELECT 1")]),
        Step::Sent(query("SELECT 1")),
    ]);
    assert_eq!(
        (outcome.events, outcome.error),
        (["LoggedIn", "failed 2 40P01 deadlock"].map(str::to_owned).to_vec(), None)
    );
}

#[test]
fn logins() {
    let login = |steps: &[Step]| have(Dialect::Postgres, TlsMode::Off, &[&[Step::Whatever], steps].concat());
    let unsupported = |bytes: Vec<u8>| match login(&[server(&[bytes])]).error {
        Some(Error::UnsupportedAuth(name)) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(unsupported(asks(7, b"")), "gss");
    assert_eq!(unsupported(asks(10, b"SCRAM-SHA-256-PLUS\0OAUTHBEARER\0\0")), "SCRAM-SHA-256-PLUS");
    let md5 = login(&[server(&[asks(5, b"salt")]), Step::Whatever, server(&[asks(0, b""), ready(b'I')])]);
    assert_eq!((md5.events, md5.error), (vec!["LoggedIn".to_owned()], None));
    assert_eq!(login(&[server(&[asks(3, b"")])]).error, Some(Error::NeedsTls("password")));
    let wrong = login(&[server(&[error("FATAL", "28P01", "no")])]).error;
    assert_eq!(wrong, Some(Error::LoginRefused { code: "28P01".to_owned(), message: "no".to_owned() }));
    // One that is let in without the server having shown that it knows the account.
    let scram = asks(10, b"SCRAM-SHA-256\0\0");
    assert_eq!(login(&[Step::Server(scram.clone()), server(&[asks(0, b"")])]).error, Some(Error::ServerNotProved));
    assert_eq!(
        login(&[Step::Server(scram.clone()), server(&[asks(11, b"r=x,s=AAAA,i=1")])]).error,
        Some(Error::ServerNotProved)
    );
    for twice in [asks(5, b"salt"), scram] {
        assert!(matches!(login(&[server(&[twice.clone(), twice])]).error, Some(Error::Protocol(_))));
    }
    assert!(matches!(login(&[server(&[ready(b'I')])]).error, Some(Error::Protocol(_))));
}

#[test]
fn tls_comes_before_the_account() {
    let ask = || Step::Sent(vec![0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]);
    let secure = |steps: &[Step]| have(Dialect::Postgres, TlsMode::On, &[&[ask()], steps].concat());
    let yes = || Step::Server(b"S".to_vec());
    let password = message(b'p', format!("{PASSWORD}\0").as_bytes());
    let outcome = secure(&[
        yes(),
        Step::Sent(vec![]),
        Step::TlsStarted,
        Step::Sent(start_up()),
        server(&[asks(3, b"")]),
        Step::Sent(password),
        server(&[asks(0, b""), ready(b'I')]),
    ]);
    assert_eq!((outcome.events, outcome.error), (["StartTls", "LoggedIn"].map(str::to_owned).to_vec(), None));
    for stray in [&asks(0, b"")[..], b"R", b"R\0\0\0"] {
        let outcome = secure(&[Step::Server([b"S", stray].concat()), Step::TlsStarted, server(&[asks(0, b"")])]);
        assert!(matches!(outcome.error, Some(Error::Protocol(_))), "{stray:?}");
        assert_eq!(outcome.events, ["StartTls"]);
    }
    assert_eq!(secure(&[Step::Server(b"N".to_vec())]).error, Some(Error::TlsNotOffered));
}

#[test]
fn servers_that_do_not_keep_to_it() {
    let error_of = |messages: &[Vec<u8>]| after_login(&[Step::Execute(vec![text("SELECT 1")]), server(messages)]).error;
    let is_broken = |messages: &[Vec<u8>]| matches!(error_of(messages), Some(Error::Protocol(_)));
    assert!(matches!(after_login(&[server(&[complete("SELECT 1")])]).error, Some(Error::Protocol(_))), "unasked");
    assert!(is_broken(&[message(b'?', b"")]), "unknown");
    assert!(is_broken(&[vec![b'D', 0, 0, 0, 3]]), "too short to be");
    assert!(is_broken(&[vec![b'D', 0xff, 0xff, 0xff, 0xff]]), "too long to be");
    assert!(is_broken(&[columns(&["a"]), row(&[None, None])]), "a value too many");
    assert!(is_broken(&[row(&[None])]), "no columns");
    assert!(is_broken(&[columns(&["a"]), message(b'D', &[0, 1, 0, 0, 0, 9, b'x'])]), "a row that ends early");
    assert!(is_broken(&[message(b'T', &[0, 2, b'a', 0])]), "columns that end early");
    assert!(is_broken(&[message(b'Z', b"")]), "no state");
    assert!(is_broken(&[message(b'G', b""), message(b'G', b"")]), "two copies");
    let down = Some(Error::ClosedByServer { code: "57P01".to_owned(), message: "down".to_owned() });
    assert_eq!(after_login(&[server(&[error("FATAL", "57P01", "down")])]).error, down);
    assert_eq!(error_of(&[error("FATAL", "57P01", "down")]), down);
    for greeting in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x4a\0\0\0\x0a8.0.36\0", b"R\0\x10\0\0"] {
        let outcome = have(Dialect::Postgres, TlsMode::Off, &[Step::Server(greeting.to_vec())]);
        assert!(matches!(outcome.error, None | Some(Error::Protocol(_) | Error::TooLarge(_))), "{outcome:?}");
        assert!(outcome.events.is_empty());
    }
}

#[test]
fn copies_are_refused() {
    let fail = message(b'f', b"holdup copies nothing to a database\0");
    let refused = server(&[error("ERROR", "57014", "refused"), ready(b'I')]);
    let outcome = after_login(&[
        Step::Execute(vec![text("COPY t FROM STDIN")]),
        Step::Whatever,
        server(&[message(b'G', &[0, 0, 0])]),
        Step::Sent(fail.clone()),
        refused.clone(),
        Step::Execute(vec![prepared("COPY t FROM STDIN", &[])]),
        Step::Whatever,
        server(&[message(b'1', b""), message(b'2', b""), message(b'n', b""), message(b'G', &[0, 0, 0])]),
        Step::Sent([fail, message(b'S', b"")].concat()),
        refused,
        Step::Execute(vec![text("COPY t TO STDOUT")]),
        Step::Whatever,
        server(&[
            message(b'H', &[0, 0, 0]),
            message(b'd', b"1\n"),
            message(b'c', b""),
            complete("COPY 1"),
            ready(b'I'),
        ]),
    ]);
    let events = ["LoggedIn", "failed 0 57014 refused", "failed 0 57014 refused", "done 0 0"];
    assert_eq!((outcome.events, outcome.error), (events.map(str::to_owned).to_vec(), None));
}

fn logged_in() -> Session {
    let mut session = session(Dialect::Postgres, TlsMode::Off);
    session.consumed(usize::MAX);
    session.feed(&[asks(0, b""), ready(b'I')].concat(), &mut |_| ()).unwrap();
    session
}

/// Messages of any size are passed over, and hardly anything of them is held.
#[test]
fn memory_is_bounded() {
    let mut session = logged_in();
    session.execute(&[text("SELECT")], true).unwrap();
    let mut events = Vec::new();
    session.feed(&columns(&["a"]), &mut |_| ()).unwrap();
    for kind in [b'N', b'd', b'D', b'D', b'E', b'C', b'T'] {
        session.feed(&[&[kind][..], &(32_u32 << 20).to_be_bytes()].concat(), &mut |_| ()).unwrap();
        for chunk in vec![1; (32 << 20) - 4].chunks(1 << 16) {
            session.feed(chunk, &mut |event| assert!(!matches!(event, Event::Row { .. }))).unwrap();
            assert!(session.inbox.room() < 1 << 21);
        }
    }
    session.feed(&ready(b'I'), &mut |event| events.push(format!("{event:?}"))).unwrap();
    assert!(session.is_ready() && session.inbox.room() < 1 << 15);
    assert!(matches!(events.as_slice(), [event] if event.starts_with("Failed")), "{events:?}");
}

#[test]
fn a_text_with_a_nul_is_not_taken() {
    let mut session = logged_in();
    let before = session.output().len();
    assert_eq!(session.execute(&[text("BEGIN"), text("SELECT '\0'")], false), Err(ExecuteError::HoldsNul));
    assert!(session.is_ready() && session.output().len() == before);
}
