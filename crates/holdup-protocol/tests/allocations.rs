//! Once a connection is in its stride, executing takes no memory from the allocator: it is the hot path of a load
//! generator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdup_protocol::database::{Dialect, Event, Login, Secret, Session, Statement, TlsMode};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: it only counts, and leaves the rest to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MYSQL_LOGIN: [&[u8]; 2] = [
    b"\x45\0\0\0\x0a8\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0",
    b"\x07\0\0\x02\0\0\0\x02\0\0\0",
];
const POSTGRES_LOGIN: [&[u8]; 1] = [b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"];

/// A row of one column, in text; the binary one; a prepared statement without definitions, and its OK.
const MYSQL_ROW: &[u8] = b"\x01\0\0\x01\x01\x17\0\0\x02\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\x03\0\0\0\0\0\x05\0\0\x03\xfe\0\0\x02\0\x02\0\0\x04\x011\x05\0\0\x05\xfe\0\0\x02\0";
const MYSQL_PREPARED: &[u8] = b"\x0c\0\0\x01\0\x09\0\0\0\0\0\0\0\0\0\0";
const MYSQL_OK: &[u8] = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";
const POSTGRES_ROW: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
const POSTGRES_PARSED: &[u8] = b"1\0\0\0\x042\0\0\0\x04C\0\0\0\x0dUPDATE 1\0Z\0\0\0\x05I";

fn round(session: &mut Session, statement: &Statement, answers: &[&[u8]]) {
    session.execute(std::slice::from_ref(statement), false).expect("it is ready");
    let mut is_done = false;
    for answer in answers {
        session.consumed(session.output().len());
        // As the network may cut it.
        for piece in answer.chunks(7) {
            session.feed(piece, &mut |event| is_done |= matches!(event, Event::Done { .. })).expect("it is right");
        }
    }
    assert!(is_done && session.is_ready());
}

#[test]
fn executing_allocates_nothing() {
    let text = Statement { text: "SELECT 1".to_owned(), ..Statement::default() };
    let prepared = Statement { text: "UPDATE t SET a = 1".to_owned(), is_prepared: true, parameters: Vec::new() };
    for dialect in [Dialect::Mysql, Dialect::Postgres] {
        let login = Login::new("me".to_owned(), Secret::new("secret".to_owned()), None);
        let mut session = Session::new(dialect, Arc::new(login), TlsMode::Off);
        let (greetings, row, first, again): (&[&[u8]], _, &[&[u8]], &[u8]) = match dialect {
            Dialect::Mysql => (&MYSQL_LOGIN, MYSQL_ROW, &[MYSQL_PREPARED, MYSQL_OK], MYSQL_OK),
            Dialect::Postgres => (&POSTGRES_LOGIN, POSTGRES_ROW, &[POSTGRES_PARSED], &POSTGRES_PARSED[5..]),
            // Its commands are documents, which are read into memory.
            Dialect::Mongodb => continue,
        };
        for greeting in greetings {
            session.consumed(session.output().len());
            session.feed(greeting, &mut |_| ()).expect("it is right");
        }
        round(&mut session, &text, &[row]);
        round(&mut session, &prepared, first);
        round(&mut session, &prepared, &[again]);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..100 {
            round(&mut session, &text, &[row]);
            round(&mut session, &prepared, &[again]);
        }
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "{dialect:?}");
    }
}
