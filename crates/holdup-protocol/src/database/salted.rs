//! The keys of SCRAM-SHA-256 (RFC 5802, RFC 7677) that an account keeps.

use std::fmt;
use std::num::NonZeroU32;

use ring::{digest, hmac, pbkdf2};
use zeroize::Zeroizing;

const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;

type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The keys from a password and a salt. The salt is the account's, so all connections share them.
pub(crate) struct SaltedKeys {
    salt: Vec<u8>,
    iterations: NonZeroU32,
    pub(crate) client: Key,
    pub(crate) server: Key,
}

impl fmt::Debug for SaltedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl SaltedKeys {
    pub(crate) fn new(password: &[u8], salt: &[u8], iterations: NonZeroU32) -> Self {
        let mut salted: Key = Zeroizing::default();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password, &mut *salted);
        let key = |name: &str| Zeroizing::new(sign(&*salted, name.as_bytes()));
        Self { salt: salt.to_vec(), iterations, client: key("Client Key"), server: key("Server Key") }
    }

    /// Whether they are those of `salt` and `iterations`.
    pub(crate) fn are_of(&self, salt: &[u8], iterations: NonZeroU32) -> bool {
        self.salt == salt && self.iterations == iterations
    }
}

/// The signature of `text`.
pub(crate) fn sign(key: &[u8], text: &[u8]) -> [u8; KEY_BYTES] {
    let mut out = [0; KEY_BYTES];
    out.copy_from_slice(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref());
    out
}
