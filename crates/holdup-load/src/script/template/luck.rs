//! Random texts. The session's random numbers determine them, so the same seed writes the same
//! text.

use super::encode::HEX;
use crate::script::Random;

const LETTERS_AND_DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A version 4 UUID, RFC 9562, section 5.4.
pub(super) fn uuid(random: &mut Random, out: &mut Vec<u8>) {
    let bits = u128::from(random.next()) << 64 | u128::from(random.next());
    let bits = bits & !(0xf << 76 | 3 << 62) | 4 << 76 | 2 << 62;
    let mut text = [b'-'; 36];
    let mut left = 128;
    for (place, letter) in text.iter_mut().enumerate() {
        if !matches!(place, 8 | 13 | 18 | 23) {
            left -= 4;
            *letter = HEX[(bits >> left & 15) as usize];
        }
    }
    out.extend_from_slice(&text);
}

/// `length` letters and digits.
pub(super) fn letters(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    // Eight per 64 bits: each is taken off the top of the rest, with a bias of less than 62^8 in
    // 2^64.
    write(random, length, 8, out, |bits| {
        let product = u128::from(*bits) * 62;
        *bits = product as u64;
        LETTERS_AND_DIGITS[(product >> 64) as usize]
    });
}

/// `length` hexadecimal digits.
pub(super) fn hex(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    write(random, length, 16, out, |bits| {
        let digit = HEX[(*bits & 15) as usize];
        *bits >>= 4;
        digit
    });
}

fn write(random: &mut Random, length: usize, a_draw: usize, out: &mut Vec<u8>, letter: impl Fn(&mut u64) -> u8) {
    out.reserve(length);
    let mut left = length;
    while left > 0 {
        let mut bits = random.next();
        for _ in 0..left.min(a_draw) {
            out.push(letter(&mut bits));
        }
        left -= left.min(a_draw);
    }
}

/// An integer from `low` to `low + span`, both included.
#[inline]
pub(super) fn whole(random: &mut Random, low: i64, span: u64) -> i64 {
    let above = match span.checked_add(1) {
        Some(bound) => random.below(bound),
        None => random.next(),
    };
    low.wrapping_add_unsigned(above)
}

/// How far `high` is above `low`; none if it is below.
pub(super) fn span(low: i64, high: i64) -> Option<u64> {
    (low <= high).then(|| high.abs_diff(low))
}
