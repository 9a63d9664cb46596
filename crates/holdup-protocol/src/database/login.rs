//! Who logs in, and how. The password is shown by nothing here and overwritten when it is dropped.

use std::fmt;
use std::sync::Mutex;

use zeroize::Zeroizing;

use crate::database::postgres::Salted;

/// A text that is in no `Debug` and no error.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps `text`.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// What is kept: for the wire, not for eyes.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Whether a connection is to be encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsWish {
    /// No.
    #[default]
    Off,
    /// Yes; a server that does not offer it is an error.
    On,
}

/// An account; shared by all sessions that use it.
#[derive(Debug)]
pub struct Login {
    /// Its name. Like the database's it cannot hold a NUL: both protocols end it there.
    pub user: String,
    /// Its password; empty if it needs none.
    pub password: Secret,
    /// The database to be in, if any. PostgreSQL takes the user's name otherwise.
    pub database: Option<String>,
    /// Settings that PostgreSQL's session begins with, and goes back to when it is reset, e.g. `default_transaction_read_only`.
    pub settings: Vec<(String, String)>,
    /// What SCRAM derives from the password costs thousands of hashes: once for all connections, not for each.
    pub(crate) salted: Mutex<Option<Salted>>,
}

impl Login {
    /// An account.
    #[must_use]
    pub fn new(user: String, password: Secret, database: Option<String>) -> Self {
        Self { user, password, database, settings: Vec::new(), salted: Mutex::new(None) }
    }
}

/// The name that sessions give themselves in the server's own views.
pub(crate) const APPLICATION: &str = "holdup";
