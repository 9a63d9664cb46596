//! Parses `mysql://user[:password]@host[:port][?…]`. Passwords come from the address, an
//! environment variable or a file, and go only to the server: no name, error or `Debug` output
//! contains them.

use std::fmt;
use std::path::{Path, PathBuf};

use holdup_protocol::database::Dialect;
use holdup_recording::files;

use crate::ProbeError;
use crate::database::{certificates, decoded, host_and_port, password_of_variable, user_and_password};
use crate::plans::PlanMode;

const PARAMETERS: &str = "extra_port=N, tls=verify|require|off, tls_ca=PATH, password_env=VAR, password_file=PATH, option_file=PATH, log=PATH, plans=off|explain|analyze";

/// A server and the account to use.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The port outside the thread pool, from the address or as the server reported it.
    pub(crate) extra_port: Option<u16>,
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) tls: Tls,
    /// The path of the slow query log, on this machine.
    pub(crate) log: Option<PathBuf>,
    /// Whether to ask for plans.
    pub(crate) plans: PlanMode,
}

/// Whether the connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tls {
    /// Unencrypted.
    #[default]
    Off,
    /// Encrypted, without checking the certificate.
    Require,
    /// Encrypted, with a certificate for this host name that is signed by this authority or by a
    /// public one.
    Verify(Option<PathBuf>),
}

/// A text that is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) Option<String>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Address {
    /// Parses an address and reads the files and variables it names. The error never repeats the
    /// input.
    pub(crate) fn parse(address: &str) -> Result<Self, ProbeError> {
        let rest = address.strip_prefix("mysql://").ok_or_else(|| "it does not begin with mysql://".to_owned());
        rest.and_then(|rest| read(rest, 3306)).map_err(|why| {
            ProbeError::BadAddress(format!(
                "--watch mysql://…: {why}; expected mysql://user[:password]@host[:port][?{PARAMETERS}]"
            ))
        })
    }

    /// The source's name in all tables.
    pub(crate) fn source(&self) -> String {
        format!("mysql://{}:{}", self.host, self.port)
    }
}

/// Reads `user[:password]@host[:port][?…]`, and the files and variables that it names.
///
/// # Errors
/// What is wrong, without the password.
pub(crate) fn read(rest: &str, default_port: u16) -> Result<Address, String> {
    // A password may contain `@`, `/` and `?`: the last `@` separates it from the host.
    let (account, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    // A database name after the host is accepted and ignored.
    let place = place.split_once('/').map_or(place, |(place, _)| place);
    let (host, port) = host_and_port(place, default_port)?;
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let (host, (user, password)) = (host.to_owned(), user_and_password(account)?);
    let mut found = Address {
        host,
        port,
        extra_port: None,
        user,
        password: Secret(password),
        tls: Tls::Off,
        log: None,
        plans: PlanMode::Off,
    };
    let mut options = OptionFile::default();
    for (name, value) in
        query.split('&').filter_map(|pair| pair.split_once('=').or((!pair.is_empty()).then_some((pair, ""))))
    {
        let value = decoded(value)?;
        match name {
            "extra_port" => {
                let port = value.parse().ok().filter(|port| *port > 0);
                found.extra_port = Some(port.ok_or_else(|| format!("extra_port={value} is not a port number"))?);
            }
            "tls" => {
                found.tls = match value.as_str() {
                    "off" => Tls::Off,
                    "require" => Tls::Require,
                    "verify" => Tls::Verify(None),
                    _ => return Err(format!("tls={value} is invalid; use verify, require or off")),
                }
            }
            "tls_ca" => found.tls = Tls::Verify(Some(certificates(name, value)?)),
            "log" => found.log = Some(PathBuf::from(value)),
            "plans" => found.plans = PlanMode::parse(&value)?,
            "password_env" => found.password = Secret(Some(password_of_variable(&value)?)),
            "password_file" => {
                let text = file(&value).map_err(|error| format!("password_file={value}: {error}"))?;
                found.password = Secret(Some(text.lines().next().unwrap_or_default().to_owned()));
            }
            "option_file" => {
                let text = file(&value).map_err(|error| format!("option_file={value}: {error}"))?;
                options = OptionFile::read(&text);
            }
            _ => return Err(format!("the parameter {name} is unknown")),
        }
    }
    if found.user.is_empty() {
        found.user = options.user.ok_or("the user is missing")?;
    }
    found.password.0 =
        found.password.0.or(options.password).or_else(|| std::env::var(Dialect::Mysql.password_variable()).ok());
    Ok(found)
}

fn file(path: &str) -> std::io::Result<String> {
    let home = path.strip_prefix("~/").zip(std::env::var_os("HOME"));
    let path = home.map_or_else(|| PathBuf::from(path), |(rest, home)| Path::new(&home).join(rest));
    files::read_text(&path, files::SMALL_BYTES)
}

/// The account in a client's option file (`~/.my.cnf`).
#[derive(Default)]
struct OptionFile {
    user: Option<String>,
    password: Option<String>,
}

impl OptionFile {
    fn read(text: &str) -> Self {
        let mut found = Self::default();
        let mut for_clients = false;
        for line in text.lines().map(str::trim) {
            if let Some(group) = line.strip_prefix('[') {
                for_clients =
                    matches!(group.trim_end_matches(']'), "client" | "client-mariadb" | "mysql" | "mariadb-client");
            } else if for_clients && let Some((name, value)) = line.split_once('=') {
                let value = value.trim();
                let bare = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
                let value = bare.unwrap_or(value).to_owned();
                match name.trim() {
                    "user" => found.user = Some(value),
                    "password" => found.password = Some(value),
                    _ => {}
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let full = Address::parse("mysql://u%40x:p%3a@ss?/%25@[::1]:3307/db?extra_port=3308").unwrap();
        assert_eq!(
            (full.user.as_str(), full.host.as_str(), full.port, full.extra_port),
            ("u@x", "::1", 3307, Some(3308))
        );
        let tls = |query: &str| Address::parse(&format!("mysql://u@h?{query}")).map(|a| a.tls);
        assert_eq!(tls("tls=require").unwrap(), Tls::Require);
        assert_eq!(tls("tls_ca=/ca.pem").unwrap(), Tls::Verify(Some("/ca.pem".into())));
        assert!(tls("tls=maybe").is_err());
        assert_eq!(Address::parse("mysql://u@h?log=/a%20b").unwrap().log, Some("/a b".into()));
        assert_eq!(full.password.0.as_deref(), Some("p:@ss?/%"));
        let short = Address::parse("mysql://u@db").unwrap();
        assert_eq!(short.source(), "mysql://db:3306");
    }

    #[test]
    fn passwords_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "s3cr3t-canary\n").unwrap();
        let options = dir.path().join("my.cnf");
        std::fs::write(&options, "[mysqld]\npassword=no\n[client]\nuser = \"me\"\npassword='s3cr3t-canary'\n").unwrap();
        for address in [
            format!("mysql://me@h?password_file={}", plain.display()),
            format!("mysql://h?option_file={}", options.display()),
        ] {
            let read = Address::parse(&address).unwrap();
            assert_eq!((read.user.as_str(), read.password.0.as_deref()), ("me", Some("s3cr3t-canary")));
            assert!(!format!("{read:?} {}", read.source()).contains("canary"));
        }
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("mysql://u:canary@h:0", "port"),
            ("mysql://u:canary@", "host"),
            ("mysql://:canary@h", "user"),
            ("mysql://u:canary@h?socket=x", "socket"),
            ("mysql://u:canary@h?extra_port=x", "extra_port"),
            ("mysql://u:canary%2@h", "%25"),
            ("mysql://u:canary", "@"),
            ("mysql://u:canary@h?password_env=HOLDUP_TEST_NO_SUCH", "HOLDUP_TEST_NO_SUCH"),
            ("mysql://u:canary@h?password_file=/nonexistent/x", "/nonexistent/x"),
        ] {
            let text = Address::parse(address).unwrap_err().to_string();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
        }
    }
}
