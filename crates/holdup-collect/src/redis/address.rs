//! Parses `redis://[user[:password]@]host[:port]`, the same with `rediss:` for TLS, and
//! `redis:unix:/PATH`.

use holdup_protocol::database::Secret;

use crate::account::{Parts, certificates};
use crate::line::{Place, Tls};

/// Redis' port.
const PORT: u16 = 6379;

/// The environment variable that holds the password of an account.
pub(super) const PASSWORD_VARIABLE: &str = "HOLDUP_REDIS_PASSWORD";

/// The option of the file of certificates, as Redis' clients call it.
const AUTHORITY: &str = "ssl_ca_certs";

const EXAMPLE: &str = "redis://[USER[:PASSWORD]@]HOST[:PORT][?password_env=VAR, password_file=PATH], over TLS \
    rediss://HOST[:PORT][?ssl_ca_certs=PATH, ssl_cert_reqs=none], or redis:unix:/run/redis/redis.sock";

/// A server, and the account to use there.
#[derive(Clone, Debug)]
pub(super) struct Address {
    place: Where,
    /// Empty for the default account.
    pub(super) user: String,
    /// Empty where the server asks for none.
    pub(super) password: Secret,
    pub(super) tls: Tls,
}

#[derive(Clone, Debug)]
enum Where {
    Network(String, u16),
    Local(String),
}

impl Address {
    /// Parses the rest of `redis:…`, or of `rediss:…` if `is_encrypted`.
    ///
    /// # Errors
    /// What is wrong, without the password.
    pub(super) fn parse(rest: &str, is_encrypted: bool) -> Result<Self, String> {
        read(rest, is_encrypted).map_err(|why| format!("{why}; expected {EXAMPLE}"))
    }

    /// The source's name in all tables, however the connection is made.
    pub(super) fn source(&self) -> String {
        match &self.place {
            Where::Network(host, port) if host.contains(':') => format!("redis://[{host}]:{port}"),
            Where::Network(host, port) => format!("redis://{host}:{port}"),
            Where::Local(path) => format!("redis:unix:{path}"),
        }
    }

    /// Where to connect.
    pub(super) fn place(&self) -> Place<'_> {
        match &self.place {
            Where::Network(host, port) => Place::Network(host, *port),
            Where::Local(path) => Place::Local(path.clone()),
        }
    }

    /// What else may be wrong where no connection can be made.
    pub(super) fn advice(&self) -> &'static str {
        match (&self.place, &self.tls) {
            (Where::Local(_), _) => "is the server running, and may this account open its socket?",
            (_, Tls::Off) => {
                "is the server running, is this its port, and does it take connections without TLS (rediss://)?"
            }
            _ => "is the server running, and is this its port for TLS?",
        }
    }
}

fn read(rest: &str, is_encrypted: bool) -> Result<Address, String> {
    let own = |password| Parts::password_or(password, PASSWORD_VARIABLE);
    if let Some(path) = rest.strip_prefix("unix:").filter(|_| !is_encrypted) {
        let place = Where::Local(path.to_owned());
        let is_path = path.starts_with('/');
        let address = Address { place, user: String::new(), password: own(None), tls: Tls::Off };
        return is_path.then_some(address).ok_or_else(|| "the socket's path does not begin with /".to_owned());
    }
    let address = rest.strip_prefix("//").ok_or("the // after the scheme is missing")?;
    let parts = Parts::split(address, PORT)?;
    if parts.host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let (mut authority, mut accepts_any) = (None, false);
    for (name, value) in parts.options {
        match name.as_str() {
            AUTHORITY | "ssl_cert_reqs" if !is_encrypted => return Err(format!("{name} needs rediss://")),
            AUTHORITY => authority = Some(certificates(AUTHORITY, value)?),
            "ssl_cert_reqs" if value == "none" || value == "required" => accepts_any = value == "none",
            "ssl_cert_reqs" => return Err("ssl_cert_reqs is neither none nor required".to_owned()),
            _ => return Err(format!("the option {name} is unknown")),
        }
    }
    let tls = match is_encrypted {
        false => Tls::Off,
        true if accepts_any => Tls::Any,
        true => Tls::Verify(authority),
    };
    Ok(Address { place: Where::Network(parts.host, parts.port), user: parts.user, password: own(parts.password), tls })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::watch;

    #[test]
    fn addresses() {
        let make = |address: &str| watch::collector(address, &Options::default());
        for (good, source) in [
            ("redis://127.0.0.1:6380", "redis://127.0.0.1:6380"),
            ("redis://holdup:canary@cache", "redis://cache:6379"),
            ("redis://[::1]:7000", "redis://[::1]:7000"),
            ("redis:unix:/run/redis.sock", "redis:unix:/run/redis.sock"),
            ("rediss://holdup:canary@cache:6380?ssl_cert_reqs=none", "redis://cache:6380"),
        ] {
            assert_eq!(make(good).unwrap().source(), source);
        }
        for bad in [
            "redis:",
            "redis://u:canary@",
            "redis://u:canary@h?ssl_cert_reqs=none",
            "redis:unix:run",
            "rediss:unix:/run/redis.sock",
            "rediss://u:canary@h?ssl_cert_reqs=maybe",
            "rediss://u:canary@h?tls=1",
        ] {
            let error = make(bad).err().unwrap().to_string();
            assert!(error.contains("expected redis://") && !error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn certificates_are_checked_unless_the_address_says_otherwise() {
        let tls = |rest: &str, is_encrypted| Address::parse(rest, is_encrypted).unwrap().tls;
        assert_eq!(tls("//h", false), Tls::Off);
        assert_eq!(tls("//h", true), Tls::Verify(None));
        assert_eq!(tls("//h?ssl_ca_certs=/ca.pem", true), Tls::Verify(Some("/ca.pem".into())));
        assert_eq!(tls("//h?ssl_ca_certs=/ca.pem&ssl_cert_reqs=none", true), Tls::Any);
    }
}
