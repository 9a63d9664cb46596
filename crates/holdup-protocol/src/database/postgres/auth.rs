//! Authentication: none (`trust`), `md5`, SCRAM-SHA-256, and under TLS the password itself. Without
//! TLS it is never sent, not even to the loopback: this side cannot know where the other end really
//! is.

use md5::{Digest as _, Md5};

use super::Postgres;
use crate::database::cursor::Cursor;
use crate::database::event::{Error, shortened};
use crate::database::login::TlsMode;
use crate::database::outbox::put_text;
use crate::database::scram::{self, Scram};

/// Progress of a login.
pub(super) enum Step {
    /// Waiting for the server's request.
    Asked,
    /// A proof was sent.
    Proved,
    /// The first message of SCRAM was sent.
    Scram(Box<Scram>),
    /// The second was sent; the server has to prove itself, too.
    ScramProved(scram::Proof),
    /// The login succeeded.
    Accepted,
}

/// The server's requests.
mod request {
    pub(super) const NOTHING: i32 = 0;
    pub(super) const PASSWORD: i32 = 3;
    pub(super) const MD5: i32 = 5;
    pub(super) const SASL: i32 = 10;
    pub(super) const SASL_MORE: i32 = 11;
    pub(super) const SASL_END: i32 = 12;
}

impl Postgres {
    /// Handles a message of the login and replies to it.
    pub(super) fn authenticate(&mut self, step: Step, body: &[u8]) -> Result<Step, Error> {
        let mut cursor = Cursor(body);
        let wanted = cursor.i32_be()?;
        let said = cursor.0;
        match (step, wanted) {
            (Step::Asked | Step::Proved, request::NOTHING) => Ok(Step::Accepted),
            (Step::Asked, request::PASSWORD) => {
                if self.tls == TlsMode::Off {
                    return Err(Error::NeedsTls("password"));
                }
                let login = self.login.clone();
                self.prove(|out| put_text(out, login.password.reveal().as_bytes()));
                Ok(Step::Proved)
            }
            (Step::Asked, request::MD5) => {
                let salt = cursor.array::<4>()?;
                let proof = md5_proof(self.login.user.as_bytes(), self.login.password.reveal().as_bytes(), salt);
                self.prove(|out| put_text(out, proof.as_bytes()));
                Ok(Step::Proved)
            }
            (Step::Asked, request::SASL) => {
                let mut offered = said.split(|&byte| byte == 0).filter(|name| !name.is_empty());
                if !offered.clone().any(|name| name == scram::NAME.as_bytes()) {
                    let name = offered.next().unwrap_or_default();
                    return Err(Error::UnsupportedAuth(shortened(&name[..name.len().min(64)])));
                }
                // Its administrator may choose fewer iterations (`scram_iterations`).
                let scram = Scram::new("", 1)?;
                let first = scram.first();
                self.prove(|out| {
                    put_text(out, scram::NAME.as_bytes());
                    out.extend_from_slice(&(first.len() as u32).to_be_bytes());
                    out.extend_from_slice(first.as_bytes());
                });
                Ok(Step::Scram(Box::new(scram)))
            }
            (Step::Scram(scram), request::SASL_MORE) => {
                let (second, proof) = scram.second(said, &self.login)?;
                self.prove(|out| out.extend_from_slice(second.as_bytes()));
                Ok(Step::ScramProved(proof))
            }
            (Step::ScramProved(proof), request::SASL_END) => {
                proof.check(said)?;
                Ok(Step::Proved)
            }
            // A server that has not proved that it knows the account may be an impostor.
            (Step::ScramProved(_) | Step::Scram(_), request::NOTHING) => Err(Error::ServerNotProved),
            (Step::Asked, 2 | 6 | 7 | 9) => {
                let name = match wanted {
                    2 => "kerberos",
                    6 => "scm",
                    7 => "gss",
                    _ => "sspi",
                };
                Err(Error::UnsupportedAuth(name.to_owned()))
            }
            _ => Err(Error::Protocol("an unexpected message in the login")),
        }
    }
}

/// `md5` and the hash of the salt appended to the hash that the server stores.
fn md5_proof(user: &[u8], password: &[u8], salt: [u8; 4]) -> String {
    let hex = |hash: md5::digest::Output<Md5>| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let kept = hex(Md5::new().chain_update(password).chain_update(user).finalize());
    format!("md5{}", hex(Md5::new().chain_update(kept).chain_update(salt).finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests with a real server show that it accepts this.
    #[test]
    fn md5_is_salted_over_what_the_server_keeps() {
        let proof = md5_proof(b"u", b"p", [1, 2, 3, 4]);
        assert_eq!((proof.len(), &proof[..3]), (35, "md5"));
        assert_ne!(proof, md5_proof(b"u", b"p", [1, 2, 3, 5]));
        assert_ne!(proof, md5_proof(b"up", b"p", [1, 2, 3, 4]));
    }
}
