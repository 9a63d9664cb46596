//! Parses `//user[:password]@host[:port][/database][?…]` of a PostgreSQL server in the way libpq does
//! where both accept it.

use std::path::PathBuf;

use holdup_protocol::database::{Dialect, Secret};

use crate::account::{Parts, certificates};
use crate::plans::PlanMode;

const PARAMETERS: &str = "sslmode=disable|prefer|require|verify-ca|verify-full, sslrootcert=PATH, password_env=VAR, \
     password_file=PATH, host=/SOCKET/FOLDER, log=PATH, plans=off|explain|analyze";

/// A server, the account to use there, and its log.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// Name or address, or the folder of its Unix socket.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) database: String,
    pub(crate) tls: Tls,
    /// Certificates to trust instead of the machine's.
    pub(crate) root_certificates: Option<PathBuf>,
    /// The server's log file, or the folder of its log files.
    pub(crate) log: Option<PathBuf>,
    /// Whether to ask for plans.
    pub(crate) plans: PlanMode,
}

/// Whether the connection is encrypted, as libpq's `sslmode` calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    Disable,
    /// Encrypted if the server offers it.
    Prefer,
    /// Encrypted, without checking the certificate.
    Require,
    /// With a certificate of a trusted authority.
    VerifyCa,
    /// And for this host name.
    VerifyFull,
}

impl Address {
    /// Parses the rest of `postgresql:…` and reads the files and variables it names.
    ///
    /// # Errors
    /// What is wrong, without the password.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let address = rest.strip_prefix("//").ok_or_else(|| "it does not begin with postgresql://".to_owned());
        address.and_then(|address| read(address, 5432)).map_err(|why| {
            format!("{why}; expected postgresql://user[:password]@host[:port][/database][?{PARAMETERS}]")
        })
    }

    /// The source's name in all tables.
    pub(crate) fn source(&self) -> String {
        format!("postgresql://{}:{}", self.host, self.port)
    }
}

/// Reads `user[:password]@host[:port][/database][?…]`, and the files and variables that it names.
///
/// # Errors
/// What is wrong, without the password.
pub(crate) fn read(address: &str, default_port: u16) -> Result<Address, String> {
    let Parts { user, password, mut host, port, path, options } = Parts::split(address, default_port)?;
    let (mut tls, mut root_certificates, mut log, mut plans) = (Tls::Prefer, None, None, PlanMode::Off);
    for (name, value) in options {
        match name.as_str() {
            "sslmode" => {
                tls = match value.as_str() {
                    "disable" => Tls::Disable,
                    "allow" | "prefer" => Tls::Prefer,
                    "require" => Tls::Require,
                    "verify-ca" => Tls::VerifyCa,
                    "verify-full" => Tls::VerifyFull,
                    _ => {
                        return Err(format!(
                            "sslmode={value} is invalid; use disable, prefer, require, verify-ca or verify-full"
                        ));
                    }
                }
            }
            "sslrootcert" => root_certificates = Some(certificates(&name, value)?),
            "host" => host = value,
            "log" => log = Some(PathBuf::from(value)),
            "plans" => plans = PlanMode::parse(&value)?,
            _ => return Err(format!("the parameter {name} is unknown")),
        }
    }
    for (part, what) in [(&host, "host"), (&user, "user")] {
        if part.is_empty() {
            return Err(format!("the {what} is missing"));
        }
    }
    let password = Parts::password_or(password, Dialect::Postgres.password_variable());
    let database = if path.is_empty() { user.clone() } else { path };
    Ok(Address { host, port, user, password, database, tls, root_certificates, log, plans })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let full = Address::parse("//u%40x:p%3a@ss?/%25@[::1]:5433/shop?sslmode=verify-full&log=/l/a.csv").unwrap();
        assert_eq!(
            (full.user.as_str(), full.host.as_str(), full.port, full.database.as_str()),
            ("u@x", "::1", 5433, "shop")
        );
        assert_eq!((full.tls, full.log), (Tls::VerifyFull, Some("/l/a.csv".into())));
        assert_eq!(full.password.reveal(), "p:@ss?/%");
        let short = Address::parse("//u@db").unwrap();
        assert_eq!(
            (short.source().as_str(), short.database.as_str(), short.tls),
            ("postgresql://db:5432", "u", Tls::Prefer)
        );
        assert_eq!(Address::parse("//u@/x?host=/run/postgresql").unwrap().host, "/run/postgresql");
    }

    #[test]
    fn passwords_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "s3cr3t-canary\n").unwrap();
        let read = Address::parse(&format!("//me@h?password_file={}", plain.display())).unwrap();
        assert_eq!(read.password.reveal(), "s3cr3t-canary");
        assert!(!format!("{read:?} {}", read.source()).contains("canary"));
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("//u:canary@h:0", "port"),
            ("//u:canary@", "host"),
            ("//:canary@h", "user"),
            ("//u:canary@h?socket=x", "socket"),
            ("//u:canary@h?sslmode=x", "sslmode"),
            ("//u:canary@h?plans=all", "plans=all"),
            ("//u:canary%2@h", "%25"),
            ("//u:canary", "@"),
            ("//u:canary@h?password_env=HOLDUP_TEST_NO_SUCH", "HOLDUP_TEST_NO_SUCH"),
            ("//u:canary@h?password_file=/nonexistent/x", "/nonexistent/x"),
        ] {
            let text = Address::parse(address).unwrap_err().to_string();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
        }
    }
}
