//! Parses `clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[/RECORDING][?…]`. The password comes
//! from the address, an environment variable or a file, and goes only to the server: no message
//! and no `Debug` output contains it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use holdup_recording::files;

use crate::error::StoreError;

/// The scheme of a store's address.
pub const SCHEME: &str = "clickhouse://";

/// ClickHouse's ports for HTTP, without and with TLS.
const PORT: u16 = 8123;
const TLS_PORT: u16 = 8443;

/// The environment variable that holds the password.
const PASSWORD_VARIABLE: &str = "HOLDUP_CLICKHOUSE_PASSWORD";

/// The database, if the address names none.
const DATABASE: &str = "holdup";

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Longest name of a recording or a host, bytes.
const NAME_BYTES_MAX: usize = 1_000;

const EXAMPLE: &str = "clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[/RECORDING][?tls=verify|require|off, \
     tls_ca=PATH, password_env=VAR, password_file=PATH, timeout=SECONDS]";

/// Whether the connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// Unencrypted; a password only goes to this machine.
    #[default]
    Off,
    /// Unencrypted, as the address demands: the password goes in clear.
    InClear,
    /// Encrypted, without checking the certificate.
    Require,
    /// Encrypted, with a certificate for this host name that is signed by this authority or by a
    /// public one.
    Verify(Option<PathBuf>),
}

impl Tls {
    /// Whether it encrypts.
    pub fn is_on(&self) -> bool {
        !matches!(self, Self::Off | Self::InClear)
    }
}

/// A server, the account to use there, and what is meant there.
#[derive(Clone)]
pub struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: String,
    pub(crate) tls: Tls,
    pub(crate) timeout: Duration,
    /// The option that says where the password is, as it was given.
    password_option: Option<String>,
    /// The recording, if the address names one.
    pub recording: Option<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Address {
    /// Whether `text` is meant as a store's address.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Parses an address and reads the file or variable that it names.
    ///
    /// # Errors
    /// What is wrong with it. The message never repeats the input, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let found = read(text).map_err(|why| format!("the store's address: {why}; expected {EXAMPLE}"));
        found.map_err(StoreError::BadAddress)
    }

    /// The server and the database, without the account.
    pub fn shown(&self) -> String {
        format!("{SCHEME}{}:{}/{}", self.shown_host(), self.port, self.database)
    }

    pub(crate) fn shown_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// The address for a command line: with account and options, without the password and the
    /// recording.
    pub fn for_command(&self) -> String {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{}@", encoded(user)));
        let tls = match &self.tls {
            Tls::Off => None,
            Tls::InClear => Some("tls=off".to_owned()),
            Tls::Require => Some("tls=require".to_owned()),
            Tls::Verify(None) => Some("tls=verify".to_owned()),
            Tls::Verify(Some(file)) => Some(format!("tls_ca={}", encoded(&file.to_string_lossy()))),
        };
        let options: Vec<String> = tls.into_iter().chain(self.password_option.clone()).collect();
        let mark = if options.is_empty() { "" } else { "?" };
        let place = format!("{}:{}/{}", self.shown_host(), self.port, self.database);
        format!("{SCHEME}{user}{place}{mark}{}", options.join("&"))
    }

    /// The same with requests that take no longer than `limit`.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { timeout: self.timeout.min(limit), ..self.clone() }
    }
}

fn read(text: &str) -> Result<Address, String> {
    let rest = text.strip_prefix(SCHEME).ok_or("it does not begin with clickhouse://")?;
    // A password may contain `@`, `/` and `?`: the last `@` separates it from the host.
    let (account, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let (place, path) = place.split_once('/').unwrap_or((place, ""));
    let (database, recording) = path.split_once('/').unwrap_or((path, ""));
    let (user, password) = account.split_once(':').map_or((account, None), |(user, word)| (user, Some(word)));
    let recording = decoded(recording.trim_end_matches('/'))?;
    let mut found = Address {
        host: String::new(),
        port: 0,
        user: Some(decoded(user)?).filter(|user| !user.is_empty()),
        password: password.map(decoded).transpose()?,
        database: if database.is_empty() { DATABASE.to_owned() } else { database.to_owned() },
        tls: Tls::Off,
        timeout: TIMEOUT,
        password_option: None,
        recording: (!recording.is_empty()).then_some(recording),
    };
    check_database(&found.database)?;
    if let Some(recording) = &found.recording {
        check_name("the recording's name", recording)?;
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        set(&mut found, name, decoded(value)?)?;
    }
    let default = if found.tls.is_on() { TLS_PORT } else { PORT };
    let (host, port) = host_and_port(place, default)?;
    (found.host, found.port) = (decoded(host)?, port);
    if found.host.is_empty() || found.host.contains(['/', ' ', '\\', '#']) || found.host.chars().any(char::is_control) {
        return Err("the host is missing or is not a host name".to_owned());
    }
    found.password = found.password.or_else(|| std::env::var(PASSWORD_VARIABLE).ok());
    let is_secret = found.user.is_some() && found.password.as_deref().is_some_and(|word| !word.is_empty());
    if is_secret && found.tls == Tls::Off && !is_this_machine(&found.host) {
        let way = "add ?tls=verify, or ?tls=off to let it";
        return Err(format!("the password would cross the network in clear; {way}"));
    }
    Ok(found)
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn set(found: &mut Address, name: &str, value: String) -> Result<(), String> {
    if name.starts_with("password_") {
        found.password_option = Some(format!("{name}={}", encoded(&value)));
    }
    match name {
        "tls" => {
            found.tls = match value.as_str() {
                "off" => Tls::InClear,
                "require" => Tls::Require,
                "verify" => Tls::Verify(None),
                _ => return Err("tls= is invalid; use verify, require or off".to_owned()),
            }
        }
        "tls_ca" => found.tls = Tls::Verify(Some(PathBuf::from(value))),
        "password_env" => {
            let word = std::env::var(&value).map_err(|_| {
                format!("the environment variable {value}, named by password_env, is not set: export it first")
            })?;
            found.password = Some(word);
        }
        "password_file" => {
            let text = files::read_text(value.as_ref(), files::SMALL_BYTES)
                .map_err(|error| format!("password_file={value}: {error}"))?;
            found.password = Some(text.lines().next().unwrap_or_default().to_owned());
        }
        "timeout" => {
            let seconds = value.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
            found.timeout = Duration::from_secs(seconds.ok_or("timeout= takes seconds, 1 to 86400")?);
        }
        _ => return Err(format!("the parameter {name} is unknown")),
    }
    Ok(())
}

/// Names of databases and clusters stand in statements, so they may only hold letters that need no
/// quotes.
///
/// # Errors
/// If it holds others.
pub(crate) fn check_database(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 200 || !name.chars().all(is_plain) {
        return Err("names of databases and clusters are letters, digits, - and _".to_owned());
    }
    Ok(())
}

/// Checks the name of a recording or a host; any text that is not too long.
///
/// # Errors
/// If it is too long.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("{what} has more than {NAME_BYTES_MAX} bytes; choose a shorter one"));
    }
    Ok(())
}

fn host_and_port(place: &str, default: u16) -> Result<(&str, u16), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(default), str::parse).ok().filter(|port| *port > 0);
    Ok((host, port.ok_or("the text after the host's colon is not a port number (is an `@` missing?)")?))
}

/// `text` with each `%XX` replaced by its byte.
fn decoded(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        match byte {
            b'%' => match (digit(), digit()) {
                (Some(high), Some(low)) => out.push((high << 4 | low) as u8),
                _ => return Err("a `%` is not followed by two hex digits (write a literal % as %25)".to_owned()),
            },
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).map_err(|_| "its %XX sequences do not decode to UTF-8".to_owned())
}

/// `text` as a part of an address or a URL: every byte that is not a letter or digit as `%XX`.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let full = Address::parse("clickhouse://u%40x:p%3a@ss?/%25@[::1]:81/db/a%2Fb%00?timeout=5").unwrap();
        assert_eq!((full.user.as_deref(), full.host.as_str(), full.port), (Some("u@x"), "::1", 81));
        assert_eq!((full.database.as_str(), full.recording.as_deref()), ("db", Some("a/b\0")));
        assert_eq!((full.password.as_deref(), full.timeout.as_secs()), (Some("p:@ss?/%"), 5));
        assert_eq!(format!("{full:?}"), "clickhouse://[::1]:81/db");
        let short = Address::parse("clickhouse://h").unwrap();
        assert_eq!((short.shown().as_str(), short.recording), ("clickhouse://h:8123/holdup", None));
        assert_eq!(Address::parse("clickhouse://h/x?tls=verify").unwrap().port, 8443);
        assert_eq!(Address::parse("clickhouse://h/x?tls_ca=/ca").unwrap().tls, Tls::Verify(Some("/ca".into())));
    }

    #[test]
    fn wrong_addresses_name_the_fault_and_no_secret() {
        assert_eq!(Address::parse("clickhouse://u:s3cr3t@h/db?tls=off").unwrap().tls, Tls::InClear);
        for (address, said) in [
            ("clickhouse://u:s3cr3t@/db", "the host is missing"),
            ("clickhouse://u:s3cr3t@h/d`b", "names of databases"),
            ("clickhouse://u:s3cr3t@h/db?tls=s3cr3t", "tls= is invalid"),
            ("clickhouse://u:s3cr3t@h:0/db", "not a port number"),
            ("clickhouse://u:%zz@h/db", "two hex digits"),
            ("http://u:s3cr3t@h/db", "does not begin with"),
            ("clickhouse://h/db?password_file=/no/such", "/no/such: "),
            ("clickhouse://h/db?what=1", "what is unknown"),
            ("clickhouse://u:s3cr3t@h/db", "cross the network in clear"),
        ] {
            let why = Address::parse(address).unwrap_err().to_string();
            assert!(why.contains(said) && !why.contains("s3cr3t"), "{why}");
        }
        let long = format!("clickhouse://h/db/{}", "x".repeat(NAME_BYTES_MAX + 1));
        assert!(Address::parse(&long).unwrap_err().to_string().contains("more than 1000 bytes"));
    }

    #[test]
    fn an_address_for_a_command_line_has_no_password() {
        for (given, shown) in [
            ("clickhouse://u%40x:p@h/db/one?tls=off", "clickhouse://u%40x@h:8123/db?tls=off"),
            ("clickhouse://[::1]:81/db", "clickhouse://[::1]:81/db"),
            ("clickhouse://u:p@h/db?tls_ca=/a b", "clickhouse://u@h:8443/db?tls_ca=%2Fa%20b"),
            (
                "clickhouse://u@h/db?tls=require&password_env=PATH",
                "clickhouse://u@h:8443/db?tls=require&password_env=PATH",
            ),
        ] {
            assert_eq!(Address::parse(given).unwrap().for_command(), shown);
        }
        let short = Address::parse("clickhouse://h/db").unwrap().within(Duration::from_secs(5));
        assert_eq!((short.timeout.as_secs(), short.within(Duration::from_secs(9)).timeout.as_secs()), (5, 5));
    }

    #[test]
    fn passwords_from_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "s3cr3t\nmore").unwrap();
        let address =
            format!("clickhouse://u@h/db?tls=require&password_file={}", encoded(&file.path().to_string_lossy()));
        let found = Address::parse(&address).unwrap();
        assert_eq!(found.password.as_deref(), Some("s3cr3t"));
        assert!(!format!("{found:?}").contains("s3cr3t"));
    }
}
