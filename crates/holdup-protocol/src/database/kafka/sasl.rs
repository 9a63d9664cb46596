//! Logs in by SASL: PLAIN, which sends the password, and SCRAM-SHA-256, which does not.

use super::{Call, Reader, SASL_AUTHENTICATE, SASL_HANDSHAKE, Writer};
use crate::database::event::Error;
use crate::database::login::Login;
use crate::database::scram::{self, Scram};

/// How an account logs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mechanism {
    /// Both sides prove that they know the password.
    #[default]
    ScramSha256,
    /// The password itself is sent.
    Plain,
}

impl Mechanism {
    /// The name in the protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScramSha256 => scram::NAME,
            Self::Plain => "PLAIN",
        }
    }
}

/// Logs in over a new connection; `ask` sends a request and waits for its answer.
///
/// # Errors
/// Those of `ask`, and why the login failed.
pub fn authenticate<E: From<Error>>(
    mechanism: Mechanism,
    login: &Login,
    mut ask: impl FnMut(Call, &Writer) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let mut hello = Writer::default();
    hello.text(mechanism.name());
    let answer = ask(SASL_HANDSHAKE, &hello)?;
    let mut reader = Reader::new(&answer);
    if reader.i16()? != 0 {
        let offered = reader.list(Reader::text)?.join(", ");
        let why = format!("SASL {}; the broker offers {offered}", mechanism.name());
        return Err(Error::UnsupportedAuth(why).into());
    }
    let mut say = |message: &[u8]| -> Result<Vec<u8>, E> {
        let mut out = Writer::default();
        out.blob(message);
        let answer = ask(SASL_AUTHENTICATE, &out)?;
        let mut reader = Reader::new(&answer);
        let (code, message) = (reader.i16()?, reader.text()?);
        match code {
            0 => Ok(reader.blob()?.to_vec()),
            _ => Err(Error::LoginRefused { code: code.to_string(), message }.into()),
        }
    };
    match mechanism {
        Mechanism::Plain => say(format!("\0{}\0{}", login.user, login.password.reveal()).as_bytes()).map(drop),
        Mechanism::ScramSha256 => {
            let scram = Scram::new(&login.user, scram::FEWEST_ITERATIONS)?;
            let said = say(scram.first().as_bytes())?;
            let (second, proof) = scram.second(&said, login)?;
            Ok(proof.check(&say(second.as_bytes())?)?)
        }
    }
}
