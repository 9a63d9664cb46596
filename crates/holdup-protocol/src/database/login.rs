//! An account, and how it logs in. Nothing here shows the password, and it is overwritten when it
//! is dropped.

use std::fmt;
use std::sync::Mutex;

use zeroize::Zeroizing;

use crate::database::salted::SaltedKeys;

/// A text that is in no `Debug` and no error.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps `text`.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself: for the wire, not for people.
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

/// Whether to encrypt a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// No.
    #[default]
    Off,
    /// Yes; it is an error if the server does not offer it.
    On,
}

/// The error when the server does not wait for TLS.
pub(crate) const IN_THE_CLEAR: &str = "it continues unencrypted where TLS should begin";

/// An account; shared by all sessions that use it.
#[derive(Debug)]
pub struct Login {
    /// Its name. Like the database's it cannot contain a NUL: both protocols end it there.
    pub user: String,
    /// Its password; empty if it needs none.
    pub password: Secret,
    /// The database to use, if any. PostgreSQL defaults to the user's name.
    pub database: Option<String>,
    /// MongoDB: the database that keeps the account, if it is not the one to use.
    pub accounts: Option<String>,
    /// Settings that PostgreSQL's session begins with, and returns to when it is reset, e.g.
    /// `default_transaction_read_only`.
    pub settings: Vec<(String, String)>,
    /// SCRAM's keys cost thousands of hashes: they are derived once for all connections, not for
    /// each.
    pub(crate) salted: Mutex<Option<SaltedKeys>>,
}

impl Login {
    /// An account.
    #[must_use]
    pub fn new(user: String, password: Secret, database: Option<String>) -> Self {
        Self { user, password, database, accounts: None, settings: Vec::new(), salted: Mutex::new(None) }
    }
}

/// The application name that sessions show in the server's own views.
pub(crate) const APPLICATION: &str = "holdup";
