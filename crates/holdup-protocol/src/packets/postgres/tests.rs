//! Conversations of PostgreSQL, segment by segment.

use super::*;
use crate::packets::conversation::Reader as _;
use crate::packets::statement::Statements;
use crate::packets::turn::Turn;

fn talk(postgres: &mut Postgres, steps: &[(char, Vec<u8>)]) -> Vec<Turn> {
    let (mut statements, mut turns) = (Statements::default(), Vec::new());
    for (n, (side, bytes)) in steps.iter().enumerate() {
        let piece = Piece { at: 10 * (n as i64 + 1), bytes, cut: 0 };
        let mut to = Sinks { statements: &mut statements, turns: &mut turns };
        if *side == '>' { postgres.take(true, &piece, &mut to) } else { postgres.take(false, &piece, &mut to) }
    }
    turns
}

fn message(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &(content.len() as u32 + 4).to_be_bytes(), content].concat()
}

fn all(parts: &[(u8, &[u8])]) -> Vec<u8> {
    parts.iter().flat_map(|(kind, content)| message(*kind, content)).collect()
}

fn startup(code: u32) -> Vec<u8> {
    let rest: &[u8] = if code == 196_608 { b"user\0me\0\0" } else { b"" };
    [&(rest.len() as u32 + 8).to_be_bytes()[..], &code.to_be_bytes(), rest].concat()
}

fn digest(turn: &Turn) -> &str {
    turn.sent.statement.as_ref().map_or("", |statement| &statement.digest_text)
}

const READY: (u8, &[u8]) = (b'Z', b"I");
const DONE: (u8, &[u8]) = (b'C', b"SELECT 1\0");
const FAILED: (u8, &[u8]) = (b'E', b"SERROR\0C42P01\0Mno\0\0");

fn login() -> Vec<(char, Vec<u8>)> {
    vec![
        ('>', startup(SSL_REQUEST)),
        ('<', b"N".to_vec()),
        ('>', startup(196_608)),
        ('<', all(&[(b'R', b"\0\0\0\0"), (b'S', b"a\0b\0"), (b'K', b"\0\0\x01\x07abcd"), READY])),
    ]
}

#[test]
fn login_and_simple_queries() {
    let more = [
        ('>', all(&[(b'Q', b"SELECT 'x'; SELECT 2\0")])),
        ('<', all(&[(b'T', b""), (b'D', b""), DONE])),
        ('<', all(&[(b'D', b""), DONE, READY])),
        ('>', all(&[(b'Q', b"SELECT no\0")])),
        ('<', all(&[FAILED, READY])),
    ];
    let turns = talk(&mut Postgres::new(true), &[login(), more.to_vec()].concat());
    let [asked, login, query, failed] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((asked.kind, login.kind, login.session_id), (Kind::Other, Kind::Login, Some(0x107)));
    assert_eq!((query.request_at, query.first_byte_at, query.done_at), (50, Some(60), 70));
    assert!(!digest(query).contains('x') && digest(query).starts_with("SELECT"));
    assert_eq!((failed.outcome, failed.error.as_deref()), (Outcome::Error, Some("42P01")));
}

#[test]
fn extended_protocol_and_pipelines() {
    let run =
        |n: &[u8]| [all(&[(b'B', &[n, b"\0s\0".as_slice()].concat()), (b'E', &[n, b"\0\0\0\0\0"].concat())])].concat();
    let more = [
        ('>', all(&[(b'P', b"s\0SELECT $1 + 7\0\0\0"), (b'D', b"Ss\0"), (b'S', b"")])),
        ('<', all(&[(b'1', b""), (b't', b""), (b'T', b""), READY])),
        // Three at once; the second fails, the third is left out.
        ('>', [run(b""), run(b"p"), run(b""), all(&[(b'S', b"")])].concat()),
        ('<', all(&[(b'2', b""), (b'D', b"x"), DONE, (b'2', b""), FAILED])),
        ('<', all(&[READY])),
        ('>', [run(b""), all(&[(b'S', b"")])].concat()),
        ('<', all(&[(b'2', b""), DONE])),
        ('<', all(&[READY])),
    ];
    let turns = talk(&mut Postgres::new(true), &[login(), more.to_vec()].concat());
    let [_, _, prepare, first, second, third, last] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((prepare.kind, prepare.done_at), (Kind::Prepare, 60));
    for (n, turn) in [first, second, third, last].into_iter().enumerate() {
        assert_eq!((turn.kind, digest(turn)), (Kind::Execute, digest(prepare)), "{n}");
        assert_eq!(turn.ahead, n % 3);
    }
    assert_eq!(
        [first, second, third, last].map(|turn| turn.outcome),
        [Outcome::Ok, Outcome::Error, Outcome::Error, Outcome::Ok]
    );
    assert_eq!((second.error.as_deref(), third.error.as_deref()), (Some("42P01"), None));
    assert_eq!((first.done_at, last.first_byte_at, last.done_at), (80, Some(110), 120), "with what Sync does");
}

#[test]
fn old_texts_lend_no_trace() {
    let text = "s\0/*traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'*/ SELECT 7\0\0\0";
    let prepare = all(&[(b'P', text.as_bytes())]);
    let run = all(&[(b'B', b"\0s\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")]);
    let done = ('<', all(&[(b'1', b""), (b'2', b""), DONE, READY]));
    let prepared = vec![('>', [prepare.clone(), all(&[(b'S', b"")])].concat()), ('<', all(&[(b'1', b""), READY]))];
    for (first, count) in [(vec![('>', [prepare, run.clone()].concat()), done.clone()], 1), (prepared, 2)] {
        let mut steps = [login(), first].concat();
        for _ in 0..2 {
            steps.extend([('>', run.clone()), done.clone()]);
        }
        let turns = talk(&mut Postgres::new(true), &steps);
        let traced: Vec<bool> = turns[2..].iter().map(|turn| turn.sent.trace_id.is_some()).collect();
        let expected: Vec<bool> = (0..3).map(|n| n < count).collect();
        assert_eq!(traced, expected);
    }
}

#[test]
fn copy_cancel_and_tls() {
    let more = [
        ('>', all(&[(b'Q', b"COPY t FROM STDIN\0")])),
        ('<', all(&[(b'G', b"\0\0\0")])),
        ('>', all(&[(b'd', b"1\n"), (b'c', b"")])),
        ('<', all(&[(b'C', b"COPY 1\0"), READY])),
    ];
    let turns = talk(&mut Postgres::new(true), &[login(), more.to_vec()].concat());
    let copy = turns.last().unwrap();
    assert_eq!((copy.request_end_at, copy.first_byte_at, copy.done_at, copy.request_bytes), (50, Some(60), 80, 35));

    let mut cancel = Postgres::new(true);
    let cancelling = [&16_u32.to_be_bytes()[..], &CANCEL_REQUEST.to_be_bytes(), b"pid_key_"].concat();
    assert!(talk(&mut cancel, &[('>', cancelling)]).is_empty());
    assert_eq!(cancel.talk().pending.len(), 1);

    let tls = [
        ('>', startup(SSL_REQUEST)),
        ('<', b"S".to_vec()),
        ('>', b"\x16\x03\x01hello".to_vec()),
        ('<', b"\x16\x03\x03hello".to_vec()),
        ('>', b"\x17\x03\x03query".to_vec()),
    ];
    let turns = talk(&mut Postgres::new(true), &tls);
    assert_eq!((turns[1].kind, turns[1].request_at, turns[1].done_at), (Kind::Opaque, 30, 40));
}

#[test]
fn the_beginning_was_not_seen() {
    let steps = [
        ('<', b"junk".to_vec()),
        ('>', b"\xff\xffjunk".to_vec()),
        ('>', all(&[(b'Q', b"SELECT 5\0")])),
        ('<', all(&[(b'T', b""), DONE, READY])),
        ('>', all(&[(b'P', b"\0SELECT $1\0\0\0"), (b'B', b"\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")])),
        ('<', all(&[(b'1', b""), (b'2', b""), DONE, READY])),
    ];
    let turns = talk(&mut Postgres::new(false), &steps);
    assert_eq!(
        turns.iter().map(|turn| (turn.kind, turn.done_at)).collect::<Vec<_>>(),
        [(Kind::Query, 40), (Kind::Execute, 60)]
    );
}
