//! Files made by hand in every form: byte orders, clocks, interfaces, what is cut off.

use super::*;
use crate::packets::packet::Link;

/// Time, link, stored bytes, length.
type Seen = (i64, Link, Vec<u8>, usize);

fn read(bytes: &[u8], piece: usize) -> (Vec<Seen>, Result<(), FileError>, u64) {
    let (mut reader, mut seen) = (Reader::new(), Vec::new());
    let mut take = |packet: &Packet<'_>| seen.push((packet.at, packet.link, packet.bytes.to_vec(), packet.length));
    let fed = bytes.chunks(piece.max(1)).try_for_each(|piece| reader.feed(piece, &mut take));
    (seen, fed.and_then(|()| reader.finish()), reader.dropped())
}

fn number(is_big: bool, value: u32) -> [u8; 4] {
    if is_big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn pcap(is_big: bool, magic: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = [magic, 0x0004_0002, 0, 0, 65_535, 1].iter().flat_map(|n| number(is_big, *n)).collect();
    for record in [[7, 5, 3, 3], [8, 9, 2, 100]] {
        bytes.extend(record.iter().flat_map(|n| number(is_big, *n)));
        bytes.extend(&b"abc"[..record[2] as usize]);
    }
    bytes
}

#[test]
fn pcap_of_both_orders_and_resolutions_in_any_pieces() {
    for (is_big, magic, tick) in
        [(true, 0xa1b2_c3d4, 1000), (false, 0xa1b2_c3d4, 1000), (true, 0xa1b2_3c4d, 1), (false, 0xa1b2_3c4d, 1)]
    {
        let bytes = pcap(is_big, magic);
        let first = (7_000_000_000 + 5 * tick, Link::Ethernet, b"abc".to_vec(), 3);
        let second = (8_000_000_000 + 9 * tick, Link::Ethernet, b"ab".to_vec(), 100);
        for piece in 1..=bytes.len() {
            assert_eq!(read(&bytes, piece), (vec![first.clone(), second.clone()], Ok(()), 0), "{piece}");
        }
        let (seen, end, _) = read(&bytes[..bytes.len() - 1], 7);
        assert_eq!(seen.len(), 1);
        assert!(matches!(end, Err(FileError::Broken { .. })));
    }
}

fn block(is_big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = number(is_big, body.len() as u32 + 12);
    [&number(is_big, kind)[..], &length, &body, &length].concat()
}

fn pcapng(is_big: bool) -> Vec<u8> {
    let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let eight = |value: u64| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let numbers = |all: &[u32]| -> Vec<u8> { all.iter().flat_map(|n| number(is_big, *n)).collect() };
    let section = [&numbers(&[0x1a2b_3c4d])[..], &half(1), &half(0), &[0xff; 8]].concat();
    let nanoseconds = [
        &half(113)[..],
        &[0; 6],
        &half(9),
        &half(1),
        &[9, 0, 0, 0],
        &half(14),
        &half(8),
        &eight(2),
        &half(0),
        &half(0),
    ]
    .concat();
    let plain = [&half(1)[..], &[0; 6]].concat();
    let at = 5_000_000_001_u64;
    let packet = [&numbers(&[0, (at >> 32) as u32, at as u32, 3, 9])[..], b"abc"].concat();
    let second = [&numbers(&[1, 0, 42, 2, 2])[..], b"de"].concat();
    let dropped = [&numbers(&[0, 0, 0])[..], &half(5), &half(8), &eight(17), &half(0), &half(0)].concat();
    [
        block(is_big, 0x0a0d_0d0a, &section),
        block(is_big, 1, &nanoseconds),
        block(is_big, 0x0bad, &[7; 5000]),
        block(is_big, 1, &plain),
        block(is_big, 6, &packet),
        block(is_big, 3, b"\0\0\0\x02de"),
        block(is_big, 6, &second),
        block(is_big, 5, &dropped),
        block(is_big, 5, &dropped),
    ]
    .concat()
}

#[test]
fn pcapng_of_both_orders_in_any_pieces() {
    // A section of the other order may follow.
    let bytes = [pcapng(true), pcapng(false)].concat();
    let first = (7_000_000_001, Link::Cooked, b"abc".to_vec(), 9);
    let second = (42_000, Link::Ethernet, b"de".to_vec(), 2);
    let expected = vec![first.clone(), second.clone(), first, second];
    for piece in (1..200).chain([1000, 4096, bytes.len()]) {
        assert_eq!(read(&bytes, piece), (expected.clone(), Ok(()), 34), "{piece}");
    }
}

#[test]
fn a_file_that_is_not_a_capture_is_refused() {
    assert_eq!(read(b"GIF89a and more bytes", 5).1, Err(FileError::Unknown));
    assert_eq!(read(b"\x1f\x8b\x08\0 and more bytes", 5).1, Err(FileError::Compressed));
    assert_eq!(read(b"", 5).1, Err(FileError::Unknown));
    let mut bytes = pcap(true, 0xa1b2_c3d4);
    bytes[23] = 105;
    assert_eq!(read(&bytes, 9).1, Err(FileError::Link(105)));
    bytes[23] = 1;
    bytes[32] = 0x7f;
    assert!(matches!(read(&bytes, 9).1, Err(FileError::Broken { offset: 24, .. })));
    assert!(is_capture(&pcapng(false)) && is_capture(&pcap(false, 0xa1b2_3c4d)) && !is_capture(b"abcd"));
}
