//! `--watch haproxy:PATH` or `haproxy:HOST:PORT`: HAProxy's stats socket. Requests that find every
//! slot of a server taken (its `maxconn`) wait in HAProxy, where the app does not see them. It
//! records HAProxy's own figures; nothing is derived.
//!
//! holdup sends `show info` and `show stat`, which the socket's lowest level (`user`) allows.
//! Columns are found by name, because versions differ.

use holdup_recording::layouts::haproxy::{BACKEND, FRONTEND, INFO, QUEUE, SERVER};
use holdup_recording::metrics::haproxy as metric;
use holdup_recording::{Batch, Labels};

use crate::Collector;
use crate::endpoint::{self, Endpoint};
use crate::options::Options;
use crate::page::{self, PageError, StatusPage};
use crate::reading::Out;
use crate::table::{Row, Rows};

/// Largest answer accepted: a server's line takes some 500 bytes.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Most frontends, backends and servers read, those with the longest queues first.
const ROWS_MAX: usize = 500;

const COMMAND: &[u8] = b"show info;show stat\n";

const EXAMPLE: &str = "haproxy:/run/haproxy/admin.sock or haproxy:127.0.0.1:9999 (in HAProxy's section global: stats \
    socket /run/haproxy/admin.sock level user)";

/// Lines of `show info` that are settings.
const SETTINGS: &[(&str, &str)] =
    &[("Version", "haproxy_version"), ("Nbthread", "nbthread"), ("Maxconn", "maxconn"), ("Nbproc", "nbproc")];

/// Makes the collector for `haproxy:…`, a path or host and port.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let socket = format!("unix:{rest}");
    let endpoint = Endpoint::parse(if rest.starts_with('/') { &socket } else { rest });
    let endpoint = endpoint.ok_or_else(|| format!("expected {EXAMPLE}"))?;
    Ok(page::collector(format!("haproxy:{rest}"), HaProxy(endpoint)))
}

/// A HAProxy.
struct HaProxy(Endpoint);

/// What HAProxy says about itself, and the table of its proxies.
struct Answer {
    info: Vec<(String, String)>,
    proxies: Rows,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        // A blank line ends each answer.
        let (info, rest) = text.split_once("\n\n").unwrap_or_default();
        let Some(proxies) = proxies(rest) else {
            let what = if bytes.is_empty() { "nothing" } else { "something else" };
            return Err(format!("it answers with {what}, not with HAProxy's statistics; expected {EXAMPLE}"));
        };
        let info = info.lines().filter_map(|line| line.split_once(':'));
        Ok(Self { info: info.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect(), proxies })
    }

    fn info(&self, name: &str) -> Option<&str> {
        self.info.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The table that `show stat` prints, with a `# ` before its head; none unless it is one of proxies and
/// servers.
fn proxies(text: &str) -> Option<Rows> {
    let mut lines = csv::ReaderBuilder::new().flexible(true).from_reader(text.strip_prefix("# ")?.as_bytes());
    let columns: Vec<String> = lines.headers().ok()?.iter().map(str::to_owned).collect();
    let filled = |field: &str| (!field.is_empty()).then(|| field.to_owned());
    let rows = lines.records().map_while(Result::ok).filter(|line| line.len() > 1);
    let rows = rows.map(|line| Row(line.iter().map(filled).collect())).collect();
    let has = |name: &str| columns.iter().any(|column| column == name);
    (has("pxname") && has("svname")).then(|| Rows { columns, rows, ..Rows::default() })
}

impl StatusPage for HaProxy {
    type Figures = Answer;

    fn ask(&self) -> Result<Answer, PageError> {
        let bytes = self.0.ask(COMMAND, BODY_BYTES_MAX).map_err(|error| {
            let denied = "add `group` and `mode 660` to that line of HAProxy's configuration and join the group, or run holdup as root";
            let absent = "is HAProxy running, with stats socket … in its section global?";
            endpoint::why(&error, denied, absent, || format!("no answer within the time limit; expected {EXAMPLE}"))
        })?;
        Ok(Answer::parse(&bytes)?)
    }

    fn put(answer: &Answer, out: &mut Out) {
        let number = |name| answer.info(name)?.parse::<f64>().ok().filter(|value| value.is_finite());
        out.put_known(
            &Labels::none(),
            INFO.iter().map(|(name, metric, unit)| (metric, number(name).map(|v| v * unit))),
        );
        for row in answer.proxies.named_by("qcur").into_iter().take(ROWS_MAX) {
            let proxy = row.name("pxname");
            match row.text("svname") {
                Some("FRONTEND") => row.put(out, &Labels::new([("frontend", proxy)]), FRONTEND),
                Some("BACKEND") => {
                    let labels = Labels::new([("backend", proxy)]);
                    row.put(out, &labels, QUEUE);
                    row.put(out, &labels, BACKEND);
                    // In TCP mode it counts connections only.
                    let column = if row.number("req_tot").is_some() { "req_tot" } else { "stot" };
                    row.put(out, &labels, &[(column, metric::REQUESTS, 1.0)]);
                }
                _ => {
                    let labels = Labels::new([("backend", proxy), ("server", row.name("svname"))]);
                    row.put(out, &labels, QUEUE);
                    row.put(out, &labels, SERVER);
                    let status = row.text("status").unwrap_or_default();
                    let is_up = status.starts_with("UP") || status == "no check";
                    // Without `maxconn` it has no slots to wait for.
                    if is_up && row.number("slim").is_some_and(|slots| slots > 0.0) {
                        row.put(out, &labels, &[("slim", metric::SLOTS, 1.0), ("scur", metric::SLOTS_USED, 1.0)]);
                    }
                    out.put(metric::SERVER_UP, labels, f64::from(u8::from(is_up)));
                }
            }
        }
    }

    fn settings(answer: &Answer) -> Vec<(&'static str, String)> {
        SETTINGS.iter().filter_map(|(line, name)| Some((*name, answer.info(line)?.to_owned()))).collect()
    }
}

/// Adds the samples of a stats socket's answer.
///
/// # Errors
/// If it is not such an answer.
pub fn samples(answer: &[u8], batch: &mut Batch) -> Result<(), String> {
    HaProxy::put(&Answer::parse(answer)?, &mut Out::new(batch, "haproxy:"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch;
    use holdup_recording::metrics::Metric;

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
        let make = |address| watch::collector(address, &Options::default());
        for good in ["haproxy:/run/h.sock", "haproxy:127.0.0.1:9999", "haproxy:[::1]:9999"] {
            assert_eq!(make(good).unwrap().source(), good);
        }
        for bad in ["haproxy:", "haproxy:h", "haproxy:run/h.sock", "haproxy:canary@h:1"] {
            let error = make(bad).err().unwrap().to_string();
            assert!(error.contains("haproxy:/run") && !error.contains("canary"), "{error}");
        }
        for bad in ["", "<html>s3cret", "Permission denied\n\n", "a: b\n\n# x,y,\n1,2,\n"] {
            let error = samples(bad.as_bytes(), &mut Batch::default()).unwrap_err();
            assert!(error.contains("not with HAProxy's statistics") && !error.contains("s3cret"), "{error}");
        }
    }
}
