//! A database server that sends anything, cut anyhow: events, result and output must be those of the uncut bytes, and
//! what is kept is bounded. The input is a program: steps of the caller (execute, write, begin TLS, quit) and messages or
//! loose bytes of the server, whose lengths and numbers are right unless it says otherwise.
#![no_main]

use std::sync::{Arc, LazyLock};

use holdup_protocol::database::mongodb::Command;
use holdup_protocol::database::{Dialect, Error, Event, Login, Secret, Session, Statement, TlsMode};
use libfuzzer_sys::fuzz_target;

const PASSWORD: &str = "correct horse battery";

/// What is executed: a text; prepared; prepared for once; a transaction of all kinds.
static STATEMENTS: LazyLock<[Vec<Statement>; 4]> = LazyLock::new(|| {
    let text = |text: &str| Statement { text: text.to_owned(), ..Statement::default() };
    let parameters = vec![Some(b"1".to_vec()), None];
    let prepared = Statement { is_prepared: true, parameters: parameters.clone(), ..text("SELECT ?, ?") };
    let once = Statement { parameters, ..text("SELECT ?, ?") };
    let transaction = vec![text("BEGIN"), prepared.clone(), once.clone(), text("COMMIT")];
    [vec![text("SELECT 1")], vec![prepared], vec![once], transaction]
});

enum Step<'a> {
    Execute { which: usize, keep_row: bool },
    Write,
    TlsStarted,
    Quit,
    LogIn,
    Message { kind: u8, payload: &'a [u8], times: usize, size: usize },
    Loose(&'a [u8]),
}

/// Reads the next step: a byte that says which, and what it needs.
fn step<'a>(input: &mut &'a [u8]) -> Option<Step<'a>> {
    let (&what, rest) = input.split_first()?;
    *input = rest;
    let mut take = |count: u8| {
        let (bytes, rest) = input.split_at(usize::from(count).min(input.len()));
        *input = rest;
        bytes
    };
    Some(match what {
        0xf0..=0xf7 => Step::Execute { which: usize::from(what & 3), keep_row: what & 4 != 0 },
        0xf8 | 0xf9 => Step::Write,
        0xfa => Step::TlsStarted,
        0xfb => Step::Quit,
        0xfc | 0xfd => Step::LogIn,
        0xfe => {
            let &[count] = take(1) else { return None };
            Step::Loose(take(count))
        }
        kind => {
            let &[length, times] = take(2) else { return None };
            let payload = take(length);
            // Some messages are large, and small ones may come in numbers.
            let (size, times) = match times {
                0xfc.. => (300, 1),
                0xf0.. => (20, 1),
                _ => (1, 1 + usize::from(times & 0x0f)),
            };
            Step::Message { kind, payload, times, size }
        }
    })
}

/// The number of MySQL's next packet: behind that of the last that was sent, or received. For MongoDB that of the last request.
fn follow(dialect: Dialect, number: &mut u8, mut output: &[u8]) {
    if dialect == Dialect::Mongodb {
        while let Some((&[a, b, c, d, request, ..], rest)) = output.split_first_chunk::<16>() {
            *number = request;
            output = rest.get((u32::from_le_bytes([a, b, c, d]) as usize).saturating_sub(16)..).unwrap_or_default();
        }
        return;
    }
    while let Some(([a, b, c, sent], rest)) = output.split_first_chunk() {
        *number = sent.wrapping_add(1);
        output = rest.get(u32::from_le_bytes([*a, *b, *c, 0]) as usize..).unwrap_or_default();
    }
}

fn message(dialect: Dialect, number: &mut u8, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 5);
    match dialect {
        // The kind is that of the payload, too.
        Dialect::Mysql => {
            let first = if kind < 0x80 { &[][..] } else { &[kind | 0x78] };
            bytes.extend(&((payload.len() + first.len()) as u32).to_le_bytes()[..3]);
            bytes.push(*number);
            *number = number.wrapping_add(1);
            bytes.extend(first);
        }
        Dialect::Postgres => {
            bytes.push(kind);
            bytes.extend((payload.len() as u32 + 4).to_be_bytes());
        }
        // The answer to the last request: a message of one section.
        Dialect::Mongodb => {
            let header = [payload.len() as u32 + 21, 7, u32::from(*number), 2013, u32::from(kind & 1) << 1];
            bytes.extend(header.iter().flat_map(|value| value.to_le_bytes()));
            bytes.push(0);
        }
    }
    bytes.extend(payload);
    bytes
}

/// What lets an account in that was asked for nothing yet.
fn login(dialect: Dialect, number: &mut u8) -> Vec<u8> {
    match dialect {
        Dialect::Mysql => {
            let greeting = b"\x0a8\0\x07\0\0\0abcdefgh\0\xff\xff\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
            let greeting = message(dialect, &mut 0, 0, greeting);
            *number = 3;
            [greeting, message(dialect, &mut 2, 0, b"\0\0\0\x02\0\0\0")].concat()
        }
        Dialect::Postgres => b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I".to_vec(),
        // A document with `ok`: 1.
        Dialect::Mongodb => message(dialect, number, 0, b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0"),
    }
}

fn shown(event: &Event<'_>) -> String {
    let Event::Row { statement, columns, values } = event else { return format!("{event:?}") };
    assert_eq!(columns.len(), values.len());
    assert!(values.iter().flatten().map(|value| value.len()).sum::<usize>() < 3 << 20);
    let text = |value: &Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into_owned());
    let values: Vec<Option<String>> = values.iter().map(text).collect();
    format!("{statement} {} {values:?}", columns.join(","))
}

/// Runs the program with the server's bytes in pieces of these sizes, over and over.
fn run(dialect: Dialect, tls: TlsMode, program: &[u8], sizes: &[u8]) -> (Vec<String>, Option<Error>, Vec<u8>) {
    let account = Login::new("me".to_owned(), Secret::new(PASSWORD.to_owned()), None);
    let mut session = Session::new(dialect, Arc::new(account), tls);
    let (mut events, mut output, mut error) = (Vec::new(), Vec::new(), None);
    let mut number = 0;
    let mut is_busy = false;
    let mut sizes = sizes.iter().cycle().map(|&size| usize::from(size) + 1);
    let mut rest = program;
    while let (Some(step), None) = (step(&mut rest), &error) {
        let received = match step {
            Step::Execute { which, keep_row } => {
                let was_ready = session.is_ready();
                let is_taken = if dialect == Dialect::Mongodb {
                    let command = Command { database: "d".into(), name: "ping".into(), ..Command::default() };
                    session.execute_commands(&[command], which == 3, keep_row, b"").is_ok()
                } else {
                    session.execute(&STATEMENTS[which], keep_row).is_ok()
                };
                assert_eq!(is_taken, was_ready);
                is_busy |= was_ready;
                Vec::new()
            }
            Step::Write => {
                follow(dialect, &mut number, session.output());
                output.extend_from_slice(session.output());
                session.consumed(session.output().len());
                Vec::new()
            }
            Step::TlsStarted => {
                session.tls_started();
                Vec::new()
            }
            Step::Quit => {
                session.quit();
                Vec::new()
            }
            Step::LogIn => login(dialect, &mut number),
            Step::Message { kind, payload, times, size } => {
                let payload = payload.repeat(size);
                (0..times).flat_map(|_| message(dialect, &mut number, kind, &payload)).collect()
            }
            Step::Loose(bytes) => bytes.to_vec(),
        };
        let mut left = received.as_slice();
        while !left.is_empty() && error.is_none() {
            let (piece, after) = left.split_at(sizes.next().unwrap_or(usize::MAX).min(left.len()));
            left = after;
            let mut add = |event: Event<'_>| {
                if matches!(event, Event::Done { .. } | Event::Failed { .. }) {
                    assert!(std::mem::take(&mut is_busy), "{event:?} of nothing");
                }
                events.push(shown(&event));
            };
            error = session.feed(piece, &mut add).err();
        }
        assert!(!(is_busy && session.is_ready()));
        assert!(session.output().len() < 1 << 16);
    }
    output.extend_from_slice(session.output());
    assert!(!format!("{session:?} {error:?} {events:?}").contains(PASSWORD));
    (events, error, output)
}

fuzz_target!(|input: &[u8]| {
    let [how, rest @ ..] = input else { return };
    let dialect = match how & 0xa0 {
        0 => Dialect::Mysql,
        0x80 => Dialect::Postgres,
        _ => Dialect::Mongodb,
    };
    let tls = if how & 0x40 == 0 { TlsMode::Off } else { TlsMode::On };
    let Some((sizes, program)) = rest.split_at_checked(usize::from(*how % 16)) else { return };
    let (events, error, output) = run(dialect, tls, program, &[]);
    let is_same = |sizes: &[u8]| {
        let (cut_events, cut_error, cut_output) = run(dialect, tls, program, sizes);
        assert_eq!((&cut_events, &cut_error), (&events, &error));
        // A login by SCRAM begins with random bytes, and so does the name of MongoDB's session.
        assert_eq!(cut_output.len(), output.len());
        assert!(dialect != Dialect::Mysql || cut_output == output);
    };
    is_same(sizes);
    if program.len() < 200 {
        is_same(&[0]);
    }
});
