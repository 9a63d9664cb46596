//! Each sign of a host's counts, and a host that looks alike and is sound.

use crate::cause::Cause;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::testing::{Judged as _, SyntheticRecording};

const SECONDS: i64 = 10;

fn host() -> SyntheticRecording {
    SyntheticRecording::new(SECONDS)
}

/// What shows `cause`: the chance of its signs, and the first piece of evidence. Its rows exist.
fn signs(made: &SyntheticRecording, cause: Cause) -> Option<(f64, String)> {
    made.with(|case| {
        let mut signs = Signs::default();
        cause.definition().signs.expect("signs")(&Facts::read(case.view(case.whole())), &mut signs);
        let weighed = signs.weigh()?;
        for piece in &weighed.evidence {
            assert!(piece.resolves(made.recording()), "{piece:?}");
        }
        Some((weighed.chance, weighed.evidence[0].text.clone()))
    })
}

/// A counter of which one reading since boot is there.
fn once(made: SyntheticRecording, metric: &'static str, value: f64) -> SyntheticRecording {
    made.gauge("host", metric, &[], value).tables(|tables| {
        let mut is_first = true;
        tables.samples.rows.retain(|row| row.metric != metric || std::mem::take(&mut is_first));
    })
}

fn idle(made: SyntheticRecording, idle: f64, waiting: f64) -> SyntheticRecording {
    let cpu = |made: SyntheticRecording, mode: &str, share: f64| {
        made.counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", mode)], share)
    };
    cpu(cpu(cpu(made, "idle", idle), "iowait", waiting), "user", 1.0 - idle - waiting)
}

fn opens(made: SyntheticRecording) -> SyntheticRecording {
    once(made, "tcp_passive_opens_total", 80_000_000.0)
}

fn segments(again: f64) -> SyntheticRecording {
    host().counter("host", "tcp_sent_segments_total", &[], 10_000.0).counter(
        "host",
        "tcp_retransmitted_segments_total",
        &[],
        again,
    )
}

fn tracked(count: f64) -> SyntheticRecording {
    host().gauge("host", "system_network_conntrack_count", &[], count).gauge(
        "host",
        "system_network_conntrack_max",
        &[],
        262_144.0,
    )
}

fn files(count: f64, gone: f64) -> SyntheticRecording {
    let folder = [("path", "/var/tmp/sqltmp")];
    host().gauge("host", "system_temporary_table_files", &folder, count).gauge(
        "host",
        "system_temporary_table_files_vanished",
        &folder,
        gone,
    )
}

fn stalls(resource: &str, kind: &str, share: f64) -> SyntheticRecording {
    host().counter("host", "system_pressure_seconds_total", &[("resource", resource), ("kind", kind)], share)
}

fn closed(count: f64) -> SyntheticRecording {
    host().gauge("host", "tcp_sockets", &[("state", "TIME-WAIT")], count)
}

fn proxy(queued_s: f64, whole_s: f64) -> SyntheticRecording {
    let backend = [("backend", "shop_app")];
    host()
        .gauge("haproxy:", "haproxy_queue_time_seconds", &backend, queued_s)
        .gauge("haproxy:", "haproxy_response_time_seconds", &backend, whole_s - queued_s)
        .gauge("haproxy:", "haproxy_total_time_seconds", &backend, whole_s)
}

fn frontend(sessions: f64) -> SyntheticRecording {
    let frontend = [("frontend", "shop_in")];
    host().gauge("haproxy:", "haproxy_frontend_sessions", &frontend, sessions).gauge(
        "haproxy:",
        "haproxy_frontend_sessions_limit",
        &frontend,
        2_000.0,
    )
}

fn said(event: &str) -> SyntheticRecording {
    host().events(&[(4, "host", event, &[])])
}

fn load(load: f64) -> SyntheticRecording {
    host().gauge("host", "system_load_average_1m", &[], load)
}

fn asleep(count: f64) -> SyntheticRecording {
    host().gauge("host", "system_threads", &[("state", "D")], count)
}

/// A disk without time left that is read at random, in reads of so many bytes.
fn full_disk(bytes: f64) -> SyntheticRecording {
    host().disk("sdb", (234.0, bytes, 100.0), (5.0, 4_096.0, 10.0))
}

fn ahead(made: SyntheticRecording, kib: &str) -> SyntheticRecording {
    made.setting("host", "block.sdb.read_ahead_kb", kib)
}

fn waits() -> SyntheticRecording {
    idle(host(), 0.1, 0.6)
}

fn mounted(made: SyntheticRecording, options: &str) -> SyntheticRecording {
    let facts = [("fstype", "ext4"), ("device", "sdb1"), ("options", options)];
    facts.iter().fold(made, |made, (fact, value)| made.setting("host", &format!("mount[/data].{fact}"), value))
}

/// Five threads of a Puma, of which some are free.
fn workers(free: f64, waiting: f64) -> SyntheticRecording {
    let figures = [("max_threads", 5.0), ("pool_capacity", free), ("backlog", waiting)];
    figures.iter().fold(host(), |made, (name, value)| made.gauge("puma:", &format!("puma_{name}"), &[], *value))
}

#[test]
fn each_sign_shows_its_cause_and_a_sound_host_shows_none() {
    use Cause as C;
    let overflows = "tcp_listen_overflows_total";
    for (what, cause, sick, least, sound) in [
        (
            "refused connections that grow",
            C::AcceptQueueOverflow,
            host().counter("host", overflows, &[], 30.0),
            0.5,
            host().counter("host", overflows, &[], 0.0),
        ),
        (
            "refused connections since boot",
            C::AcceptQueueOverflow,
            opens(once(host(), overflows, 900_000.0)),
            0.3,
            opens(once(host(), overflows, 40.0)),
        ),
        ("clients at a proxy's limit", C::AcceptQueueOverflow, frontend(1_990.0), 0.5, frontend(900.0)),
        ("segments sent again", C::NetworkLoss, segments(700.0), 0.7, segments(12.0)),
        ("a full table of connections", C::NetworkLimit, tracked(262_100.0), 0.7, tracked(90_000.0)),
        ("ports held by closed connections", C::ConnectionPerRequest, closed(27_900.0), 0.5, closed(1_900.0)),
        ("no port was left", C::ConnectionPerRequest, said("ports_exhausted"), 0.7, said("disk_full")),
        ("no descriptor was left", C::FileDescriptorLimit, said("file_descriptors_exhausted"), 0.7, said("disk_full")),
        ("files that vanish", C::OnDiskTemporaryTables, files(40.0, 9.0), 0.7, files(6.0, 0.0)),
        ("hundreds of files", C::OnDiskTemporaryTables, files(812.0, 0.0), 0.5, files(30.0, 0.0)),
        ("dozens of files", C::OnDiskTemporaryTables, files(61.0, 0.0), 0.3, files(30.0, 0.0)),
        ("reads of no page", C::ReadaheadTooLarge, full_disk(15_200.0), 0.3, full_disk(16_384.0)),
        (
            "reads of no page in a wide window",
            C::ReadaheadTooLarge,
            ahead(full_disk(15_200.0), "128"),
            0.59,
            ahead(full_disk(15_200.0), "8"),
        ),
        ("a wide window", C::ReadaheadTooLarge, ahead(host(), "128"), 0.15, ahead(host(), "8")),
        (
            "a wide window beside iowait",
            C::ReadaheadTooLarge,
            ahead(waits(), "128"),
            0.3,
            ahead(idle(host(), 0.9, 0.02), "128"),
        ),
        (
            "access times that are written",
            C::AtimeUpdates,
            mounted(waits(), "rw,strictatime"),
            0.3,
            mounted(waits(), "rw,relatime"),
        ),
        (
            "an option that older tools leave out",
            C::AtimeUpdates,
            mounted(host(), "rw,strictatime"),
            0.15,
            mounted(host(), "rw"),
        ),
        ("busy workers and a line", C::WorkerPoolExhausted, workers(0.0, 61.0), 0.88, workers(2.0, 0.0)),
        ("a line beside free workers", C::WorkerPoolExhausted, workers(2.0, 9.0), 0.5, workers(2.0, 1.0)),
        ("stalls for memory", C::MemoryPressure, stalls("memory", "full", 0.3), 0.5, stalls("memory", "some", 0.3)),
        ("stalls for I/O", C::DiskSaturated, stalls("io", "full", 0.6), 0.5, stalls("io", "full", 0.1)),
        ("stalls for CPUs", C::CpuSaturated, stalls("cpu", "some", 0.9), 0.3, stalls("cpu", "some", 0.4)),
        ("a proxy's queue", C::WorkerPoolExhausted, proxy(4.2, 4.6), 0.5, proxy(0.02, 0.4)),
        (
            "a load beside idle CPUs without their number",
            C::UninterruptiblePileup,
            idle(load(615.0), 0.45, 0.01),
            0.3,
            idle(load(12.0), 0.45, 0.01),
        ),
        (
            "a load beside idle CPUs",
            C::UninterruptiblePileup,
            idle(load(30.0), 0.5, 0.01).gauge("host", "system_cpu_logical_count", &[], 4.0),
            0.3,
            idle(load(60.0), 0.5, 0.01).gauge("host", "system_cpu_logical_count", &[], 64.0),
        ),
        ("a load by running threads", C::UninterruptiblePileup, asleep(431.0), 0.5, idle(load(615.0), 0.01, 0.0)),
    ] {
        let found = signs(&sick, cause);
        assert!(found.as_ref().is_some_and(|(chance, _)| *chance >= least - 1e-9), "{what}: {found:?}");
        assert_eq!(signs(&sound, cause), None, "{what}: a sound host");
    }
}

#[test]
fn the_share_of_a_proxys_queue_and_of_threads_in_one_place_is_said() {
    let share = |made: SyntheticRecording, cause: Cause| {
        made.with(|case| {
            let mut signs = Signs::default();
            cause.definition().signs.expect("signs")(&Facts::read(case.view(case.whole())), &mut signs);
            signs.weigh().and_then(|weighed| weighed.share)
        })
    };
    let queue = share(proxy(3.0, 4.0), Cause::WorkerPoolExhausted).expect("a share");
    assert!((queue.ratio - 0.75).abs() < 1e-9 && queue.of.contains("at the proxy"), "{queue:?}");
    let made = host().asleep(90, "unlinkat", "", None);
    let there = share(made, Cause::OnDiskTemporaryTables).expect("a share");
    assert!(there.ratio > 0.99 && there.of.contains("of 90 threads"), "{there:?}");
}

#[test]
fn means_since_boot_accuse_less_and_clear_nothing() {
    let disk = |made: SyntheticRecording| made.disk("sda", (300.0, 8192.0, 20.0), (1.0, 4096.0, 1.0));
    let mean = |made: SyntheticRecording| {
        made.setting("host", "since_boot[system_disk_io_time_seconds_total]", "iostat").setting(
            "host",
            "since_boot[system_cpu_time_seconds_total]",
            "iostat",
        )
    };
    // The disk was busy for so much of the time.
    let of = |made: &SyntheticRecording, busy: f64| {
        let time = "system_disk_io_time_seconds_total";
        let made = made.clone().without(time).counter("host", time, &[("device", "sda")], busy);
        signs(&made, Cause::WorkingSetExceedsMemory).expect("a full disk")
    };
    let (shown, since_boot) = (disk(host()), mean(disk(host())));
    let (full, weaker) = (of(&shown, 0.95), of(&since_boot, 0.95));
    assert!(weaker.0 < full.0 && weaker.1.contains("since boot"), "{full:?} {weaker:?}");
    assert!(of(&since_boot, 1.0).0 >= full.0, "what was never idle since boot is not idle now");
    let cleared =
        |made: &SyntheticRecording| made.with(|case| Facts::read(case.view(case.whole())).idle_disk().is_some());
    let quiet = |made: SyntheticRecording| made.disk("sda", (1.0, 4096.0, 1.0), (1.0, 4096.0, 1.0));
    assert!(cleared(&quiet(host())) && !cleared(&mean(quiet(host()))));
    let has_idle = |made: &SyntheticRecording| made.with(|case| Facts::read(case.view(case.whole())).idle.is_some());
    assert!(has_idle(&idle(host(), 0.9, 0.01)) && !has_idle(&mean(idle(host(), 0.9, 0.01))));
    assert!(has_idle(&mean(idle(host(), 0.4, 0.4))), "much iowait since boot is much now");
}

#[test]
fn a_line_of_threads_as_long_as_usual_is_a_suspicion_alone() {
    let line = |usual: f64| {
        idle(load(8.0), 0.0, 0.0)
            .gauge("host", "system_load_average_15m", &[], usual)
            .gauge("host", "system_cpu_logical_count", &[], 2.0)
            .gauge("host", "system_threads", &[("state", "R")], 12.0)
    };
    let confidence = |made: &SyntheticRecording| {
        let diagnosis = made.diagnose();
        diagnosis.findings.iter().find(|f| f.cause == Cause::CpuSaturated).map_or(0.0, |f| f.confidence)
    };
    assert!(confidence(&line(2.0)) > 0.6, "{}", confidence(&line(2.0)));
    assert!((0.2..0.5).contains(&confidence(&line(6.5))), "{}", confidence(&line(6.5)));
    let waiting = line(6.5).counter("pid:7", "process_run_queue_seconds_total", &[], 3.0);
    assert!(confidence(&waiting) > 0.6, "threads of the service wait in it: {}", confidence(&waiting));
    let said = line(6.5).reported();
    assert!(confidence(&said) > 0.6, "somebody says that something is wrong: {}", confidence(&said));
}

#[test]
fn threads_that_sleep_for_a_moment_prove_a_part_in_however_many_places() {
    let of = |instants: i64| {
        let made = ["do_unlinkat", "path_openat"]
            .iter()
            .fold(host(), |made, place| made.asleep(90, place, "", Some("/tmp/#sql-temptable-1.MAI")));
        let made = made.tables(|tables| tables.threads.rows.retain(|row| row.observed_at < instants * 1_000_000_000));
        let count = move |second: i64| if second < instants { 180.0 } else { 0.0 };
        let made = made.without("process_threads").counted("pid:7", "process_threads", &[("state", "D")], count);
        signs(&made, Cause::OnDiskTemporaryTables).map_or(0.0, |(chance, _)| chance)
    };
    assert!(of(SECONDS + 1) > 0.75, "{}", of(SECONDS + 1));
    assert!(of(4) < 0.4 && of(4) > 0.1, "{}", of(4));
}
