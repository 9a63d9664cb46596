//! `holdup demo`: shows the whole job on a bundled target. A service on SQLite has too small a
//! connection pool. The demo loads it in steps past its knee, judges it, fixes it and loads it
//! again.

use holdup_diagnose::Cause;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdup_compare::recordings;
use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::Answer;
use holdup_load::model::Load;
use holdup_load::scenario::{Operation, Scenario, Target, parse_threshold};
use holdup_load::schedule::Schedule;
use holdup_recording::Recording;

use super::{Output, REPORT, SLOW, demonstrate, print_json, where_it_is};
use crate::failure::Failure;
use crate::html::Report;
use crate::progress::Progress;
use crate::session::{self, Session};
use crate::terminal;

/// Watch holdup diagnose a bundled service: load, verdict, fix, proof in under a minute
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  holdup demo\n  holdup demo --json -o recordings/demo")]
pub struct Args {
    #[command(flatten)]
    output: Output,
}

/// Handlers hold their connection for this long while they call a downstream service.
const HOLD_MS: u32 = 20;

/// Too small: 4 connections at 20 ms each carry 200 requests a second, and the steps go to 300.
const POOL_FAULTY: u32 = 4;

/// The verdict's advice on the faulty run: 300 a second x 20 ms = 6, plus half as much.
const POOL_FIXED: u32 = 10;

/// Steps of 60, 120, 180, 240 and 300 requests per second; the knee of the faulty service is at 200.
const STEP: f64 = 60.0;
const STEPS: f64 = 5.0;
const MOST: f64 = STEP * STEPS;
const STEP_LENGTH: Duration = Duration::from_secs(3);

/// More than can pile up in the demo, so that the generator's limit never applies.
const CONNECTIONS: u32 = 600;

/// Gives each step several samples.
const INTERVAL: Duration = Duration::from_millis(500);

pub fn run(args: Args) -> Result<(), Failure> {
    let stop = crate::stop::stop_flag()?;
    let length = STEP_LENGTH * STEPS as u32;
    let mut progress = Progress::new(args.output.quiet, Some(length));
    let dir = args.output.empty_dir("demo")?;
    let say = |text: &str| args.output.say(text);
    let mut runs: Vec<(&str, Recording, Diagnosis)> = Vec::new();
    for (name, pool) in [("faulty", POOL_FAULTY), ("fixed", POOL_FIXED)] {
        let rates = format!("{STEP:.0} to {MOST:.0} requests a second");
        say(&format!("{name}: a service on SQLite with a pool of {pool} connections, {rates}"));
        let place = dir.join(name);
        let (recording, diagnosis) = demonstrate(
            &place,
            &say,
            |d| shows(name, d),
            || {
                let service = Service::start(&dir, pool)?;
                let scenario = scenario(service.port)?;
                let watch = [
                    "host".to_owned(),
                    format!("pid:{}", service.process.id()),
                    format!("prometheus:http://127.0.0.1:{}/metrics", service.admin),
                ];
                let watched = Session::new(name, &watch, INTERVAL, &place);
                let session = Session { scenario: Some(&scenario), slow: Some(SLOW), ..watched };
                session::record(&session, &mut progress, &stop)
            },
        )?;
        if !args.output.json && name == "faulty" {
            outln!("{}", terminal::brief(&diagnosis, Some(&recording.dir)));
        }
        runs.push((name, recording, diagnosis));
    }
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(dir.join(format!("{DATABASE}{suffix}")));
    }
    let [(_, _, faulty), (_, _, fixed)] = runs.as_slice() else {
        return Err(Failure::Unusable("expected two runs".to_owned()));
    };
    let shown: Vec<_> = runs.iter().map(|(name, recording, diagnosis)| (*name, recording, diagnosis)).collect();
    let comparison = recordings::recordings(&shown);
    let report = dir.join(REPORT);
    Report::new("demo", &shown, Some(&comparison)).write(&report)?;
    if args.output.json {
        print_json(&serde_json::json!({ "faulty": faulty, "fixed": fixed, "comparison": comparison }))?;
    } else {
        outln!("The fix: a pool of {POOL_FIXED}. The same load again: {}\n", fixed.headline);
        terminal::print(&terminal::comparison(&comparison, false));
        where_it_is(&dir, Some(&report));
    }
    if shows("faulty", faulty) && shows("fixed", fixed) {
        return Ok(());
    }
    Err(Failure::No("the demo did not show the expected verdicts: this machine was too busy; try again".to_owned()))
}

/// Whether a run shows the expected verdict.
fn shows(name: &str, diagnosis: &Diagnosis) -> bool {
    match name {
        "faulty" => diagnosis.culprit == Some(Cause::ConnectionPoolExhausted),
        _ => diagnosis.verdict == Answer::Healthy,
    }
}

fn scenario(port: u16) -> Result<Scenario, Failure> {
    let operation = Operation {
        name: "vacancy".to_owned(),
        method: "GET".to_owned(),
        path: "/vacancy".to_owned(),
        headers: Vec::new(),
        body: None,
        weight: 1,
    };
    let operations = vec![operation];
    let threshold = parse_threshold("p99 < 500ms", &operations).map_err(Failure::Unusable)?;
    let target = Target { tls: false, host: "127.0.0.1".to_owned(), port, sql: None };
    let load = Load::Open(Schedule::steps(STEP, STEP * STEPS, STEP, STEP_LENGTH));
    Ok(Scenario {
        connections: CONNECTIONS,
        thresholds: vec![threshold],
        ..Scenario::new("demo", target, load, operations)
    })
}

/// File name of the demo's database.
const DATABASE: &str = "demo.sqlite";

/// The bundled service. It runs as a separate process, so that its CPU time does not count as the
/// generator's.
struct Service {
    process: Child,
    port: u16,
    admin: u16,
}

impl Service {
    fn start(dir: &Path, pool: u32) -> Result<Self, Failure> {
        let failed =
            |why: &dyn std::fmt::Display| Failure::Unusable(format!("failed to start the demo's service: {why}"));
        std::fs::create_dir_all(dir)
            .map_err(|e| Failure::Unusable(format!("failed to make {}: {e}", dir.display())))?;
        let database = format!("sqlite:{}", dir.join(DATABASE).display());
        // This very program, even if its file has been replaced meanwhile.
        let mut process = Command::new("/proc/self/exe")
            .arg0("holdup")
            .args(["service", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--stop-on-stdin-eof"])
            .args([format!("--database={database}"), format!("--pool={pool}"), format!("--hold-ms={HOLD_MS}")])
            // Its stdin closes when holdup ends in any way, and the service stops by itself.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&e))?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|e| failed(&e))?;
        }
        let mut service = Self { process, port: 0, admin: 0 };
        let port = |key: &str| {
            let address = line.split_whitespace().find_map(|word| word.strip_prefix(key))?;
            address.rsplit_once(':')?.1.parse().ok()
        };
        match (port("listen="), port("admin=")) {
            (Some(listen), Some(admin)) => {
                (service.port, service.admin) = (listen, admin);
                Ok(service)
            }
            _ => Err(failed(&format!("it said \"{}\"", line.trim()))),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
