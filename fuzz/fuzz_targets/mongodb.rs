//! MongoDB's bytes: files of `diagnostic.data`, and answers of a server or lines of its log, told apart
//! by the first byte. The same bytes give the same rows, and neither takes more memory than the bytes deserve.
#![no_main]

use holdup_import::ftdc;
use holdup_mongodb::{Document, logged, operations, replica_set, shape, status};
use holdup_protocol::database::mongodb::{Event, Session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    if first % 2 == 0 {
        let _ = ftdc::is_one(bytes);
        let [once, again] = [ftdc::fuzz(bytes), ftdc::fuzz(bytes)].map(Result::unwrap);
        assert_eq!(once, again);
        return;
    }
    let mut session = Session::new(None, 1 << 20);
    session.consumed(session.output().len());
    for piece in bytes.chunks(usize::from(*first).max(1)) {
        let fed = session.feed(piece, &mut |event| {
            if let Event::Answer(document) = event {
                read(document);
            }
        });
        if fed.is_err() {
            break;
        }
    }
    for line in String::from_utf8_lossy(bytes).lines() {
        assert_eq!(logged(line), logged(line));
    }
    let _ = Document::beginning(bytes).map(|document| document.readable(&[]));
    if let Ok(document) = Document::read(bytes) {
        read(document);
    }
});

fn read(document: Document<'_>) {
    let Ok(value) = document.value() else { return };
    assert!(status(&value).figures.iter().all(|figure| figure.value.is_finite()));
    let _ = replica_set(&value);
    let _ = shape(&value, "shop.orders");
    let _ = operations(value.get("inprog").unwrap_or(&value).items(), 0, "mongodb://fuzz");
}
