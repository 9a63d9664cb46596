//! The hash of a key: 128-bit products folded to 64 bits, sixteen bytes a step, as wyhash does it.
//! It may change: keys are compared within one process and never stored.

/// Constants of wyhash's final version 4: primes with equal numbers of ones and zeros.
const A: u64 = 0xa076_1d64_78bd_642f;
const B: u64 = 0xe703_7ed1_a0b4_28db;
const C: u64 = 0x8ebc_6af0_9c88_c6e3;

/// Folds two words into one.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are what is folded")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

/// Adds one word to the hash.
pub(super) fn absorb(hash: u64, word: u64) -> u64 {
    mix(hash ^ A, word ^ C)
}

/// Adds bytes to the hash.
pub(crate) fn segment(hash: u64, bytes: &[u8]) -> u64 {
    let mut hash = hash ^ B.wrapping_mul(bytes.len() as u64 * 2 + 1);
    let mut steps = bytes.chunks_exact(16);
    for step in &mut steps {
        hash = mix(hash ^ A ^ word(step, 0), C ^ word(step, 8));
    }
    let rest = steps.remainder();
    if rest.is_empty() {
        return hash;
    }
    let (low, high) = match rest.len() {
        8.. => (word(rest, 0), word(rest, rest.len() - 8)),
        4.. => (half(rest, 0), half(rest, rest.len() - 4)),
        _ => {
            let byte = |at: usize| u64::from(rest.get(at).copied().unwrap_or(0));
            (byte(0) << 16 | byte(rest.len() / 2) << 8 | byte(rest.len() - 1), 0)
        }
    };
    mix(hash ^ A ^ low, B ^ high)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, |four| u64::from(u32::from_le_bytes(four)))
}
