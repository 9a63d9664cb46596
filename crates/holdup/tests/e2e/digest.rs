//! `holdup digest` as a person and a pipeline use it: files, standard input, every form of report, and its exit codes.

use std::io::Write as _;
use std::process::Stdio;

use crate::program::{finish, holdup};

const LOG: &str = "\
# Time: 2025-11-03T10:00:00.003103Z
# User@Host: app[app] @ web1 [10.0.0.1]  Id: 3
# Query_time: 0.250000  Lock_time: 0.000027 Rows_sent: 1  Rows_examined: 900
SET timestamp=1762164000;
select a from t where b = 'CaNaRy';
# Time: 2025-11-03T11:00:00.003103Z
# User@Host: report[report] @ web2 [10.0.0.2]  Id: 4
# Query_time: 0.500000  Lock_time: 0.000027 Rows_sent: 1  Rows_examined: 1
SET timestamp=1762167600;
update t set a = 'CaNaRy' where b in (1, 2, 3);
";

#[test]
fn a_log_is_ranked_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("slow.log"), LOG).unwrap();
    let digest = |more: &[&str]| {
        let arguments = ["digest", "slow.log"].iter().chain(more);
        let finished = finish(holdup(arguments).current_dir(dir.path()), 60);
        assert_eq!(finished.code(), Some(0), "{more:?}: {}", finished.stderr);
        assert!(!finished.stdout.contains("CaNaRy"), "{more:?}: {}", finished.stdout);
        finished
    };
    let report = digest(&["--json"]).json();
    let query = &report["queries"][0];
    assert_eq!(query["fingerprint"], "update t set a = ? where b in (?+)");
    assert_eq!((&query["calls"], &query["total_us"], &query["max_us"]), (&1.into(), &500_000.into(), &500_000.into()));
    assert_eq!(query["first_seen"], "2025-11-03 11:00:00");
    assert_eq!(report["problems"], serde_json::json!([]));
    let text = digest(&["--order", "Rows_examined", "--limit", "1"]).stdout;
    assert!(text.contains("select a from t where b = ?") && text.contains("1 more statements"), "{text}");
    let one = |more: &[&str]| digest(&[more, &["--json"]].concat()).json()["queries"].as_array().unwrap().len();
    assert_eq!(one(&["--filter", "user=app"]), 1);
    assert_eq!(one(&["--filter", "Query_time>1"]), 0);
    assert_eq!(one(&["--since", "2025-11-03 10:30:00"]), 1);
    assert_eq!(one(&["--until", "2025-11-03 10:30:00", "--group-by", "fingerprint,user"]), 1);
    assert!(digest(&["--markdown"]).stdout.starts_with("# "));
    assert!(digest(&["--html"]).stdout.starts_with("<!doctype html>"));
    // The checksum is pt-query-digest's: the MD5 of its fingerprint.
    let named = digest(&["--id", "pt", "--json"]).json();
    assert_eq!(named["queries"][0]["fingerprint"], "update t set a = ? where b in(?+)");
    assert!(named["queries"][0]["id"].as_str().is_some_and(|id| id.len() == 34 && id.starts_with("0x")), "{named}");
}

#[test]
fn a_log_from_a_pipe_and_what_is_none() {
    let mut command = holdup(["digest", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(LOG.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["calls"]), (Some(0), &2.into()));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("other"), "nothing of the kind\n").unwrap();
    for (arguments, way_out) in
        [(["digest", "absent"], "absent"), (["digest", "other"], "--type"), (["digest", "."], "folder")]
    {
        let finished = finish(holdup(arguments).current_dir(dir.path()), 60);
        assert_eq!(finished.code(), Some(2), "{arguments:?}");
        assert!(finished.stderr.contains(way_out) && finished.stdout.is_empty(), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn runs_go_on_from_each_other_and_say_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow.log");
    std::fs::write(&path, LOG.repeat(10)).unwrap();
    let digest = || {
        let arguments = ["digest", "slow.log", "--resume", "state", "--history", "runs", "--json", "--limit", "0"];
        let finished = finish(holdup(arguments).current_dir(dir.path()), 60);
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
        assert!(!finished.stdout.contains("CaNaRy"));
        finished.json()
    };
    let first = digest();
    assert_eq!((&first["calls"], &first["history"]["runs"]), (&20.into(), &0.into()), "{first}");
    // One statement three times as slow, one gone, one new.
    let slower = LOG
        .replace("0.250000", "0.750000")
        .replace("update t set a", "delete from t where a")
        .replace("2025-11-03T", "2025-11-04T");
    let slower = slower.replace("1762164000", "1762250400").replace("1762167600", "1762254000");
    let appended = slower.repeat(10);
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(appended.as_bytes()).unwrap();
    let second = digest();
    assert_eq!(
        (&second["calls"], &second["history"]["runs"], &second["history"]["gone"]),
        (&20.into(), &1.into(), &1.into()),
        "{second}"
    );
    let queries = second["queries"].as_array().unwrap();
    let of =
        |text: &str| queries.iter().find(|query| query["fingerprint"].as_str().unwrap().starts_with(text)).unwrap();
    let (known, new) = (of("select a"), of("delete from t"));
    assert_eq!(second["history"]["slower"], serde_json::json!([known["id"]]));
    assert_eq!(second["history"]["new"], serde_json::json!([new["id"]]));
    assert_eq!((&known["before"]["change_ratio"], &known["before"]["calls"]), (&3.0.into(), &10.into()));
    assert_eq!(known["before"]["first_seen"], "2025-11-03 10:00:00");
    assert_eq!(digest()["calls"], 0, "there is no more");
    // What is kept is a recording, and nothing of a value is in it.
    let runs: Vec<_> = std::fs::read_dir(dir.path().join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(runs.len(), 2, "{runs:?}");
    for run in &runs {
        for entry in std::fs::read_dir(run).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(6).any(|six| six == b"CaNaRy"));
        }
    }
    let beside = finish(holdup(["digest", "slow.log", "--history"]).arg(&runs[0]).current_dir(dir.path()), 60);
    assert!(beside.stdout.contains("compared with 1 earlier runs"), "{}", beside.stdout);
}

#[test]
fn a_log_is_followed_until_it_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow.log");
    std::fs::write(&path, LOG).unwrap();
    let mut command = holdup(["digest", "-f", "slow.log", "--json", "--resume", "state"]);
    let child = command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let append = |path: &std::path::Path| {
        std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(LOG.as_bytes()).unwrap();
    };
    std::thread::sleep(std::time::Duration::from_millis(300));
    append(&path);
    std::fs::rename(&path, dir.path().join("slow.log.1")).unwrap();
    append(&path);
    // It reads what is there when it is told to end, however soon that is; but it must have begun to listen.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let followed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rest = finish(holdup(["digest", "slow.log", "--json", "--resume", "state"]).current_dir(dir.path()), 60).json();
    // Nothing is lost and nothing counted twice, wherever it was stopped.
    let calls = |report: &serde_json::Value| report["calls"].as_u64().unwrap();
    assert_eq!(calls(&followed) + calls(&rest), 6, "{followed} {rest}");
}
