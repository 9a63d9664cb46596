//! Blocks of packed header fields: what comes out is bounded, and the same again when it is packed plainly.
#![no_main]

use holdup_protocol::http::http2::MAX_HEAD_BYTES;
use holdup_protocol::http::http2::hpack::unpack;
use libfuzzer_sys::fuzz_target;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn fields(block: &[u8], scratch: &mut Vec<u8>) -> Option<Fields> {
    let mut fields = Fields::new();
    let mut total = 0;
    let result = unpack(block, scratch, |name, value| {
        total += name.len() + value.len() + 32;
        fields.push((name.to_vec(), value.to_vec()));
    });
    assert!(total <= MAX_HEAD_BYTES);
    result.ok().map(|()| fields)
}

/// A length as RFC 7541, section 5.1, writes it with seven bits in the first byte.
fn length(out: &mut Vec<u8>, mut length: usize) {
    if length < 127 {
        return out.push(length as u8);
    }
    out.push(127);
    length -= 127;
    while length >= 128 {
        out.push(length as u8 | 128);
        length >>= 7;
    }
    out.push(length as u8);
}

fuzz_target!(|block: &[u8]| {
    let unpacked = fields(block, &mut Vec::new());
    let mut scratch = b"used before".to_vec();
    assert_eq!(fields(block, &mut scratch), unpacked);
    assert!(scratch.capacity() < 8 * (block.len() + 64));
    let Some(unpacked) = unpacked else { return };
    let mut plain = Vec::new();
    for (name, value) in &unpacked {
        plain.push(0);
        for text in [name, value] {
            length(&mut plain, text.len());
            plain.extend_from_slice(text);
        }
    }
    assert_eq!(fields(&plain, &mut scratch), Some(unpacked));
});
