//! Ceilings on bytes: of a disk, of two together, and the incident's own figures.

use super::*;
use crate::cause::Cause;
use crate::testing::{Judged as _, SyntheticRecording};
use crate::verdict::Answer;
use holdup_recording::rows::Sample;

const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";

fn large(made: SyntheticRecording, device: &str, by: impl Fn(i64) -> f64) -> SyntheticRecording {
    // Read and write take turns, so that only their sum is level.
    let mut made = made;
    let done: Vec<(f64, f64)> = (0..=made_seconds(&made))
        .scan((0.0, 0.0), |all, s| {
            let read = 0.5 + 0.4 * (s as f64 * 1.7).sin();
            *all = (all.0 + by(s) * read, all.1 + by(s) * (1.0 - read));
            Some(*all)
        })
        .collect();
    for (direction, of) in [("read", 0), ("write", 1)] {
        let labels = [("device", device), ("direction", direction)];
        let total = |s: i64| if of == 0 { done[s as usize].0 } else { done[s as usize].1 };
        made = made
            .counted("host", "system_disk_io_bytes_total", &labels, total)
            .counted("host", "system_disk_operations_total", &labels, |s| (total(s) / 100e3).floor())
            .counter("host", "system_disk_operation_time_seconds_total", &labels, 10.0);
    }
    let labels = [("device", device)];
    made.counter("host", "system_disk_io_time_seconds_total", &labels, 1.0).counter(
        "host",
        "system_disk_weighted_io_time_seconds_total",
        &labels,
        20.0,
    )
}

fn made_seconds(made: &SyntheticRecording) -> i64 {
    made.with(|case| case.whole().to / 1_000_000_000)
}

fn base() -> SyntheticRecording {
    SyntheticRecording::new(30).requests(100, 200).asleep(20, "io_schedule", READ, None)
}

#[test]
fn a_level_of_the_sum_is_a_limit_though_its_parts_are_ragged() {
    let made = large(base(), "vda", |_| 12e6);
    assert!((made.explains(&DEFINITION).unwrap() - 200.0).abs() < 10.0);
    assert_eq!(made.explains(&super::super::iops_ceiling::DEFINITION), Some(0.0), "requests are large");
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    assert!(found.evidence[0].text.contains("12 MB/s"), "{:?}", found.evidence[0]);
    assert!(found.evidence[1].text.contains("origin is unknown"), "{:?}", found.evidence[1]);
}

#[test]
fn the_limit_of_a_disk_that_the_service_does_not_use_is_not_its_limit() {
    let on = |device: &str| {
        let waits = SyntheticRecording::new(30)
            .requests(100, 200)
            .asleep(20, "io_schedule", READ, Some("/data/t.ibd"))
            .setting("host", "mount[/data].fstype", "ext4")
            .setting("host", "mount[/data].device", device)
            .disk("vdb", (10.0, 4_096.0, 1.0), (0.0, 0.0, 0.0));
        large(waits, "vda", |_| 12e6).explains(&DEFINITION)
    };
    assert!(on("vda").is_some_and(|ms| ms > 190.0), "{:?}", on("vda"));
    assert_eq!(on("vdb"), Some(0.0), "others wait for that limit");
}

#[test]
fn two_disks_of_one_instance_share_a_limit() {
    // Each takes what the other leaves.
    let share = |s: i64| 0.5 + 0.35 * (s as f64 * 0.9).cos();
    let made = large(base(), "vda", move |s| 40e6 * share(s));
    let made = large(made, "vdb", move |s| 40e6 * (1.0 - share(s)));
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    assert!(found.evidence[0].text.contains("all disks together"), "{:?}", found.evidence[0]);
}

/// `made`, with so many bytes and operations read from `device` in each second.
fn reads(
    made: SyntheticRecording,
    device: &str,
    bytes: impl Fn(i64) -> f64,
    operations: impl Fn(i64) -> f64,
) -> SyntheticRecording {
    let made = made.disk(device, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)).tables(|tables| {
        let of_reads =
            |row: &Sample| row.labels.get("direction") != Some("write") && row.labels.get("device") == Some(device);
        tables.samples.rows.retain(|row| !of_reads(row));
    });
    let labels = [("device", device), ("direction", "read")];
    made.counted("host", "system_disk_io_bytes_total", &labels, |s| (0..s).map(&bytes).sum())
        .counted("host", "system_disk_operations_total", &labels, |s| (0..s).map(&operations).sum())
        .counted("host", "system_disk_operation_time_seconds_total", &labels, |s| {
            (0..s).map(&operations).sum::<f64>() * 0.02
        })
        .counter("host", "system_disk_io_time_seconds_total", &labels[..1], 1.0)
        .counter("host", "system_disk_weighted_io_time_seconds_total", &labels[..1], 20.0)
}

#[test]
fn of_two_level_rates_the_flatter_is_what_is_limited() {
    // Reads of some 13 kB, which differ in size by a tenth.
    let off = |s: i64| 1.0 + 0.07 * (s as f64 * 2.3).sin();
    let by_bytes = reads(base(), "vda", |_| 6.3e6, move |s| 480.0 * off(s));
    let by_number = reads(base(), "vda", move |s| 6.3e6 * off(s), |_| 480.0);
    let iops = &super::super::iops_ceiling::DEFINITION;
    let found =
        [&by_bytes, &by_number].map(|made| [&DEFINITION, iops].map(|rule| made.explains(rule).unwrap() > 150.0));
    assert_eq!(found, [[true, false], [false, true]]);
}

#[test]
fn a_disk_at_its_limit_counts_and_not_its_sum_with_others() {
    // The other disk's few bytes in many operations leave the sum of operations ragged, and of bytes level.
    let limited = reads(base(), "vda", |_| 3.9e6, |_| 480.0);
    let both = reads(limited, "vdb", |s| 512.0 * (s % 3) as f64 * 100.0, |s| (s % 3) as f64 * 100.0);
    assert_eq!(both.explains(&DEFINITION), Some(0.0));
    assert!(both.explains(&super::super::iops_ceiling::DEFINITION).unwrap() > 150.0);
}

#[test]
fn a_demand_that_is_followed_and_small_requests_clear_it() {
    let ragged = large(base(), "vda", |s| 10e6 * (1.5 + (s as f64 * 0.8).sin()));
    assert_eq!(ragged.explains(&DEFINITION), Some(0.0));
    let small = base().disk("vda", (400.0, 8_192.0, 40.0), (100.0, 8_192.0, 40.0));
    assert_eq!(small.explains(&DEFINITION), Some(0.0));
    let idle = base().disk("vda", (0.0, 4_096.0, 1.0), (0.0, 4_096.0, 1.0));
    for rule in [&DEFINITION, &super::super::burst_exhausted::DEFINITION, &super::super::iops_ceiling::DEFINITION] {
        assert_eq!(idle.explains(rule), Some(0.0), "{}", rule.cause);
    }
}

#[test]
fn without_a_fact_it_is_not_cleared() {
    let made = large(base(), "vda", |_| 12e6);
    for metric in [
        "system_disk_operations_total",
        "system_disk_io_bytes_total",
        "system_disk_weighted_io_time_seconds_total",
        "process_threads",
    ] {
        assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
    }
}

/// The incident's figures, a minute of it a second here: quiet, a burst at 443 MB/s, then 213 MB/s; reads and writes ragged,
/// near 15,000 operations a second of 30,000 that are provisioned, 50 to 100 in flight.
fn incident(made: SyntheticRecording) -> SyntheticRecording {
    let level = |s: i64| match s {
        0..60 => 90e6 + 40e6 * (s as f64 * 0.7).sin(),
        60..120 => 443e6,
        _ => 213e6,
    };
    let off = |s: i64, by: f64| 1.0 + by * (s as f64 * 12.9898).sin() * (s as f64 * 4.1414).cos();
    let read = |s: i64| 0.55 + 0.3 * (s as f64 * 0.37).sin();
    let sum = move |s: i64| level(s) * off(s, 0.01);
    let operations = move |s: i64| if s < 60 { 6_000.0 } else { 15_000.0 } * off(s, 0.35);
    let labels = [("db_instance", "search")];
    made.counted("cloudwatch", "aws_read_throughput_bytes_per_second", &labels, move |s| sum(s) * read(s))
        .counted("cloudwatch", "aws_write_throughput_bytes_per_second", &labels, move |s| sum(s) * (1.0 - read(s)))
        .counted("cloudwatch", "aws_read_iops", &labels, move |s| operations(s) * read(s))
        .counted("cloudwatch", "aws_write_iops", &labels, move |s| operations(s) * (1.0 - read(s)))
        .counted("cloudwatch", "aws_disk_queue_depth", &labels, move |s| {
            if s < 60 { 0.8 } else { 75.0 + 25.0 * (s as f64 * 1.3).sin() }
        })
        .gauge("cloudwatch", "aws_cpu_utilization_ratio", &labels, 0.5)
        .setting("aws", "instance.class", "db.r5.2xlarge")
        .setting("aws", "volume.type", "io1")
        .setting("aws", "volume.iops", "30000")
}

#[test]
fn the_incident_is_named_with_its_level_and_burst_and_no_wrong_limit() {
    let requests = SyntheticRecording::new(300).requests(100, 800).each_request(|number, row| {
        if number < 6_000 {
            row.done_at = row.intended_at + 8_000_000;
            row.first_byte_at = Some(row.done_at);
        }
    });
    let diagnosis = incident(requests).diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Found, Some(DEFINITION.cause)), "{diagnosis:#?}");
    let found = diagnosis.findings.iter().find(|f| f.cause == DEFINITION.cause).unwrap();
    let level: f64 = found.evidence[0].observed.trim_end_matches(" MB/s").parse().unwrap();
    assert!((level - 213.0).abs() <= 0.03 * 213.0, "{level}");
    let texts: Vec<&str> = found.evidence.iter().map(|e| e.text.as_str()).collect();
    let all = texts.join("\n");
    for part in [
        "It is the baseline of a db.r5.2xlarge started before 3 December 2019 (212 MB/s or 1,700 Mbit/s",
        "instance.class is db.r5.2xlarge, whose documented limit is 212 MB/s",
        "the limit is 18,750 operations/s (burst of db.r5.2xlarge), 12,000 operations/s sustained; the provisioned rate of the io1 volume allows 30,000 operations/s",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // From 213 to 593.75 MB/s; with its burst the load moved 271 on average.
    let sizing = "r5.4xlarge (594 MB/s sustained): 2.8 times the present limit, of which this load uses 46 %";
    assert!(found.fixes[1].text.contains(sizing), "{:?}", found.fixes);
    assert!(found.fixes[0].text.starts_with("Stop and start it first (free)"), "{:?}", found.fixes);
    // The burst is marked from its first minute to its last.
    let burst = found.evidence.iter().find(|e| e.text.contains("a burst that ended")).unwrap();
    let span = burst.window.unwrap();
    assert!((span.from_s - 60.0).abs() <= 2.0 && (span.to_s - 120.0).abs() <= 2.0, "{span:?}");
    assert!(burst.observed.starts_with("443 MB/s") || burst.observed.starts_with("44"), "{burst:?}");
    let iops = diagnosis.cleared.iter().find(|c| c.cause == Cause::IopsCeiling).unwrap();
    assert!(iops.evidence[0].text.contains("18,750"), "{iops:?}");
    let exhausted = diagnosis.findings.iter().find(|f| f.cause == Cause::BurstExhausted).unwrap();
    assert_eq!((exhausted.role, exhausted.adds_to), (Role::Contributor, Some(DEFINITION.cause)));
}

#[test]
fn a_level_is_named_where_class_and_level_agree_and_only_there() {
    let labels = [("db_instance", "db")];
    let half = |made: SyntheticRecording, metric: &str| made.gauge("cloudwatch", metric, &labels, 287.5e6 / 2.0);
    let made =
        SyntheticRecording::new(60).requests(100, 800).gauge("cloudwatch", "aws_disk_queue_depth", &labels, 70.0);
    let made = half(half(made, "aws_read_throughput_bytes_per_second"), "aws_write_throughput_bytes_per_second")
        .gauge("cloudwatch", "aws_read_iops", &labels, 2_000.0)
        .gauge("cloudwatch", "aws_write_iops", &labels, 2_000.0);
    let text = |made: &SyntheticRecording| match made.judge(&DEFINITION) {
        Ok(Outcome::Found(found)) => found.evidence.iter().map(|e| e.text.clone()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    assert!(text(&made).contains("neither instance nor volume is known"), "{}", text(&made));
    let known = made.setting("aws", "instance.class", "db.r5.2xlarge");
    assert!(
        text(&known).contains("It is the baseline of db.r5.2xlarge (288 MB/s or 2,300 Mbit/s; Amazon EC2"),
        "{}",
        text(&known)
    );
}

/// Without a single request: what CloudWatch says of the volume is enough, if it became slow, and only then.
#[test]
fn the_incident_is_named_by_cloudwatch_alone() {
    let labels = [("db_instance", "search")];
    let figures =
        |write_ms: f64| {
            incident(SyntheticRecording::new(220))
                .counted("cloudwatch", "aws_read_latency_seconds", &labels, |s| if s < 60 { 0.001 } else { 0.005 })
                .counted("cloudwatch", "aws_write_latency_seconds", &labels, move |s| {
                    if s < 60 { 0.010 } else { write_ms / 1e3 }
                })
        };
    let diagnosis = figures(100.0).diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Found, Some(DEFINITION.cause)), "{diagnosis:#?}");
    assert!(diagnosis.symptom.unwrap().contains("by CloudWatch"));
    let quick = figures(15.0).diagnose();
    assert_eq!(quick.verdict, Answer::Undecided, "that a volume is quick clears nothing: {quick:#?}");
    assert!(quick.cleared.is_empty());
}
