//! The Huffman code of header strings (RFC 7541, section 5.2 and appendix B). The code is
//! canonical, so its lengths define it: codes of one length follow each other in the order of their
//! symbols. The tables are built from them at compile time.

/// Bits that the first table decodes at once: enough for the usual characters of a header.
const FAST_BITS: u32 = 10;

/// Longest code, in bits.
const LONGEST: usize = 30;

/// The symbol that ends a string, and must not occur in one.
const END: u16 = 256;

/// Length in bits of the code of each byte, and of the end symbol.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Tables for decoding, built from [`LENGTHS`].
struct Tables {
    /// By the next [`FAST_BITS`] bits: symbol << 8 | length, or 0 for longer codes.
    fast: [u16; 1 << FAST_BITS],
    /// By length: the first code of that length or longer, aligned to 32 bits on the left.
    beyond: [u64; LONGEST + 1],
    /// By length: what to add to a code of that length to get its place in `symbols`.
    offset: [i64; LONGEST + 1],
    /// In the order of their codes.
    symbols: [u16; 257],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables =
        Tables { fast: [0; 1 << FAST_BITS], beyond: [0; LONGEST + 1], offset: [0; LONGEST + 1], symbols: [0; 257] };
    let (mut code, mut place, mut length) = (0_u64, 0, 1);
    while length <= LONGEST {
        code <<= 1;
        tables.offset[length] = place as i64 - code as i64;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                tables.symbols[place] = symbol as u16;
                if length <= FAST_BITS as usize {
                    let spare = FAST_BITS as usize - length;
                    let mut low = 0;
                    while low < 1 << spare {
                        tables.fast[((code as usize) << spare) | low] = (symbol as u16) << 8 | length as u16;
                        low += 1;
                    }
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        tables.beyond[length] = code << (32 - length);
        length += 1;
    }
    tables
}

/// Appends the decoded string. None if `coded` is invalid: it contains an end symbol, or its
/// padding is wrong.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // The shortest code has five bits.
    out.reserve(coded.len() * 8 / 5);
    // Unused bits, aligned to the left and followed by zeros, and their number.
    let (mut bits, mut count) = (0_u64, 0_u32);
    let mut rest = coded.iter();
    loop {
        while count <= 56 {
            let Some(&byte) = rest.next() else { break };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        let entry = TABLES.fast[(bits >> (64 - FAST_BITS)) as usize];
        let (symbol, length) = if entry != 0 { (entry >> 8, u32::from(entry & 0xff)) } else { long(bits) };
        if length > count {
            break;
        }
        if symbol == END {
            return None;
        }
        out.push(symbol as u8);
        bits <<= length;
        count -= length;
    }
    // Padding is the start of the end symbol, all ones, and shorter than a byte.
    (count < 8 && (count == 0 || bits >> (64 - count) == (1 << count) - 1)).then_some(())
}

/// Symbol and length of a code that is longer than [`FAST_BITS`].
fn long(bits: u64) -> (u16, u32) {
    let head = bits >> 32;
    let found = (FAST_BITS as usize + 1..LONGEST).find(|&length| head < TABLES.beyond[length]);
    let length = found.unwrap_or(LONGEST);
    let code = (bits >> (64 - length)) as i64;
    let place = (code + TABLES.offset[length]) as usize;
    (TABLES.symbols.get(place).copied().unwrap_or(END), length as u32)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Code and length of each symbol, computed from the lengths.
    fn codes() -> Vec<(u32, u8)> {
        let mut order: Vec<usize> = (0..LENGTHS.len()).collect();
        order.sort_by_key(|&symbol| (LENGTHS[symbol], symbol));
        let mut codes = vec![(0, 0); LENGTHS.len()];
        let (mut code, mut before) = (0_u64, 0);
        for symbol in order {
            code <<= LENGTHS[symbol] - before;
            before = LENGTHS[symbol];
            codes[symbol] = (code as u32, before);
            code += 1;
        }
        assert_eq!(code, 1 << LONGEST, "the code leaves no bits unused");
        codes
    }

    /// Encodes bit by bit.
    pub fn encode(text: &[u8]) -> Vec<u8> {
        let codes = codes();
        let mut bits: Vec<bool> = Vec::new();
        for &byte in text {
            let (code, length) = codes[byte as usize];
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(8), true);
        bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, &bit| sum << 1 | u8::from(bit))).collect()
    }

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn codes_known_from_the_standard() {
        let codes = codes();
        for (symbol, code, length) in [
            (0, 0x1ff8, 13),
            (9, 0x00ff_ffea, 24),
            (32, 0x14, 6),
            (48, 0x0, 5),
            (58, 0x5c, 7),
            (92, 0x7fff0, 19),
            (122, 0x7b, 7),
            (127, 0x0fff_fffc, 28),
            (255, 0x03ff_ffee, 26),
            (256, 0x3fff_ffff, 30),
        ] {
            assert_eq!(codes[symbol], (code, length), "symbol {symbol}");
        }
    }

    #[test]
    fn every_byte_at_every_alignment() {
        for byte in 0..=255_u8 {
            for before in 0..8 {
                let mut text = vec![b'0'; before];
                text.extend([byte, b'a', byte]);
                assert_eq!(decoded(&encode(&text)).as_deref(), Some(&text[..]), "byte {byte} after {before}");
            }
        }
        assert_eq!(decoded(b""), Some(Vec::new()));
    }

    #[test]
    fn padding_is_short_and_all_ones() {
        // 'a' is 00011.
        assert_eq!(decoded(&[0b0001_1111]).as_deref(), Some(&b"a"[..]));
        assert_eq!(decoded(&[0b0001_1110]), None);
        assert_eq!(decoded(&[0b0001_1111, 0xff]), None);
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), None, "the end symbol");
    }
}
