//! The database's address: `none`, `sqlite:PATH` or `mysql://user[:password]@host:port/database`.
//!
//! The text may hold a password. So neither `Debug` nor any error repeats it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use holdup_protocol::database::{Address, Secret, TlsMode};

use crate::service::ServiceError;

/// Environment variable with the password for a `mysql://` address that has none, so that `ps` does
/// not show it.
pub const PASSWORD_VARIABLE: &str = "HOLDUP_MYSQL_PASSWORD";

/// A database's address as given, not parsed yet. Reading it cannot fail, so no argument parser
/// ever prints it in an error.
#[derive(Clone)]
pub struct DatabaseAddress(String);

/// A parsed database address.
#[derive(Clone, Debug)]
pub enum Database {
    /// No database: only the handler's own work.
    None,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// MariaDB or MySQL.
    Mysql(Address),
}

impl FromStr for DatabaseAddress {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The address without the password.
impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return f.write_str(&self.0) };
        match rest.rsplit_once('@') {
            Some((account, place)) => {
                let user = account.split(':').next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{place}")
            }
            None => f.write_str(&self.0),
        }
    }
}

impl DatabaseAddress {
    /// Parses the address. `password` is for a `mysql://` address that has none.
    ///
    /// # Errors
    ///
    /// If it has none of the three forms.
    pub fn parse(&self, password: Option<String>) -> Result<Database, ServiceError> {
        let bad = |why: String| ServiceError::BadOption { option: "--database", why };
        if self.0 == "none" {
            return Ok(Database::None);
        }
        if let Some(path) = self.0.strip_prefix("sqlite:") {
            if path.is_empty() {
                return Err(bad("sqlite: needs a path, e.g. sqlite:/tmp/demo.sqlite".to_owned()));
            }
            return Ok(Database::Sqlite(PathBuf::from(path)));
        }
        if !self.0.starts_with("mysql://") {
            // The text may hold a password, so the error does not repeat it.
            return Err(bad("must be none, sqlite:PATH or mysql://user@host:port/database".to_owned()));
        }
        let mut address =
            Address::parse(&self.0).map_err(|_| bad(format!("{self}: write mysql://user@host:port/database")))?;
        if address.tls == TlsMode::On {
            return Err(bad(format!("{self}: the service's connections have no TLS; remove tls=on")));
        }
        if let Some(password) = password.filter(|_| address.password == Secret::default()) {
            address.password = Secret::new(password);
        }
        Ok(Database::Mysql(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> DatabaseAddress {
        DatabaseAddress(text.to_owned())
    }

    #[test]
    fn the_three_forms() {
        assert!(matches!(address("none").parse(None), Ok(Database::None)));
        assert!(
            matches!(address("sqlite:/a b.db").parse(None), Ok(Database::Sqlite(p)) if p.to_str() == Some("/a b.db"))
        );
        let Ok(Database::Mysql(found)) = address("mysql://app@127.0.0.1:3310/shop").parse(Some("pw".to_owned())) else {
            panic!("not understood");
        };
        assert_eq!((found.port, found.password.reveal(), found.database.as_deref()), (3310, "pw", Some("shop")));
        assert!(address("postgres://x").parse(None).is_err());
    }

    #[test]
    fn a_password_is_never_repeated() {
        for text in ["mysql://app:s3cret@h:3306/d", "mysql://app:s3cret@h:99999/d", "mysql://app:s3cret@h/d?nonsense=1"]
        {
            let given = address(text);
            assert!(!format!("{given} {given:?}").contains("s3cret"));
            if let Err(error) = given.parse(None) {
                assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
            }
        }
        let error = address("mysqll://app:s3cret@h/d").parse(None).err().map(|e| e.to_string());
        assert!(error.is_some_and(|text| !text.contains("s3cret")));
    }
}
