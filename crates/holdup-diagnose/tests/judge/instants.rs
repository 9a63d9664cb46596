//! Instants: what decides, what leaves two suspects, and that nothing conspicuous says nothing.

use holdup_diagnose::verdict::Answer;
use holdup_diagnose::{Cause, Diagnosis};
use holdup_import::text::Pasted;
use holdup_recording::Labels;
use holdup_recording::rows::{Sample, Session, Thread};
use holdup_signals::testing::SyntheticRecording;

trait Judged {
    fn diagnose(&self) -> Diagnosis;
}

impl Judged for SyntheticRecording {
    fn diagnose(&self) -> Diagnosis {
        holdup_diagnose::diagnose(self.recording(), None)
    }
}

const S: i64 = 1_000_000_000;

/// A host with 14 CPUs that idle for `idle` of the time and wait for `iowait` of it.
fn host(idle: f64, iowait: f64) -> SyntheticRecording {
    let busy = 14.0 * (1.0 - idle - iowait);
    SyntheticRecording::new(3)
        .gauge("host", "system_cpu_logical_count", &[], 14.0)
        .gauge("host", "system_load_average_1m", &[], 588.0)
        .gauge("host", "system_load_average_5m", &[], 540.0)
        .gauge("host", "system_load_average_15m", &[], 400.0)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "user")], busy)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "idle")], 14.0 * idle)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "iowait")], 14.0 * iowait)
}

/// With `count` threads of a MySQL asleep in `wchan`, seen once.
fn asleep(made: SyntheticRecording, count: i64, wchan: &str) -> SyntheticRecording {
    made.tables(|tables| {
        tables.threads.rows.push(Thread {
            observed_at: S,
            source: "host".into(),
            process: "mysqld".into(),
            state: "D".into(),
            wchan: Some(wchan.into()),
            count,
            ..Thread::default()
        });
        let labels = Labels::new([("state", "D")]);
        let (metric, source) = ("system_threads".to_owned(), "host".into());
        let value = count as f64;
        tables.samples.rows.push(Sample { observed_at: S, metric, source, labels, value, ..Sample::default() });
    })
}

fn sessions(made: SyntheticRecording, count: i64, true_state: &str, state: &str) -> SyntheticRecording {
    made.tables(|tables| {
        tables.sessions.present = true;
        let labels = Labels::new([("true_state", true_state)]);
        let (metric, source, value) = ("mysql_sessions".to_owned(), "mysql://pasted".into(), count as f64);
        tables.samples.rows.push(Sample { observed_at: S, metric, source, labels, value, ..Sample::default() });
        let first = tables.sessions.rows.len() as i64;
        tables.sessions.rows.extend((first..first + count).map(|id| Session {
            observed_at: S,
            source: "mysql://pasted".into(),
            session_id: id,
            command: if true_state == "idle" { "Sleep" } else { "Query" }.into(),
            true_state: true_state.into(),
            state: (!state.is_empty()).then(|| state.into()),
            ..Session::default()
        }));
    })
}

/// Verdict, first cause, all suspects, and the commands.
fn judged(made: &SyntheticRecording) -> (Answer, Vec<String>, Vec<String>) {
    let diagnosis = made.diagnose();
    for piece in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
        assert!(piece.resolves(made.recording()), "{piece:?}");
    }
    let causes = diagnosis.findings.iter().map(|f| f.cause.slug().to_owned()).collect();
    let next = diagnosis.snapshot.map_or_else(Vec::new, |s| s.paste_next.into_iter().map(|n| n.command).collect());
    (diagnosis.verdict, causes, next)
}

#[test]
fn threads_that_remove_files_behind_a_lock_are_temporary_tables() {
    let made = asleep(host(0.45, 0.005), 547, "unlinkat");
    let (verdict, causes, next) = judged(&made);
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "on_disk_temporary_tables"));
    assert!(next.len() <= 3 && next.iter().any(|command| command == "iostat -x 1 10"), "{next:?}");
    let diagnosis = made.diagnose();
    assert!(diagnosis.cleared.iter().any(|c| c.cause.slug() == "disk_saturated"), "idle CPUs counted no iowait");
    // The server's own words make it surer.
    let said = sessions(made.clone(), 24, "executing", "removing tmp table").diagnose();
    assert!(said.findings[0].confidence > diagnosis.findings[0].confidence);
}

#[test]
fn a_full_disk_leaves_two_suspects_and_the_command_that_decides() {
    let full = host(0.0, 0.7).disk("vda", (10.0, 4_096.0, 10.0), (240.0, 8_192.0, 100.0));
    let (verdict, causes, next) = judged(&asleep(full.clone(), 547, "unlinkat"));
    assert_eq!(verdict, Answer::Undecided);
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert!(causes.contains(&"disk_saturated".to_owned()) && causes.contains(&"on_disk_temporary_tables".to_owned()));
    assert!(next.iter().any(|command| command == "iostat -x 1 10"), "{next:?}");
    let reads = host(0.0, 0.7).disk("vda", (234.0, 15_000.0, 180.0), (45.0, 11_000.0, 36.0));
    let (verdict, causes, next) = judged(&reads.setting("host", "block.vda.read_ahead_kb", "128"));
    assert_eq!(
        (verdict, causes),
        (Answer::Undecided, vec!["readahead_too_large".into(), "working_set_exceeds_memory".into()])
    );
    assert_eq!(next[0], "blockdev --report; sar -B 1 10");
}

#[test]
fn connections_that_look_idle_may_be_queued_and_a_queue_that_was_seen_is() {
    let made = sessions(sessions(host(0.55, 0.0), 40, "idle", ""), 1, "executing", "Sending data");
    let pooled = made.clone().setting("mysql://pasted", "thread_handling", "pool-of-threads");
    let (verdict, causes, next) = judged(&pooled);
    assert_eq!((verdict, causes[0].as_str()), (Answer::Undecided, "thread_pool_queue"));
    assert!(next[0].contains("THREAD_POOL_GROUPS"), "{next:?}");
    let without = made.clone().setting("mysql://pasted", "thread_handling", "one-thread-per-connection");
    assert!(!judged(&without).1.contains(&"thread_pool_queue".to_owned()));
    let seen = made.gauge("mysql://pasted", "mysql_thread_pool_queue_length", &[], 39.0);
    let (verdict, causes, _) = judged(&seen);
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "thread_pool_queue"));
}

#[test]
fn nothing_conspicuous_names_no_suspect() {
    let quiet = sessions(host(0.9, 0.01), 3, "executing", "Sending data");
    assert_ne!(quiet.diagnose().verdict, Answer::Found);
}

/// Two CPUs that are full for two seconds, of work at `mode`, beside a load average of `load`.
fn full(mode: &str, load: f64) -> SyntheticRecording {
    SyntheticRecording::new(2)
        .gauge("host", "system_cpu_logical_count", &[], 2.0)
        .gauge("host", "system_load_average_1m", &[], load)
        .gauge("host", "system_threads", &[("state", "R")], 5.0)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", mode)], 1.99)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "idle")], 0.01)
}

#[test]
fn full_cpus_are_short_if_the_line_lasts_and_its_work_does_not_give_way() {
    let (verdict, causes, _) = judged(&full("user", 5.0));
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "cpu_saturated"));
    // Two seconds alone are a burst, or what the machine is for.
    assert_eq!(judged(&full("user", 0.8)).0, Answer::Undecided);
    let waits = full("user", 0.8).counter("pid:7", "process_run_queue_seconds_total", &[], 3.0);
    assert_eq!(judged(&waits).0, Answer::Found, "the service's threads stand in it");
    // Niced work makes way, and does not clear the CPUs: it may be in another cgroup.
    let niced = full("nice", 5.0).diagnose();
    assert!(
        niced.culprit.is_none() && niced.findings.iter().all(|f| f.cause.slug() != "cpu_saturated"),
        "{}",
        niced.headline
    );
    assert!(niced.cleared.iter().all(|c| c.cause.slug() != "cpu_saturated"));
}

/// Lengths of a queue that fills and stays full.
const STANDS: [f64; 7] = [0.0, 0.0, 2.0, 43.0, 65.0, 65.0, 61.0];

/// A host whose CPUs idle, with an accept queue of 64 that had these lengths, one a second.
fn queue_at_port(lengths: &[f64]) -> SyntheticRecording {
    let made = SyntheticRecording::new(lengths.len() as i64)
        .gauge("host", "tcp_accept_queue_limit", &[("port", "8080")], 64.0)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "idle")], 0.9)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "user")], 0.1);
    made.tables(|tables| {
        let labels = Labels::new([("port", "8080")]);
        tables.samples.rows.extend(lengths.iter().zip(0..).map(|(length, second)| Sample {
            observed_at: second * S,
            metric: "tcp_accept_queue_length".to_owned(),
            source: "host".into(),
            labels: labels.clone(),
            value: *length,
            ..Sample::default()
        }));
    })
}

#[test]
fn a_full_queue_at_a_port_shows_that_connections_wait_and_not_why() {
    let (verdict, causes, _) = judged(&queue_at_port(&STANDS));
    assert_eq!(verdict, Answer::Undecided);
    assert_eq!(causes, ["worker_pool_exhausted", "accept_queue_overflow"]);
    let (verdict, causes, _) = judged(&queue_at_port(&[0.0, 0.0, 0.0, 65.0, 0.0, 0.0, 0.0]));
    assert_eq!((verdict, causes), (Answer::Undecided, vec!["accept_queue_overflow".to_owned()]));
}

#[test]
fn workers_that_were_seen_to_be_busy_are_what_a_queue_waits_for() {
    let threads = |busy: f64| {
        queue_at_port(&STANDS).gauge("puma:app", "puma_max_threads", &[], 5.0).gauge(
            "puma:app",
            "puma_pool_capacity",
            &[],
            5.0 - busy,
        )
    };
    let (verdict, causes, _) = judged(&threads(5.0));
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "worker_pool_exhausted"));
    // Free workers do not take them: something else keeps the server from accepting.
    assert_eq!(judged(&threads(1.0)).0, Answer::Undecided);
}

#[test]
fn threads_that_fault_and_reads_as_large_as_the_window_are_readahead() {
    let reads = |bytes: f64| {
        let full = host(0.1, 0.5).disk("loop0", (200.0, bytes, 550.0), (0.0, 0.0, 0.0));
        asleep(full, 60, "folio_wait_bit_common").setting("host", "block.loop0.read_ahead_kb", "128")
    };
    assert_eq!(judged(&reads(119.0 * 1024.0)).1, ["readahead_too_large", "working_set_exceeds_memory"]);
    // Reads of half a window and less are other work.
    assert!(!judged(&reads(48.0 * 1024.0)).1.contains(&"readahead_too_large".to_owned()));
}

#[test]
fn sessions_of_postgresql_that_wait_for_the_log_wait_for_a_disk() {
    let made = sessions(host(0.7, 0.05), 14, "executing", "LWLock:WALWrite");
    let made = sessions(made, 5, "executing", "IO:DataFileRead").gauge(
        "postgresql://pasted",
        "postgresql_activity_sessions",
        &[("backend_type", "client backend")],
        19.0,
    );
    let (verdict, causes, next) = judged(&made);
    assert_eq!((verdict, causes.len()), (Answer::Undecided, 2), "{causes:?}");
    assert!(
        ["commit_log_bound", "throughput_ceiling"].iter().all(|cause| causes.iter().any(|c| c == cause)),
        "{causes:?}"
    );
    assert!(next.iter().any(|command| command.starts_with("iostat -x")), "{next:?}");
}

#[test]
fn a_longer_stretch_is_judged_as_a_whole_up_to_two_minutes() {
    let of = |seconds| {
        let made = SyntheticRecording::new(seconds).gauge("host", "system_load_average_1m", &[], 3.0).gauge(
            "mysql://pasted",
            "mysql_thread_pool_queue_length",
            &[],
            30.0,
        );
        made.diagnose()
    };
    let short = of(60);
    assert_eq!(short.culprit.map(Cause::slug), Some("thread_pool_queue"), "{}", short.headline);
    let open = short.snapshot.map(|snapshot| snapshot.open).unwrap_or_default();
    assert!(open.contains("These 60 s do not show since when"), "{open}");
    assert!(of(180).snapshot.is_none());
}

#[test]
fn a_full_disk_is_named_with_what_waits_for_it_and_left_open_alone() {
    let full = |free: &str| {
        SyntheticRecording::new(3).setting("host", "mount[/var].size_bytes", "100000000000").setting(
            "host",
            "mount[/var].free_bytes",
            free,
        )
    };
    let named = sessions(full("0"), 6, "executing", "waiting for handler commit").diagnose();
    assert_eq!((named.verdict, named.findings[0].cause.slug()), (Answer::Found, "disk_full"), "{}", named.headline);
    assert!(named.headline.contains("stood at the end of a write"), "{}", named.headline);
    assert!(named.findings[0].fixes.iter().any(|fix| fix.text.contains("what holds the space")));
    let alone = full("0").diagnose();
    assert_eq!((alone.verdict, alone.culprit.map(Cause::slug)), (Answer::Undecided, None), "{}", alone.headline);
    assert!(alone.headline.contains("disk_full"), "{}", alone.headline);
    let failed = SyntheticRecording::new(3).events(&[(1, "host", "disk_full", &[("server", "mysql")])]).diagnose();
    assert_eq!((failed.verdict, failed.findings[0].cause.slug()), (Answer::Found, "disk_full"));
    let room = full("50000000000").diagnose();
    assert!(room.findings.is_empty(), "{}", room.headline);
}

#[test]
fn a_command_is_one_for_the_machine_that_was_seen() {
    let waits = |made| sessions(made, 12, "executing", "IO:DataFileRead");
    let of = |made: SyntheticRecording| {
        let made = made.gauge("postgresql://pasted", "postgresql_activity_sessions", &[], 12.0);
        let diagnosis = waits(made).diagnose();
        assert_eq!(diagnosis.findings[0].cause, Cause::ThroughputCeiling, "{}", diagnosis.headline);
        let first = diagnosis.snapshot.expect("an instant").paste_next.remove(0);
        (first.command.split(' ').next().unwrap_or_default().to_owned(), first.shows)
    };
    let by_setting = |name: &str| of(SyntheticRecording::new(3).setting("postgresql://pasted", name, "on")).0;
    assert_eq!(by_setting("rds.logical_replication"), "aws");
    assert_eq!(by_setting("azure.extensions"), "az");
    assert_eq!(by_setting("cloudsql.logical_decoding"), "gcloud");
    // A file system that was listed is one of a machine with a shell.
    let (command, shows) = of(SyntheticRecording::new(3).setting("host", "mount[/].size_bytes", "100000000000"));
    assert_eq!(command, "iostat");
    assert!(!shows.contains("provider"), "{shows}");
    let (command, shows) = of(SyntheticRecording::new(3));
    assert_eq!(command, "iostat");
    assert!(shows.contains("if a provider runs the database"), "{shows}");
    let own = of(SyntheticRecording::new(3).tables(|tables| {
        tables.sessions.rows.push(Session { user: Some("rdsadmin".into()), observed_at: S, ..Session::default() });
    }));
    assert_eq!(own.0, "aws");
}

#[test]
fn pages_read_for_each_fault_decide_without_a_further_question() {
    let judged_by = |faults: f64| {
        let full = host(0.0, 0.7).disk("vda", (234.0, 15_000.0, 180.0), (45.0, 11_000.0, 36.0));
        let made = full.setting("host", "block.vda.read_ahead_kb", "128").counter(
            "host",
            "system_paging_faults_total",
            &[("type", "major")],
            faults,
        );
        judged(&made)
    };
    let (verdict, causes, next) = judged_by(28.0);
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "readahead_too_large"));
    assert!(next.iter().all(|command| !command.contains("sar -B")), "{next:?}");
    let (verdict, causes, _) = judged_by(800.0);
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "working_set_exceeds_memory"));
    // Reads by calls wait for no page.
    assert_eq!(judged_by(0.1).0, Answer::Undecided);
}

/// A full disk below a MongoDB that examined `examined` documents for each, and asked files for `asked` bytes a second.
fn documents(examined: f64, asked: f64) -> SyntheticRecording {
    let status = |name: &str| format!("mongodb_server_status_{name}");
    host(0.0, 0.7)
        .disk("vda", (234.0, 15_000.0, 180.0), (45.0, 11_000.0, 36.0))
        .setting("host", "block.vda.read_ahead_kb", "128")
        .gauge("mongodb://pasted", &status("connections_current"), &[], 61.0)
        .counter("mongodb://pasted", &status("wired_tiger_block_manager_bytes_read"), &[], asked)
        .gauge("mongodb://pasted", &status("metrics_document_returned"), &[], 1e6)
        .gauge("mongodb://pasted", &status("metrics_query_executor_scanned_objects"), &[], examined * 1e6)
}

#[test]
fn bytes_requested_by_a_storage_engine_decide_beside_a_full_disk() {
    let is_cleared =
        |made: &SyntheticRecording| made.diagnose().cleared.iter().any(|c| c.cause.slug() == "missing_index");
    let readahead = documents(1.0, 900_000.0);
    let (verdict, causes, _) = judged(&readahead);
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "readahead_too_large"));
    assert!(is_cleared(&readahead));
    // The page cache may have answered the rest: nothing follows.
    assert_eq!(judged(&documents(1.0, 9e6)).0, Answer::Undecided);
    assert!(!is_cleared(&documents(400.0, 900_000.0)), "an index may be missing as well");
}

#[test]
fn operations_that_wait_for_a_ticket_are_no_thread_pools() {
    let queue = |left: f64| {
        let level = |made: SyntheticRecording, name: &str, value: f64| {
            made.gauge("mongodb://pasted", &format!("mongodb_server_status_{name}"), &[], value)
        };
        let tickets = |made, kind: &str, left: f64| {
            let name = format!("wired_tiger_concurrent_transactions_{kind}");
            level(level(made, &format!("{name}_out"), 128.0 - left), &format!("{name}_available"), left)
        };
        let made = level(host(0.9, 0.0), "connections_current", 300.0);
        let made =
            level(level(made, "global_lock_current_queue_readers", 40.0), "global_lock_current_queue_writers", 0.0);
        tickets(tickets(made, "read", left), "write", 128.0)
    };
    let (verdict, causes, next) = judged(&queue(0.0));
    assert_eq!((verdict, causes[0].as_str()), (Answer::Found, "tickets_exhausted"));
    assert!(next[0].contains("db.currentOp"), "{next:?}");
    assert!(judged(&queue(90.0)).1.iter().all(|cause| cause != "tickets_exhausted"), "a lock makes the same queue");
}

#[test]
fn refusals_that_take_no_time_are_told_with_who_refused_and_since_when() {
    let log = "access_log:web.log";
    let of = |refused: f64, has_times: bool| {
        let grown = |second: i64| refused * (second - 20).max(0) as f64;
        let made = SyntheticRecording::new(30)
            .counter(log, "access_log_requests_total", &[("http_response_status_code", "200")], 60.0)
            .counted(log, "access_log_failed_requests_total", &[("error_type", "upstream_unreachable")], grown);
        let bucket = "http_server_request_duration_seconds_bucket";
        let timed = made.clone().counter(log, bucket, &[("le", "0.1")], 60.0);
        if has_times { timed.counter(log, bucket, &[("le", "+Inf")], 60.0).diagnose() } else { made.diagnose() }
    };
    let failing = of(30.0, true);
    assert_eq!(failing.verdict, Answer::Undecided, "{}", failing.headline);
    assert!(failing.headline.starts_with("Requests fail"), "{}", failing.headline);
    let said = "17 % of the requests failed: 300 times a server behind the proxy could not be reached or broke off (502), from 00:00:20 on";
    assert!(failing.headline.contains(said), "{}", failing.headline);
    assert!(of(30.0, false).headline.contains(said), "{}", of(30.0, false).headline);
    let usual = of(1.0, true);
    assert_eq!(usual.verdict, Answer::Healthy, "{}", usual.headline);
    assert!(!usual.headline.contains("failed"), "{}", usual.headline);
}

/// `text` as somebody pasted it who says that something is wrong; its first event is ten seconds into the recording.
fn pasted(text: &str) -> SyntheticRecording {
    let mut pasted = Pasted::new(None);
    pasted.read("paste", text.as_bytes(), 100 * S);
    let mut batch = pasted.finish().batch;
    let first = batch.events.iter().map(|event| event.observed_at).min().unwrap();
    SyntheticRecording::new(60).reported().tables(move |tables| {
        let by = 10 * S - first;
        batch.samples.iter_mut().for_each(|row| row.observed_at += by);
        batch.threads.iter_mut().for_each(|row| row.observed_at += by);
        batch.events.iter_mut().for_each(|row| row.observed_at += by);
        tables.samples.rows.append(&mut batch.samples);
        tables.threads.rows.append(&mut batch.threads);
        tables.events.present = true;
        tables.events.rows.append(&mut batch.events);
    })
}

/// A machine that streams files reclaims pages all the time, and a flush is late once in a week.
#[test]
fn messages_of_healthy_machines_accuse_nothing() {
    let streams = "\
top - 11:04:37 up 41 days,  2:10,  1 user,  load average: 1.21, 1.18, 1.20
Tasks: 182 total,   2 running, 180 sleeping,   0 stopped,   0 zombie
%Cpu(s):  6.1 us,  9.8 sy,  0.0 ni, 81.9 id,  1.6 wa,  0.0 hi,  0.6 si,  0.0 st
MiB Mem :  15893.2 total,    212.4 free,   3120.9 used,  12559.9 buff/cache
MiB Swap:   2048.0 total,   2048.0 free,      0.0 used.  12390.1 avail Mem

    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
   9120 media     20   0   21544   9120   6100 R  41.0   0.1  12:40.11 rsync
     74 root      20   0       0      0      0 S  31.0   0.0 310:21.90 kswapd0
   1311 media     20   0 2120400 811200  40120 S   6.0   5.0 801:12.44 minidlnad
";
    let flushes = "\
7731:M 05 Nov 2026 21:41:19.020 * Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer without waiting for fsync to complete, this may slow down Redis.
";
    for (text, cause) in [(streams, "memory_pressure"), (flushes, "disk_saturated")] {
        let diagnosis = pasted(text).diagnose();
        let suspects: Vec<(&str, f64)> = diagnosis.findings.iter().map(|f| (f.cause.slug(), f.confidence)).collect();
        assert!(suspects.iter().any(|(of, _)| *of == cause), "{cause} has its sign: {suspects:?}");
        assert!(suspects.iter().all(|(_, confidence)| *confidence < 0.5), "{suspects:?}");
    }
}
