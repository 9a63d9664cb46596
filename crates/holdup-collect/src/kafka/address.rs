//! Parses `//[user[:password]@]host[:port][,host[:port]…][?…]` of a Kafka cluster.

use std::sync::Arc;

use holdup_protocol::database::Login;
use holdup_protocol::database::kafka::Mechanism;

use crate::account::{Parts, certificates};
use crate::line::Tls;

/// Kafka's port.
const PORT: u16 = 9092;

/// The environment variable that holds the password of an account.
pub(super) const PASSWORD_VARIABLE: &str = "HOLDUP_KAFKA_PASSWORD";

const EXAMPLE: &str = "kafka://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]][?sasl=SCRAM-SHA-256|PLAIN, \
    tls=verify|require|off, tls_ca=PATH, password_env=VAR, password_file=PATH]";

/// A cluster, and the account to use there.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// Brokers that name the others.
    pub(super) brokers: Vec<(String, u16)>,
    /// None where the brokers ask for no account.
    pub(super) account: Option<(Mechanism, Arc<Login>)>,
    pub(super) tls: Tls,
}

impl Address {
    /// Parses the rest of `kafka:…` and reads the files and variables it names.
    ///
    /// # Errors
    /// What is wrong, without the password.
    pub(super) fn parse(rest: &str) -> Result<Self, String> {
        read(rest).map_err(|why| format!("{why}; expected {EXAMPLE}"))
    }

    /// The source's name in all tables.
    pub(super) fn source(&self) -> String {
        let brokers = self.brokers.iter().map(|(host, port)| format!("{host}:{port}"));
        format!("kafka://{}", brokers.collect::<Vec<_>>().join(","))
    }
}

fn read(rest: &str) -> Result<Address, String> {
    let address = rest.strip_prefix("//").ok_or("it does not begin with kafka://")?;
    let hosts_at = address.rfind('@').map_or(0, |at| at + 1);
    let (hosts, query) = address[hosts_at..].split_once('?').unwrap_or((&address[hosts_at..], ""));
    let mut hosts = hosts.split(',');
    let first = format!("{}{}?{query}", &address[..hosts_at], hosts.next().unwrap_or_default());
    let Parts { user, password, host, port, options, .. } = Parts::split(&first, PORT)?;
    let mut brokers = vec![(host, port)];
    for host in hosts {
        let more = Parts::split(host, PORT)?;
        brokers.push((more.host, more.port));
    }
    if brokers.iter().any(|(host, _)| host.is_empty()) {
        return Err("the host is missing".to_owned());
    }
    let (mut tls, mut mechanism) = (Tls::Off, Mechanism::default());
    for (name, value) in options {
        match (name.as_str(), value.as_str()) {
            ("tls", "off") => tls = Tls::Off,
            ("tls", "require") => tls = Tls::Any,
            ("tls", "verify") => tls = Tls::Verify(None),
            ("tls_ca", _) => tls = Tls::Verify(Some(certificates(&name, value)?)),
            ("sasl", _) => {
                let known = [Mechanism::ScramSha256, Mechanism::Plain];
                let named = known.into_iter().find(|known| known.name() == value);
                mechanism = named.ok_or("sasl: holdup logs in with SCRAM-SHA-256 or PLAIN")?;
            }
            ("tls", _) => return Err(format!("tls={value} is invalid; use verify, require or off")),
            _ => return Err(format!("the option {name} is unknown")),
        }
    }
    let account = match (user.is_empty(), password) {
        (true, Some(_)) => return Err("there is a password and no user".to_owned()),
        (true, None) => None,
        (false, password) => {
            let password = Parts::password_or(password, PASSWORD_VARIABLE);
            Some((mechanism, Arc::new(Login::new(user, password, None))))
        }
    };
    Ok(Address { brokers, account, tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broker_or_several_with_one_account() {
        let short = Address::parse("//kafka").unwrap();
        assert_eq!(
            (short.source().as_str(), short.tls, short.account.is_none()),
            ("kafka://kafka:9092", Tls::Off, true)
        );
        let full = Address::parse("//me:p%40,ss@a:1,b?sasl=PLAIN&tls=verify").unwrap();
        assert_eq!((full.source().as_str(), full.tls.clone()), ("kafka://a:1,b:9092", Tls::Verify(None)));
        let (mechanism, login) = full.account.as_ref().unwrap();
        assert_eq!((mechanism, login.user.as_str(), login.password.reveal()), (&Mechanism::Plain, "me", "p@,ss"));
        assert!(!format!("{full:?} {}", full.source()).contains("p@"));
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_not_the_password() {
        for (address, wrong) in [
            ("h", "begin"),
            ("//u:canary@h:0", "port"),
            ("//u:canary@h,", "host"),
            ("//:canary@h", "no user"),
            ("//u:canary@h?x=1", "the option x"),
            ("//u:canary@h?tls=on", "tls=on"),
            ("//u:canary@h?sasl=GSSAPI", "SCRAM-SHA-256 or PLAIN"),
        ] {
            let text = Address::parse(address).unwrap_err();
            assert!(text.contains(wrong) && !text.contains("canary"), "{address}: {text}");
        }
    }
}
