//! Authentication: `mysql_native_password`, `caching_sha2_password`, MariaDB's `client_ed25519`.
//! The password itself is sent only under TLS. Without TLS, MySQL would encrypt it with a key that
//! the server sends without proof of identity, which protects against listeners but not against a
//! man in the middle.

use ring::digest::{Algorithm, Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use super::ed25519;
use crate::database::cursor::Cursor;
use crate::database::event::{Error, shortened};
use crate::database::login::Login;

const NATIVE: &str = "mysql_native_password";
const SHA2: &str = "caching_sha2_password";
const ED25519: &str = "client_ed25519";

/// Bytes of a nonce that MySQL's own methods use; a NUL follows.
const NONCE_BYTES: usize = 20;

/// The server's messages of `caching_sha2_password`.
const KNOWN: &[u8] = &[3];
const PASSWORD_WANTED: &[u8] = &[4];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Native,
    Sha2,
    Ed25519,
}

/// The method in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plugin {
    kind: Kind,
    is_secure: bool,
    /// The server switched to another method; it may do so once.
    pub(super) was_switched: bool,
    was_asked: bool,
}

impl Plugin {
    /// The method in the server's greeting, if it is known, else the oldest. The server may choose
    /// another for the account.
    pub(super) fn first(name: &str, nonce: &[u8], login: &Login, is_secure: bool) -> (Self, Vec<u8>) {
        let kind = if name == SHA2 { Kind::Sha2 } else { Kind::Native };
        let proof = kind.proof(nonce, login).unwrap_or_default();
        (Self { kind, is_secure, was_switched: false, was_asked: false }, proof)
    }

    /// The server requests another method: its name, a NUL, a nonce.
    pub(super) fn switched(request: &[u8], login: &Login, is_secure: bool) -> Result<(Self, Vec<u8>), Error> {
        if request.is_empty() {
            return Err(Error::UnsupportedAuth("mysql_old_password".to_owned()));
        }
        let mut cursor = Cursor(request);
        let name = cursor.until_nul()?;
        let kind = [Kind::Native, Kind::Sha2, Kind::Ed25519].into_iter().find(|kind| kind.name().as_bytes() == name);
        let kind = kind.ok_or_else(|| Error::UnsupportedAuth(shortened(&name[..name.len().min(64)])))?;
        let proof = kind.proof(cursor.0, login)?;
        Ok((Self { kind, is_secure, was_switched: true, was_asked: false }, proof))
    }

    /// Handles a further message of the server; returns the reply, if any.
    pub(super) fn more(self, said: &[u8], login: &Login) -> Result<(Self, Option<Vec<u8>>), Error> {
        match (self.kind, said) {
            (Kind::Sha2, KNOWN) => Ok((self, None)),
            (Kind::Sha2, PASSWORD_WANTED) if !self.was_asked => {
                if !self.is_secure {
                    return Err(Error::NeedsTls(
                        "caching_sha2_password; it does so once, until it has cached the account",
                    ));
                }
                let mut password = login.password.reveal().as_bytes().to_vec();
                password.push(0);
                Ok((Self { was_asked: true, ..self }, Some(password)))
            }
            _ => Err(Error::Protocol("an unexpected packet in the login")),
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.kind.name()
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Native => NATIVE,
            Self::Sha2 => SHA2,
            Self::Ed25519 => ED25519,
        }
    }

    fn proof(self, nonce: &[u8], login: &Login) -> Result<Vec<u8>, Error> {
        let password = login.password.reveal().as_bytes();
        let mut nonce = Cursor(nonce);
        if self == Self::Ed25519 {
            return Ok(ed25519::sign(password, &nonce.array::<{ ed25519::NONCE_BYTES }>()?).to_vec());
        }
        let nonce = nonce.bytes(NONCE_BYTES)?;
        // An empty password has an empty proof.
        if password.is_empty() {
            return Ok(Vec::new());
        }
        let (kept, masked) = match self {
            // The server stores SHA1(SHA1(password)).
            Self::Native => {
                let once = hash(&SHA1_FOR_LEGACY_USE_ONLY, &[password]);
                let twice = hash(&SHA1_FOR_LEGACY_USE_ONLY, &[once.as_ref()]);
                (once, hash(&SHA1_FOR_LEGACY_USE_ONLY, &[nonce, twice.as_ref()]))
            }
            // It stores SHA256(SHA256(password)).
            _ => {
                let once = hash(&SHA256, &[password]);
                let twice = hash(&SHA256, &[once.as_ref()]);
                (once, hash(&SHA256, &[twice.as_ref(), nonce]))
            }
        };
        Ok(kept.as_ref().iter().zip(masked.as_ref()).map(|(kept, mask)| kept ^ mask).collect())
    }
}

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::login::Secret;

    fn login(password: &str) -> Login {
        Login::new("u".to_owned(), Secret::new(password.to_owned()), None)
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Repeats the server's check of a proof: it undoes the mask and hashes the rest.
    #[test]
    fn proofs_are_what_servers_check() {
        let nonce = b"01234567890123456789\0";
        for (kind, algorithm) in [(Kind::Native, &SHA1_FOR_LEGACY_USE_ONLY), (Kind::Sha2, &SHA256)] {
            let proof = kind.proof(nonce, &login("secret")).unwrap();
            let known = hash(algorithm, &[hash(algorithm, &[b"secret"]).as_ref()]);
            let parts = [&nonce[..20], known.as_ref()];
            let parts = if kind == Kind::Native { parts } else { [parts[1], parts[0]] };
            let once: Vec<u8> = proof.iter().zip(hash(algorithm, &parts).as_ref()).map(|(a, b)| a ^ b).collect();
            assert_eq!(hash(algorithm, &[&once]).as_ref(), known.as_ref());
            assert!(kind.proof(nonce, &login("")).unwrap().is_empty());
            assert!(kind.proof(&nonce[..19], &login("secret")).is_err());
        }
        assert_eq!(hex(hash(&SHA256, &[b"a", b"bc"]).as_ref())[..16], *"ba7816bf8f01cfea");
    }

    #[test]
    fn the_password_goes_out_under_tls_only_and_once() {
        let plugin = |is_secure| Plugin { kind: Kind::Sha2, is_secure, was_switched: false, was_asked: false };
        assert!(plugin(false).more(KNOWN, &login("secret")).unwrap().1.is_none());
        let refused = plugin(false).more(PASSWORD_WANTED, &login("canary")).unwrap_err();
        assert!(refused.to_string().contains("tls=on") && !refused.to_string().contains("canary"));
        let (asked, password) = plugin(true).more(PASSWORD_WANTED, &login("secret")).unwrap();
        assert_eq!(password.unwrap(), b"secret\0");
        assert!(asked.more(PASSWORD_WANTED, &login("secret")).is_err());
    }

    #[test]
    fn unknown_ways_are_named() {
        let name = |request: &[u8]| Plugin::switched(request, &login("x"), true).unwrap_err();
        assert_eq!(name(b"dialog\0Password: "), Error::UnsupportedAuth("dialog".to_owned()));
        assert_eq!(name(b""), Error::UnsupportedAuth("mysql_old_password".to_owned()));
    }
}
