//! Parses `//user[:password]@host[:port][?…]` of a MySQL or MariaDB server. A database name after the host
//! is accepted and ignored.

use std::path::PathBuf;

use holdup_protocol::database::{Dialect, Secret};

use crate::account::{Parts, certificates, file};
use crate::line::Tls;
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

impl Address {
    /// Parses the rest of `mysql:…` and reads the files and variables it names.
    ///
    /// # Errors
    /// What is wrong, without the password.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let address = rest.strip_prefix("//").ok_or_else(|| "it does not begin with mysql://".to_owned());
        let address = address.and_then(|address| read(address, 3306));
        address.map_err(|why| format!("{why}; expected mysql://user[:password]@host[:port][?{PARAMETERS}]"))
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
pub(crate) fn read(address: &str, default_port: u16) -> Result<Address, String> {
    let Parts { user, password, host, port, options, .. } = Parts::split(address, default_port)?;
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let (mut extra_port, mut tls, mut log, mut plans) = (None, Tls::Off, None, PlanMode::Off);
    let mut of_file = OptionFile::default();
    for (name, value) in options {
        match name.as_str() {
            "extra_port" => {
                let port = value.parse().ok().filter(|port| *port > 0);
                extra_port = Some(port.ok_or_else(|| format!("extra_port={value} is not a port number"))?);
            }
            "tls" => {
                tls = match value.as_str() {
                    "off" => Tls::Off,
                    "require" => Tls::Any,
                    "verify" => Tls::Verify(None),
                    _ => return Err(format!("tls={value} is invalid; use verify, require or off")),
                }
            }
            "tls_ca" => tls = Tls::Verify(Some(certificates(&name, value)?)),
            "log" => log = Some(PathBuf::from(value)),
            "plans" => plans = PlanMode::parse(&value)?,
            "option_file" => of_file = OptionFile::read(&file(&name, &value)?),
            _ => return Err(format!("the parameter {name} is unknown")),
        }
    }
    let user = Some(user).filter(|user| !user.is_empty()).or(of_file.user).ok_or("the user is missing")?;
    let password = password.or(of_file.password.map(Secret::new));
    let password = Parts::password_or(password, Dialect::Mysql.password_variable());
    Ok(Address { host, port, extra_port, user, password, tls, log, plans })
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
        let full = Address::parse("//u%40x:p%3a@ss?/%25@[::1]:3307/db?extra_port=3308").unwrap();
        assert_eq!(
            (full.user.as_str(), full.host.as_str(), full.port, full.extra_port),
            ("u@x", "::1", 3307, Some(3308))
        );
        let tls = |query: &str| Address::parse(&format!("//u@h?{query}")).map(|a| a.tls);
        assert_eq!(tls("tls=require").unwrap(), Tls::Any);
        assert_eq!(tls("tls_ca=/ca.pem").unwrap(), Tls::Verify(Some("/ca.pem".into())));
        assert!(tls("tls=maybe").is_err());
        assert_eq!(Address::parse("//u@h?log=/a%20b").unwrap().log, Some("/a b".into()));
        assert_eq!(full.password.reveal(), "p:@ss?/%");
        let short = Address::parse("//u@db").unwrap();
        assert_eq!(short.source(), "mysql://db:3306");
    }

    #[test]
    fn passwords_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "s3cr3t-canary\n").unwrap();
        let options = dir.path().join("my.cnf");
        std::fs::write(&options, "[mysqld]\npassword=no\n[client]\nuser = \"me\"\npassword='s3cr3t-canary'\n").unwrap();
        for address in
            [format!("//me@h?password_file={}", plain.display()), format!("//h?option_file={}", options.display())]
        {
            let read = Address::parse(&address).unwrap();
            assert_eq!((read.user.as_str(), read.password.reveal()), ("me", "s3cr3t-canary"));
            assert!(!format!("{read:?} {}", read.source()).contains("canary"));
        }
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("//u:canary@h:0", "port"),
            ("//u:canary@", "host"),
            ("//:canary@h", "user"),
            ("//u:canary@h?socket=x", "socket"),
            ("//u:canary@h?extra_port=x", "extra_port"),
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
