//! Captures of packets (pcap, pcapng) with anything in them: what is asked and answered is the same however the file comes in pieces,
//! and there are no more exchanges than bytes. The first byte is the length of the pieces.
#![no_main]

use holdup_protocol::packets::file::Reader;
use holdup_protocol::packets::{Capture, Options, Protocol};
use libfuzzer_sys::fuzz_target;

fn exchanges(file: &[u8], piece: usize) -> (String, usize) {
    let ports = vec![(3306, Protocol::Mysql), (5432, Protocol::Postgres), (27_017, Protocol::Mongodb)];
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

/// The same with all that was said.
fn details(file: &[u8], piece: usize) -> Vec<String> {
    let ports = vec![(3306, Protocol::Mysql), (5432, Protocol::Postgres), (27_017, Protocol::Mongodb)];
    let options = Options { ports, guess: true, connections_max: 64, in_full: true, ..Options::default() };
    let (mut capture, mut reader, mut all) = (Capture::new(options), Reader::new(), Vec::new());
    for bytes in file.chunks(piece.max(1)) {
        if reader.feed(bytes, &mut |packet| capture.packet(packet, &mut |_| ())).is_err() {
            break;
        }
    }
    capture.finish(i64::MAX / 2, &mut |_| ());
    for detail in capture.details() {
        let said = detail.sql.as_ref().map_or(0, |sql| sql.len());
        // A shape names fields that may be shorter than what stands for their values.
        assert!(said <= 3 * file.len() + 64 && detail.parameters.len() <= 12 * file.len() + 64);
        all.push(format!("{detail:?}"));
    }
    all.sort();
    all
}

fuzz_target!(|input: &[u8]| {
    let Some((piece, file)) = input.split_first() else { return };
    let (whole, count) = exchanges(file, file.len());
    assert!(count <= file.len());
    assert_eq!(whole, exchanges(file, usize::from(*piece)).0);
    assert_eq!(details(file, file.len()), details(file, usize::from(*piece)));
});
