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
