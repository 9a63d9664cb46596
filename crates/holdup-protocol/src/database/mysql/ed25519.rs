//! MariaDB's `client_ed25519`: an Ed25519 signature (RFC 8032, section 5.1.6) of the server's
//! nonce, whose secret key is the password itself, of any length. Libraries for Ed25519 take keys
//! of 32 bytes only, so this combines a hash and the curve.

use curve25519_dalek::{EdwardsPoint, Scalar};
use ring::digest::{Context, SHA512};

pub(super) const NONCE_BYTES: usize = 32;

/// Signs `nonce` with `password`.
pub(super) fn sign(password: &[u8], nonce: &[u8; NONCE_BYTES]) -> [u8; 64] {
    let key = sha512(&[password]);
    let (scalar, prefix) = key.split_at(32);
    let mut clamped = [0; 32];
    clamped.copy_from_slice(scalar);
    clamped[0] &= 0xf8;
    clamped[31] = clamped[31] & 0x3f | 0x40;
    let secret = Scalar::from_bytes_mod_order(clamped);
    let public = EdwardsPoint::mul_base(&secret).compress();
    let once = Scalar::from_bytes_mod_order_wide(&sha512(&[prefix, nonce]));
    let commitment = EdwardsPoint::mul_base(&once).compress();
    let challenge = sha512(&[commitment.as_bytes(), public.as_bytes(), nonce]);
    let answer = Scalar::from_bytes_mod_order_wide(&challenge) * secret + once;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(commitment.as_bytes());
    signature[32..].copy_from_slice(answer.as_bytes());
    signature
}

fn sha512(parts: &[&[u8]]) -> [u8; 64] {
    let mut context = Context::new(&SHA512);
    parts.iter().for_each(|part| context.update(part));
    let mut out = [0; 64];
    out.copy_from_slice(context.finish().as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    /// With a password of 32 bytes it is plain Ed25519, as `ring` implements it.
    #[test]
    fn is_ed25519() {
        for password in [[7; 32], [0xff; 32], *b"0123456789abcdef0123456789abcdef"] {
            let pair = Ed25519KeyPair::from_seed_unchecked(&password).unwrap();
            let nonce = [password[0] ^ 0x55; 32];
            assert_eq!(sign(&password, &nonce), pair.sign(&nonce).as_ref());
            assert_eq!(pair.public_key().as_ref().len(), 32);
        }
    }
}
