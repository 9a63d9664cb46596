//! The `probe` of a scenario: a health probe during the run, like an orchestrator's liveness probe,
//! as the address of a source to watch. That source does the probing, not this module.

use std::time::Duration;

use super::{Target, check_path, positive};
use crate::yaml::{Node, YamlError};

/// Keys of a probe.
const KEYS: [&str; 6] = ["get", "tcp", "every", "timeout", "failures", "delay"];

/// Keys that are also options of the address.
const OPTIONS: [&str; 4] = ["every", "timeout", "failures", "delay"];

/// Shortest time between two probes.
const EVERY_MIN: Duration = Duration::from_millis(10);

/// Reads one probe, or a list of them, of the service at `target`: addresses as for `--watch`.
///
/// # Errors
/// The first mistake, with its line and what would be right.
pub(super) fn parse(node: Option<&Node>, target: &Target) -> Result<Vec<String>, YamlError> {
    node.map_or(&[][..], Node::list).iter().map(|node| one(node, target)).collect()
}

fn one(node: &Node, target: &Target) -> Result<String, YamlError> {
    let map = node.map(&KEYS)?;
    let place = match (map.get("get"), map.get("tcp")) {
        (Some(get), None) => url(get, target)?,
        (None, Some(tcp)) => host_and_port(tcp, target)?,
        (None, None) => return Err(node.error("say what to probe: get: /health, or tcp: 8080")),
        (Some(_), Some(tcp)) => return Err(tcp.error("\"get\" and \"tcp\" exclude each other; keep one")),
    };
    // The defaults of Kubernetes.
    let length = |key: &str, usual| map.get(key).map_or(Ok(usual), positive);
    let every = length("every", Duration::from_secs(10))?;
    if let Some(node) = map.get("every").filter(|_| every < EVERY_MIN) {
        return Err(node.error("probes are at least 10ms apart"));
    }
    let timeout = length("timeout", Duration::from_secs(1))?;
    let delay = map.get("delay").map_or(Ok(Duration::ZERO), Node::duration)?;
    let failures = map.get("failures").map_or(Ok(3_u32), |n| n.integer("failed probes in a row", 1..=1_000_000))?;
    let sign = if place.contains('?') { '&' } else { '?' };
    let (every, timeout, delay) = (seconds(every), seconds(timeout), seconds(delay));
    Ok(format!("probe:{place}{sign}every={every}&timeout={timeout}&failures={failures}&delay={delay}"))
}

/// As in an address: without trailing zeros.
fn seconds(length: Duration) -> String {
    format!("{}s", length.as_secs_f64())
}

/// A whole URL, or a path of the target.
fn url(node: &Node, target: &Target) -> Result<String, YamlError> {
    let text = node.text()?;
    let url = match text.split_once("://") {
        Some(("http" | "https", _)) => {
            let (other, path) = Target::parse(text).map_err(|why| node.error(why))?;
            check_path(&path).map_err(|why| node.error(why))?;
            format!("{}{path}", other.url())
        }
        _ if target.sql.is_some() && text.starts_with('/') => {
            return Err(node.error("a database has no paths; give a whole URL, e.g. http://127.0.0.1:8080/health"));
        }
        _ => {
            check_path(text).map_err(|why| node.error(why))?;
            format!("{}{text}", target.url())
        }
    };
    let query = url.split_once('?').map_or("", |(_, query)| query);
    match query.split('&').find(|pair| OPTIONS.contains(&pair.split('=').next().unwrap_or_default())) {
        Some(pair) => Err(node.error(format!(
            "\"{pair}\" in the query would be read as an option of the probe; write it as a key beside get"
        ))),
        None => Ok(url),
    }
}

/// Host and port, or a port of the target's host.
fn host_and_port(node: &Node, target: &Target) -> Result<String, YamlError> {
    let text = node.text()?;
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), port),
        None if target.host.contains(':') => (format!("[{}]", target.host), text),
        None => (target.host.clone(), text),
    };
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    if !is_port || host.is_empty() || host.contains(['/', '@', '?']) {
        return Err(node.error(format!("expected a port or host:port, found \"{text}\"")));
    }
    Ok(format!("tcp://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, target: &str) -> Result<Vec<String>, YamlError> {
        let root = Node::parse(text, "s.yaml").unwrap();
        let target = Target::database(target).or_else(|_| Target::parse(target).map(|(target, _)| target)).unwrap();
        parse(root.map(&["probe"]).unwrap().get("probe"), &target)
    }

    #[test]
    fn probes_are_addresses() {
        for (text, target, expected) in [
            (
                "probe: {get: /health}",
                "http://127.0.0.1:8080",
                "probe:http://127.0.0.1:8080/health?every=10s&timeout=1s&failures=3&delay=0s",
            ),
            (
                "probe: {get: '/health?deep=1', every: 500ms, timeout: 250ms, failures: 2, delay: 1m}",
                "https://h",
                "probe:https://h/health?deep=1&every=0.5s&timeout=0.25s&failures=2&delay=60s",
            ),
            (
                "probe: {get: 'http://other:81/live', every: 1s}",
                "mysql://u@h:3306/db",
                "probe:http://other:81/live?every=1s&timeout=1s&failures=3&delay=0s",
            ),
            ("probe: {tcp: 90}", "http://[::1]:80", "probe:tcp://[::1]:90?every=10s&timeout=1s&failures=3&delay=0s"),
            ("probe: {tcp: 'h:90'}", "http://x", "probe:tcp://h:90?every=10s&timeout=1s&failures=3&delay=0s"),
        ] {
            assert_eq!(read(text, target).unwrap(), [expected], "{text}");
        }
        assert_eq!(read("probe: [{get: /a}, {tcp: 1}]", "http://h").unwrap().len(), 2);
        assert_eq!(parse(None, &Target::parse("http://h").unwrap().0).unwrap(), [""; 0]);
    }

    #[test]
    fn errors_name_the_line_and_the_way_out() {
        for (text, expected) in [
            ("probe:\n- {get: health}", "s.yaml:2: probe[0].get: a path begins with /, found \"health\""),
            ("probe: {every: 1s}", "s.yaml:1: probe: say what to probe: get: /health, or tcp: 8080"),
            ("probe: {get: /, tcp: 1}", "s.yaml:1: probe.tcp: \"get\" and \"tcp\" exclude each other; keep one"),
            ("probe: {get: /, evry: 1s}", "s.yaml:1: unknown key \"evry\" in probe; did you mean \"every\"?"),
            ("probe: {get: /, every: 1ms}", "s.yaml:1: probe.every: probes are at least 10ms apart"),
            ("probe: {get: /, timeout: 0s}", "s.yaml:1: probe.timeout: must be longer than 0s"),
            (
                "probe: {get: /, failures: 0}",
                "s.yaml:1: probe.failures: 0 is out of range: failed probes in a row, from 1 to 1000000",
            ),
            (
                "probe: {get: '/?every=1s'}",
                "s.yaml:1: probe.get: \"every=1s\" in the query would be read as an option of the probe; write it as a key beside get",
            ),
            ("probe: {tcp: 0}", "s.yaml:1: probe.tcp: expected a port or host:port, found \"0\""),
            (
                "probe: {get: 'http://u:p@h/'}",
                "s.yaml:1: probe.get: credentials in the URL are not supported; send an Authorization header",
            ),
        ] {
            assert_eq!(read(text, "http://h").unwrap_err().to_string(), expected);
        }
    }
}
