//! `mysql://user[:password]@host[:port][/database][?tls=on|off]`, and the same with `postgres://`:
//! a server and an account. `mongodb://` has a form of its own. It reads neither files nor the
//! environment. The password is in no error, `Debug` or `Display`.

mod mongodb;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::database::login::{Login, Secret, TlsMode};

pub use self::mongodb::IGNORED as MONGODB_IGNORED_OPTIONS;

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// MongoDB, which takes commands, not statements.
    Mongodb,
}

impl Dialect {
    /// OpenTelemetry's `db.system.name`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Postgres => "postgresql",
            Self::Mongodb => "mongodb",
        }
    }

    /// The environment variable that holds the password of an account, wherever holdup needs one.
    #[must_use]
    pub const fn password_variable(self) -> &'static str {
        match self {
            Self::Mysql => "HOLDUP_MYSQL_PASSWORD",
            Self::Postgres => "HOLDUP_POSTGRES_PASSWORD",
            Self::Mongodb => "HOLDUP_MONGODB_PASSWORD",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Mysql => 3306,
            Self::Postgres => 5432,
            Self::Mongodb => 27017,
        }
    }
}

/// Why an address cannot be read. It repeats nothing from the address except names of parameters.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the address of the database: {why}; expected {expected}")]
pub struct AddressError {
    why: String,
    expected: &'static str,
}

const EXPECTED: &str = "mysql://user[:password]@host[:port][/database][?tls=on|off], or postgres://…";

/// A server and the account to use there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its protocol.
    pub dialect: Dialect,
    /// Name or IP address; an IPv6 address without its brackets.
    pub host: String,
    /// Port; the dialect's default unless given.
    pub port: u16,
    /// The account; empty where MongoDB needs none.
    pub user: String,
    /// Its password, empty unless given.
    pub password: Secret,
    /// The database to use.
    pub database: Option<String>,
    /// MongoDB: the database that keeps the account (`authSource`), if the address names one.
    pub accounts: Option<String>,
    /// Whether to encrypt.
    pub tls: TlsMode,
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.dialect {
            Dialect::Mysql => "mysql",
            Dialect::Postgres => "postgres",
            Dialect::Mongodb => "mongodb",
        };
        self.write(scheme, f)
    }
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, never its password.
    pub fn parse(address: &str) -> Result<Self, AddressError> {
        match address.strip_prefix(mongodb::SCHEME) {
            None if address.starts_with(mongodb::BY_NAME) => {
                Err(AddressError { why: mongodb::NO_NAMES.to_owned(), expected: mongodb::EXPECTED })
            }
            Some(rest) => mongodb::read(rest).map_err(|why| AddressError { why, expected: mongodb::EXPECTED }),
            None => read(address).map_err(|why| AddressError { why, expected: EXPECTED }),
        }
    }

    /// The options that the address needs, with their `?`; empty if it needs none.
    #[must_use]
    pub fn options(&self) -> String {
        let is_encrypted = self.tls == TlsMode::On;
        let options: Vec<String> = match self.dialect {
            Dialect::Mongodb => {
                let accounts = self.accounts.iter().map(|accounts| format!("authSource={accounts}"));
                accounts.chain(is_encrypted.then(|| "tls=true".to_owned())).collect()
            }
            Dialect::Mysql | Dialect::Postgres => is_encrypted.then(|| "tls=on".to_owned()).into_iter().collect(),
        };
        if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) }
    }

    fn write(&self, scheme: &str, f: &mut impl fmt::Write) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        let at = if self.user.is_empty() { "" } else { "@" };
        write!(f, "{scheme}://{}{at}{open}{}{close}:{}", self.user, self.host, self.port)?;
        self.database.iter().try_for_each(|database| write!(f, "/{database}"))
    }

    /// Scheme, account, host, port and database, without the password; the scheme is the name of
    /// the system.
    #[must_use]
    pub fn url(&self) -> String {
        let mut url = String::new();
        // A text takes everything.
        let _ = self.write(self.dialect.name(), &mut url);
        url
    }

    /// Whether `address` is a database's.
    #[must_use]
    pub fn is_database_address(address: &str) -> bool {
        dialect(address).is_some()
            || [mongodb::SCHEME, mongodb::BY_NAME].iter().any(|scheme| address.starts_with(scheme))
    }

    /// The account, to be shared by all sessions.
    #[must_use]
    pub fn login(&self) -> Arc<Login> {
        let mut login = Login::new(self.user.clone(), self.password.clone(), self.database.clone());
        login.accounts.clone_from(&self.accounts);
        Arc::new(login)
    }
}

fn dialect(address: &str) -> Option<(Dialect, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    match scheme {
        "mysql" | "mariadb" => Some((Dialect::Mysql, rest)),
        "postgres" | "postgresql" => Some((Dialect::Postgres, rest)),
        _ => None,
    }
}

fn read(address: &str) -> Result<Address, String> {
    let (dialect, rest) = dialect(address).ok_or("it begins with neither mysql:// nor postgres://")?;
    let (account, place) = rest.rsplit_once('@').ok_or("the user is missing (USER@ before the host)")?;
    let (mut address, query) = parts(dialect, account, place)?;
    address.tls = tls(query)?;
    Ok(address)
}

/// What stands before the last `@`, and behind it up to the `?`, without the escapes of a URL; and the query. A password may
/// contain `@`, `/` and `?` literally.
fn parts<'a>(dialect: Dialect, account: &str, place: &'a str) -> Result<(Address, &'a str), String> {
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let (place, database) = place.split_once('/').unwrap_or((place, ""));
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (user, password, database) = (decoded(user)?, decoded(password)?, decoded(database)?);
    let may_be_nobody = dialect == Dialect::Mongodb && account.is_empty();
    if user.is_empty() && !may_be_nobody {
        return Err("the user is missing".to_owned());
    }
    let (host, port) = host_and_port(place, dialect.port())?;
    let database = (!database.is_empty()).then_some(database);
    let password = Secret::new(password);
    Ok((Address { dialect, host, port, user, password, database, accounts: None, tls: TlsMode::Off }, query))
}

fn tls(query: &str) -> Result<TlsMode, String> {
    let mut tls = TlsMode::Off;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        // Repeat only the name, and only if it cannot be the end of a password whose `@` was
        // forgotten.
        tls = match parameter.split_once('=') {
            Some(("tls", "on")) => TlsMode::On,
            Some(("tls", "off")) => TlsMode::Off,
            Some(("tls", _)) => return Err("tls is neither on nor off".to_owned()),
            _ => return Err("the only parameter after the `?` is tls".to_owned()),
        };
    }
    Ok(tls)
}

fn host_and_port(place: &str, default: u16) -> Result<(String, u16), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or_default())),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let port = port.map_or(Ok(default), str::parse).ok().filter(|port| *port > 0);
    Ok((host.to_owned(), port.ok_or("the port number after the host's colon is missing")?))
}

/// `text` with `%XX` decoded to bytes.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let byte = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high).zip(digit(low)).map(|(high, low)| (high << 4 | low) as u8)
            }
            (b'%', _) => None,
            _ => Some(*first),
        };
        match byte {
            None => return Err("a `%` is not followed by two hex digits (a plain one is %25)".to_owned()),
            Some(0) => return Err("%00 is not allowed in names and passwords".to_owned()),
            Some(byte) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| "its %XX do not decode to UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts() {
        let full = Address::parse("mysql://u%40x:p%3a@ss?/%25@[::1]:3307/d%62?tls=on").unwrap();
        assert_eq!((full.dialect, full.user.as_str(), full.host.as_str()), (Dialect::Mysql, "u@x", "::1"));
        assert_eq!((full.port, full.database.as_deref(), full.tls), (3307, Some("db"), TlsMode::On));
        assert_eq!(full.password.reveal(), "p:@ss?/%");
        assert_eq!(full.to_string(), "mysql://u@x@[::1]:3307/db");
        assert!(!format!("{full:?} {:?}", full.login()).contains("ss?"));
        for scheme in ["postgres", "postgresql"] {
            let short = Address::parse(&format!("{scheme}://u@db?tls=off")).unwrap();
            assert_eq!(
                (short.dialect, short.port, short.database, short.tls),
                (Dialect::Postgres, 5432, None, TlsMode::Off)
            );
            assert!(short.password.reveal().is_empty());
        }
        assert!(Address::is_database_address("mysql://") && !Address::is_database_address("http://mysql://"));
        assert_eq!(Address::parse("mysql://u@[::1]").unwrap().port, 3306);
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("mysql://u:canary@h:0", "port"),
            ("mysql://u:canary@h:99999", "port"),
            ("mysql://u:canary@[::1]5", "port"),
            ("mysql://u:canary@", "host"),
            ("mysql://u:canary@/db", "host"),
            ("postgres://:canary@h", "user"),
            ("postgres://u:canary", "user"),
            ("mysql://u:p@x?canary", "parameter"),
            ("mysql://u:p@x?canary=1", "parameter"),
            ("mysql://u:canary@h?tls=canary", "tls"),
            ("mysql://u:canary%2@h", "%25"),
            ("mysql://u:canary%00@h", "%00"),
            ("mysql://u:canary%ff@h", "UTF-8"),
            ("http://u:canary@h", "begins"),
        ] {
            let text = Address::parse(address).unwrap_err().to_string();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
        }
    }
}
