//! Parses `mongodb://[user[:password]@]host[:port]/[database][?…]` as MongoDB's own clients do where
//! both accept it. Passwords come from the address, an environment variable or a file, and go only into
//! the proof of a login: no name, error or `Debug` output contains them.

use std::path::PathBuf;

use holdup_protocol::database::{MONGODB_IGNORED_OPTIONS, Secret};
use holdup_recording::files;

use crate::ProbeError;
use crate::database::{certificates, decoded, host_and_port, password_of_variable, user_and_password};

/// MongoDB's port.
const PORT: u16 = 27017;

/// The environment variable that holds the password of an account.
pub(super) const PASSWORD_VARIABLE: &str = "HOLDUP_MONGODB_PASSWORD";

const EXAMPLE: &str = "mongodb://[USER[:PASSWORD]@]HOST[:PORT]/[?authSource=DATABASE, tls=true|false, tlsCAFile=PATH, \
     tlsAllowInvalidCertificates=true, password_env=VAR, password_file=PATH, log=PATH, sizes=false]";

/// A server, and the account to use there.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// Name or address.
    pub(super) host: String,
    pub(super) port: u16,
    /// None where the server asks for no account.
    pub(super) user: Option<String>,
    pub(super) password: Secret,
    /// The database that keeps the account.
    pub(super) auth_source: String,
    pub(super) tls: Tls,
    /// The server's log, on this machine.
    pub(super) log: Option<PathBuf>,
    /// Read sizes of collections and indexes.
    pub(super) sizes: bool,
}

/// Whether the connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Tls {
    #[default]
    Off,
    /// Without checking the certificate.
    Any,
    /// With a certificate for this host that an authority signed: this one's, or one that the machine
    /// trusts.
    Verify(Option<PathBuf>),
}

impl Address {
    /// Parses an address and reads the files and variables it names. The error never repeats a
    /// password.
    pub(super) fn parse(address: &str) -> Result<Self, ProbeError> {
        if address.starts_with("mongodb+srv:") {
            return Err(ProbeError::BadAddress(
                "--watch mongodb+srv://…: holdup does not look up the servers behind such a name; name each server \
                 as a source of its own: --watch 'mongodb://USER@HOST:27017/?tls=true' (the names are in `dig +short \
                 SRV _mongodb._tcp.NAME`, and in rs.status() of mongosh)"
                    .to_owned(),
            ));
        }
        read(address).map_err(|why| ProbeError::BadAddress(format!("--watch mongodb://…: {why}; expected {EXAMPLE}")))
    }

    /// The source's name in all tables.
    pub(super) fn source(&self) -> String {
        format!("mongodb://{}:{}", self.host, self.port)
    }
}

fn read(address: &str) -> Result<Address, String> {
    let rest = address.strip_prefix("mongodb://").ok_or("it does not begin with mongodb://")?;
    // A password may contain `@`, `/` and `?`: the last `@` separates it from the host.
    let (account, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let (place, database) = place.split_once('/').unwrap_or((place, ""));
    if place.contains(',') {
        return Err("it names several hosts, and a source is one server: name each as a source of its own \
             (--watch mongodb://USER@HOST1 --watch mongodb://USER@HOST2)"
            .to_owned());
    }
    let (user, mut password) = user_and_password(account)?;
    let (host, port) = host_and_port(place, PORT)?;
    let (host, database) = (decoded(host)?, decoded(database)?);
    let mut found = Address {
        host,
        port,
        user: Some(user).filter(|user| !user.is_empty()),
        password: Secret::default(),
        auth_source: if database.is_empty() { "admin".to_owned() } else { database },
        tls: Tls::Off,
        log: None,
        sizes: true,
    };
    let mut tls = TlsOptions::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        // MongoDB's clients take the names of options in any case.
        match name.to_ascii_lowercase().as_str() {
            "authsource" => found.auth_source = value,
            "authmechanism" if value == "SCRAM-SHA-256" => {}
            "authmechanism" => return Err("authMechanism: holdup logs in with SCRAM-SHA-256 only".to_owned()),
            "log" if value.is_empty() => return Err("log= names no file".to_owned()),
            "log" => found.log = Some(PathBuf::from(value)),
            "sizes" => found.sizes = truth(name, &value)?,
            "password_env" => password = Some(password_of_variable(&value)?),
            "password_file" => {
                let text = files::read_text(value.as_ref(), files::SMALL_BYTES)
                    .map_err(|error| format!("password_file={value}: {error}"))?;
                password = Some(text.lines().next().unwrap_or_default().to_owned());
            }
            known if MONGODB_IGNORED_OPTIONS.contains(&known) => {}
            known if tls.take(known, value)? => {}
            _ => return Err(format!("the option {name} is unknown")),
        }
    }
    if found.host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if found.user.is_none() && password.is_some() {
        return Err("there is a password and no user".to_owned());
    }
    found.tls = tls.finish();
    if found.user.is_some() {
        let password = password.or_else(|| std::env::var(PASSWORD_VARIABLE).ok());
        found.password = Secret::new(password.unwrap_or_default());
    }
    Ok(found)
}

fn truth(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{name} is neither true nor false")),
    }
}

/// The options about TLS, which come in any order.
#[derive(Default)]
struct TlsOptions {
    is_on: Option<bool>,
    authority: Option<PathBuf>,
    accepts_any: bool,
}

impl TlsOptions {
    /// Takes one, if it is about TLS.
    fn take(&mut self, name: &str, value: String) -> Result<bool, String> {
        match name {
            "tls" | "ssl" => self.is_on = Some(truth(name, &value)?),
            "tlsinsecure" | "tlsallowinvalidcertificates" => self.accepts_any = truth(name, &value)?,
            "tlscafile" => self.authority = Some(certificates("tlsCAFile", value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(self) -> Tls {
        // An option about certificates asks for TLS by itself.
        let is_on = self.is_on.unwrap_or(self.accepts_any || self.authority.is_some());
        match is_on {
            false => Tls::Off,
            true if self.accepts_any => Tls::Any,
            true => Tls::Verify(self.authority),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts() {
        let full = read("mongodb://u%40x:p%3a@ss?/%25@[::1]:27018/shop?authSource=accounts&TLS=true&appName=x&w=1");
        let full = full.unwrap();
        assert_eq!((full.host.as_str(), full.port, full.user.as_deref()), ("::1", 27018, Some("u@x")));
        assert_eq!((full.password.reveal(), full.auth_source.as_str()), ("p:@ss?/%", "accounts"));
        assert_eq!((full.tls.clone(), full.source().as_str()), (Tls::Verify(None), "mongodb://::1:27018"));
        assert!(!format!("{full:?}").contains("ss?"));
        let short = read("mongodb://db").unwrap();
        assert_eq!((short.port, short.user, short.auth_source.as_str(), short.tls), (27017, None, "admin", Tls::Off));
        assert_eq!(read("mongodb://u:p@db/shop").unwrap().auth_source, "shop", "as MongoDB's clients have it");
        let any = read("mongodb://db/?tls=true&tlsAllowInvalidCertificates=true").unwrap();
        let own = read("mongodb://db/?tlsCAFile=/nonexistent/ca.pem").unwrap();
        let off = read("mongodb://db/?tls=false&tlsInsecure=true").unwrap();
        assert_eq!((any.tls, own.tls), (Tls::Any, Tls::Verify(Some("/nonexistent/ca.pem".into()))));
        assert_eq!(off.tls, Tls::Off);
        let insecure =
            ["mongodb://db/?tlsInsecure=true", "mongodb://db/?tlsCAFile=/nonexistent/ca.pem&tlsInsecure=true"];
        assert_eq!(insecure.map(|address| read(address).unwrap().tls), [Tls::Any, Tls::Any]);
        let log = read("mongodb://db/?log=/var/log/mongodb/mongod.log").unwrap().log;
        assert_eq!(log, Some("/var/log/mongodb/mongod.log".into()));
        assert!(any_sizes("") && any_sizes("?sizes=true") && !any_sizes("?sizes=false"));
    }

    fn any_sizes(query: &str) -> bool {
        read(&format!("mongodb://db/{query}")).unwrap().sizes
    }

    #[test]
    fn passwords_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "s3cr3t-canary\nmore\n").unwrap();
        let found = read(&format!("mongodb://me@h/?password_file={}", path.display())).unwrap();
        assert_eq!(found.password.reveal(), "s3cr3t-canary");
        let without_user = read(&format!("mongodb://h/?password_file={}", path.display())).unwrap_err();
        assert!(without_user.contains("no user"), "{without_user}");
        assert!(!format!("{found:?} {}", found.source()).contains("canary"));
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("mongodb:h", "begin"),
            ("mongodb://u:canary@h:0", "port"),
            ("mongodb://u:canary@", "host"),
            ("mongodb://:canary@h", "user"),
            ("mongodb://u:canary@h/?x=1", "the option x"),
            ("mongodb://u:canary@h/?tls=on", "tls"),
            ("mongodb://u:canary@h/?sizes=no", "sizes is neither"),
            ("mongodb://u:canary@h/?log=", "log= names no file"),
            ("mongodb://u:canary@h/?authMechanism=PLAIN", "SCRAM-SHA-256"),
            ("mongodb://u:canary%2@h", "%25"),
            ("mongodb://u:canary@a:1,b:2/?replicaSet=rs0", "--watch mongodb://USER@HOST1 --watch"),
            ("mongodb+srv://u:canary@cluster.example/", "as a source of its own"),
            ("mongodb://u:canary@h/?password_env=HOLDUP_TEST_NO_SUCH", "HOLDUP_TEST_NO_SUCH"),
            ("mongodb://u:canary@h/?password_file=/nonexistent/x", "/nonexistent/x"),
        ] {
            let text = Address::parse(address).unwrap_err().to_string();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
        }
    }
}
