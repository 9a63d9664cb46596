//! Heads packed and unpacked (RFC 7541).

/// Appends an integer whose first byte has `prefix` free bits and `pattern` above them (section 5.1).
pub(super) fn put_integer(out: &mut Vec<u8>, pattern: u8, prefix: u8, value: usize) {
    let full = (1_usize << prefix) - 1;
    if value < full {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | full as u8);
    let mut rest = value - full;
    while rest >= 128 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string as it is, without the Huffman code: it costs the server nothing to unpack.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, 0, 7, text.len());
    out.extend_from_slice(text);
}
