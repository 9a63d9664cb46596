//! The connection with the server: how it is made, and what its errors mean. It sends the commands of
//! [`super`] and `AUTH`, and nothing else.

use holdup_protocol::database::Error;

use super::address::{Address, PASSWORD_VARIABLE};
use super::resp::{Reply, command, replies};
use crate::connections::Connections;
use crate::database::{self, ErrorCode};
use crate::line::ExchangeLine;

/// Largest answer accepted: `INFO` takes some 10 kB, and each slow command at most 4 kB.
const BODY_BYTES_MAX: usize = 4 << 20;

/// Why a command has no answer.
pub(super) type Failure = database::Failure<Kind>;

/// What an error of the server is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The account may not do this.
    NotPermitted,
    Other,
}

impl ErrorCode for Kind {
    fn say(&self, words: &str) -> String {
        words.to_owned()
    }

    fn of_protocol(error: Error) -> Failure {
        Failure::Lost(error.to_string())
    }
}

/// What an error in the server's `words` means.
pub(super) fn failure(words: &str) -> Failure {
    match words.split(' ').next() {
        Some("NOPERM") => Failure::Server(Kind::NotPermitted, words.to_owned()),
        Some("NOAUTH") => Failure::Login(format!("{words} Put it into the environment variable {PASSWORD_VARIABLE}.")),
        Some("WRONGPASS") => Failure::Login(words.to_owned()),
        _ => Failure::Server(Kind::Other, words.to_owned()),
    }
}

/// A connection whose account is known.
pub(super) struct Server(ExchangeLine);

impl Server {
    /// Connects and names the account. All of holdup's connections to the server share `connections`.
    pub(super) fn open(address: &Address, connections: &Connections) -> Result<Self, Failure> {
        let trust = address.tls.trust("ssl_ca_certs");
        let mut server = Self(ExchangeLine::open(&address.place(), trust.as_ref(), connections)?);
        let password = address.password.reveal();
        if password.is_empty() {
            return Ok(server);
        }
        let with_user = ["AUTH", &address.user, password];
        let words: &[&str] = if address.user.is_empty() { &["AUTH", password] } else { &with_user };
        match server.ask(&[words])?.pop() {
            Some(Reply::Error(words)) => match failure(&words) {
                // An old server, or one without a password.
                Failure::Server(_, words) if words.contains("AUTH") => Err(Failure::Login(words)),
                failure => Err(failure),
            },
            _ => Ok(server),
        }
    }

    /// The replies to `commands`, one each; they are sent together.
    pub(super) fn ask(&mut self, commands: &[&[&str]]) -> Result<Vec<Reply>, Failure> {
        let request: Vec<u8> = commands.iter().flat_map(|words| command(words)).collect();
        let answer = self.0.ask(&request, BODY_BYTES_MAX, |bytes| match replies(bytes, commands.len())? {
            // What refuses a connection is the only reply on it.
            None => Ok(replies(bytes, 1)?.filter(|all| matches!(&all[..], [Reply::Error(why)] if is_refusal(why)))),
            all => Ok(all),
        });
        Ok(answer?)
    }
}

/// Whether the server says with these words that it takes no connection.
fn is_refusal(words: &str) -> bool {
    words.contains("max number of clients") || words.starts_with("DENIED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_differ_by_their_first_word() {
        let of = |words: &str| match failure(words) {
            Failure::Server(kind, _) => Some(kind),
            _ => None,
        };
        assert_eq!(of("NOPERM this user has no permissions"), Some(Kind::NotPermitted));
        assert_eq!(of("BUSY Redis is busy running a script"), Some(Kind::Other));
        assert_eq!(of("WRONGPASS invalid username-password pair"), None);
        assert!(failure("NOAUTH Authentication required.").to_string().contains(PASSWORD_VARIABLE));
        assert!(
            is_refusal("ERR max number of clients reached") && is_refusal("DENIED Redis is running in protected mode")
        );
    }
}
