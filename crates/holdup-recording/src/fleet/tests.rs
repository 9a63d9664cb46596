//! Names, roles, clocks and shards of joined recordings. What the judge makes of them is tested there.

use std::path::{Path, PathBuf};

use super::*;
use crate::excerpt::{Choice, Limits};
use crate::manifest::{Coverage, Host, LoadFacts, Manifest, Totals};
use crate::rows::{Request, Sample, Session, Setting, Span, Statement};
use crate::tables::Tables;
use crate::writer::write_table;

const S: i64 = 1_000_000_000;
const SECONDS: i64 = 400;

const CHOICE: Choice =
    Choice { limits: Limits::GIGABYTE, is_fine: |_| false, stretch: |_, room| room.around(200 * S, &(0..SECONDS * S)) };

fn manifest(dir: &Path, name: &str, sources: &[&str], load: Option<LoadFacts>) {
    let host = Host { name: Some(name.to_owned()), ..Host::default() };
    let coverage = sources.iter().map(|source| Coverage::with_parts(source, Vec::new()).remove(0)).collect();
    let manifest = Manifest { ended_at: Some(SECONDS * S), coverage, load, ..Manifest::starting(name, 0, host) };
    std::fs::create_dir_all(dir).unwrap();
    manifest.write(dir).unwrap();
}

fn sample(at: i64, source: &str, metric: &str, value: f64) -> Sample {
    Sample { observed_at: at, source: source.into(), metric: metric.into(), value, ..Sample::default() }
}

/// A generator, an app, and a database on hosts of their own; each has `host` and `pid:7`, and the first
/// two watch the database at the same address.
fn written(dir: &Path) -> Vec<Input> {
    let load = LoadFacts { target: "http://app1:8080/".into(), operations: vec!["a".into()], ..LoadFacts::default() };
    let all: [(&str, &[&str], Option<LoadFacts>); 3] = [
        ("gen1", &["host", "pid:7", "mysql://10.0.0.3:3306"], Some(load)),
        ("app1", &["host", "pid:7", "mysql://10.0.0.3:3306", "otlp"], None),
        ("db1", &["host", "pid:7", "mysql://127.0.0.1:3306"], None),
    ];
    let inputs = (1..).zip(all).map(|(number, (name, sources, load))| {
        let place = dir.join(name);
        manifest(&place, name, sources, load);
        let of = |second: i64| {
            let value = (1_000 * number + second) as f64;
            let read =
                |source: &&str| sample(second * S, source, if source.contains(':') { "calls" } else { "busy" }, value);
            sources.iter().filter(|source| **source != "otlp").map(read).collect::<Vec<Sample>>()
        };
        write_table::<Sample>(&place, (0..SECONDS).map(of)).unwrap();
        let setting = |source: &str, value: &str| Setting {
            source: source.into(),
            name: "comm".into(),
            value: value.into(),
            ..Setting::default()
        };
        let comm = if name == "db1" { "mariadbd" } else { "holdup" };
        write_table::<Setting>(&place, [vec![setting("pid:7", comm), setting("host", name)]]).unwrap();
        let session = |second: i64| Session {
            observed_at: second * S,
            source: "mysql://127.0.0.1:3306".into(),
            ..Session::default()
        };
        let statement = |second: i64| Statement {
            observed_at: second * S,
            source: "mysql://127.0.0.1:3306".into(),
            kind: "execution".into(),
            digest: "d".into(),
            ..Statement::default()
        };
        match name {
            "gen1" => {
                let request =
                    |second: i64| Request { intended_at: second * S, done_at: second * S, ..Request::default() };
                write_table::<Request>(&place, (0..SECONDS).map(|second| vec![request(second)])).unwrap();
            }
            "app1" => {
                let span = Span { source: "otlp".into(), resource: "request".into(), ..Span::default() };
                write_table::<Span>(&place, [vec![span]]).unwrap();
            }
            _ => {
                write_table::<Session>(&place, (0..SECONDS).map(|second| vec![session(second)])).unwrap();
                write_table::<Statement>(&place, (0..SECONDS).map(|second| vec![statement(second)])).unwrap();
            }
        }
        Input { dir: place, shown: format!("recordings/{name}") }
    });
    inputs.collect()
}

fn opened(dir: &Path, choice: &Choice) -> Fleet {
    Plan::new(written(dir)).unwrap().open(None, choice, &|_, _| None).unwrap()
}

fn first(fleet: &Fleet, metric: &str, source: &str) -> Option<f64> {
    let series = &fleet.recording.tables.condensed.as_ref().unwrap().series;
    let of_metric = series.by_metric.get(metric)?;
    of_metric.iter().find(|((of, _), _)| of == source).map(|(_, points)| points[0].1)
}

#[test]
fn hosts_have_names_and_roles_and_their_own_sources() {
    let dir = tempfile::tempdir().unwrap();
    let mut fleet = opened(dir.path(), &CHOICE);
    let roles: Vec<(&str, &[Role])> = fleet.parts.iter().map(|part| (part.host.as_str(), &part.roles[..])).collect();
    assert_eq!(roles, [("gen1", &[Role::Generator][..]), ("app1", &[Role::App]), ("db1", &[Role::Database])]);
    // What two hosts have of their own has a name; what both watch is one server, kept once.
    assert_eq!(fleet.parts[0].sources, ["host", "mysql://10.0.0.3:3306", "pid:7@gen1"]);
    assert_eq!(fleet.parts[1].left_out, ["mysql://10.0.0.3:3306"]);
    assert_eq!(first(&fleet, "calls", "pid:7@app1"), Some(2_000.0));
    assert_eq!(first(&fleet, "calls", "mysql://10.0.0.3:3306"), Some(1_000.0));
    // The database's machine comes first, and its `host` is in the recording.
    assert_eq!(fleet.machines(), [2, 1, 0]);
    for (number, name, value) in [(2, "db1", 3_000.0), (0, "gen1", 1_000.0), (1, "app1", 2_000.0), (2, "db1", 3_000.0)]
    {
        fleet.look_from(number);
        assert_eq!(first(&fleet, "busy", "host"), Some(value));
        let settings = &fleet.recording.tables.settings.rows;
        let of_host: Vec<&str> =
            settings.iter().filter(|row| row.source == "host").map(|row| row.value.as_str()).collect();
        assert_eq!(of_host, [name]);
        assert_eq!(fleet.hosts_of("samples", &Labels::new([("metric", "busy")])), [name].into());
    }
    let of_server = Labels::new([("source", "mysql://10.0.0.3:3306")]);
    assert_eq!(fleet.hosts_of("settings", &of_server), ["db1"].into());
    assert_eq!(fleet.hosts_of("sessions", &Labels::none()), ["db1"].into());
    assert_eq!(fleet.hosts_of("requests", &Labels::none()), ["gen1"].into());
    assert_eq!(fleet.coverage_hosts.len(), fleet.recording.manifest.coverage.len());
}

#[test]
fn large_recordings_are_read_as_one_excerpt() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { whole_bytes: 50_000, stretch_bytes: 20_000, course_samples: 300 };
    let mut fleet = opened(dir.path(), &Choice { limits, ..CHOICE });
    let stretch = fleet.recording.excerpt.as_ref().unwrap().stretch.clone();
    assert!(stretch.start > 0 && stretch.end < SECONDS * S && stretch.contains(&(200 * S)), "{stretch:?}");
    let course = fleet.recording.course().unwrap();
    assert_eq!(course.tables.requests.rows.len(), SECONDS as usize);
    assert!(fleet.recording.tables.sessions.rows.len() < SECONDS as usize / 2);
    for (number, value) in [(1, 2_000.0), (2, 3_000.0)] {
        fleet.look_from(number);
        let of_course = &fleet.recording.course().unwrap().tables.condensed.as_ref().unwrap().series.by_metric["busy"];
        assert_eq!(of_course.values().map(|points| points[0].1).collect::<Vec<f64>>(), [value]);
    }
}

#[test]
fn clocks_hang_together_by_the_smallest_errors() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan::new(written(dir.path())).unwrap();
    // The app shares spans with the generator, and statements with the database.
    let measure = |known: &Tables, other: &Tables| {
        let is = |tables: &Tables| match () {
            () if !tables.requests.rows.is_empty() => 0,
            () if !tables.spans.rows.is_empty() => 1,
            () => 2,
        };
        let found =
            |offset_ns, error_ns| Some(Clock { offset_ns, error_ns, by: String::new(), against: String::new() });
        match (is(known), is(other)) {
            (0, 1) => found(40, 2),
            (1, 2) => found(-65, 3),
            (0, 2) => found(-20, 9),
            _ => None,
        }
    };
    let fleet = plan.open(None, &CHOICE, &measure).unwrap();
    let clocks: Vec<Option<(i64, i64, &str)>> = fleet
        .parts
        .iter()
        .map(|part| part.clock.as_ref().map(|clock| (clock.offset_ns, clock.error_ns, clock.against.as_str())))
        .collect();
    assert_eq!(clocks, [None, Some((40, 2, "gen1")), Some((-25, 5, "app1"))]);
    assert_eq!(fleet.recording.tables.sessions.rows[0].observed_at, -25);
    assert_eq!(fleet.recording.tables.condensed.as_ref().unwrap().executions.within(-26, -24).count(), 1);
}

fn shard(dir: &Path, name: &str, shard: &str, completed: u64) -> Input {
    let totals = vec![Totals { operation: "a".into(), offered: 10, completed, ..Totals::default() }];
    let load = LoadFacts {
        target: "http://h".into(),
        operations: vec!["a".into()],
        shard: Some(shard.to_owned()),
        connections: 5,
        totals,
        ..LoadFacts::default()
    };
    let place = dir.join(name);
    manifest(&place, name, &[], Some(load));
    let of = |second: i64| {
        let labels = Labels::new([("loop", "0")]);
        vec![Sample { labels, ..sample(second * S, "holdup", "holdup_load_busy_seconds_total", second as f64) }]
    };
    write_table::<Sample>(&place, (0..3).map(of)).unwrap();
    Input { dir: place, shown: name.to_owned() }
}

#[test]
fn shards_add_up_and_one_that_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let open = |inputs: Vec<Input>| Plan::new(inputs)?.open(None, &CHOICE, &|_, _| None);
    let (a, b) = (shard(dir.path(), "a", "1/3", 9), shard(dir.path(), "b", "3/3", 8));
    let fleet = open(vec![a.clone(), b.clone()]).unwrap();
    let load = fleet.recording.manifest.load.as_ref().unwrap();
    assert_eq!((load.totals[0].offered, load.totals[0].completed, load.connections), (20, 17, 10));
    assert_eq!(load.shard.as_deref(), Some("1+3/3"));
    assert_eq!(fleet.shards().unwrap().missing, [2]);
    let series = &fleet.recording.tables.condensed.as_ref().unwrap().series.by_metric["holdup_load_busy_seconds_total"];
    let loops: Vec<&str> = series.keys().filter_map(|(_, labels)| labels.get("loop")).collect();
    assert_eq!(loops, ["a 0", "b 0"]);
    let whole = open(vec![a.clone(), b, shard(dir.path(), "c", "2/3", 10)]).unwrap();
    assert_eq!(whole.recording.manifest.load.as_ref().unwrap().shard, None);
    let again = open(vec![a, shard(dir.path(), "d", "1/3", 9)]).unwrap_err().to_string();
    assert!(again.contains("a and d are two loads: they are the same shard"), "{again}");
}

#[test]
fn names_tell_hosts_apart() {
    let dir = tempfile::tempdir().unwrap();
    for place in ["x/db", "y/db", "y/app"] {
        manifest(&dir.path().join(place), "same", &["host"], None);
    }
    let input = |place: &str| Input { dir: dir.path().join(place), shown: PathBuf::from(place).display().to_string() };
    let names = |places: &[&str]| {
        let plan = Plan::new(places.iter().map(|place| input(place)).collect()).unwrap();
        let fleet = plan.open(None, &CHOICE, &|_, _| None).unwrap();
        fleet.parts.into_iter().map(|part| part.host).collect::<Vec<String>>()
    };
    assert_eq!(names(&["x/db", "y/app"]), ["db", "app"]);
    assert_eq!(names(&["x/db", "y/app", "y/db"]), ["db-1", "app", "db-3"]);
}
