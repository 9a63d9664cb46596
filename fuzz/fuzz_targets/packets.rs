//! Captures of packets (pcap, pcapng) with anything in them: what is asked and answered is the same however the file comes in pieces,
//! and there are no more exchanges than bytes. The first byte is the length of the pieces.
#![no_main]

use holdup_capture::file::Reader;
use holdup_capture::{Capture, Options, Protocol};
use libfuzzer_sys::fuzz_target;

fn exchanges(file: &[u8], piece: usize) -> (String, usize) {
    let ports = vec![(3306, Protocol::Mysql), (5432, Protocol::Postgres)];
    let mut capture = Capture::new(Options { ports, guess: true, connections_max: 64, ..Options::default() });
    let (mut reader, mut rows) = (Reader::new(), Vec::new());
    let mut take = |row| rows.push(format!("{row:?}"));
    let mut failed = None;
    for bytes in file.chunks(piece.max(1)) {
        if let Err(error) = reader.feed(bytes, &mut |packet| capture.packet(packet, &mut take)) {
            failed = Some(error.to_string());
            break;
        }
    }
    capture.quiet(i64::MAX / 2, &mut take);
    capture.finish(i64::MAX / 2, &mut take);
    // What ends with the capture ends in any order.
    rows.sort();
    (format!("{} {:?} {failed:?}", rows.join("\n"), capture.totals()), rows.len())
}

fuzz_target!(|input: &[u8]| {
    let Some((piece, file)) = input.split_first() else { return };
    let (whole, count) = exchanges(file, file.len());
    assert!(count <= file.len());
    assert_eq!(whole, exchanges(file, usize::from(*piece)).0);
});
