//! Why a server gave no answer: its own errors and their meaning.

use holdup_protocol::database::Error;

use crate::database::{self, ErrorCode};
use crate::table::ANSWER_BYTES;

/// The way out for an account whose password would have to be sent. The protocol could encrypt it
/// with a key that the server sends, but then any server in between would be able to read it.
const NEEDS_TLS: &str = "the server asks for the password itself (caching_sha2_password does, until it has cached the account), \
     and holdup sends it only encrypted: add tls_ca=PATH or tls=verify to the address (tls=require accepts any server)";

/// Why a statement has no answer: the server numbers its errors.
pub(crate) type Failure = database::Failure<u16>;

impl ErrorCode for u16 {
    fn say(&self, words: &str) -> String {
        format!("error {self}: {words}")
    }

    fn of_protocol(error: Error) -> Failure {
        match error {
            Error::LoginRefused { code, message } => Failure::Server(code.parse().unwrap_or(0), message),
            Error::NeedsTls(_) => Failure::Login(NEEDS_TLS.to_owned()),
            Error::UnsupportedAuth(_) | Error::ServerNotProved => Failure::Login(error.to_string()),
            Error::TlsNotOffered => Failure::Lost(
                "the server offers no TLS: switch it on there, or remove tls and tls_ca from the address".to_owned(),
            ),
            Error::TooLarge(_) => Failure::Large(error.to_string()),
            other => Failure::Lost(other.to_string()),
        }
    }

    fn late(why: String) -> Failure {
        Failure::Lost(why)
    }
}

impl Failure {
    pub(crate) fn large() -> Self {
        Self::Large(format!("the answer is larger than {} MiB", ANSWER_BYTES >> 20))
    }

    /// Whether a privilege is missing: 1142 for a table, 1143 for a column, 1227 in general, 1044
    /// for a database.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Server(1044 | 1142 | 1143 | 1227, _))
    }

    /// Whether the account or password is wrong: 1045 in general, 1698 for a plugin, 1130 for the
    /// host, 1251, 1524 and 2059 for the authentication method, 1862 expired, 3118 and 4151 locked.
    pub(crate) fn is_login(&self) -> bool {
        matches!(self, Self::Login(_) | Self::Server(1045 | 1130 | 1251 | 1524 | 1698 | 1862 | 2059 | 3118 | 4151, _))
    }
}
