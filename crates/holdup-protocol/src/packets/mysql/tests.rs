//! Conversations of MySQL, segment by segment.

use super::*;
use crate::packets::conversation::Reader as _;
use crate::packets::statement::Statements;
use crate::packets::turn::Turn;

/// Steps of a conversation: `>` what the client sends, `<` what the server does; a step is a segment, 10 ns apart.
fn talk(mysql: &mut Mysql, steps: &[(char, Vec<u8>)]) -> Vec<Turn> {
    let (mut statements, mut turns) = (Statements::default(), Vec::new());
    for (n, (side, bytes)) in steps.iter().enumerate() {
        let piece = Piece { at: 10 * (n as i64 + 1), bytes, cut: 0 };
        let mut to = Sinks { statements: &mut statements, turns: &mut turns };
        if *side == '>' { mysql.take(true, &piece, &mut to) } else { mysql.take(false, &piece, &mut to) }
    }
    turns
}

fn message(number: u8, content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_le_bytes()[..3], &[number], content].concat()
}

fn messages(contents: &[&[u8]]) -> Vec<u8> {
    contents.iter().enumerate().flat_map(|(n, content)| message(n as u8 + 1, content)).collect()
}

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const EOF: &[u8] = b"\xfe\0\0\x02\0";
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0";
const GREETING: &[u8] =
    b"\x0a8.0\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";

fn login(capabilities: u32) -> [(char, Vec<u8>); 3] {
    let answer = [&capabilities.to_le_bytes()[..], &[0; 28], b"me\0secret\0"].concat();
    [('<', message(0, GREETING)), ('>', message(1, &answer)), ('<', message(2, OK))]
}

fn query(text: &str) -> (char, Vec<u8>) {
    ('>', message(0, &[b"\x03", text.as_bytes()].concat()))
}

const TRACE: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";
const TRACED: &str =
    "/*traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'*/ DELETE FROM t WHERE a = 5";

fn digest(turn: &Turn) -> &str {
    turn.sent.statement.as_ref().map_or("", |statement| &statement.digest_text)
}

#[test]
fn login_query_and_error() {
    let steps: Vec<_> = login(0x0000_0201)
        .into_iter()
        .chain([
            query(&TRACED.replace("DELETE", "SELECT a").replace("a = 5", "b = 'x'")),
            ('<', messages(&[b"\x01", COLUMN, EOF])),
            ('<', message(4, b"\x011")),
            ('<', message(5, EOF)),
            query("SELECT nonsense"),
            ('<', message(1, b"\xff\x28\x04#42000what")),
            ('>', message(0, b"\x01")),
        ])
        .collect();
    let turns = talk(&mut Mysql::new(Some(0)), &steps);
    let [login, select, failed] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((login.kind, login.request_at, login.done_at, login.session_id), (Kind::Login, 20, 30, Some(7)));
    assert_eq!(digest(select), "SELECT a FROM t WHERE b = ?");
    assert_eq!(select.sent.trace_id.as_deref(), Some(TRACE));
    assert_eq!((select.request_at, select.first_byte_at, select.done_at), (40, Some(50), 70));
    assert_eq!(select.response_bytes, (4 + 1) + (4 + COLUMN.len() as u64) + 9 + 6 + 9);
    assert_eq!((failed.outcome, failed.error.as_deref()), (Outcome::Error, Some("1064")));
}

#[test]
fn prepared_executed_closed_and_pipelined() {
    let prepare_ok: &[u8] = b"\0\x05\0\0\0\0\0\0\0\0\0\0";
    let execute = |id: u32| message(0, &[&[0x17], &id.to_le_bytes()[..], b"\0\x01\0\0\0"].concat());
    let close = message(0, b"\x19\x05\0\0\0");
    let steps: Vec<_> = login(0x0000_0201)
        .into_iter()
        .chain([
            // Prepared and executed at once, by the id of the last.
            ('>', [message(0, &[b"\x16", TRACED.as_bytes()].concat()), execute(u32::MAX)].concat()),
            ('<', message(1, prepare_ok)),
            ('<', message(1, OK)),
            ('>', execute(5)),
            ('<', message(1, OK)),
            ('>', [close, execute(5)].concat()),
            ('<', message(1, b"\xff\xdb\x04#HY000unknown")),
        ])
        .collect();
    let turns = talk(&mut Mysql::new(Some(0)), &steps);
    let [_, prepare, pipelined, execute, forgotten] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((prepare.kind, prepare.ahead, prepare.done_at), (Kind::Prepare, 0, 50));
    assert_eq!((pipelined.kind, pipelined.ahead, pipelined.done_at), (Kind::Execute, 1, 60));
    assert_eq!(
        (digest(pipelined), digest(execute), digest(forgotten)),
        ("DELETE FROM t WHERE a = ?", "DELETE FROM t WHERE a = ?", "")
    );
    assert_eq!(forgotten.error.as_deref(), Some("1243"));
}

/// A preparation lends its trace to the execution it was made for, and to no later one.
#[test]
fn old_texts_lend_no_trace() {
    let prepare_ok: &[u8] = b"\0\x05\0\0\0\0\0\0\0\0\0\0";
    let execute = |id: u32| message(0, &[&[0x17], &id.to_le_bytes()[..], b"\0\x01\0\0\0"].concat());
    let prepare = message(0, &[b"\x16", TRACED.as_bytes()].concat());
    for (at_once, id) in [(true, u32::MAX), (false, 5)] {
        let mut steps = login(0x0000_0201).to_vec();
        if at_once {
            steps.extend([('>', [prepare.clone(), execute(id)].concat()), ('<', message(1, prepare_ok))]);
        } else {
            let apart = [('>', prepare.clone()), ('<', message(1, prepare_ok)), ('>', execute(id))];
            steps.extend(apart);
        }
        steps.extend([('<', message(1, OK)), ('>', execute(5)), ('<', message(1, OK))]);
        let turns = talk(&mut Mysql::new(Some(0)), &steps);
        let traces: Vec<_> = turns[1..].iter().map(|turn| turn.sent.trace_id.as_deref()).collect();
        assert_eq!(traces, [Some(TRACE), Some(TRACE), None], "at once: {at_once}");
        assert!(turns[1..].iter().all(|turn| digest(turn) == "DELETE FROM t WHERE a = ?"));
    }
}

#[test]
fn tls_and_compression_leave_times() {
    for compressed in [false, true] {
        let answer = if compressed {
            login(0x0000_0221)[1].1.clone()
        } else {
            message(1, &[&0x0800_u32.to_le_bytes()[..], &[0; 28]].concat())
        };
        let steps = vec![
            ('<', message(0, GREETING)),
            ('>', answer),
            ('<', message(2, OK)),
            ('>', vec![0x17; 100]),
            ('<', vec![0x17; 50]),
            ('>', vec![0x17; 10]),
        ];
        let turns = talk(&mut Mysql::new(Some(0)), &steps);
        let opaque = turns.last().unwrap();
        assert_eq!((opaque.kind, opaque.session_id), (Kind::Opaque, Some(7)), "{turns:?}");
        assert_eq!((opaque.request_at, opaque.first_byte_at), (40, Some(50)));
    }
}

#[test]
fn the_beginning_was_not_seen() {
    let mut mysql = Mysql::new(None);
    let steps = [
        ('<', b"\x05junk".to_vec()),
        ('>', b"more junk".to_vec()),
        query("SELECT 1"),
        ('<', messages(&[b"\x01", COLUMN, EOF, b"\x011", EOF])),
    ];
    let turns = talk(&mut mysql, &steps);
    assert_eq!(turns.len(), 1);
    assert_eq!((digest(&turns[0]), turns[0].done_at, turns[0].session_id), ("SELECT ?", 40, None));
}

#[test]
fn turned_away() {
    let turns = talk(&mut Mysql::new(Some(3)), &[('<', message(0, b"\xff\x10\x04#08004Too many connections"))]);
    assert_eq!((turns[0].kind, turns[0].error.as_deref()), (Kind::Login, Some("1040")));
    assert_eq!((turns[0].request_at, turns[0].done_at), (3, 10));
}

#[test]
fn a_lost_exchange_is_marked_and_the_next_is_read() {
    let mut mysql = Mysql::new(None);
    let (mut statements, mut turns) = (Statements::default(), Vec::new());
    let mut to = Sinks { statements: &mut statements, turns: &mut turns };
    let (one, two) = (query("SELECT 1").1, query("SELECT 2").1);
    mysql.take(true, &Piece { at: 1, bytes: &one, cut: 0 }, &mut to);
    mysql.lost(false, 2, 1000, &mut to);
    mysql.take(false, &Piece { at: 3, bytes: b"rest of rows", cut: 0 }, &mut to);
    mysql.take(true, &Piece { at: 4, bytes: &two, cut: 0 }, &mut to);
    mysql.take(false, &Piece { at: 5, bytes: &messages(&[b"\x01", COLUMN, EOF, EOF]), cut: 0 }, &mut to);
    // A request that was not captured at all.
    mysql.lost(true, 6, 40, &mut to);
    mysql.take(false, &Piece { at: 7, bytes: &messages(&[OK]), cut: 0 }, &mut to);
    mysql.take(true, &Piece { at: 8, bytes: &one, cut: 0 }, &mut to);
    let seen: Vec<_> = turns.iter().map(|turn| (turn.request_at, turn.done_at, turn.is_lost)).collect();
    assert_eq!(seen, [(1, 3, true), (4, 5, false), (6, 7, true)]);
}

#[test]
fn rows_that_were_not_stored_are_passed_over() {
    let mut mysql = Mysql::new(None);
    let (mut statements, mut turns) = (Statements::default(), Vec::new());
    let mut to = Sinks { statements: &mut statements, turns: &mut turns };
    mysql.take(true, &Piece { at: 1, bytes: &query("SELECT 1").1, cut: 0 }, &mut to);
    mysql.take(false, &Piece { at: 2, bytes: &messages(&[b"\x01", COLUMN, EOF]), cut: 5000 }, &mut to);
    assert!(mysql.ends_by_turn());
    mysql.take(false, &Piece { at: 3, bytes: b"abc", cut: 100 }, &mut to);
    mysql.take(true, &Piece { at: 4, bytes: &query("SELECT 2").1, cut: 0 }, &mut to);
    assert_eq!((turns[0].done_at, turns[0].is_lost, turns[0].first_byte_at), (3, false, Some(2)));
    assert!(turns[0].response_bytes > 5100);
}
