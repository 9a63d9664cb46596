//! `--watch haproxy:PATH` or `haproxy:HOST:PORT`: HAProxy's stats socket. Requests that find every
//! slot of a server taken (its `maxconn`) wait in HAProxy, where the app does not see them. It
//! records HAProxy's own figures; nothing is derived.
//!
//! holdup sends `show info` and `show stat`, which the socket's lowest level (`user`) allows.
//! Columns are found by name, because versions differ.

mod table;

use std::io::{ErrorKind, Write as _};
use std::time::{Duration, Instant};

use holdup_recording::metrics::{Metric, haproxy as metric};
use holdup_recording::{Batch, Coverage, Labels, clock};

use self::table::Table;
use crate::endpoint::Endpoint;
use crate::options::Options;
use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError};

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Largest answer accepted: a server's line takes some 500 bytes.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Most frontends, backends and servers read, those with the longest queues first.
const ROWS_MAX: usize = 500;

/// Characters kept of a name.
const NAME_CHARACTERS_MAX: usize = 100;

const COMMAND: &[u8] = b"show info;show stat\n";

const EXAMPLE: &str = "haproxy:/run/haproxy/admin.sock or haproxy:127.0.0.1:9999 (in HAProxy's section global: stats \
    socket /run/haproxy/admin.sock level user)";

/// Lines of `show info` that are settings.
const SETTINGS: &[(&str, &str)] =
    &[("Version", "haproxy_version"), ("Nbthread", "nbthread"), ("Maxconn", "maxconn"), ("Nbproc", "nbproc")];

/// Columns of a frontend.
const FRONTEND: &[(&str, Metric, f64)] =
    &[("scur", metric::FRONTEND_SESSIONS, 1.0), ("slim", metric::FRONTEND_SESSIONS_LIMIT, 1.0)];

/// Columns of a backend's queue and of a server's.
const QUEUE: &[(&str, Metric, f64)] =
    &[("qcur", metric::QUEUED_REQUESTS, 1.0), ("qmax", metric::QUEUED_REQUESTS_MAX, 1.0)];

/// Columns of a backend; times are in milliseconds.
const BACKEND: &[(&str, Metric, f64)] = &[
    ("qtime", metric::QUEUE_TIME, 1e-3),
    ("ctime", metric::CONNECT_TIME, 1e-3),
    ("rtime", metric::RESPONSE_TIME, 1e-3),
    ("ttime", metric::TOTAL_TIME, 1e-3),
    ("econ", metric::CONNECT_ERRORS, 1.0),
    ("eresp", metric::RESPONSE_ERRORS, 1.0),
    ("wretr", metric::RETRIES, 1.0),
    ("wredis", metric::REDISPATCHES, 1.0),
    ("cli_abrt", metric::CLIENT_ABORTS, 1.0),
];

/// Columns of a server.
const SERVER: &[(&str, Metric, f64)] = &[
    ("scur", metric::SERVER_SESSIONS, 1.0),
    ("rtime", metric::SERVER_RESPONSE_TIME, 1e-3),
    ("stot", metric::SERVER_REQUESTS, 1.0),
];

/// A HAProxy as a source.
struct HaProxy {
    endpoint: Endpoint,
}

/// Makes the collector for `haproxy:…`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the rest is neither a path nor host and port.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    let rest = address.strip_prefix("haproxy:").unwrap_or_default();
    let endpoint = if rest.starts_with('/') { Endpoint::parse(&format!("unix:{rest}")) } else { Endpoint::parse(rest) };
    match endpoint {
        Some(endpoint) => Ok(Box::new(HaProxy { endpoint })),
        None => Err(ProbeError::BadAddress(format!("--watch haproxy:…: expected {EXAMPLE}"))),
    }
}

/// What HAProxy says about itself, and the table of its proxies.
struct Answer<'a> {
    info: Vec<(&'a str, &'a str)>,
    table: Table<'a>,
}

impl<'a> Answer<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        // A blank line ends each answer.
        let (info, rest) = text.split_once("\n\n").unwrap_or_default();
        let Some(table) = Table::parse(rest) else {
            let what = if bytes.is_empty() { "nothing" } else { "something else" };
            return Err(format!("it answers with {what}, not with HAProxy's statistics; expected {EXAMPLE}"));
        };
        let info = info.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim()));
        Ok(Self { info: info.collect(), table })
    }

    fn info(&self, name: &str) -> Option<&'a str> {
        self.info.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn put(&self, out: &mut Out) {
        let number = |name: &str| self.info(name)?.parse::<f64>().ok().filter(|value| value.is_finite());
        for (name, metric, unit) in [
            ("CurrConns", metric::CONNECTIONS, 1.0),
            ("Maxconn", metric::CONNECTIONS_LIMIT, 1.0),
            ("Run_queue", metric::RUN_QUEUE, 1.0),
            ("Idle_pct", metric::IDLE_RATIO, 0.01),
        ] {
            if let Some(value) = number(name) {
                out.put_plain(metric, value * unit);
            }
        }
        put_table(&self.table, out);
    }
}

fn put_table(table: &Table<'_>, out: &mut Out) {
    let queued = |row: usize| table.number(row, "qcur").unwrap_or(0.0);
    let mut rows: Vec<usize> = (0..table.len()).collect();
    rows.sort_by(|a, b| queued(*b).total_cmp(&queued(*a)));
    for &row in rows.iter().take(ROWS_MAX) {
        let name = |column: &str| -> String {
            table.text(row, column).unwrap_or_default().chars().take(NAME_CHARACTERS_MAX).collect()
        };
        let mut put = |labels: &Labels, columns: &[(&str, Metric, f64)]| {
            for (column, metric, unit) in columns {
                if let Some(value) = table.number(row, column) {
                    out.put(metric, labels.clone(), value * unit);
                }
            }
        };
        let proxy = name("pxname");
        match table.text(row, "svname") {
            Some("FRONTEND") => put(&Labels::new([("frontend", proxy)]), FRONTEND),
            Some("BACKEND") => {
                let labels = Labels::new([("backend", proxy)]);
                put(&labels, QUEUE);
                put(&labels, BACKEND);
                // In TCP mode it counts connections only.
                let column = if table.number(row, "req_tot").is_some() { "req_tot" } else { "stot" };
                put(&labels, &[(column, metric::REQUESTS, 1.0)]);
            }
            _ => {
                let labels = Labels::new([("backend", proxy), ("server", name("svname"))]);
                put(&labels, QUEUE);
                put(&labels, SERVER);
                let status = table.text(row, "status").unwrap_or_default();
                let is_up = status.starts_with("UP") || status == "no check";
                // Without `maxconn` it has no slots to wait for.
                if is_up && table.number(row, "slim").is_some_and(|slots| slots > 0.0) {
                    put(&labels, &[("slim", metric::SLOTS, 1.0), ("scur", metric::SLOTS_USED, 1.0)]);
                }
                out.put(metric::SERVER_UP, labels, f64::from(u8::from(is_up)));
            }
        }
    }
}

impl HaProxy {
    fn ask(&self) -> Result<Vec<u8>, String> {
        let answer = self.endpoint.connect(TIMEOUT).and_then(|mut line| {
            line.write_all(COMMAND)?;
            line.rest(BODY_BYTES_MAX)
        });
        answer.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => {
                "permission denied on its socket: add `group` and `mode 660` to that line of HAProxy's configuration and join the group, or run holdup as root".to_owned()
            }
            ErrorKind::NotFound => {
                "the socket does not exist: is HAProxy running, with stats socket … in its section global?".to_owned()
            }
            ErrorKind::TimedOut => format!("no answer within the time limit; expected {EXAMPLE}"),
            _ => error.to_string(),
        })
    }
}

/// Adds the samples of a stats socket's answer.
///
/// # Errors
/// If it is not such an answer.
pub fn samples(answer: &[u8], batch: &mut Batch) -> Result<(), String> {
    Answer::parse(answer)?.put(&mut Out::new(batch, "haproxy:"));
    Ok(())
}

impl Collector for HaProxy {
    fn source(&self) -> String {
        match &self.endpoint {
            Endpoint::Unix(path) => format!("haproxy:{}", path.display()),
            tcp @ Endpoint::Tcp(..) => format!("haproxy:{tcp}"),
        }
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let read = self.ask().and_then(|bytes| Answer::parse(&bytes).map(drop));
        read.map_err(|why| ProbeError::Unreachable { source_name: self.source(), why })?;
        Ok(Coverage::with_parts(&self.source(), Vec::new()))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let bytes = self.ask().map_err(ReadError)?;
        let answer = Answer::parse(&bytes).map_err(ReadError)?;
        let found = SETTINGS.iter().filter_map(|(line, name)| Some((*name, answer.info(line)?.to_owned())));
        tell(batch, &self.source(), found);
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let source = self.source();
        let mut out = Out::new(batch, &source);
        let (begun_at, begun) = (clock::now_ns(), Instant::now());
        let bytes = self.ask().map_err(ReadError)?;
        out.set_window(begun_at, begun.elapsed().as_nanos() as i64);
        Answer::parse(&bytes).map_err(ReadError)?.put(&mut out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "Name: HAProxy\nVersion: 2.6.12\nMaxconn: 200\nCurrConns: 9\nIdle_pct: 75\nRun_queue: 1\n\n";

    fn read(table: &str) -> Batch {
        let mut batch = Batch::default();
        samples(format!("{INFO}{table}\n").as_bytes(), &mut batch).unwrap();
        batch
    }

    fn value(batch: &Batch, metric: Metric, labels: &[(&str, &str)]) -> Option<f64> {
        let found: Vec<f64> = batch
            .samples
            .iter()
            .filter(|s| s.metric == metric.name && s.labels == Labels::new(labels.iter().copied()))
            .map(|s| s.value)
            .collect();
        assert!(found.len() < 2, "{} is there twice", metric.name);
        found.first().copied()
    }

    #[test]
    fn a_backend_its_servers_and_a_frontend() {
        let batch = read(
            "# pxname,svname,qcur,qmax,scur,slim,stot,econ,status,check_desc,req_tot,qtime,rtime,new_column,\n\
             web,FRONTEND,,,9,200,50,,OPEN,,51,,,7,\n\
             app,a1,1,4,2,2,30,0,UP 1/3,\"one, \"\"two\"\"\n\",,12,250,7,\n\
             app,a2,0,0,0,3,9,0,DOWN,,,0,0,7,\n\
             app,a3,0,0,1,,9,0,no check,,,0,0,7,\n\
             app,BACKEND,6,8,2,20,40,3,UP,,48,500,240,7,\n\
             raw,BACKEND,0,0,0,20,5,0,UP,,,0,0,7,\n",
        );
        let app = [("backend", "app")];
        let server = |name: &'static str| [("backend", "app"), ("server", name)];
        assert_eq!(value(&batch, metric::FRONTEND_SESSIONS, &[("frontend", "web")]), Some(9.0));
        assert_eq!(value(&batch, metric::QUEUED_REQUESTS, &app), Some(6.0));
        assert_eq!(value(&batch, metric::QUEUED_REQUESTS, &server("a1")), Some(1.0));
        assert_eq!(value(&batch, metric::QUEUE_TIME, &app), Some(0.5));
        assert_eq!(value(&batch, metric::SERVER_RESPONSE_TIME, &server("a1")), Some(0.25), "after a quoted field");
        assert_eq!(value(&batch, metric::CONNECT_ERRORS, &app), Some(3.0));
        assert_eq!(value(&batch, metric::RETRIES, &app), None, "a column that is missing is no 0");
        assert_eq!(value(&batch, metric::REQUESTS, &app), Some(48.0));
        assert_eq!(value(&batch, metric::REQUESTS, &[("backend", "raw")]), Some(5.0));
        let slots = ["a1", "a2", "a3"].map(|name| value(&batch, metric::SLOTS, &server(name)));
        assert_eq!(slots, [Some(2.0), None, None], "neither a server that is down nor one without a limit has slots");
        let up = ["a1", "a2", "a3"].map(|name| value(&batch, metric::SERVER_UP, &server(name)));
        assert_eq!(up, [Some(1.0), Some(0.0), Some(1.0)]);
        assert_eq!(value(&batch, metric::IDLE_RATIO, &[]), Some(0.75));
    }

    #[test]
    fn of_many_servers_those_with_a_queue_are_kept() {
        let lines: String = (0..2_000).map(|n| format!("b,s{n},{},\n", u8::from(n == 1_999))).collect();
        let batch = read(&format!("# pxname,svname,qcur,\n{lines}"));
        let queues = batch.samples.iter().filter(|s| s.metric == metric::QUEUED_REQUESTS.name);
        assert_eq!(queues.count(), ROWS_MAX);
        assert_eq!(value(&batch, metric::QUEUED_REQUESTS, &[("backend", "b"), ("server", "s1999")]), Some(1.0));
    }

    #[test]
    fn addresses_and_what_is_no_answer() {
        for good in ["haproxy:/run/h.sock", "haproxy:127.0.0.1:9999", "haproxy:[::1]:9999"] {
            assert_eq!(make(good, &Options::default()).unwrap().source(), good);
        }
        for bad in ["haproxy:", "haproxy:h", "haproxy:run/h.sock", "haproxy:canary@h:1"] {
            let error = make(bad, &Options::default()).err().unwrap().to_string();
            assert!(error.contains("haproxy:/run") && !error.contains("canary"), "{error}");
        }
        for bad in ["", "<html>s3cret", "Permission denied\n\n", "a: b\n\n# x,y,\n1,2,\n"] {
            let error = samples(bad.as_bytes(), &mut Batch::default()).unwrap_err();
            assert!(error.contains("not with HAProxy's statistics") && !error.contains("s3cret"), "{error}");
        }
    }
}
