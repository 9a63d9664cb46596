//! A conversation, and answers that are cut or lie about their lengths.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::*;
use crate::database::{Login, Secret};

/// An answer to request `number` as it goes over the network.
fn frame(number: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = i32::try_from(body.len() + 4).unwrap().to_be_bytes().to_vec();
    frame.extend(number.to_be_bytes());
    frame.extend(body);
    frame
}

#[test]
fn an_answer_is_cut_out_of_what_arrives_in_pieces() {
    let mut session = Session::new(1 << 10);
    session.send(METADATA, &read::metadata()).unwrap();
    let sent = session.output().to_vec();
    assert_eq!(sent[..14], [0, 0, 0, 21, 0, 3, 0, 5, 0, 0, 0, 1, 0, 6]);
    session.consumed(sent.len());
    assert!(session.output().is_empty());
    let answer = frame(1, b"body");
    assert_eq!(session.feed(&answer[..9]), Ok(None));
    assert_eq!(session.feed(&answer[9..]), Ok(Some(b"body".to_vec())));
    // The next has tagged fields in its head.
    session.send(LIST_GROUPS, &read::groups()).unwrap();
    assert_eq!(session.feed(&frame(2, b"\x01\x05\x02xxbody")), Ok(Some(b"body".to_vec())));
    session.send(METADATA, &read::metadata()).unwrap();
    assert!(session.feed(&frame(2, b"late")).is_err());
}

#[test]
fn another_server_is_refused_before_its_answer_is_kept() {
    let mut session = Session::new(1 << 20);
    assert_eq!(session.feed(b"HTTP/1.1 400 Bad Request\r\n"), Err(Error::TooLarge("an answer")));
    assert_eq!(Session::new(1 << 20).feed(&[0xff; 8]), Err(Error::TooLarge("an answer")));
}

fn of_metadata() -> Vec<u8> {
    let mut out = Writer::default();
    out.i32(0).count(1).i32(7).text("broker").i32(9092).i16(-1);
    out.text("cluster").i32(7).count(1);
    out.i16(0).text("orders").i8(0).count(1);
    out.i16(0).i32(3).i32(7).count(2).i32(7).i32(8).count(1).i32(7).count(0);
    out.bytes().to_vec()
}

fn of_commits() -> Vec<u8> {
    let mut out = Writer::default();
    out.i32(0).compact_count(2);
    out.compact_text("index").compact_count(1).compact_text("orders").compact_count(1);
    out.i32(3).i64(41).i32(-1).compact_none().i16(0).tags().tags().i16(0).tags();
    // What follows the groups is not read.
    out.compact_text("hidden").compact_count(0).i16(30).tags();
    out.bytes().to_vec()
}

fn of_members() -> Vec<u8> {
    let mut out = Writer::default();
    out.i32(0).count(1).i16(0).text("index").text("Stable").text("consumer").text("range");
    out.count(1).text("m-1").text("app").text("/10.0.0.7").blob(b"topics").blob(b"assigned");
    out.bytes().to_vec()
}

#[test]
fn answers_say_what_they_mean() {
    let (brokers, topics) = read::cluster(&of_metadata()).unwrap();
    assert_eq!(brokers, [read::Broker { id: 7, host: "broker".to_owned(), port: 9092 }]);
    let [topic] = &topics[..] else { panic!("{topics:?}") };
    assert!(topic.name == "orders" && !topic.is_internal);
    assert_eq!(topic.partitions, [read::Partition { index: 3, leader: 7, replicas: 2, in_sync: 1 }]);
    let committed = read::committed(&of_commits()).unwrap();
    let [(index, Ok(topics)), (_, Err(30))] = &committed[..] else { panic!("{committed:?}") };
    assert_eq!((index.as_str(), topics[0].0.as_str()), ("index", "orders"));
    assert_eq!(topics[0].1, [read::Offset { index: 3, error: 0, time_ms: -1, offset: 41 }]);
    let groups = read::described(&of_members()).unwrap();
    assert_eq!((groups[0].state.as_str(), groups[0].members.len()), ("Stable", 1));
    assert_eq!(groups[0].members[0], ("m-1".to_owned(), b"assigned".to_vec()));
}

#[test]
fn answers_that_are_cut_or_name_impossible_lengths_are_errors() {
    fn is_refused<T>(whole: &[u8], read: impl Fn(&[u8]) -> Result<T, Error>) {
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end} of {}", whole.len());
        }
        // Whatever a byte says, no memory is taken and nothing panics.
        for at in 0..whole.len() {
            for byte in [0x7f, 0x80, 0xff] {
                let mut changed = whole.to_vec();
                changed[at] = byte;
                let _ = read(&changed);
            }
        }
    }
    is_refused(&of_metadata(), read::cluster);
    is_refused(&of_commits(), read::committed);
    is_refused(&of_members(), read::described);
    let mut out = Writer::default();
    out.i32(0).count(usize::MAX);
    assert!(read::listed(out.bytes()).is_err());
    let mut endless = Writer::default();
    endless.i32(0).i16(0).raw(&[0xff; 9]);
    assert!(read::coordinated(endless.bytes()).is_err());
}

fn of_sasl(code: i16, message: &str, said: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    out.i16(code).text(message).blob(said);
    out.bytes().to_vec()
}

#[test]
fn a_login_says_what_the_broker_refused_and_never_the_password() {
    let login = Login::new("me".to_owned(), Secret::new("canary".to_owned()), None);
    let run = |mechanism, answers: &[Vec<u8>]| {
        let (answers, asked) = (RefCell::new(VecDeque::from(answers.to_vec())), RefCell::new(Vec::new()));
        let result = authenticate(mechanism, &login, |_, body| {
            asked.borrow_mut().push(body.bytes().to_vec());
            answers.borrow_mut().pop_front().ok_or(Error::Protocol("no more answers"))
        });
        (result, asked.into_inner())
    };
    let mut offers = Writer::default();
    offers.i16(33).count(1).text("PLAIN");
    let (refused, asked) = run(Mechanism::ScramSha256, &[offers.bytes().to_vec()]);
    assert!(refused.unwrap_err().to_string().contains("the broker offers PLAIN") && asked.len() == 1);
    let hello = [&[0_u8; 2][..], &[0; 4]].concat();
    let (good, asked) = run(Mechanism::Plain, &[hello.clone(), of_sasl(0, "", b"")]);
    assert!(good.is_ok() && asked[1].ends_with(b"\0me\0canary"));
    let (bad, _) = run(Mechanism::Plain, &[hello.clone(), of_sasl(58, "wrong", b"")]);
    let said = bad.unwrap_err().to_string();
    assert!(said.contains("wrong") && !said.contains("canary"), "{said}");
    let (impostor, asked) = run(Mechanism::ScramSha256, &[hello, of_sasl(0, "", b"r=x,s=AAAA,i=4096")]);
    assert!(impostor == Err(Error::ServerNotProved) && !asked.concat().windows(6).any(|bytes| bytes == b"canary"));
}
