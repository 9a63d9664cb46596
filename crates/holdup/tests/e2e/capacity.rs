//! Capacity from searches at several values: services that are restarted with so many servers of exactly known speed, so that the
//! truth is known: in proportion from one to two, and not from two to four. What is planned with it, again without a load; and when
//! there is nothing to plan with.

use std::path::Path;
use std::time::Duration;

use holdup_witness::{ON_THE_WHOLE, Patience, is_hopeless};
use serde_json::Value;

use crate::generator::Cgroup;
use crate::program::{Finished, Running, finish, free_port, holdup, skip};
use crate::python;
use crate::repeats::Switched;
use crate::service::Service;

/// Enough for an answer, not for a narrow one.
const WITHIN: &str = "--within=30s";

/// So many misses on a quiet machine are one too many.
const TRIES: Patience = Patience { limits: ON_THE_WHOLE, misses: 2, attempts: 3, within: Duration::from_secs(250) };

fn again(from: &Path, more: &[&str]) -> Finished {
    finish(holdup(["capacity", "--from"]).arg(from).args(more), 60)
}

#[test]
#[ignore = "full: three searches, wants a quiet machine"]
fn one_and_two_are_in_proportion_and_four_with_a_serial_part_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let service = Switched::new(dir.path());
    // 50/s and 100/s; and four of which each takes half as long again: 133/s.
    let command = service.command("--servers={workers} --service-time=$([ {workers} = 4 ] && echo 30ms || echo 20ms)");
    TRIES.judge(|attempt| {
        let to = dir.path().join(format!("runs-{attempt}"));
        let mut capacity =
            holdup(["capacity", "--url", &service.url(), "--search=40:500", WITHIN, "--connections=200"]);
        capacity.args(["--vary=workers=1,2,4", "--with", &command, "--settle=300ms", "--timeout=3s"]);
        capacity.args(["--no-collect", "--quiet", "--json", "-o"]).arg(&to);
        let running = Running::start(&mut capacity);
        let done =
            running.finish_unless(Duration::from_secs(200), || is_hopeless(&ON_THE_WHOLE, Duration::from_secs(90)));
        let done = done.ok_or("given up: the machine stalls")?;
        let report = done.json();
        let carried = |at: usize| report["settings"][at]["capacity"]["value"].as_f64().unwrap_or_default();
        let scaling = &report["scaling"];
        let proportions = [&scaling["from_smallest"][0]["proportion"], &scaling["from_smallest"][1]["proportion"]];
        let near = |at: usize, truth: f64| (carried(at) / truth - 1.0).abs() < 0.1;
        let is_right = done.code() == Some(0)
            && near(0, 50.0)
            && near(1, 100.0)
            && near(2, 133.3)
            && proportions == ["linear", "less"]
            && scaling["whole"] == "less"
            && scaling["proportional_to"] == 2.0
            && scaling["law"].is_object();
        if !is_right {
            return Err(format!("exit code {:?}: {}\n{scaling:#}\n{:#}", done.code(), done.stderr, report["text"]));
        }
        it_is_planned_with(&to);
        Ok(())
    });
}

/// Another question of the same recordings takes no load.
fn it_is_planned_with(recordings: &Path) {
    let demand = ["--for-rate=300", "--headroom=30%", "--connections-per-instance=10"];
    let done = again(recordings, &[&demand[..], &["--connection-budget=200", "--json"]].concat());
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let report = done.json();
    let json = recordings.join("report.json");
    std::fs::write(&json, report.to_string()).unwrap();
    python::check("contract.py", &["capacity", json.to_str().unwrap()]);
    let rows = report["plan"]["rows"].as_array().unwrap();
    let needed: Vec<u64> = rows.iter().map(|row| row["needed"]["instances"].as_u64().unwrap()).collect();
    // 35/s, 70/s and 93/s each, give or take a knee that is 10 % off.
    assert!(
        (8..=10).contains(&needed[0]) && (4..=5).contains(&needed[1]) && (3..=4).contains(&needed[2]),
        "{needed:?}"
    );
    let text = again(recordings, &[&demand[..], &["--connection-budget=200"]].concat()).stdout;
    for part in ["It is linear up to workers=2", "instances for 300/s", "so the load is the limit"] {
        assert!(text.contains(part), "no \"{part}\": {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours where no terminal is: {text}");
    let markdown = again(recordings, &[&demand[..], &["--connection-budget=200", "--markdown"]].concat()).stdout;
    assert!(markdown.contains("| workers | searches |"), "{markdown}");
    let over = again(recordings, &[&demand[..], &["--connection-budget=20"]].concat());
    assert_eq!(over.code(), Some(1), "{}", over.stdout);
    assert!(over.stdout.contains("connections are the first limit: 2 instances fit"), "{}", over.stdout);
    // One of the recordings alone knows its value.
    let one = again(&recordings.join("workers-2-1"), &["--json"]).json();
    assert_eq!((&one["settings"][0]["value"], &one["scaling"]), (&2.0.into(), &Value::Null));
}

#[test]
fn a_generator_that_binds_leaves_no_plan_and_ctrl_c_keeps_what_was_found() {
    let dir = tempfile::tempdir().unwrap();
    // 1,000/s, of which 10 connections can see 100.
    let many = Service::with(&["--servers=100", "--service-time=100ms"]);
    let mut few = holdup(["capacity", "--url", &many.url(), "--search=50:2000", "--within=20s", "--connections=10"]);
    few.args(["--timeout=3s", "--no-collect", "--json", "--for-rate=3x", "-o"]).arg(dir.path().join("few"));
    let few = Running::start(&mut few);
    let steady = Service::with(&["--servers=2", "--service-time=20ms"]);
    let to = dir.path().join("cut");
    let mut cut = holdup(["capacity", "--url", &steady.url(), "--search=20:2000", "--within=20s", "--connections=200"]);
    cut.args([
        "--timeout=3s",
        "--no-collect",
        "--json",
        "--vary=turns=1,2,3",
        "--with=echo {turns}",
        "--settle=0s",
        "-o",
    ]);
    let cut = Running::start(cut.arg(&to));
    let done = few.finish(Duration::from_secs(90));
    let report = done.json();
    assert_eq!(done.code(), Some(2), "{}", done.stderr);
    assert!(report["settings"][0]["knee"].is_null() && report["plan"].is_null(), "{report:#}");
    assert!(done.stderr.contains("connections"), "{}", done.stderr);
    let text = report["text"].to_string();
    assert!(text.contains("No knee was found") && text.contains("No plan: it needs a knee"), "{text}");

    while !to.join("capacity.json").is_file() {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(1_500));
    cut.signal(libc::SIGINT);
    let done = cut.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(130), "{}", done.stderr);
    let settings = done.json()["settings"].as_array().unwrap().len();
    assert!((1..3).contains(&settings), "{settings}: {}", done.stdout);
    assert_eq!(std::fs::read_to_string(to.join("switch.log")).unwrap().lines().count(), settings.max(2));
}

/// What was there before is there again, however it ends. Nobody listens at the target: nothing is measured.
#[test]
fn a_quota_is_set_and_set_back() {
    let Some(cgroup) = Cgroup::new() else {
        return skip("no CPU cgroup can be made here; that needs root and a mounted cgroup file system");
    };
    let dir = tempfile::tempdir().unwrap();
    cgroup.allow(Some(70));
    let before = cgroup.quota();
    let url = format!("http://127.0.0.1:{}/", free_port());
    let start = |name: &str| {
        let mut command = holdup(["capacity", "--url", &url, "--search=10:100", "--vary=cpu=0.25,0.5", "--cgroup"]);
        command.arg(cgroup.folder()).arg("-o").arg(dir.path().join(name));
        let running = Running::start(command.args(["--order-seed=0", "--switch-within=5s"]));
        while cgroup.quota() == before {
            std::thread::sleep(Duration::from_millis(20));
        }
        let quota = cgroup.quota();
        assert!(quota.starts_with("25000") || quota.starts_with("50000"), "{quota}");
        running
    };
    let cut = start("cut");
    cut.signal(libc::SIGINT);
    let done = cut.finish(Duration::from_secs(60));
    assert_eq!((done.code(), cgroup.quota()), (Some(130), before.clone()), "{}", done.stderr);
    let done = start("late").finish(Duration::from_secs(60));
    assert_eq!((done.code(), cgroup.quota()), (Some(2), before.clone()), "{}", done.stderr);
    for part in ["holdup restores it at the end", "cpu=0.", "is not ready"] {
        assert!(done.stderr.contains(part), "no \"{part}\": {}", done.stderr);
    }
}

#[test]
fn an_invalid_axis_is_refused_before_the_load() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("none");
    let none = none.to_str().unwrap();
    let bad: [(&[&str], &str); 8] = [
        (&["--rate=5"], "capacity needs a search"),
        (&["--search=10:100", "--vary=cpu=1,2"], "--with"),
        (&["--search=10:100", "--vary=cpu=1,2", "--with=docker update app"], "{cpu}"),
        (&["--search=10:100", "--vary=cpu=1,1"], "twice"),
        (&["--search=10:100", "--vary=cpu=1,2", "--cgroup", none], "this cgroup has no CPU quota"),
        (&["--search=10:100", "--for-rate=many"], "3x"),
        (&["--search=10:100", "--headroom=100%"], "30%"),
        (&["--search=10:100", "--connection-budget=10"], "--for-rate"),
    ];
    for (flags, word) in bad {
        let mut command = holdup(["capacity", "--url", "http://127.0.0.1:9/"]);
        let done = finish(command.args(flags).current_dir(dir.path()), 10);
        assert_eq!(done.code(), Some(2), "{flags:?}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(word), "{flags:?} does not say \"{word}\": {}", done.stderr);
    }
    let done = finish(holdup(["capacity"]), 10);
    assert!(done.code() == Some(2) && done.stderr.contains("nothing to play"), "{}", done.stderr);
    let done = finish(holdup(["capacity", "--from", none]), 10);
    assert!(done.code() == Some(2) && done.stderr.contains("none"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written");
}
