//! What is measured: which load goes to which server, from which tools with which flags. A group of scenarios is what
//! `--only` names.

use crate::servers::Kind;
use crate::tools::Demand;
use crate::tools::holdup::SESSIONS;

/// Names of groups, in the order in which they are run.
pub const GROUPS: [&str; 8] = ["closed", "sessions", "open", "freeze", "idle", "cores", "tls", "h2"];

/// The core that servers are bound to.
pub const SERVER_CPU: usize = 0;

/// The core that tools are bound to.
pub const TOOL_CPU: usize = 1;

/// One tool, with its flags, in a scenario.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Its name in reports.
    pub label: String,
    /// The tool.
    pub tool: &'static str,
    /// Its flags in this scenario.
    pub flags: Vec<String>,
    /// Cores of the server, then of the tool.
    pub cpus: (Vec<usize>, Vec<usize>),
}

/// Some tools, the same load, the same kind of server.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, such as `closed-nginx`.
    pub name: String,
    /// Its group.
    pub group: &'static str,
    /// One line for the report.
    pub about: String,
    /// The server.
    pub server: Kind,
    /// The load.
    pub demand: Demand,
    /// Who takes part.
    pub entrants: Vec<Entrant>,
    /// Label of the entrant that others are held against.
    pub base: &'static str,
    /// Rounds, at most: what hardly varies needs few.
    pub rounds_most: u32,
    /// Seconds that the server stops for.
    pub stop_seconds: Option<f64>,
}

impl Scenario {
    /// Whether the server notes when requests arrive, to be held against the schedule.
    pub fn is_stamped(&self) -> bool {
        matches!(self.group, "open" | "idle")
    }
}

fn entrant(label: &str, tool: &'static str, flags: &[&str]) -> Entrant {
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    Entrant { label: label.to_owned(), tool, flags, cpus: (vec![SERVER_CPU], vec![TOOL_CPU]) }
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// A look whether everything works, no figures.
    pub quick: bool,
    /// Length of the idle scenario.
    pub idle_seconds: Option<u32>,
}

/// All scenarios.
pub fn all(size: Size) -> Vec<Scenario> {
    let mut all = vec![closed("responder", responder(&[]), size), closed("nginx", Kind::Nginx { tls: false }, size)];
    all.push(sessions(size));
    all.extend([20_000, 5_000].map(|rate| open(rate, size)));
    all.extend([freeze(size), idle(size), cores(size), tls(size)]);
    all.extend([1, 10].map(|streams| h2(streams, size)));
    all
}

fn responder(arguments: &[&str]) -> Kind {
    Kind::Responder(arguments.iter().map(|word| (*word).to_owned()).collect())
}

fn closed_seconds(size: Size) -> u32 {
    if size.quick { 2 } else { 6 }
}

fn closed(server: &str, kind: Kind, size: Size) -> Scenario {
    let tools = ["floor", "holdup", "wrk", "ab", "oha", "hey", "vegeta", "k6"];
    Scenario {
        name: format!("closed-{server}"),
        group: "closed",
        about: format!("closed model, 64 keep-alive connections, against {server}: CPU time of the client a request"),
        server: kind,
        demand: Demand { rate: None, connections: 64, seconds: closed_seconds(size) },
        entrants: tools.map(|tool| entrant(tool, tool, &[])).into(),
        base: "floor",
        rounds_most: u32::MAX,
        stop_seconds: None,
    }
}

fn sessions(size: Size) -> Scenario {
    Scenario {
        name: "sessions".to_owned(),
        group: "sessions",
        about:
            "closed model, 64 connections, against the responder: CPU time a request of a plain run, and of sessions \
                of two steps with templates, one capture and one check"
                .to_owned(),
        server: responder(&[]),
        demand: Demand { rate: None, connections: 64, seconds: closed_seconds(size) },
        entrants: vec![entrant("holdup", "holdup", &[]), entrant("holdup, sessions", "holdup", &[SESSIONS])],
        base: "holdup",
        rounds_most: u32::MAX,
        stop_seconds: None,
    }
}

fn open(rate: u32, size: Size) -> Scenario {
    let entrants = vec![
        entrant("holdup precise", "holdup", &["--pace", "precise"]),
        entrant("holdup economy", "holdup", &["--pace", "economy"]),
        entrant("oha", "oha", &[]),
        entrant("vegeta", "vegeta", &["-connections=50", "-max-connections=50"]),
        entrant("k6", "k6", &[]),
        entrant("hey", "hey", &[]),
    ];
    Scenario {
        name: format!("open-{rate}"),
        group: "open",
        about: format!(
            "open model, {rate} requests/s on 50 connections, against the responder: CPU time a request, and \
             how late and how evenly requests arrive as the server's kernel stamps them"
        ),
        server: responder(&[]),
        demand: Demand { rate: Some(rate), connections: 50, seconds: if size.quick { 4 } else { 10 } },
        entrants,
        base: "holdup economy",
        rounds_most: u32::MAX,
        stop_seconds: None,
    }
}

fn freeze(size: Size) -> Scenario {
    let (seconds, stop) = if size.quick { (6, 1.0) } else { (20, 2.0) };
    let (at, long) = (format!("{}", f64::from(seconds) * 0.45), format!("{stop}"));
    let entrants = vec![
        entrant("holdup", "holdup", &[]),
        entrant("oha", "oha", &[]),
        entrant("oha --latency-correction", "oha", &["--latency-correction"]),
        entrant("vegeta", "vegeta", &[]),
        entrant("vegeta, 50 connections", "vegeta", &["-connections=50", "-max-connections=50"]),
        entrant("vegeta -max-workers 50", "vegeta", &["-max-workers=50"]),
        entrant("k6, 50 VUs", "k6", &[]),
        entrant("k6, 2000 VUs", "k6", &["-e", "USERS=2000"]),
        entrant("hey", "hey", &[]),
        entrant("wrk (closed)", "wrk", &[]),
        entrant("ab (closed)", "ab", &[]),
    ];
    Scenario {
        name: "freeze".to_owned(),
        group: "freeze",
        about: format!(
            "500 requests/s on 50 connections for {seconds} s, a server with a service time of 1 ms that stops for \
             {stop} s: what each tool says of it"
        ),
        server: responder(&["--service-ms", "1", "--freeze-at-s", &at, "--freeze-for-s", &long]),
        demand: Demand { rate: Some(500), connections: 50, seconds },
        entrants,
        base: "holdup",
        rounds_most: 3,
        stop_seconds: Some(stop),
    }
}

fn idle(size: Size) -> Scenario {
    let connections = if size.quick { 1_000 } else { 10_000 };
    let seconds = size.idle_seconds.unwrap_or(if size.quick { 4 } else { 20 });
    let expected = connections.to_string();
    Scenario {
        name: "idle".to_owned(),
        group: "idle",
        about: format!(
            "{connections} connections at 5000 requests/s for {seconds} s: memory of the client, and the time until \
             all are connected (from the first to the last, as the responder accepts them)"
        ),
        server: responder(&["--expect", &expected]),
        demand: Demand { rate: Some(5_000), connections, seconds },
        entrants: vec![
            entrant("holdup", "holdup", &["--open-all"]),
            entrant("wrk (closed)", "wrk", &[]),
            entrant("oha", "oha", &[]),
        ],
        base: "holdup",
        rounds_most: 3,
        stop_seconds: None,
    }
}

fn cores(size: Size) -> Scenario {
    let mut one = entrant("holdup, 1 loop on core 0", "holdup", &["--cpus", "0"]);
    one.cpus = (vec![0], vec![0]);
    let mut two = entrant("holdup, 2 loops on cores 0 and 1", "holdup", &["--cpus", "0,1"]);
    two.cpus = (vec![0, 1], vec![0, 1]);
    Scenario {
        name: "cores".to_owned(),
        group: "cores",
        about:
            "closed model, 64 connections; client and responder share one core, then each has a thread on both: with \
                nothing shared, two cores do twice as much"
                .to_owned(),
        server: responder(&[]),
        demand: Demand { rate: None, connections: 64, seconds: closed_seconds(size) },
        entrants: vec![one, two],
        base: "holdup, 1 loop on core 0",
        rounds_most: u32::MAX,
        stop_seconds: None,
    }
}

fn tls(size: Size) -> Scenario {
    Scenario {
        name: "tls".to_owned(),
        group: "tls",
        about: "closed model, 64 connections, HTTP/1.1 in TLS 1.3 (AES-128-GCM), against nginx".to_owned(),
        server: Kind::Nginx { tls: true },
        demand: Demand { rate: None, connections: 64, seconds: closed_seconds(size) },
        entrants: vec![entrant("h2load --h1", "h2load", &["--h1"]), entrant("holdup", "holdup", &["--insecure"])],
        base: "h2load --h1",
        rounds_most: u32::MAX,
        stop_seconds: None,
    }
}

fn h2(streams: u32, size: Size) -> Scenario {
    let streams = streams.to_string();
    Scenario {
        name: format!("h2-{streams}"),
        group: "h2",
        about: format!(
            "closed model, 16 connections with {streams} stream(s) each, HTTP/2 in TLS 1.3 (AES-128-GCM), against nginx"
        ),
        server: Kind::Nginx { tls: true },
        demand: Demand { rate: None, connections: 16, seconds: closed_seconds(size) },
        entrants: vec![
            entrant("h2load", "h2load", &["-m", &streams]),
            entrant("holdup", "holdup", &["--insecure", "--http", "2", "--streams", &streams]),
        ],
        base: "h2load",
        rounds_most: u32::MAX,
        stop_seconds: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    #[test]
    fn every_scenario_stands_on_known_things() {
        for quick in [true, false] {
            for scenario in all(Size { quick, idle_seconds: None }) {
                assert!(GROUPS.contains(&scenario.group), "{}", scenario.name);
                assert!(scenario.entrants.iter().any(|entrant| entrant.label == scenario.base), "{}", scenario.name);
                for entrant in &scenario.entrants {
                    assert!(tools::named(entrant.tool).is_some(), "{}", entrant.tool);
                }
                let stop = scenario.stop_seconds.unwrap_or_default();
                assert!(stop < f64::from(scenario.demand.seconds) / 2.0);
            }
        }
    }
}
