//! Where a run goes beside its recording: files and stdout as other programs read them, a receiver of remote writes that
//! takes them apart by itself, a real Prometheus, and the view on a terminal.

mod receiver;
mod terminal;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use holdup_testing::{Process, free_port, program};
use serde_json::Value;

use self::receiver::{Labels, Receiver, STALE};
use crate::mariadb::CANARY;
use crate::program::{Finished, Running, finish, holdup};
use crate::service::Service;

/// `--rate=100` for three seconds against `service`, into `dir/run`.
fn run(service: &Service, dir: &Path, more: &[&str]) -> Command {
    let mut command = holdup(["run", "--url", &service.url(), "--rate=100", "--duration=3s", "--no-collect"]);
    command.args(more).arg("-o").arg(dir.join("run")).current_dir(dir);
    command
}

/// The lines of a file of JSON lines.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The whole counts that a summary line has.
fn completed(summary: &Value) -> u64 {
    let operations = summary["load"]["operations"].as_array().unwrap();
    operations.iter().map(|operation| operation["completed"].as_u64().unwrap()).sum()
}

#[test]
fn files_say_what_the_recording_says() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    // What was there is replaced.
    std::fs::write(dir.path().join("seconds.csv"), "old\n".repeat(10_000)).unwrap();
    let outs = ["--out=seconds.csv", "--out=json:seconds.jsonl", "--out=junit:objectives.xml", "--out", "copy.hlog"];
    let thresholds = ["--threshold=p99 < 1us", "--threshold=errors < 50%"];
    let done = finish(run(&service, dir.path(), &[&outs[..], &thresholds].concat()), 60);
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();

    let json = lines(&read("seconds.jsonl"));
    let (summary, seconds) = json.split_last().unwrap();
    assert_eq!((&summary["type"], summary["load"]["operations"][0]["due"].as_u64()), (&"summary".into(), Some(300)));
    assert!(seconds.len() >= 3 && seconds.iter().all(|s| s["type"] == "second"), "{json:#?}");
    let sum = |key: &str| seconds.iter().map(|s| s[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("completed"), sum("completed") + sum("failed")), (completed(summary), 300));

    let csv = read("seconds.csv");
    let rows: Vec<Vec<&str>> = csv.split_terminator("\r\n").map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let total: u64 = rows[1..].iter().map(|row| row[column("completed")].parse::<u64>().unwrap()).sum();
    assert_eq!((rows.len() - 1, total), (seconds.len(), completed(summary)));
    for (row, second) in rows[1..].iter().zip(seconds) {
        assert_eq!(row[column("time")], second["time"]);
        let p99 = second["operations"][0]["response_ms"]["p99"].as_f64().map_or(String::new(), |v| v.to_string());
        assert_eq!(row[column("response_p99_ms")], p99);
    }

    let junit = read("objectives.xml");
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("name=\"p99 &lt; 1us\"") && junit.contains("the objective is p99 &lt; 1us"), "{junit}");
    assert_eq!(read("copy.hlog"), read("run/latency.hlog"));
}

#[test]
fn stdout_is_the_outputs_alone() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let done = finish(run(&service, dir.path(), &["--out=-"]), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let json = lines(&done.stdout);
    assert_eq!((&json[0]["type"], &json.last().unwrap()["type"]), (&"second".into(), &"summary".into()));
    let verdict = ["HEALTHY", "UNDECIDED"].iter().any(|verdict| done.stderr.contains(verdict));
    assert!(verdict && done.stderr.contains("recording"), "{}", done.stderr);
}

/// A reader that goes away (`| head -1`) and a full disk are said once, and the run goes on.
#[test]
fn an_output_that_fails_does_not_end_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let mut command = run(&service, dir.path(), &["--out=-", "--out=csv:/dev/full", "--quiet"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let done = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{stderr}");
    for name in ["failed to write stdout: ", "failed to write /dev/full: "] {
        assert_eq!(stderr.matches(name).count(), 1, "{name}: {stderr}");
    }
    // Whatever the verdict is of three seconds on this machine, there is one.
    assert!(["HEALTHY", "UNDECIDED"].iter().any(|verdict| stderr.contains(verdict)), "{stderr}");
}

#[test]
fn invalid_outputs_are_found_before_the_load() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let nobody = format!("prometheus:http://me:{CANARY}@127.0.0.1:{}/api/v1/write", free_port());
    let elsewhere = format!("prometheus:{}", service.url().replace("://", &format!("://me:{CANARY}@")) + "nowhere");
    let ftp = format!("prometheus:ftp://me:{CANARY}@h/");
    std::fs::write(dir.path().join("there"), "as it was").unwrap();
    for (flags, words) in [
        (vec!["--out", "cvs:a.csv"], &["cvs", "did you mean csv?"][..]),
        (vec!["--out", "results"], &["results", "csv:results"]),
        (vec!["--out", &ftp], &["http://"]),
        (vec!["--out", "csv:new.csv", "--out", "csv:no/such/dir.csv"], &["no/such/dir.csv", "No such file"]),
        (vec!["--out", "csv:there", "--out", &nobody], &["127.0.0.1", "refused"]),
        (vec!["--out", "csv:there", "--out", &elsewhere], &["status 404", "/api/v1/write"]),
        (vec!["--out", "-", "--out", "csv:-"], &["two outputs write to stdout"]),
        (vec!["--out", "-", "--json"], &["--json"]),
        (vec!["--metrics", "here"], &["--metrics", "127.0.0.1:9464"]),
        (vec!["--out", "junit:new.xml", "--metrics", &taken], &["in use"]),
    ] {
        let done = finish(run(&service, dir.path(), &flags), 30);
        assert_eq!(done.code(), Some(2), "{flags:?}: {}", done.stderr);
        for word in words {
            assert!(done.stderr.contains(word), "{flags:?} does not say {word}: {}", done.stderr);
        }
        assert!(done.stdout.is_empty() && !done.stderr.contains(CANARY), "{flags:?}: {}", done.stderr);
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["there"], "{flags:?} left something");
        assert_eq!(std::fs::read_to_string(dir.path().join("there")).unwrap(), "as it was");
    }
}

#[test]
fn remote_writes_are_whole_in_order_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let receiver = Receiver::start();
    let url = format!("prometheus:http://me:{CANARY}@{}/api/v1/write", receiver.address);
    let running = Running::start(&mut run(&service, dir.path(), &["--out", &url, "--json"]));
    std::thread::sleep(Duration::from_secs(1));
    let line = std::fs::read(format!("/proc/{}/cmdline", running.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&line).contains(CANARY), "the process list shows it");
    let done = running.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(!done.stderr.contains(CANARY) && !done.stdout.contains(CANARY), "{}", done.stderr);
    let expected = done.json()["load"]["operations"][0]["completed"].as_u64().unwrap();

    let writes = receiver.writes();
    assert!(writes.iter().all(|w| w.authorization == "Basic bWU6YzRuYXJ5VzByZA=="), "me and the password");
    let mut series: BTreeMap<Labels, Vec<(f64, i64)>> = BTreeMap::new();
    for one in writes.iter().flat_map(|write| &write.series) {
        assert!(one.labels.is_sorted(), "{one:?}");
        series.entry(one.labels.clone()).or_default().extend(&one.samples);
    }
    let label = |labels: &Labels, name: &str| {
        labels.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    for (labels, samples) in &series {
        assert!(samples.windows(2).all(|two| two[0].1 < two[1].1), "{labels:?}: {samples:?}");
        let (last, _) = samples.last().unwrap();
        assert_eq!(last.to_bits(), STALE, "{labels:?} has not ended");
        assert_eq!((label(labels, "job"), label(labels, "run")), ("holdup".to_owned(), "run".to_owned()));
    }
    let named = |name: &str| -> Vec<_> { series.iter().filter(|(l, _)| label(l, "__name__") == name).collect() };
    let ok = named("holdup_requests_total").into_iter().find(|(l, _)| label(l, "outcome") == "ok").unwrap();
    let counts: Vec<f64> = ok.1.iter().map(|s| s.0).filter(|v| !v.is_nan()).collect();
    assert!(counts.len() >= 3 && counts.is_sorted(), "{counts:?}");
    assert_eq!(counts.last().copied(), Some(expected as f64));
    let quantiles: Vec<String> =
        named("holdup_response_time_seconds").iter().map(|(l, _)| label(l, "quantile")).collect();
    assert_eq!(quantiles, ["0.5", "0.9", "0.95", "0.99", "0.999"]);
    let now_ms = holdup_recording::clock::now_ns() / 1_000_000;
    assert!(ok.1.iter().all(|(_, at)| (now_ms - at).abs() < 120_000), "milliseconds: {:?} at {now_ms}", ok.1);
    assert!((named("holdup_offered_rate")[0].1[0].0 - 100.0).abs() < 1e-9);
}

/// A receiver that is busy costs the load nothing, and what was dropped is said.
#[test]
fn a_busy_receiver_is_waited_for_beside_the_load() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let receiver = Receiver::start();
    receiver.answer_after_the_first(503);
    let url = format!("prometheus:http://{}/api/v1/write", receiver.address);
    let done = finish(run(&service, dir.path(), &["--out", &url, "--json"]), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let load = &done.json()["load"];
    assert_eq!(load["operations"][0]["due"].as_u64(), Some(300), "{load:#}");
    assert_eq!(done.stderr.matches("status 503; holdup tries again").count(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("writes were dropped: status 503"), "{}", done.stderr);
}

#[test]
fn a_real_prometheus_takes_both() {
    let Some(prometheus) = Prometheus::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = format!("prometheus:{}/api/v1/write", prometheus.url);
    let metrics = format!("127.0.0.1:{}", prometheus.scraped);
    let mut command = holdup(["run", "--url", &service.url(), "--rate=100", "--duration=6s", "--no-collect", "--json"]);
    command.args(["--out", &url, "--metrics", &metrics]).arg("-o").arg(dir.path().join("nightly"));
    let done: Finished = finish(command, 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(!done.stderr.contains("dropped"), "{}", done.stderr);
    let expected = done.json()["load"]["operations"][0]["completed"].as_f64().unwrap();
    let ask = |query: &str| prometheus.ask(query);
    let pushed = r#"last_over_time(holdup_requests_total{job="holdup",run="nightly",outcome="ok"}[5m])"#;
    assert_eq!(ask(pushed), [expected]);
    assert_eq!(ask(r#"holdup_requests_total{job="holdup"}"#), [0.0; 0], "its series have ended with it");
    let p99 = r#"max_over_time(holdup_response_time_seconds{job="holdup",quantile="0.99"}[5m])"#;
    assert!(ask(p99)[0] > 0.001, "a request takes a millisecond at least: {:?}", ask(p99));
    let scraped = ask(r#"max_over_time(holdup_requests_total{job="scraped",outcome="ok"}[5m])"#);
    assert!(scraped.len() == 1 && scraped[0] > 0.0 && scraped[0] <= expected, "{scraped:?}");
    assert_eq!(ask(r#"max_over_time(holdup_offered_rate{job="scraped",run="nightly"}[5m])"#), [100.0]);
}

/// A Prometheus of the test's own, that takes remote writes and scrapes one port of loopback.
struct Prometheus {
    _process: Process,
    _dir: tempfile::TempDir,
    url: String,
    scraped: u16,
}

impl Prometheus {
    fn start() -> Option<Self> {
        program("prometheus", "prometheus")?;
        let dir = tempfile::tempdir().unwrap();
        let (port, scraped) = (free_port(), free_port());
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n  - job_name: scraped\n    static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]\n"
        );
        std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", dir.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(["--web.enable-remote-write-receiver", "--log.level=warn"]);
        let mut process = Process::start(&mut command, &dir.path().join("log"), libc::SIGKILL);
        let url = format!("http://127.0.0.1:{port}");
        process.wait("readiness", || ureq::get(format!("{url}/-/ready")).call().is_ok());
        Some(Self { _process: process, url, scraped, _dir: dir })
    }

    /// The values that `query` has now.
    fn ask(&self, query: &str) -> Vec<f64> {
        let mut answer = ureq::get(format!("{}/api/v1/query", self.url)).query("query", query).call().unwrap();
        let answer: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        let result = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
        result.iter().map(|series| series["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }
}
