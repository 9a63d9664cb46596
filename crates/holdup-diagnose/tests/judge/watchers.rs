//! Every fixture as each kind of watcher without a load of its own would have made it, by the removal that the stranger bench uses
//! (`holdup_recording::watchers`): `fixtures/watchers.txt` holds the answer to each. No answer may name a wrong culprit, or say that all
//! is well with a fault that its sources show. To accept a change:
//! `HOLDUP_ACCEPT=1 cargo xtask test -p holdup-diagnose each_watcher_is_told`.

use std::fmt::Write as _;
use std::path::Path;

use holdup_diagnose::diagnose;
use holdup_diagnose::verdict::{Answer, Diagnosis};
use holdup_recording::Recording;
use holdup_recording::watchers::{Sources, Watcher};

use crate::budget::cpu_s;
use crate::fixtures::{self, Fixture, Truth, side_by_side};
use crate::known_wrong;
use crate::watched::{culprit, is_right, said};

const WATCHERS: [Watcher; 4] = [Watcher::AppAndDatabase, Watcher::Database, Watcher::DatabaseFromAfar, Watcher::Host];

/// Causes in the app, of these recordings: neither database nor its machine show more of them than that fewer statements come.
const IN_THE_APP: [&str; 9] = [
    "connection_pool_exhausted",
    "cpu_saturated",
    "cpu_throttled",
    "downstream_slow",
    "file_descriptor_limit",
    "out_of_memory_kill",
    "runtime_pause",
    "wait_in_app",
    "worker_pool_exhausted",
];

/// Causes on the way to the database: its machine shows them, its own account doesn't.
const ON_THE_WAY: [&str; 3] = ["network_bandwidth", "network_delay", "network_loss"];

/// CPU seconds that all of them may take on this machine or one like it.
const CPU_S: f64 = 20.0;

const HEAD: &str = "\
# The answer to each kind of watcher of each recording: state, culprit, and how sure. A test writes this list
# (crates/holdup-diagnose/tests/judge/watchers.rs). Behind the recording's name stands what is so of it.
";

/// Whose a source is, by its name. Of processes only the recording tells: `servers` are those of databases.
fn owner<'a>(source: &str, servers: &[String], all: &'a mut Sources) -> &'a mut Vec<String> {
    match source.split(':').next().unwrap_or_default() {
        "host" => &mut all.host,
        "mysql" | "postgresql" | "mongodb" => &mut all.database,
        "pid" if servers.iter().any(|server| server == source) => &mut all.database_process,
        // Who watches the app sees what it sends, too.
        "pid" | "server" | "prometheus" | "otlp" | "puma" | "probe" | "wire" => &mut all.app,
        "pgbouncer" | "proxysql" | "haproxy" | "nginx" => &mut all.between,
        other => panic!("whose is a source called {other}?"),
    }
}

/// Processes that are called as a database's server is. Recordings from before sources said how processes are called have the server's
/// first, as their labs name it first.
fn servers(recording: &Recording, pids: &[&str]) -> Vec<String> {
    const SERVERS: [&str; 4] = ["mariadbd", "mysqld", "postgres", "mongod"];
    let settings = recording.tables.settings.rows.iter();
    let called: Vec<_> = settings.filter(|s| s.name == "comm" && s.source.starts_with("pid:")).collect();
    match pids {
        [first, _] if called.is_empty() => vec![(*first).to_owned()],
        _ => called.into_iter().filter(|s| SERVERS.contains(&s.value.as_str())).map(|s| s.source.to_string()).collect(),
    }
}

fn sources(recording: &Recording) -> Sources {
    let mut names: Vec<&str> =
        recording.manifest.coverage.iter().filter_map(|coverage| coverage.source.split(' ').next()).collect();
    names.dedup();
    let pids: Vec<&str> = names.iter().copied().filter(|name| name.starts_with("pid:")).collect();
    let servers = servers(recording, &pids);
    let mut all = Sources::default();
    for name in names {
        owner(name, &servers, &mut all).push(name.to_owned());
    }
    all
}

/// The answer to one watcher.
struct Told {
    fixture: &'static Fixture,
    watcher: Watcher,
    diagnosis: Diagnosis,
}

fn told(&(fixture, watcher): &(&'static Fixture, Watcher)) -> Told {
    let mut seen = fixture.recording.clone();
    watcher.take(&mut seen, &sources(&fixture.recording));
    let diagnosis = diagnose(&seen, None);
    println!(
        "{} by {watcher}: {:?} {:?}: {}",
        fixture.name,
        diagnosis.verdict,
        culprit(&diagnosis),
        diagnosis.headline
    );
    for evidence in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
        assert!(evidence.resolves(&seen), "{} by {watcher}: {evidence:?} points nowhere", fixture.name);
    }
    Told { fixture, watcher, diagnosis }
}

fn differs((fixture, watcher): &(&'static Fixture, Watcher)) -> bool {
    watcher.differs(&fixture.recording, &sources(&fixture.recording))
}

/// Whether what is broken shows in the sources of the watcher: else it may be told that the database holds nothing up.
fn is_shown(fixture: &Fixture, watcher: Watcher) -> bool {
    let Truth::Broken(cause) = &fixture.truth else { return true };
    let is_one_of = |causes: &[&str]| causes.contains(&cause.as_str());
    match watcher {
        Watcher::Database => !is_one_of(&IN_THE_APP),
        Watcher::DatabaseFromAfar => !is_one_of(&IN_THE_APP) && !is_one_of(&ON_THE_WAY),
        _ => true,
    }
}

fn is_wrong(told: &Told) -> bool {
    let is_excused = told.diagnosis.verdict == Answer::Healthy && !is_shown(told.fixture, told.watcher);
    !is_right(told.fixture, &told.diagnosis) && !is_excused
}

fn list(all: &[Told]) -> String {
    let (mut list, mut of) = (HEAD.to_owned(), "");
    for Told { fixture, watcher, diagnosis } in all {
        if fixture.name != of {
            of = &fixture.name;
            let so = match &fixture.truth {
                Truth::Broken(cause) => cause.as_str(),
                Truth::Healthy => "nothing is wrong",
                Truth::Unknown => "unknown",
            };
            let _ = writeln!(list, "\n{of}: {so}");
        }
        let sure = culprit(diagnosis).map_or_else(|| "-".to_owned(), |(cause, sure)| format!("{cause} {sure:.1}"));
        let minor = diagnosis.minor.as_ref().map_or_else(String::new, |cause| format!(" (minor: {cause})"));
        let (name, state) = (watcher.name(), format!("{:?}", diagnosis.verdict));
        let _ = writeln!(list, "  {name:<20}{state:<11}{sure}{minor}");
    }
    list
}

#[test]
fn each_watcher_is_told_what_is_so_or_that_it_is_open() {
    let fixtures = fixtures::all();
    let begun = cpu_s();
    let seen = fixtures.iter().flat_map(|fixture| WATCHERS.map(|watcher| (fixture, watcher)));
    let seen: Vec<(&'static Fixture, Watcher)> = seen.filter(differs).collect();
    let all = side_by_side(&seen, told);
    let took = cpu_s() - begun;
    println!("{} answers in {took:.1} s of CPU; at most {CPU_S} s are meant", all.len());
    let what = |told: &Told| {
        let watcher = told.watcher.name().replace(' ', "_");
        (told.fixture.name.clone(), format!("{watcher}:{}", said(&told.diagnosis)))
    };
    let mut problems = known_wrong::changed("watcher", all.iter().filter(|told| is_wrong(told)).map(what));
    let list = list(&all);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/watchers.txt");
    if std::env::var_os("HOLDUP_ACCEPT").is_some() {
        std::fs::write(&path, &list).expect("the list can be written");
    }
    if std::fs::read_to_string(&path).unwrap_or_default() != list {
        problems.push(format!("fixtures/watchers.txt should be:\n{list}"));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
