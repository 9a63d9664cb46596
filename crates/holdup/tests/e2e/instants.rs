//! One paste is one instant: what was pasted of incidents A to E names the culprit, or two suspects and the command that
//! decides between them. A wrong name is worse than none.

use std::fmt::Write as _;

use serde_json::Value;

use crate::program::{finish, holdup};

const A: &str = include_str!("../../../holdup-import/tests/pastes/hidden_queue.txt");
const B: &str = include_str!("../../../holdup-import/tests/pastes/readahead.txt");
const C: &str = include_str!("../../../holdup-import/tests/pastes/liveness.txt");
const E: &str = include_str!("../../../holdup-import/tests/pastes/unlink.txt");

/// Sessions of incident D as `psql` shows them: 58 of 64 wait for the volume, and vacuum works on a TOAST table.
fn d() -> String {
    let mut out = " pid | usename | backend_type | state | wait_event_type | wait_event | query\n".to_owned();
    out += "-----+---------+--------------+-------+-----------------+------------+-------\n";
    for pid in 0..64 {
        let wait = if pid < 58 { "IO | DataFileRead" } else { "Client | ClientRead" };
        let state = if pid < 62 { "active" } else { "idle" };
        let query = "UPDATE events SET payload = 'x' WHERE id = 7";
        let _ = writeln!(out, " {} | indexer | client backend | {state} | {wait} | {query}", 4_100 + pid);
    }
    out += " 900 | | autovacuum worker | active | IO | DataFileRead | autovacuum: VACUUM pg_toast.pg_toast_16403\n";
    out + "(65 rows)\n"
}

/// The verdict on a paste.
fn verdict(paste: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("paste.txt"), paste).unwrap();
    let done = finish(holdup(["import", "paste.txt", "-o", "r"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    finish(holdup(["diagnose", "r", "--json"]).current_dir(dir.path()), 60).json()
}

/// The suspects, the likeliest first.
fn suspects(verdict: &Value) -> Vec<&str> {
    verdict["findings"].as_array().unwrap().iter().map(|f| f["cause"].as_str().unwrap()).collect()
}

fn commands(verdict: &Value) -> Vec<&str> {
    let next = verdict["snapshot"]["paste_next"].as_array().unwrap_or_else(|| panic!("{verdict:#}"));
    assert!((1..=3).contains(&next.len()), "{next:#?}");
    next.iter().map(|next| next["command"].as_str().unwrap()).collect()
}

fn is_cleared(verdict: &Value, cause: &str) -> bool {
    verdict["cleared"].as_array().unwrap().iter().any(|cleared| cleared["cause"] == cause)
}

#[test]
fn sleeping_connections_leave_the_hidden_queue_as_the_likeliest() {
    let verdict = verdict(A);
    assert_eq!(verdict["verdict"], "undecided", "{verdict:#}");
    assert_eq!(suspects(&verdict), ["thread_pool_queue", "connection_pool_exhausted"]);
    assert!(commands(&verdict)[0].contains("THREAD_POOL_QUEUES"), "{verdict:#}");
    assert!(is_cleared(&verdict, "cpu_saturated") && is_cleared(&verdict, "disk_saturated"), "{verdict:#}");
    // What it asks for decides.
    let groups = "GROUP_ID\tCONNECTIONS\tTHREADS\tACTIVE_THREADS\tSTANDBY_THREADS\tQUEUE_LENGTH\tHAS_LISTENER\tIS_STALLED\n0\t20\t3\t2\t1\t17\t1\t0\n1\t21\t4\t2\t1\t22\t0\t1\n";
    let verdict = self::verdict(&format!("{A}\n{groups}"));
    assert_eq!(
        (&verdict["verdict"], &verdict["culprit"]),
        (&"found".into(), &"thread_pool_queue".into()),
        "{verdict:#}"
    );
}

#[test]
fn a_probe_that_kills_on_idle_cpus_is_named_with_what_to_measure() {
    let verdict = verdict(C);
    assert_eq!(
        (&verdict["verdict"], &verdict["culprit"]),
        (&"found".into(), &"liveness_probe_kill".into()),
        "{verdict:#}"
    );
    assert_eq!(commands(&verdict)[0], "kubectl exec -n shop orders-0 -c app -- ss -ltn");
    assert!(is_cleared(&verdict, "cpu_saturated") && !is_cleared(&verdict, "cpu_throttled"), "{verdict:#}");
    assert!(!verdict.to_string().contains("hush"));
}

#[test]
fn a_full_disk_of_small_reads_leaves_readahead_and_memory() {
    let verdict = verdict(B);
    assert_eq!(verdict["verdict"], "undecided", "{verdict:#}");
    assert_eq!(suspects(&verdict), ["readahead_too_large", "working_set_exceeds_memory"]);
    assert_eq!(commands(&verdict)[0], "blockdev --report; sar -B 1 10");
    let settled = verdict["snapshot"]["settles"][0].as_str().unwrap();
    assert!(settled.starts_with("The disk is full: vda"), "{settled}");
}

#[test]
fn sessions_that_wait_for_a_volume_leave_its_limit_and_vacuum() {
    let verdict = verdict(&d());
    assert_eq!(verdict["verdict"], "undecided", "{verdict:#}");
    assert_eq!(suspects(&verdict), ["throughput_ceiling", "autovacuum_pressure"]);
    let commands = commands(&verdict);
    assert!(commands[0].contains("cloudwatch") && commands[1].contains("pg_stat_progress_vacuum"), "{commands:?}");
    assert!(is_cleared(&verdict, "lock_contention"), "{verdict:#}");
}

#[test]
fn threads_that_remove_files_decide() {
    let verdict = verdict(E);
    assert_eq!(
        (&verdict["verdict"], &verdict["culprit"]),
        (&"found".into(), &"on_disk_temporary_tables".into()),
        "{verdict:#}"
    );
    assert!(is_cleared(&verdict, "disk_saturated"), "hardly any iowait: {verdict:#}");
    assert!(commands(&verdict).iter().any(|command| command.contains("Created_tmp_disk_tables")), "{verdict:#}");
}
