//! The session against a server by hand.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest;

use super::message::crc32c;
use super::*;
use crate::database::login::Secret;
use crate::database::salted::{SaltedKeys, sign};

const LIMIT: usize = 1 << 20;

/// The next message that a session sends: its number and its command.
fn sent(session: &mut Session) -> (i32, Vec<u8>) {
    let out = session.output().to_vec();
    session.consumed(out.len());
    let number = i32::from_le_bytes(out[4..8].try_into().unwrap());
    (number, out[21..].to_vec())
}

pub(super) fn message(answers: i32, flags: u32, sections: &[u8]) -> Vec<u8> {
    let length = (20 + sections.len()) as i32;
    let head = [length, 900, answers, 2013, flags as i32].map(i32::to_le_bytes).concat();
    [head, sections.to_vec()].concat()
}

pub(super) fn answer(to: i32, document: Writer) -> Vec<u8> {
    message(to, 0, &[&[0][..], &document.finish()].concat())
}

/// Feeds bytes one at a time; what happened as texts.
fn fed(session: &mut Session, bytes: &[u8]) -> Result<Vec<String>, Error> {
    let mut said = Vec::new();
    for byte in bytes {
        session.feed(&[*byte], &mut |event| {
            said.push(match event {
                Event::LoggedIn => "logged in".to_owned(),
                Event::Answer(document) => format!("{:?}", document.value()),
            });
        })?;
    }
    Ok(said)
}

fn account() -> Account {
    let login = Login::new("me".to_owned(), Secret::new("canary".to_owned()), None);
    Account { login: Arc::new(login), source: "accounts".to_owned() }
}

/// A session that has logged in without an account.
fn ready() -> Session {
    let mut session = Session::new(None, LIMIT);
    let (number, command) = sent(&mut session);
    let command = Document::read(&command).unwrap();
    assert_eq!((command.get("hello"), command.get("$db")), (Some(Element::Int(1)), Some(Element::Text(b"admin"))));
    assert_eq!(fed(&mut session, &answer(number, Writer::new().double("ok", 1.0))).unwrap(), ["logged in"]);
    session
}

fn broken(bytes: &[u8]) -> Error {
    let mut session = ready();
    session.send("admin", Writer::new().int("ping", 1)).unwrap();
    sent(&mut session);
    let error = fed(&mut session, bytes).unwrap_err();
    assert_eq!(session.feed(&[], &mut |_| {}), Err(error.clone()), "it stays broken");
    assert!(!session.is_ready());
    error
}

#[test]
fn a_command_and_its_answer() {
    let mut session = ready();
    session.send("shop", Writer::new().int("ping", 1)).unwrap();
    assert!(session.send("shop", Writer::new()).is_err(), "one at a time");
    let (number, command) = sent(&mut session);
    assert_eq!(Document::read(&command).unwrap().get("$db"), Some(Element::Text(b"shop")));
    let said = answer(number, Writer::new().int("x", 7).bool("ok", true));
    let heard = fed(&mut session, &said).unwrap();
    assert!(heard[0].contains("Number(7.0)") && session.is_ready(), "{heard:?}");
    assert_eq!(fed(&mut session, &said), Err(Error::Protocol("an answer to no command")), "it comes again");
}

#[test]
fn an_account_is_kept_where_the_login_says() {
    let source = |accounts: Option<&str>, database: Option<&str>| {
        let login = Login::new(String::new(), Secret::default(), database.map(str::to_owned));
        Account::new(Arc::new(Login { accounts: accounts.map(str::to_owned), ..login })).source
    };
    assert_eq!(source(Some("accounts"), Some("shop")), "accounts");
    assert_eq!((source(None, Some("shop")), source(None, None)), ("shop".to_owned(), "admin".to_owned()));
}

#[test]
fn members_of_a_replica_set_and_routers_have_transactions() {
    for (greeting, has_transactions) in [
        (Writer::new(), false),
        (Writer::new().text("setName", "rs0"), true),
        (Writer::new().text("msg", "isdbgrid"), true),
    ] {
        let mut session = Session::new(None, LIMIT);
        let (number, _) = sent(&mut session);
        fed(&mut session, &answer(number, greeting.int("ok", 1))).unwrap();
        assert_eq!(session.has_transactions(), has_transactions);
    }
}

#[test]
fn a_server_before_4_4_2_is_greeted_in_its_own_words() {
    let mut session = Session::new(None, LIMIT);
    let (number, _) = sent(&mut session);
    let unknown = || Writer::new().double("ok", 0.0).text("errmsg", "no such command: 'hello'").int("code", 59);
    assert!(fed(&mut session, &answer(number, unknown())).unwrap().is_empty());
    let (number, command) = sent(&mut session);
    assert_eq!(Document::read(&command).unwrap().get("isMaster"), Some(Element::Int(1)));
    assert!(matches!(fed(&mut session, &answer(number, unknown())), Err(Error::ClosedByServer { .. })));
}

/// The server's side of a login, which may cheat; whether it is `done` with its proof, and with what follows.
fn log_in(proof: impl FnOnce(String) -> String, done: &[bool]) -> Result<Vec<String>, Error> {
    log_in_after(4_096, proof, done)
}

fn log_in_after(iterations: u32, proof: impl FnOnce(String) -> String, done: &[bool]) -> Result<Vec<String>, Error> {
    let mut session = Session::new(Some(account()), LIMIT);
    let (number, command) = sent(&mut session);
    assert_eq!(Document::read(&command).unwrap().get("saslSupportedMechs"), Some(Element::Text(b"accounts.me")));
    let offered = Writer::list(|list| list.text("0", "SCRAM-SHA-1").text("1", "SCRAM-SHA-256"));
    fed(&mut session, &answer(number, Writer::new().list_of("saslSupportedMechs", offered).int("ok", 1)))?;
    let (number, command) = sent(&mut session);
    let command = Document::read(&command).unwrap();
    assert_eq!(command.get("$db"), Some(Element::Text(b"accounts")));
    let Some(Element::Binary(first)) = command.get("payload") else { panic!("no payload") };
    let bare = String::from_utf8(first[3..].to_vec()).unwrap();
    let nonce = bare.strip_prefix("n=me,r=").unwrap();
    let salt = BASE64.encode("salt");
    let said = format!("r={nonce}server,s={salt},i={iterations}");
    let step = |payload: &str, is_done| {
        Writer::new().int("conversationId", 3).bool("done", is_done).binary("payload", payload.as_bytes()).int("ok", 1)
    };
    fed(&mut session, &answer(number, step(&said, false)))?;
    let (number, command) = sent(&mut session);
    let command = Document::read(&command).unwrap();
    assert_eq!(
        (command.get("conversationId"), command.get("$db")),
        (Some(Element::Int(3)), Some(Element::Text(b"accounts")))
    );
    let Some(Element::Binary(second)) = command.get("payload") else { panic!("no payload") };
    let (without_proof, shown) = str::from_utf8(second).unwrap().split_once(",p=").unwrap();
    let keys = SaltedKeys::new(b"canary", b"salt", 4096.try_into().unwrap());
    let signed = format!("{bare},{said},{without_proof}");
    let stored = digest::digest(&digest::SHA256, &*keys.client);
    let signature = sign(stored.as_ref(), signed.as_bytes());
    let client: Vec<u8> = BASE64.decode(shown).unwrap().iter().zip(signature).map(|(a, b)| a ^ b).collect();
    assert_eq!(client, *keys.client, "the client proved that it knows the password");
    let own = format!("v={}", BASE64.encode(sign(&*keys.server, signed.as_bytes())));
    let mut events = fed(&mut session, &answer(number, step(&proof(own), done[0])))?;
    for is_done in &done[1..] {
        let (number, _) = sent(&mut session);
        events.extend(fed(&mut session, &answer(number, step("", *is_done)))?);
    }
    Ok(events)
}

#[test]
fn both_sides_prove_that_they_know_the_account() {
    for done in [&[true][..], &[false, true]] {
        assert_eq!(log_in(|own| own, done).unwrap(), ["logged in"]);
        assert_eq!(log_in(|own| own.replace("v=", "v=A"), done), Err(Error::ServerNotProved));
        assert_eq!(log_in(|_| String::new(), done), Err(Error::ServerNotProved));
    }
    assert_eq!(log_in(|own| own, &[false, false]), Err(Error::Protocol("a login that does not end")));
    let weak = log_in_after(4_095, |own| own, &[true]);
    assert!(matches!(weak, Err(Error::Refused(_))), "{weak:?}");
    assert!(!format!("{:?}", Session::new(Some(account()), LIMIT)).contains("canary"));
}

#[test]
fn a_login_that_is_refused_or_cannot_be() {
    let mut session = Session::new(Some(account()), LIMIT);
    let (number, _) = sent(&mut session);
    let old = Writer::list(|list| list.text("0", "SCRAM-SHA-1"));
    let hello = Writer::new().list_of("saslSupportedMechs", old).int("ok", 1);
    assert_eq!(fed(&mut session, &answer(number, hello)), Err(Error::UnsupportedAuth("SCRAM-SHA-1".to_owned())));
    let answered = |step: Writer| {
        let mut session = Session::new(Some(account()), LIMIT);
        let (number, _) = sent(&mut session);
        fed(&mut session, &answer(number, Writer::new().int("ok", 1))).unwrap();
        let (number, _) = sent(&mut session);
        fed(&mut session, &answer(number, step))
    };
    let refused = Writer::new().int("ok", 0).text("errmsg", "Authentication failed.").int("code", 18);
    let expected = Error::LoginRefused { code: "18".to_owned(), message: "Authentication failed.".to_owned() };
    assert_eq!(answered(refused), Err(expected));
    let large = Writer::new().int("conversationId", 1).binary("payload", &[b'r'; PAYLOAD_BYTES_MAX + 1]).int("ok", 1);
    assert_eq!(answered(large), Err(Error::Protocol("a step of the login without its message")));
    let mut session = Session::new(Some(account()), LIMIT);
    let (number, _) = sent(&mut session);
    let full = Writer::new().int("ok", 0).text("errmsg", "too many connections").int("code", 91);
    let expected = Error::ClosedByServer { code: "91".to_owned(), message: "too many connections".to_owned() };
    assert_eq!(fed(&mut session, &answer(number, full)), Err(expected));
}

#[test]
fn frames_that_lie_are_errors() {
    let document = Writer::new().int("ok", 1).finish();
    let body = [&[0][..], &document].concat();
    let good = message(2, 0, &body);
    let with = |at: usize, number: i32| {
        let mut bad = good.clone();
        bad[at..at + 4].copy_from_slice(&number.to_le_bytes());
        broken(&bad)
    };
    for length in [-1, 0, 15, 16] {
        assert!(matches!(with(0, length), Error::Protocol(_)), "{length}");
    }
    assert_eq!(with(0, LIMIT as i32 + 1), Error::TooLarge("an answer"));
    assert_eq!(with(0, i32::MAX), Error::TooLarge("an answer"));
    assert!(matches!(with(8, 1), Error::Protocol("an answer to another request")));
    assert!(matches!(with(12, 1), Error::Protocol(_)), "OP_REPLY");
    assert!(matches!(broken(&message(2, 2, &body)), Error::Protocol("more than one answer to a command")));
    assert!(matches!(broken(&message(2, 4, &body)), Error::Protocol(_)), "a flag that must be understood");
    for sections in [&b""[..], &[0], &[7], &[1, 255, 255, 255, 255], &[0, 5, 0, 0, 0], &[0, 4, 0, 0, 0, 0]] {
        assert!(matches!(broken(&message(2, 0, sections)), Error::Protocol(_)), "{sections:?}");
    }
    assert!(matches!(broken(&message(2, 0, &[body.clone(), body.clone()].concat())), Error::Protocol(_)));
    let sequence = |length: u8| [&[1, length, 0, 0, 0][..], &body].concat();
    for length in [0, 3] {
        assert!(matches!(broken(&message(2, 0, &sequence(length))), Error::Protocol(_)), "shorter than its length");
    }
}

#[test]
fn optional_flags_sequences_and_checksums() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283, "the value that every table of checksums has for these digits");
    let body = [&[0][..], &Writer::new().int("ok", 1).finish()].concat();
    let sequence = [&[1, 10, 0, 0, 0][..], b"name\0\0"].concat();
    let answers = |bytes: &[u8]| {
        let mut session = ready();
        session.send("admin", Writer::new().int("ping", 1)).unwrap();
        sent(&mut session);
        fed(&mut session, bytes).map(|said| said.len())
    };
    assert_eq!(answers(&message(2, 1 << 16, &body)), Ok(1));
    assert_eq!(answers(&message(2, 0, &[sequence[..11].to_vec(), body.clone()].concat())), Ok(1));
    let mut summed = message(2, 1, &[body, vec![0; 4]].concat());
    let end = summed.len() - 4;
    let sum = crc32c(&summed[..end]).to_le_bytes();
    summed[end..].copy_from_slice(&sum);
    assert_eq!(answers(&summed), Ok(1));
    summed[end] ^= 1;
    assert_eq!(answers(&summed), Err(Error::Protocol("a message whose checksum is wrong")));
}
