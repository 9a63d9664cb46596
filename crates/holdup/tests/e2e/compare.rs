//! `holdup compare` from the outside: recordings that are there, and two runs of the same service.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Finished, finish, holdup, root};
use crate::python;
use crate::service::Service;

fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}

fn compare(arguments: &[&str], recordings: &[&Path]) -> Finished {
    finish(holdup(["compare"]).args(arguments).args(recordings), 60)
}

fn row<'v>(comparison: &'v Value, part: &str) -> &'v Value {
    let rows = comparison["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["indicator"].as_str().unwrap().contains(part));
    row.unwrap_or_else(|| panic!("no {part} in {rows:#?}"))
}

#[test]
fn before_and_after_as_a_table_as_json_as_markdown_and_as_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let (faulty, fixed) = (fixture("demo-faulty"), fixture("demo-fixed"));
    let text = compare(&[], &[&faulty, &fixed]);
    assert_eq!(text.code(), Some(0), "{}", text.stderr);
    assert!(text.stdout.starts_with("demo-fixed is better than demo-faulty: "), "{}", text.stdout);
    assert!(text.stdout.contains("better") && text.stdout.contains("more rows"), "{}", text.stdout);
    assert!(!text.stdout.contains('\u{1b}'), "colours only on a terminal");
    let longest = text.stdout.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= 130, "{longest}: {}", text.stdout);

    let json = compare(&["--json"], &[&faulty, &fixed]);
    let comparison = json.json();
    assert_eq!(comparison["columns"][1]["verdict"], "better");
    let p95 = &row(&comparison, "response time p95")["cells"][1];
    assert_eq!(p95["against"]["verdict"], "better");
    let (low, high) = (p95["against"]["low"].as_f64().unwrap(), p95["against"]["high"].as_f64().unwrap());
    let change = p95["against"]["change_ratio"].as_f64().unwrap();
    assert!(low <= change && change <= high && high < -0.9, "{p95}");
    let file = dir.path().join("comparison.json");
    std::fs::write(&file, &json.stdout).unwrap();
    python::check("contract.py", &["comparison", file.to_str().unwrap()]);

    let markdown = compare(&["--markdown"], &[&faulty, &fixed]).stdout;
    assert!(markdown.starts_with("**demo-fixed is better") && markdown.contains("| verdict |"), "{markdown}");
    let page = dir.path().join("page.html");
    let quiet = compare(&["--quiet", "--html", page.to_str().unwrap()], &[&faulty, &fixed]);
    assert_eq!((quiet.code(), quiet.stdout.as_str()), (Some(0), ""));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("demo-faulty and demo-fixed") && page.contains("is better than demo-faulty"));
}

#[test]
fn the_exit_code_says_worse_and_three_are_each_held_against_the_first() {
    let (faulty, fixed) = (fixture("demo-faulty"), fixture("demo-fixed"));
    let worse = compare(&["--quiet", "--fail-on", "worse"], &[&fixed, &faulty]);
    assert_eq!(worse.code(), Some(1), "{}", worse.stderr);
    assert!(worse.stderr.contains("demo-faulty is worse than demo-fixed"), "{}", worse.stderr);
    assert_eq!(compare(&["--quiet", "--fail-on", "worse"], &[&faulty, &fixed]).code(), Some(0));
    let named = |name: &str, path: &Path| PathBuf::from(format!("{name}={}", path.display()));
    let three = compare(&["--json"], &[&named("A", &faulty), &named("B", &fixed), &named("C", &faulty)]).json();
    let verdicts: Vec<&Value> = three["columns"].as_array().unwrap().iter().map(|c| &c["verdict"]).collect();
    assert_eq!(verdicts, [&Value::Null, &"better".into(), &"no_difference".into()]);
    // Of another service there is nothing to compare: that is no "fine".
    let other = compare(&["--quiet", "--fail-on", "worse"], &[&fixed, &fixture("readahead-fixed")]);
    assert_eq!(other.code(), Some(2), "{}", other.stderr);
}

#[test]
fn a_path_that_is_not_a_recording_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let fixed = fixture("demo-fixed");
    for (recordings, said) in [
        (vec![fixed.as_path()], "name at least two recordings"),
        (vec![fixed.as_path(), dir.path()], "neither a recording"),
        (vec![fixed.as_path(), fixed.as_path()], "occurs twice"),
        (vec![fixed.as_path(), Path::new("/nowhere")], "/nowhere"),
    ] {
        let done = compare(&[], &recordings);
        assert_eq!(done.code(), Some(2), "{}", done.stdout);
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
}

/// Two recordings of the same service are no different, and one that serves in twice the time is.
#[test]
fn the_same_service_twice_and_one_that_takes_twice_as_long() {
    let dir = tempfile::tempdir().unwrap();
    let record = |name: &str, time: &str| {
        let service = Service::with(&["--servers", "4", "--service-time", time]);
        let pid = format!("pid:{}", service.pid());
        let load = ["--rate", "60", "--duration", "3s", "--interval", "500ms", "--quiet", "--json", "--watch", &pid];
        // What the generator itself delayed is not compared, and it says so: as a user would, it is run again.
        for attempt in 1.. {
            let place = dir.path().join(format!("{name}-{attempt}"));
            let done = finish(holdup(["run", "--url", &service.url()]).args(load).arg("-o").arg(&place), 60);
            assert_eq!(done.code(), Some(0), "{}", done.stderr);
            if done.json()["load"]["validity"]["generator_limited_s"] == 0.0 || attempt == 5 {
                return PathBuf::from(format!("{name}={}", place.display()));
            }
        }
        unreachable!("the fifth is taken as it is")
    };
    let (a, b, slow) = (record("a", "20ms"), record("b", "20ms"), record("slow", "40ms"));
    let comparison = compare(&["--json"], &[&a, &b, &slow]).json();
    let verdict = |i: usize| comparison["columns"][i]["verdict"].as_str().unwrap().to_owned();
    assert_eq!((verdict(1), verdict(2)), ("no_difference".to_owned(), "worse".to_owned()), "{comparison:#}");
    let change = row(&comparison, "response time p50")["cells"][2]["against"]["change_ratio"].as_f64().unwrap();
    assert!((0.8..1.2).contains(&change), "{change}");
}

/// Builds of a folder: the first ten, then six, each a recording of the given name.
fn builds(folder: &Path, first: &str, then: &str) {
    for number in 1..=16 {
        let name = if number <= 10 { first } else { then };
        let build = folder.join(format!("v{number:02}"));
        std::fs::create_dir(&build).unwrap();
        for file in std::fs::read_dir(fixture(name)).unwrap().flatten() {
            std::fs::copy(file.path(), build.join(file.file_name())).unwrap();
        }
    }
}

#[test]
fn a_history_names_the_build_since_which_it_is_worse() {
    let dir = tempfile::tempdir().unwrap();
    builds(dir.path(), "throughput-ceiling-fixed", "throughput-ceiling-decoy");
    let text = compare(&["--history"], &[dir.path()]);
    assert_eq!(text.code(), Some(0), "{}", text.stderr);
    assert!(text.stdout.starts_with("worse since v11: "), "{}", text.stdout);
    assert!(text.stdout.contains("16 builds, from v01 to v16") && text.stdout.contains('▁'), "{}", text.stdout);
    let gate = compare(&["--history", "--fail-on", "worse", "--quiet"], &[dir.path()]);
    assert_eq!((gate.code(), gate.stdout.as_str()), (Some(1), ""), "{}", gate.stderr);
    assert!(gate.stderr.contains("and stayed there for 6 builds, after 10 builds"), "{}", gate.stderr);
    let json = compare(&["--history", "--json"], &[dir.path()]);
    assert_eq!((&json.json()["verdict"], json.json()["builds"].as_array().unwrap().len()), (&"worse".into(), 16));
    let file = dir.path().join("history.json");
    std::fs::write(&file, &json.stdout).unwrap();
    python::check("contract.py", &["history", file.to_str().unwrap()]);

    // A change that is meant to stay begins a history of its own.
    let since = compare(&["--history", "--since", "v11", "--fail-on", "worse"], &[dir.path()]);
    assert_eq!(since.code(), Some(0), "{}", since.stderr);
    assert!(since.stdout.starts_with("6 builds are too few to tell"), "{}", since.stdout);
    let wrong = compare(&["--history", "--since", "v99"], &[dir.path()]);
    assert_eq!(wrong.code(), Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("names none of the recordings; these exist: v01"), "{}", wrong.stderr);
}

#[test]
fn a_history_that_got_better_passes_the_gate() {
    let dir = tempfile::tempdir().unwrap();
    builds(dir.path(), "demo-faulty", "demo-fixed");
    let gate = compare(&["--history", "--fail-on", "worse"], &[dir.path()]);
    assert_eq!(gate.code(), Some(0), "{}", gate.stderr);
    assert!(gate.stdout.starts_with("better since v11: "), "{}", gate.stdout);
}

/// A baseline that pipelines of the base branch fill, and the pull requests that it judges.
#[test]
fn a_gate_keeps_baselines_and_judges_pull_requests_by_them() {
    let dir = tempfile::tempdir().unwrap();
    let baselines = dir.path().join("baselines");
    let (junit, comment) = (dir.path().join("gate.xml"), dir.path().join("gate.md"));
    let gate = |name: &str, branch: &str, commit: &str, more: &[&str]| {
        let mut command = holdup(["gate"]);
        command.arg(fixture(name)).args(["--branch", branch, "--commit", commit, "--baselines"]).arg(&baselines);
        finish(command.arg("--junit").arg(&junit).arg("--markdown").arg(&comment).args(more), 60)
    };
    let kept = |branch: &str| std::fs::read_dir(baselines.join(branch)).map_or(0, |entries| entries.flatten().count());
    let first = gate("demo-fixed", "feature/x", "f1", &[]);
    assert_eq!(first.code(), Some(0), "{}", first.stderr);
    assert_eq!(first.stdout.trim(), "main has no build yet to compare f1 with");
    assert!(std::fs::read_to_string(&junit).unwrap().contains("<skipped message=\"main has no build yet"), "{junit:?}");
    for commit in ["c1", "c2", "c3", "c4"] {
        let done = gate("demo-fixed", "main", commit, &["--keep", "3"]);
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
    }
    assert_eq!((kept("main"), kept("feature%2fx")), (3, 0));

    let worse = gate("demo-faulty", "feature/x", "f2", &[]);
    assert_eq!(worse.code(), Some(1), "{}{}", worse.stdout, worse.stderr);
    assert!(worse.stderr.contains("f2 is worse than main (3 builds): "), "{}", worse.stderr);
    let (xml, text) = (std::fs::read_to_string(&junit).unwrap(), std::fs::read_to_string(&comment).unwrap());
    assert!(xml.contains("<failure type=\"missed\" message=\"worse: 2"), "{xml}");
    assert!(text.starts_with("### holdup gate: worse\n\n**f2 is worse than main (3 builds): "), "{text}");
    assert!(
        text.contains("| main (3 builds) | f2 |") && text.contains("- The base branch: 4 builds are too few"),
        "{text}"
    );
    let same = gate("demo-fixed", "feature/x", "f3", &["--json", "--since", "c3"]);
    assert_eq!(same.code(), Some(0), "{}", same.stderr);
    let file = dir.path().join("gate.json");
    std::fs::write(&file, &same.stdout).unwrap();
    python::check("contract.py", &["gate", file.to_str().unwrap()]);
    assert_eq!(
        (&same.json()["verdict"], &same.json()["level"]),
        (&"no_difference".into(), &serde_json::json!(["c3", "c4"]))
    );

    for (name, more, said) in [
        ("cpu-saturated", &[][..], "no build of main measured the same as f4: "),
        ("demo-fixed", &["--since", "c1"], "--since c1 names none of the 3 builds of main in "),
        ("no-such", &[], "name a recording's folder"),
    ] {
        let done = gate(name, "feature/x", "f4", &[more, &["--keep", "5"]].concat());
        assert_eq!((done.code(), kept("feature%2fx")), (Some(2), 0), "{}", done.stdout);
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
}
