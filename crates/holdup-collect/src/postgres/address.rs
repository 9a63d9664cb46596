//! Parses `postgresql://user[:password]@host[:port][/database][?…]` in the way libpq does where
//! both accept it. Passwords come from the address, an environment variable or a file, and go only
//! to the server: no name, error or `Debug` output contains them.

use std::path::PathBuf;

use holdup_protocol::database::{Dialect, Secret};
use holdup_recording::files;

use crate::ProbeError;
use crate::database::{certificates, decoded, host_and_port, password_of_variable, user_and_password};
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
    /// Parses an address and reads the files and variables it names. The error never repeats a
    /// password.
    pub(crate) fn parse(address: &str) -> Result<Self, ProbeError> {
        let rest = address.strip_prefix("postgresql://").or(address.strip_prefix("postgres://"));
        rest.ok_or_else(|| "it does not begin with postgresql://".to_owned()).and_then(|rest| read(rest, 5432)).map_err(|why| {
            ProbeError::BadAddress(format!(
                "--watch postgresql://…: {why}; expected postgresql://user[:password]@host[:port][/database][?{PARAMETERS}]"
            ))
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
pub(crate) fn read(rest: &str, default_port: u16) -> Result<Address, String> {
    // A password may contain `@`, `/` and `?`: the last `@` separates it from the host.
    let (account, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let (place, database) = place.split_once('/').unwrap_or((place, ""));
    let (user, password) = user_and_password(account)?;
    let (host, port) = host_and_port(place, default_port)?;
    let host = decoded(host)?;
    let mut found = Address {
        host,
        port,
        user,
        password: Secret::default(),
        database: decoded(database)?,
        tls: Tls::Prefer,
        root_certificates: None,
        log: None,
        plans: PlanMode::Off,
    };
    let mut password = password;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        match name {
            "sslmode" => {
                found.tls = match value.as_str() {
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
            "sslrootcert" => found.root_certificates = Some(certificates(name, value)?),
            "host" => found.host = value,
            "log" => found.log = Some(PathBuf::from(value)),
            "plans" => found.plans = PlanMode::parse(&value)?,
            "password_env" => password = Some(password_of_variable(&value)?),
            "password_file" => {
                let text = files::read_text(value.as_ref(), files::SMALL_BYTES)
                    .map_err(|error| format!("password_file={value}: {error}"))?;
                password = Some(text.lines().next().unwrap_or_default().to_owned());
            }
            _ => return Err(format!("the parameter {name} is unknown")),
        }
    }
    if found.host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if found.user.is_empty() {
        return Err("the user is missing".to_owned());
    }
    if found.database.is_empty() {
        found.database.clone_from(&found.user);
    }
    let password = password.or_else(|| std::env::var(Dialect::Postgres.password_variable()).ok());
    found.password = Secret::new(password.unwrap_or_default());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let full =
            Address::parse("postgresql://u%40x:p%3a@ss?/%25@[::1]:5433/shop?sslmode=verify-full&log=/l/a.csv").unwrap();
        assert_eq!(
            (full.user.as_str(), full.host.as_str(), full.port, full.database.as_str()),
            ("u@x", "::1", 5433, "shop")
        );
        assert_eq!((full.tls, full.log), (Tls::VerifyFull, Some("/l/a.csv".into())));
        assert_eq!(full.password.reveal(), "p:@ss?/%");
        let short = Address::parse("postgres://u@db").unwrap();
        assert_eq!(
            (short.source().as_str(), short.database.as_str(), short.tls),
            ("postgresql://db:5432", "u", Tls::Prefer)
        );
        assert_eq!(Address::parse("postgresql://u@/x?host=/run/postgresql").unwrap().host, "/run/postgresql");
    }

    #[test]
    fn passwords_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "s3cr3t-canary\n").unwrap();
        let read = Address::parse(&format!("postgresql://me@h?password_file={}", plain.display())).unwrap();
        assert_eq!(read.password.reveal(), "s3cr3t-canary");
        assert!(!format!("{read:?} {}", read.source()).contains("canary"));
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("postgresql://u:canary@h:0", "port"),
            ("postgresql://u:canary@", "host"),
            ("postgresql://:canary@h", "user"),
            ("postgresql://u:canary@h?socket=x", "socket"),
            ("postgresql://u:canary@h?sslmode=x", "sslmode"),
            ("postgresql://u:canary@h?plans=all", "plans=all"),
            ("postgresql://u:canary%2@h", "%25"),
            ("postgresql://u:canary", "@"),
            ("postgresql://u:canary@h?password_env=HOLDUP_TEST_NO_SUCH", "HOLDUP_TEST_NO_SUCH"),
            ("postgresql://u:canary@h?password_file=/nonexistent/x", "/nonexistent/x"),
        ] {
            let text = Address::parse(address).unwrap_err().to_string();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
        }
    }
}
