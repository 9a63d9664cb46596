//! Rows for a caller that wants all of them, as the collectors do.

use super::{column, eof, login, packet, prepare_ok, row};
use crate::database::event::Error;
use crate::database::mysql::status::MORE_RESULTS;
use crate::database::tests::conversation::{Step, session, text};
use crate::database::{Dialect, Event, Statement, TlsMode};

/// Executes after the login, keeps every row, and feeds `packets`: the rows, and how it ended.
fn every_row(statement: Statement, packets: &[Vec<u8>]) -> (Vec<String>, Result<(), Error>) {
    let mut session = session(Dialect::Mysql, TlsMode::Off);
    session.keep_every_row();
    for step in login() {
        if let Step::Server(bytes) = step {
            session.feed(&bytes, &mut |_| ()).unwrap();
        }
    }
    session.execute(&[statement], true).unwrap();
    let mut rows = Vec::new();
    let mut take = |event: Event<'_>| {
        if let Event::Row { columns, values, .. } = event {
            let value = |value: &Option<&[u8]>| value.map_or(-1, |value| value.len() as i64).to_string();
            rows.push(format!("{}={}", columns.join(","), values.iter().map(value).collect::<Vec<_>>().join(",")));
        }
    };
    let mut result = Ok(());
    for bytes in packets {
        result = result.and_then(|()| session.feed(bytes, &mut take));
    }
    assert_eq!(session.is_ready(), result.is_ok());
    (rows, result)
}

fn numbered(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    payloads.iter().zip(1..).map(|(payload, number)| packet(number, payload)).collect()
}

#[test]
fn every_row_is_kept() {
    let long = [&[0xfd][..], &(2_u32 << 20).to_le_bytes()[..3], &vec![b'x'; 2 << 20]].concat();
    let texts = [
        vec![2],
        column("a", 253),
        column("b", 253),
        eof(2),
        row(&[Some("x"), None]),
        [long, vec![0xfb]].concat(),
        row(&[Some(""), Some("yy")]),
        // Another result, with its own columns.
        eof(2 | MORE_RESULTS),
        vec![1],
        column("c", 253),
        eof(2),
        row(&[Some("zzz")]),
        eof(2),
    ];
    let (rows, result) = every_row(text("SHOW"), &numbered(&texts));
    assert_eq!((rows, result), (["a,b=1,-1", "a,b=2097152,-1", "a,b=0,2", "c=3"].map(str::to_owned).to_vec(), Ok(())));

    // Binary rows: the second is NULL.
    let once = Statement { is_prepared: true, ..text("SELECT n") };
    let prepared = [prepare_ok(9, 1, 0), column("n", 8), eof(2)];
    let answer = [
        vec![1],
        column("n", 8),
        eof(2),
        vec![0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        vec![0, 4],
        eof(2),
    ];
    let (rows, result) = every_row(once, &[numbered(&prepared), numbered(&answer)].concat());
    assert_eq!((rows, result), (["n=2", "n=-1"].map(str::to_owned).to_vec(), Ok(())));
}

#[test]
fn a_row_or_a_name_that_cannot_be_kept_is_no_gap_but_an_error() {
    let begin = numbered(&[vec![1], column("a", 253), eof(2)]);
    let head = vec![0xff, 0xff, 0xff, 4, 0xfd];
    let (rows, result) = every_row(text("SHOW"), &[begin, vec![head]].concat());
    assert_eq!((rows.len(), result), (0, Err(Error::TooLarge("a packet"))));
    let name = [&[0xfd][..], &(60_000_u32).to_le_bytes()[..3], &[b'n'; 60_000]].concat();
    let long = [b"\x03def\0\0\0", name.as_slice(), &[0, 0x0c, 45, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0]].concat();
    let many = [vec![vec![30]], vec![long; 30]].concat();
    let (_, result) = every_row(text("SHOW"), &numbered(&many));
    assert_eq!(result, Err(Error::TooLarge("the names of columns")));
}
