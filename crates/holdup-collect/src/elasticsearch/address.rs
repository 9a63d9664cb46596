//! Parses `//[user[:password]@]host[:port][?…]` of Elasticsearch or OpenSearch.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdup_protocol::database::Secret;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::account::{Parts, certificates, secret};
use crate::http;
use crate::line::Tls;

/// The port of both.
const PORT: u16 = 9200;

/// The environment variable that holds the password of an account.
pub(super) const PASSWORD_VARIABLE: &str = "HOLDUP_ELASTICSEARCH_PASSWORD";

const EXAMPLE: &str = "[USER[:PASSWORD]@]HOST[:PORT][?tls=verify|require|off, tls_ca=PATH, password_env=VAR, \
    password_file=PATH, api_key_env=VAR, api_key_file=PATH]";

/// Which of the two: they have the same statistics, and other words for rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    Elasticsearch,
    OpenSearch,
}

impl Product {
    /// The scheme of its addresses.
    fn scheme(self) -> &'static str {
        match self {
            Self::Elasticsearch => "elasticsearch",
            Self::OpenSearch => "opensearch",
        }
    }

    /// The least that an account needs.
    pub(super) fn grant(self) -> &'static str {
        match self {
            Self::Elasticsearch => {
                "PUT /_security/role/holdup {\"cluster\": [\"monitor\"], \"indices\": [{\"names\": [\"*\"], \
                 \"privileges\": [\"view_index_metadata\"]}]}"
            }
            Self::OpenSearch => {
                "PUT /_plugins/_security/api/roles/holdup {\"cluster_permissions\": [\"cluster_monitor\"], \
                 \"index_permissions\": [{\"index_patterns\": [\"*\"], \
                 \"allowed_actions\": [\"indices:monitor/settings/get\"]}]}"
            }
        }
    }
}

/// How holdup shows who it is.
#[derive(Clone, Debug)]
pub(super) enum Account {
    None,
    Password(String, Secret),
    Key(Secret),
}

/// A cluster, by one of its nodes, and the account to use there.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) product: Product,
    /// Host and port.
    place: String,
    is_on_loopback: bool,
    pub(super) account: Account,
    pub(super) tls: Tls,
}

impl Address {
    /// Parses the rest of an address, and reads the files and variables it names.
    ///
    /// # Errors
    /// What is wrong, without a password or key.
    pub(super) fn parse(product: Product, rest: &str) -> Result<Self, String> {
        read(product, rest).map_err(|why| format!("{why}; expected {}://{EXAMPLE}", product.scheme()))
    }

    /// The source's name in all tables.
    pub(super) fn source(&self) -> String {
        format!("{}://{}", self.product.scheme(), self.place)
    }

    /// The URL of `path` with its query.
    pub(super) fn url(&self, path: &str) -> String {
        let scheme = if self.tls == Tls::Off { "http" } else { "https" };
        format!("{scheme}://{}{path}", self.place)
    }

    /// The header `Authorization`. Never output it.
    pub(super) fn authorization(&self) -> Option<Secret> {
        match &self.account {
            Account::None => None,
            Account::Key(key) => Some(Secret::new(format!("ApiKey {}", key.reveal()))),
            Account::Password(user, password) => {
                Some(Secret::new(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())))))
            }
        }
    }

    /// Which certificates are accepted.
    ///
    /// # Errors
    /// If the file of certificates cannot be read.
    pub(super) fn certificates(&self) -> Result<TlsConfig, String> {
        let tls = TlsConfig::builder();
        Ok(match &self.tls {
            Tls::Verify(Some(file)) => tls.root_certs(http::authority(file, "tls_ca")?),
            Tls::Verify(None) => {
                let trusted = rustls_native_certs::load_native_certs().certs;
                let trusted: Vec<_> = trusted.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
                if trusted.is_empty() {
                    return Err("no trusted certificates on this machine; add tls_ca=PATH".to_owned());
                }
                tls.root_certs(RootCerts::new_with_certs(&trusted))
            }
            Tls::Any => tls.disable_verification(true),
            Tls::Off => tls,
        }
        .build())
    }

    /// The example that an account should follow.
    pub(super) fn with_account(&self) -> String {
        format!("{}://USER@{}", self.product.scheme(), self.place)
    }

    /// What is at risk on the way, if anything.
    pub(super) fn risk(&self) -> Option<&'static str> {
        if self.is_on_loopback || self.tls != Tls::Off {
            return None;
        }
        match self.account {
            Account::None => None,
            Account::Password(..) => Some("the password goes over the network unencrypted: use TLS (?tls=verify)"),
            Account::Key(_) => Some("the API key goes over the network unencrypted: use TLS (?tls=verify)"),
        }
    }
}

fn read(product: Product, rest: &str) -> Result<Address, String> {
    let address = rest.strip_prefix("//").ok_or("the // after the scheme is missing")?;
    let Parts { user, password, host, port, path, options } = Parts::split(address, PORT)?;
    if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c)) {
        return Err("the host is missing or not valid".to_owned());
    }
    if !path.is_empty() {
        return Err("a path after the host is not supported".to_owned());
    }
    let (mut tls, mut key) = (Tls::Off, None);
    for (name, value) in options {
        match (name.as_str(), value.as_str()) {
            ("tls", "off") => tls = Tls::Off,
            ("tls", "require") => tls = Tls::Any,
            ("tls", "verify") => tls = Tls::Verify(None),
            ("tls", _) => return Err("tls is neither verify, require nor off".to_owned()),
            ("tls_ca", _) => tls = Tls::Verify(Some(certificates(&name, value)?)),
            ("api_key", _) => key = Some(Secret::new(value)),
            _ => key = Some(secret("api_key", &name, &value)?.ok_or_else(|| format!("the option {name} is unknown"))?),
        }
    }
    let account = match (key, user.is_empty(), password) {
        (Some(_), false, _) | (Some(_), _, Some(_)) => return Err("use a user or an API key, not both".to_owned()),
        (Some(key), ..) => Account::Key(key),
        (None, true, Some(_)) => return Err("there is a password and no user".to_owned()),
        (None, true, None) => Account::None,
        (None, false, password) => Account::Password(user, Parts::password_or(password, PASSWORD_VARIABLE)),
    };
    let is_on_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok(Address { product, place, is_on_loopback, account, tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<Address, String> {
        Address::parse(Product::OpenSearch, rest)
    }

    #[test]
    fn accounts_keys_and_encryption_are_read_and_not_shown() {
        let open = parse("//search").unwrap();
        assert_eq!(
            (open.source().as_str(), open.url("/x?y")),
            ("opensearch://search:9200", "http://search:9200/x?y".into())
        );
        assert!(open.authorization().is_none() && open.risk().is_none());
        let full = parse("//me:p%40ss@[::1]:1?tls=require").unwrap();
        assert_eq!((full.source().as_str(), full.url("/")), ("opensearch://[::1]:1", "https://[::1]:1/".into()));
        // me:p@ss
        assert_eq!(full.authorization().unwrap().reveal(), "Basic bWU6cEBzcw==");
        let key = parse("//h?api_key=canary").unwrap();
        assert_eq!(key.authorization().unwrap().reveal(), "ApiKey canary");
        assert!(key.risk().unwrap().contains("API key") && parse("//h?api_key=k&tls=verify").unwrap().risk().is_none());
        assert!(parse("//me@h").unwrap().risk().is_some() && parse("//me@localhost").unwrap().risk().is_none());
        assert!(!format!("{full:?}{key:?}").contains("canary") && !format!("{full:?}").contains("p@ss"));
    }

    #[test]
    fn mistakes_are_said_without_the_password() {
        for (rest, wrong) in [
            ("h", "the //"),
            ("//", "host"),
            ("//u:canary@h:0", "port"),
            ("//u:canary@h i", "host"),
            ("//u:canary@h/path", "path"),
            ("//:canary@h", "no user"),
            ("//u:canary@h?x=1", "the option x"),
            ("//u:canary@h?tls=canary", "tls is neither"),
            ("//u@h?api_key=canary", "not both"),
            ("//h?api_key_env=HOLDUP_TEST_NOT_SET", "not set"),
        ] {
            let text = parse(rest).unwrap_err();
            assert!(text.contains(wrong) && text.contains("expected opensearch://"), "{rest}: {text}");
            assert!(!text.contains("canary"), "{text}");
        }
    }
}
