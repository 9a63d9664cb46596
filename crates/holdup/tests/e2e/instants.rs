//! One paste is one instant: what was pasted of incidents A to E names the culprit, or two suspects and the command that
//! decides between them. A wrong name is worse than none.

use std::fmt::Write as _;

use holdup_recording::{Recording, clock};
use serde_json::Value;

use crate::program::{finish, holdup};

const A: &str = include_str!("../../../holdup-import/tests/pastes/hidden_queue.txt");
const B: &str = include_str!("../../../holdup-import/tests/pastes/readahead.txt");
const B_WITH_STATUS: &str = include_str!("../../../holdup-import/tests/pastes/readahead_status.txt");
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
    out += " 901 | rdsadmin | client backend | idle | Client | ClientRead | \n";
    out += " 900 | | autovacuum worker | active | IO | DataFileRead | autovacuum: VACUUM pg_toast.pg_toast_16403\n";
    out + "(66 rows)\n"
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
    // The readahead was pasted.
    assert_eq!(commands(&verdict)[0], "sar -B 1 10");
    let settled = verdict["snapshot"]["settles"][0].as_str().unwrap();
    assert!(settled.starts_with("The disk has no time left: vda"), "{settled}");
}

#[test]
fn the_first_suspects_of_a_full_disk_are_cleared_by_their_own_figures() {
    let found = verdict(B);
    let load = found["host_load"]["text"].as_str().unwrap();
    assert!(load.contains("7.6 per CPU and rising") && load.contains("I/O is its root: 24.4 requests"), "{load}");
    assert!(is_cleared(&found, "cpu_saturated") && is_cleared(&found, "memory_pressure"), "{found:#}");
    assert!(!is_cleared(&found, "missing_index"), "nothing of the paste excludes it: {found:#}");
    let memory = found["cleared"].as_array().unwrap().iter().find(|c| c["cause"] == "memory_pressure").unwrap();
    assert!(memory["evidence"][0]["text"].as_str().unwrap().contains("96 % of the swap was unused"), "{memory:#}");
    let checks = |found: &Value| -> Vec<String> {
        let notes = found["notes"].as_array().unwrap().iter().filter(|note| note["vendor"] == "MongoDB");
        notes.map(|note| note["check"].as_str().unwrap().to_owned()).collect()
    };
    assert!(["readahead", "atime"].iter().all(|check| checks(&found).contains(&(*check).to_owned())), "{found:#}");
    // Two readings of the server's status: its engine asked for a quarter of what the disk read, and it examines a document for
    // each that it returns.
    let found = verdict(B_WITH_STATUS);
    assert_eq!((&found["verdict"], &found["culprit"]), (&"found".into(), &"readahead_too_large".into()), "{found:#}");
    assert!(is_cleared(&found, "missing_index") && is_cleared(&found, "cpu_saturated"), "{found:#}");
    assert!(found["headline"].as_str().unwrap().contains("bytes for each"), "{found:#}");
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

/// How an output begins in these pastes.
const PROMPTS: [&str; 6] = ["MariaDB [", "[root@", "[dba@", "ops@", "ann@", "search=>"];

/// Vacuum's view and settings of incident D, as the same session printed them.
const D_MORE: &str = "search=> SELECT * FROM pg_stat_progress_vacuum;
  pid  | datid | datname | relid |       phase       | heap_blks_total | heap_blks_scanned | heap_blks_vacuumed | index_vacuum_count | max_dead_tuples | num_dead_tuples
-------+-------+---------+-------+-------------------+-----------------+-------------------+--------------------+--------------------+-----------------+-----------------
   900 | 16400 | search  | 16403 | vacuuming indexes |         9100000 |           9100000 |            3100000 |                  3 |        11184809 |        11184800
(1 row)

search=> SELECT name, setting, unit FROM pg_settings WHERE name IN ('shared_buffers', 'max_connections');
      name       | setting | unit
-----------------+---------+------
 max_connections | 500     |
 shared_buffers  | 2097152 | 8kB
(2 rows)
search=> SELECT datname, numbackends, xact_commit, blks_read, blks_hit FROM pg_stat_database;
 datname | numbackends | xact_commit | blks_read | blks_hit
---------+-------------+-------------+-----------+----------
 search  |          64 |    90210344 | 812001233 | 99120034
(1 row)
";

/// The outputs of a paste, each with its prompt.
fn outputs(paste: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    for line in paste.lines() {
        match all.last_mut() {
            Some(last) if !PROMPTS.iter().any(|prompt| line.starts_with(prompt)) => last.push(line),
            _ => all.push(vec![line]),
        }
    }
    all
}

/// The numbers below `count` in one of five orders: as they are, backwards, from the middle on, every second one first, and
/// the last one first.
fn order(number: usize, count: usize) -> Vec<usize> {
    let all = 0..count;
    match number {
        0 => all.collect(),
        1 => all.rev().collect(),
        2 => all.map(|i| (i + count / 2) % count).collect(),
        3 => all.clone().step_by(2).chain(all.skip(1).step_by(2)).rev().collect(),
        _ => all.map(|i| (i + count - 1) % count).collect(),
    }
}

/// Verdict, suspects with their confidence, and what is cleared, of what is pasted on standard input.
fn answer(paste: &str) -> (String, Vec<String>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("paste.txt"), paste).unwrap();
    let pipe = std::fs::File::open(dir.path().join("paste.txt")).unwrap();
    let done = finish(holdup(["import", "-", "-o", "r"]).stdin(pipe).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let verdict = finish(holdup(["diagnose", "r", "--json"]).current_dir(dir.path()), 60).json();
    let finding = |f: &Value| format!("{} {:.2}", f["cause"].as_str().unwrap(), f["confidence"].as_f64().unwrap());
    let found = verdict["findings"].as_array().unwrap().iter().map(finding).collect();
    let cleared = verdict["cleared"].as_array().unwrap().iter().map(|c| c["cause"].as_str().unwrap().to_owned());
    (verdict["verdict"].as_str().unwrap().to_owned(), found, cleared.collect())
}

#[test]
fn the_order_of_outputs_and_their_prompts_do_not_matter() {
    let d = format!("search=> SELECT * FROM pg_stat_activity;\n{}{D_MORE}", d());
    for (name, paste) in [("A", A), ("B", B), ("C", C), ("D", d.as_str()), ("E", E)] {
        let outputs = outputs(paste);
        assert!(outputs.len() >= 2, "{name}");
        let first = answer(paste);
        for number in 0..5 {
            let has_prompts = number % 2 == 1;
            let line = |i: &usize| outputs[*i][usize::from(!has_prompts)..].join("\n");
            let text = order(number, outputs.len()).iter().map(line).collect::<Vec<_>>().join("\n");
            assert_eq!(answer(&(text + "\n")), first, "{name}, order {number}, prompts: {has_prompts}");
        }
    }
}

#[test]
fn pasted_text_of_an_own_machine_gets_commands_for_it() {
    let df = "Filesystem     1K-blocks     Used Available Use% Mounted on\n/dev/vda1      102400000 61000000  41400000  60% /var/lib/mysql\n";
    let sleeping = &A[A.find("+------").unwrap()..A.find("42 rows").unwrap()];
    let verdict = verdict(&format!("$ df\n{df}\n{sleeping}"));
    let commands = commands(&verdict);
    assert!(commands.contains(&"iostat -x 1 10"), "{commands:?}");
    assert!(commands.iter().all(|command| !command.contains("aws")), "{commands:?}");
}

#[test]
fn a_kernel_log_pasted_into_a_watch_is_judged_with_what_was_watched() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let done = finish(holdup(args).current_dir(dir.path()), 60);
        assert_eq!(done.code(), Some(0), "{args:?}: {}", done.stderr);
        done
    };
    run(&["watch", "--watch=host", "--for=3s", "--interval=500ms", "--quiet", "-o", "watched"]);
    let started = Recording::open(&dir.path().join("watched")).unwrap().manifest.started_at;
    let at = clock::rfc3339(started + 1_500_000_000);
    let kernel = format!(
        "{at} db1 kernel: Out of memory: Killed process 4242 (mariadbd) total-vm:9181696kB, anon-rss:8123456kB, \
         file-rss:0kB, shmem-rss:0kB, UID:110 pgtables:17000kB oom_score_adj:0\n"
    );
    std::fs::write(dir.path().join("kernel.txt"), kernel).unwrap();
    run(&["import", "kernel.txt", "--into", "watched"]);
    let found = run(&["diagnose", "watched", "--json"]).json();
    assert_eq!((&found["verdict"], &found["culprit"]), (&"found".into(), &"out_of_memory_kill".into()), "{found:#}");
    // Both stand in one recording: the host's own samples, and the line.
    let sources: Vec<&str> =
        found["coverage"].as_array().unwrap().iter().filter_map(|c| c["source"].as_str()).collect();
    assert!(sources.contains(&"host") && sources.iter().any(|source| source.starts_with("pasted ")), "{sources:?}");
}
