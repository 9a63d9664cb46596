//! Each kind of limit as the root, and a decoy with the same symptom whose counters stand still.

use super::*;
use crate::cause::Cause;
use crate::testing::{Judged as _, SyntheticRecording};

const EXCEEDED: &str = "system_network_allowance_exceeded_total";
const PACKETS: [(&str, &str); 2] = [("device", "eth0"), ("allowance", "packets")];
const CONNECTIONS: [(&str, &str); 2] = [("device", "eth0"), ("allowance", "connections")];

/// 100 requests a second of 5 ms, of which every fourth takes 205 ms more; a timer ends for each of them.
fn lossy() -> SyntheticRecording {
    SyntheticRecording::new(12)
        .requests(100, 5)
        .each_request(|n, r| r.done_at += if n % 4 == 0 { 205_000_000 } else { 0 })
        .counter("host", "tcp_sent_segments_total", &[], 1_000.0)
        .counter("host", "tcp_retransmitted_segments_total", &[], 25.0)
        .counter("host", "tcp_retransmission_timeouts_total", &[], 25.0)
        .counter("host", "tcp_syn_retransmits_total", &[], 0.0)
        .counter("host", "tcp_listen_drops_total", &[], 0.0)
}

/// 50 requests a second, of which every second one needs a second to connect; their machine resends
/// nothing itself, and drops `dropped` packets a second for want of room in its table.
fn full_table(dropped: f64) -> SyntheticRecording {
    SyntheticRecording::new(12)
        .requests(50, 30)
        .half_connect_late()
        .counter("host", "tcp_retransmitted_segments_total", &[], 0.0)
        .counter("host", "tcp_retransmission_timeouts_total", &[], 0.0)
        .counter("host", "system_network_conntrack_dropped_total", &[], dropped)
        .setting("host", "net.netfilter.nf_conntrack_max", "65536")
}

fn fixes(made: &SyntheticRecording) -> String {
    let diagnosis = made.diagnose();
    let finding = diagnosis.findings.iter().find(|finding| finding.cause == DEFINITION.cause).unwrap();
    finding.fixes.iter().map(|fix| format!("{} {}\n", fix.text, fix.command.as_deref().unwrap_or(""))).collect()
}

#[test]
fn a_full_table_makes_connecting_take_seconds() {
    let made = full_table(25.0);
    let ms = made.explains(&DEFINITION).unwrap();
    assert!((ms - 505.0).abs() < 30.0, "{ms}");
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{diagnosis:#?}");
    assert!(fixes(&made).contains("nf_conntrack_max from 65,536 to 131,072"), "{}", fixes(&made));
    // A second or two each, and no more.
    let few = full_table(2.0).explains(&DEFINITION).unwrap();
    assert!((few - 93.3).abs() < 8.0, "{few}");
    let failing = made.each_request(|n, r| {
        if n % 2 == 0 {
            r.outcome = "timeout".into();
        }
    });
    assert!(failing.fails(&DEFINITION).unwrap() > 0.95);
}

/// The decoy: connecting takes seconds, and the table has room.
#[test]
fn a_table_with_room_is_not_why_connecting_takes_seconds() {
    assert_eq!(full_table(0.0).explains(&DEFINITION), None, "what a cloud drops is not counted here");
    let counted = full_table(0.0).counter("host", EXCEEDED, &PACKETS, 0.0);
    assert_eq!(counted.explains(&DEFINITION), Some(0.0));
    assert_ne!(counted.diagnose().culprit, Some(DEFINITION.cause));
}

#[test]
fn an_allowance_that_was_exceeded_is_why_packets_are_lost() {
    let made = lossy().counter("host", EXCEEDED, &PACKETS, 40.0);
    let diagnosis = made.diagnose();
    assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{diagnosis:#?}");
    let loss = diagnosis.findings.iter().find(|finding| finding.cause == Cause::NetworkLoss).unwrap();
    assert_eq!(loss.follows_from, Some(DEFINITION.cause));
    assert!(diagnosis.findings[0].evidence[0].text.contains("packets per second on eth0"), "{diagnosis:#?}");
    for (allowance, said) in
        [("connections", "security group"), ("bandwidth_out", "fewer bytes"), ("packets", "larger")]
    {
        let labels = [("device", "eth0"), ("allowance", allowance)];
        let made = lossy().counter("host", EXCEEDED, &labels, 40.0);
        assert!(fixes(&made).contains(said), "{allowance}: {}", fixes(&made));
    }
}

/// The decoy: packets are lost on the way, within every allowance.
#[test]
fn packets_within_every_allowance_are_lost_elsewhere() {
    for exceeded in [0.0, 0.3] {
        let made = lossy().counter("host", EXCEEDED, &CONNECTIONS, exceeded);
        assert_eq!(made.explains(&DEFINITION), Some(0.0), "{exceeded}");
        assert_eq!(made.diagnose().culprit, Some(Cause::NetworkLoss), "{exceeded}");
    }
    // A request does not wait for name servers and clocks.
    let local = [("device", "eth0"), ("allowance", "link_local")];
    assert_eq!(lossy().counter("host", EXCEEDED, &local, 40.0).explains(&DEFINITION), None);
}

/// Soft interrupts of two CPUs, in seconds a second.
fn softirqs(first: f64, second: f64) -> SyntheticRecording {
    const TIME: &str = "system_cpu_softirq_time_seconds_total";
    lossy()
        .counter("host", TIME, &[("cpu_logical_number", "0")], first)
        .counter("host", TIME, &[("cpu_logical_number", "1")], second)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "idle")], 2.0 - first - second)
        .counter("host", EXCEEDED, &PACKETS, 0.0)
}

#[test]
fn one_cpu_that_does_all_receiving_is_a_limit() {
    let made = softirqs(0.97, 0.05);
    assert!((made.explains(&DEFINITION).unwrap() - 50.0).abs() < 3.0, "{:?}", made.explains(&DEFINITION));
    assert!(fixes(&made).contains("RSS"), "{}", fixes(&made));
    assert_eq!(softirqs(0.6, 0.05).explains(&DEFINITION), Some(0.0), "it has room");
    assert_eq!(softirqs(0.97, 0.95).explains(&DEFINITION), Some(0.0), "so do all: the CPUs are full");
}

#[test]
fn a_full_backlog_is_told_by_its_setting() {
    let cpu = [("cpu_logical_number", "0")];
    let made = lossy().counter("host", "system_network_softnet_dropped_total", &cpu, 30.0);
    let said = fixes(&made.setting("host", "net.core.netdev_max_backlog", "1000"));
    assert!(said.contains("netdev_max_backlog from 1,000 to 2,000"), "{said}");
}

/// Requests are slow from second 20 on; the counter grows by `before` and then by `after` a second.
#[test]
fn a_limit_exceeded_in_the_baseline_too_clears_it() {
    let made = |before: f64, after: f64| {
        SyntheticRecording::new(50)
            .requests(100, 200)
            .each_request(|n, r| {
                r.done_at = r.intended_at + if n >= 2_000 && n % 4 == 0 { 210_000_000 } else { 5_000_000 };
            })
            .counter("host", "tcp_retransmitted_segments_total", &[], 25.0)
            .counter("host", "tcp_retransmission_timeouts_total", &[], 25.0)
            .counted("host", EXCEEDED, &PACKETS, move |second| {
                before * second.min(20) as f64 + after * (second - 20).max(0) as f64
            })
    };
    assert!(made(0.0, 40.0).explains(&DEFINITION).unwrap() > 40.0);
    assert_eq!(made(40.0, 40.0).explains(&DEFINITION), Some(0.0));
}

#[test]
fn without_a_fact_it_is_not_judged() {
    assert_eq!(lossy().explains(&DEFINITION), None, "no counter of a limit");
    let few = lossy().counter("host", EXCEEDED, &CONNECTIONS, 0.3);
    assert_eq!(few.without("tcp_retransmitted_segments_total").explains(&DEFINITION), None, "what it costs");
    // Packets beyond this one may wait, and no interface's bytes were recorded.
    assert_eq!(lossy().counter("host", EXCEEDED, &PACKETS, 0.3).explains(&DEFINITION), None);
    let made = lossy().counter("host", EXCEEDED, &PACKETS, 40.0);
    assert_eq!(made.without_column("samples", "value").explains(&DEFINITION), None);
}
