//! Parses `probe:URL?every=&timeout=&failures=&delay=`: the target and the interval. Unknown query
//! parameters belong to the URL.

use std::time::Duration;

use holdup_recording::duration;

use super::check::Target;
use crate::prometheus::address::Address as Url;

/// Shortest time between two probes: more would be a load.
const EVERY_MIN: Duration = Duration::from_millis(10);

/// The example in error messages.
const EXAMPLE: &str = "probe:http://127.0.0.1:8080/health?every=10s&timeout=1s&failures=3";

/// The parsed address of a probe. Missing values are Kubernetes' defaults.
pub(super) struct Address {
    /// The target.
    pub place: Target,
    /// For tables and messages: without password and options.
    pub shown: String,
    /// Interval between two probes.
    pub every: Duration,
    /// Time limit of one probe.
    pub timeout: Duration,
    /// Number of consecutive failures after which kubelet kills the container.
    pub failures: u32,
    /// Delay before the first probe.
    pub delay: Duration,
}

impl Address {
    /// Parses the text after `probe:`.
    ///
    /// # Errors
    /// What is wrong, without the URL, which may contain a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (url, query) = text.split_once('?').map_or((text, ""), |(url, query)| (url, query));
        let mut found = Self {
            place: Target::Tcp(String::new()),
            shown: String::new(),
            every: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            failures: 3,
            delay: Duration::ZERO,
        };
        let mut seen: Vec<&str> = Vec::new();
        let mut others: Vec<&str> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let length = || duration::parse(value).map_err(|why| format!("{name}: {why}"));
            match name {
                "every" => found.every = length()?,
                "timeout" => found.timeout = length()?,
                "delay" => found.delay = length()?,
                "failures" => {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    found.failures =
                        number.ok_or_else(|| format!("failures={value} must be a whole number of 1 or more"))?;
                }
                _ => {
                    others.push(pair);
                    continue;
                }
            }
            if seen.contains(&name) {
                return Err(format!("{name} is given twice"));
            }
            seen.push(name);
        }
        if found.every < EVERY_MIN || found.timeout.is_zero() {
            return Err(format!("every must be at least {}ms, and timeout longer than 0s", EVERY_MIN.as_millis()));
        }
        match url.strip_prefix("tcp://") {
            Some(place) => {
                let port = place.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
                if !port.is_some_and(|(host, port)| !host.is_empty() && port > 0) || place.contains(['/', '@']) {
                    return Err("tcp:// needs a host and a port, e.g. probe:tcp://127.0.0.1:8080".to_owned());
                }
                if let Some(other) = others.first() {
                    let name = other.split('=').next().unwrap_or_default();
                    return Err(format!("\"{name}\" is unknown; supported: every, timeout, failures, delay"));
                }
                found.place = Target::Tcp(place.to_owned());
                found.shown = url.to_owned();
            }
            None => {
                let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
                let url = Url::parse_like(&format!("{url}{query}"), EXAMPLE)?;
                found.shown.clone_from(&url.shown);
                found.place = Target::Http(url);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_ours_and_the_rest_is_the_urls() {
        let text = "http://me:hunter2@h:8080/health?deep=1&every=250ms&timeout=2s&failures=5&delay=1m&token=xyz";
        let address = Address::parse(text).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(address.shown, "http://h:8080/health?deep=1&token=…");
        assert_eq!((address.every, address.timeout), (Duration::from_millis(250), Duration::from_secs(2)));
        assert_eq!((address.failures, address.delay), (5, Duration::from_secs(60)));
        let Target::Http(url) = address.place else { panic!("HTTP") };
        assert_eq!(url.url, "http://h:8080/health?deep=1&token=xyz");
        assert!(url.authorization.is_some());
    }

    /// As in a pod's description that says nothing.
    #[test]
    fn defaults_are_those_of_kubernetes() {
        let address = Address::parse("tcp://[::1]:80").unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((address.every, address.timeout), (Duration::from_secs(10), Duration::from_secs(1)));
        assert_eq!((address.failures, address.delay), (3, Duration::ZERO));
        assert_eq!(address.shown, "tcp://[::1]:80");
    }

    #[test]
    fn invalid_probes_are_refused_with_a_hint() {
        for (text, hint) in [
            ("", "e.g. probe:http://"),
            ("127.0.0.1:80/health", "e.g. probe:http://"),
            ("http://u:secret@h:x/", "port"),
            ("http://h/?every=1", "every: expected a duration"),
            ("http://h/?every=1ms", "at least 10ms"),
            ("http://h/?timeout=0s", "longer than 0s"),
            ("http://h/?failures=0", "a whole number of 1 or more"),
            ("http://h/?every=1s&every=2s", "every is given twice"),
            ("tcp://h", "a host and a port"),
            ("tcp://:80", "a host and a port"),
            ("tcp://h:80/secret", "a host and a port"),
            ("tcp://h:80?evry=1s", "\"evry\" is unknown"),
        ] {
            let why = Address::parse(text).err().unwrap_or_default();
            assert!(why.contains(hint) && !why.contains("secret"), "{text}: {why}");
        }
    }
}
