//! `mongodb://[user[:password]@]host[:port][/database][?authSource=…&tls=true|false]`, one server, as
//! MongoDB's own clients read it where both accept it. Options that mean nothing on single connections to one
//! server are accepted and ignored.

use super::{Address, Dialect, decoded, parts};
use crate::database::login::TlsMode;

/// How such an address begins.
pub(super) const SCHEME: &str = "mongodb://";

/// How an address begins whose servers are in the DNS.
pub(super) const BY_NAME: &str = "mongodb+srv://";

/// Why it is not read.
pub(super) const NO_NAMES: &str =
    "holdup does not look up the servers behind mongodb+srv:// (dig +short SRV _mongodb._tcp.NAME does): name one";

/// The form, for errors.
pub(super) const EXPECTED: &str =
    "mongodb://[user[:password]@]host[:port]/database[?authSource=DATABASE&tls=true|false]";

/// Options of other clients that change nothing on connections to one server.
pub const IGNORED: &[&str] = &[
    "appname",
    "compressors",
    "connecttimeoutms",
    "directconnection",
    "maxpoolsize",
    "minpoolsize",
    "readpreference",
    "replicaset",
    "retryreads",
    "retrywrites",
    "serverselectiontimeoutms",
    "sockettimeoutms",
    "w",
];

/// Reads what follows the scheme.
pub(super) fn read(rest: &str) -> Result<Address, String> {
    let (account, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    if place.split(['?', '/']).next().is_some_and(|hosts| hosts.contains(',')) {
        return Err("it names several hosts, and holdup connects to one: name the primary, or a mongos".to_owned());
    }
    let (mut address, query) = parts(Dialect::Mongodb, account, place)?;
    for option in query.split('&').filter(|option| !option.is_empty()) {
        set(&mut address, option)?;
    }
    Ok(address)
}

/// Takes an option. The error repeats only names that are known: the rest may be a password whose `@` was
/// forgotten.
fn set(address: &mut Address, option: &str) -> Result<(), String> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let name = name.to_ascii_lowercase();
    match (name.as_str(), value) {
        ("authsource", source) => address.accounts = Some(decoded(source)?).filter(|source| !source.is_empty()),
        ("authmechanism", "SCRAM-SHA-256") => {}
        ("authmechanism", _) => return Err("authMechanism: holdup logs in with SCRAM-SHA-256 only".to_owned()),
        ("tls" | "ssl", "true") => address.tls = TlsMode::On,
        ("tls" | "ssl", "false") => address.tls = TlsMode::Off,
        ("tls" | "ssl", _) => return Err("tls is neither true nor false".to_owned()),
        ("tlscafile" | "tlsinsecure" | "tlsallowinvalidcertificates", _) => {
            return Err("the certificates to trust are set by http.tls (--tls-ca, --insecure)".to_owned());
        }
        (known, _) if IGNORED.contains(&known) => {}
        _ => return Err("an option after the `?` is unknown".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::AddressError;

    #[test]
    fn all_parts() {
        let full = "mongodb://u%40x:p%3a@ss?/%25@[::1]:27018/shop?authSource=accounts&TLS=true&appName=x&w=1";
        let full = Address::parse(full).unwrap();
        assert_eq!((full.dialect, full.user.as_str(), full.host.as_str()), (Dialect::Mongodb, "u@x", "::1"));
        assert_eq!((full.port, full.database.as_deref(), full.tls), (27018, Some("shop"), TlsMode::On));
        assert_eq!((full.password.reveal(), full.accounts.as_deref()), ("p:@ss?/%", Some("accounts")));
        assert_eq!(full.url(), "mongodb://u@x@[::1]:27018/shop");
        assert_eq!(full.options(), "?authSource=accounts&tls=true");
        let short = Address::parse("mongodb://db/shop").unwrap();
        assert_eq!((short.port, short.user.as_str(), short.tls), (27017, "", TlsMode::Off));
        assert_eq!(short.url(), "mongodb://db:27017/shop");
        assert!(Address::is_database_address("mongodb://db"));
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("mongodb://u:canary@h:0", "port"),
            ("mongodb://u:canary@", "host"),
            ("mongodb://:canary@h", "user"),
            ("mongodb://u:canary@a,b/x", "several hosts"),
            ("mongodb://u:canary@h/x?tls=canary", "neither true nor false"),
            ("mongodb://u:p@h/x?canary=1", "unknown"),
            ("mongodb://u:canary@h/x?tlsCAFile=canary", "--tls-ca"),
            ("mongodb://u:canary@h/x?authMechanism=canary", "SCRAM-SHA-256"),
            ("mongodb://u:canary%2@h/x", "%25"),
            ("mongodb+srv://u:canary@h/x", "dig +short"),
        ] {
            let error: AddressError = Address::parse(address).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
            assert!(text.contains("mongodb://["), "{text}");
        }
    }
}
