//! Parses `//[user[:password]@]host[:port]/[database][?…]` of a MongoDB server as MongoDB's own clients do
//! where both accept it.

use std::path::PathBuf;

use holdup_protocol::database::{MONGODB_IGNORED_OPTIONS, Secret};

use crate::account::{Parts, certificates};
use crate::line::Tls;

/// MongoDB's port.
const PORT: u16 = 27017;

/// The environment variable that holds the password of an account.
pub(super) const PASSWORD_VARIABLE: &str = "HOLDUP_MONGODB_PASSWORD";

const EXAMPLE: &str = "mongodb://[USER[:PASSWORD]@]HOST[:PORT]/[?authSource=DATABASE, tls=true|false, tlsCAFile=PATH, \
     tlsAllowInvalidCertificates=true, password_env=VAR, password_file=PATH, log=PATH, sizes=false]";

/// Why a name that stands for several servers is refused.
pub(crate) const SEVERAL_BY_NAME: &str = "holdup does not look up the servers behind such a name; name each server \
     as a source of its own: --watch 'mongodb://USER@HOST:27017/?tls=true' (the names are in `dig +short \
     SRV _mongodb._tcp.NAME`, and in rs.status() of mongosh)";

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

impl Address {
    /// Parses the rest of `mongodb:…` and reads the files and variables it names.
    ///
    /// # Errors
    /// What is wrong, without the password.
    pub(super) fn parse(rest: &str) -> Result<Self, String> {
        read(rest).map_err(|why| format!("{why}; expected {EXAMPLE}"))
    }

    /// The source's name in all tables.
    pub(super) fn source(&self) -> String {
        format!("mongodb://{}:{}", self.host, self.port)
    }
}

fn read(rest: &str) -> Result<Address, String> {
    let address = rest.strip_prefix("//").ok_or("it does not begin with mongodb://")?;
    let place = address.rsplit_once('@').map_or(address, |(_, place)| place);
    if place.split(['/', '?']).next().is_some_and(|hosts| hosts.contains(',')) {
        return Err("it names several hosts, and a source is one server: name each as a source of its own \
             (--watch mongodb://USER@HOST1 --watch mongodb://USER@HOST2)"
            .to_owned());
    }
    let Parts { user, password, host, port, path, options } = Parts::split(address, PORT)?;
    let mut auth_source = if path.is_empty() { "admin".to_owned() } else { path };
    let (mut log, mut sizes, mut tls) = (None, true, TlsOptions::default());
    for (name, value) in options {
        // MongoDB's clients take the names of options in any case.
        match name.to_ascii_lowercase().as_str() {
            "authsource" => auth_source = value,
            "authmechanism" if value == "SCRAM-SHA-256" => {}
            "authmechanism" => return Err("authMechanism: holdup logs in with SCRAM-SHA-256 only".to_owned()),
            "log" if value.is_empty() => return Err("log= names no file".to_owned()),
            "log" => log = Some(PathBuf::from(value)),
            "sizes" => sizes = truth(&name, &value)?,
            known if MONGODB_IGNORED_OPTIONS.contains(&known) => {}
            known if tls.take(known, value)? => {}
            _ => return Err(format!("the option {name} is unknown")),
        }
    }
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let user = Some(user).filter(|user| !user.is_empty());
    let password = match (&user, password) {
        (None, Some(_)) => return Err("there is a password and no user".to_owned()),
        (None, None) => Secret::default(),
        (Some(_), password) => Parts::password_or(password, PASSWORD_VARIABLE),
    };
    Ok(Address { host, port, user, password, auth_source, tls: tls.finish(), log, sizes })
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
        let full = Address::parse("//u%40x:p%3a@ss?/%25@[::1]:27018/shop?authSource=accounts&TLS=true&appName=x&w=1");
        let full = full.unwrap();
        assert_eq!((full.host.as_str(), full.port, full.user.as_deref()), ("::1", 27018, Some("u@x")));
        assert_eq!((full.password.reveal(), full.auth_source.as_str()), ("p:@ss?/%", "accounts"));
        assert_eq!((full.tls.clone(), full.source().as_str()), (Tls::Verify(None), "mongodb://::1:27018"));
        assert!(!format!("{full:?}").contains("ss?"));
        let short = Address::parse("//db").unwrap();
        assert_eq!((short.port, short.user, short.auth_source.as_str(), short.tls), (27017, None, "admin", Tls::Off));
        assert_eq!(Address::parse("//u:p@db/shop").unwrap().auth_source, "shop", "as MongoDB's clients have it");
        let any = Address::parse("//db/?tls=true&tlsAllowInvalidCertificates=true").unwrap();
        let own = Address::parse("//db/?tlsCAFile=/nonexistent/ca.pem").unwrap();
        let off = Address::parse("//db/?tls=false&tlsInsecure=true").unwrap();
        assert_eq!((any.tls, own.tls), (Tls::Any, Tls::Verify(Some("/nonexistent/ca.pem".into()))));
        assert_eq!(off.tls, Tls::Off);
        let insecure = ["//db/?tlsInsecure=true", "//db/?tlsCAFile=/nonexistent/ca.pem&tlsInsecure=true"];
        assert_eq!(insecure.map(|address| Address::parse(address).unwrap().tls), [Tls::Any, Tls::Any]);
        let log = Address::parse("//db/?log=/var/log/mongodb/mongod.log").unwrap().log;
        assert_eq!(log, Some("/var/log/mongodb/mongod.log".into()));
        assert!(any_sizes("") && any_sizes("?sizes=true") && !any_sizes("?sizes=false"));
    }

    fn any_sizes(query: &str) -> bool {
        Address::parse(&format!("//db/{query}")).unwrap().sizes
    }

    #[test]
    fn passwords_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "s3cr3t-canary\nmore\n").unwrap();
        let found = Address::parse(&format!("//me@h/?password_file={}", path.display())).unwrap();
        assert_eq!(found.password.reveal(), "s3cr3t-canary");
        let without_user = Address::parse(&format!("//h/?password_file={}", path.display())).unwrap_err();
        assert!(without_user.contains("no user"), "{without_user}");
        assert!(!format!("{found:?} {}", found.source()).contains("canary"));
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("h", "begin"),
            ("//u:canary@h:0", "port"),
            ("//u:canary@", "host"),
            ("//:canary@h", "user"),
            ("//u:canary@h/?x=1", "the option x"),
            ("//u:canary@h/?tls=on", "tls"),
            ("//u:canary@h/?sizes=no", "sizes is neither"),
            ("//u:canary@h/?log=", "log= names no file"),
            ("//u:canary@h/?authMechanism=PLAIN", "SCRAM-SHA-256"),
            ("//u:canary%2@h", "%25"),
            ("//u:canary@a:1,b:2/?replicaSet=rs0", "--watch mongodb://USER@HOST1 --watch"),
            ("//u:canary@h/?password_env=HOLDUP_TEST_NO_SUCH", "HOLDUP_TEST_NO_SUCH"),
            ("//u:canary@h/?password_file=/nonexistent/x", "/nonexistent/x"),
        ] {
            let text = Address::parse(address).unwrap_err().to_string();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
        }
    }
}
