//! CPU time that no program of this machine had: other guests of the hypervisor took it, or the kernel
//! for packets and devices. Threads wait for a CPU meanwhile, and no process shows it.

use holdup_recording::metrics;
use holdup_recording::words::{percent, thousands};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::cpu::{CpuMode, CpuTime, softirq_by_cpu};

use crate::causes::{Fix, MATTERS};

/// Who takes it, from which share (0-1) of CPU time it matters, and what to do. A busy server needs some
/// for its own packets.
const TAKERS: [(CpuMode, &str, f64, &str); 3] = [
    (
        CpuMode::Steal,
        "the hypervisor gave other guests",
        MATTERS,
        "Move this machine to a host with free CPUs, or give it CPUs of its own; an instance with CPU credits may have used them up.",
    ),
    (
        CpuMode::Softirq,
        "the kernel needed for packets and timers (softirq)",
        0.25,
        "Find the flow that sends the packets (ss -tin), then move it or spread its packets over CPUs (receive packet steering, rps_cpus).",
    ),
    (
        CpuMode::Interrupt,
        "the kernel needed for interrupts of devices",
        MATTERS,
        "See in /proc/interrupts which device interrupts most, and spread its interrupts over CPUs (smp_affinity).",
    ),
];

/// What others took of CPU time, by so much more than in the baseline window: the evidence and what to
/// do.
pub(super) fn find(view: &View<'_>, baseline: Option<&View<'_>>) -> Vec<(Evidence, Fix)> {
    let Ok(now) = CpuTime::measure(view) else { return Vec::new() };
    let before = baseline.and_then(|view| CpuTime::measure(view).ok());
    let taken = |(mode, who, least, fix): &(CpuMode, &str, f64, &str)| {
        let counter = now.counter(*mode)?;
        let (ratio, was) = (now.ratio(*mode), before.as_ref().map(|before| before.ratio(*mode)));
        let more = ratio - was.unwrap_or(0.0) >= *least;
        let usual = was.map_or_else(String::new, |was| format!(", {} in the baseline window", percent(was)));
        let place = if *mode == CpuMode::Softirq { packets(view) } else { String::new() };
        let text = format!("{} of CPU time is what {who}{usual}{place}", percent(ratio));
        let evidence = counter.evidence(percent(ratio), was.map_or_else(|| "little".to_owned(), percent), text);
        let fix = Fix { text: (*fix).to_owned(), command: None, keep: None, risk: None };
        more.then_some((evidence, fix))
    };
    TAKERS.iter().filter_map(taken).collect()
}

/// The CPU and the device that most packets are of, in words.
fn packets(view: &View<'_>) -> String {
    let busiest = softirq_by_cpu(view).into_iter().max_by(|(_, a), (_, b)| a.rate().total_cmp(&b.rate()));
    let of_cpu =
        busiest.map_or_else(String::new, |(cpu, busy)| format!("; CPU {cpu} spent {} on it", percent(busy.rate())));
    let metric = metrics::host::NETWORK_PACKETS.name;
    let devices = view.label_values(metric, "device").into_iter();
    let rates = devices.filter_map(|device| {
        let rate = view.counter(metric, &[("device", device.as_str())], "").ok()?.rate();
        Some((device, rate))
    });
    let most = rates.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, rate)| *rate > 0.0);
    let of_device =
        most.map_or_else(String::new, |(device, rate)| format!("; {device} had most packets, {}/s", thousands(rate)));
    of_cpu + &of_device
}

#[cfg(test)]
mod tests {
    use crate::causes::cpu_saturated::DEFINITION;
    use crate::causes::{CauseFinding, Outcome};
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 50 requests a second of 400 ms, of which 200 wait for one of two CPUs; `mode` has `taken` of a CPU.
    fn made(mode: &'static str, taken: f64) -> SyntheticRecording {
        let cpu = |mode| [("cpu_mode", mode)];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.98 - taken)
            .counter("host", "system_cpu_time_seconds_total", &cpu(mode), taken)
            .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.02)
            .counter("host", "system_network_packets_total", &[("device", "eth0"), ("direction", "receive")], 90_000.0)
            .counter("host", "system_network_packets_total", &[("device", "lo"), ("direction", "receive")], 100.0)
            .counter("host", "system_cpu_softirq_time_seconds_total", &[("cpu_logical_number", "1")], taken * 0.9)
            .counter("pid:7", "process_run_queue_seconds_total", &[], 10.0)
    }

    fn found(made: &SyntheticRecording) -> CauseFinding {
        match made.judge(&DEFINITION) {
            Ok(Outcome::Found(found)) => found,
            _ => panic!("not found"),
        }
    }

    #[test]
    fn packets_that_take_a_cpu_are_named_with_their_device() {
        let packets = found(&made("softirq", 0.9));
        let text = |what: &str| packets.evidence.iter().any(|piece| piece.text.contains(what));
        assert!(text("45 % of CPU time is what the kernel needed for packets"), "{:?}", packets.evidence);
        assert!(text("CPU 1 spent 81 % on it; eth0 had most packets, 90,000/s"), "{:?}", packets.evidence);
        assert!(packets.fixes[0].text.starts_with("Find the flow"), "{:?}", packets.fixes);
        assert!(found(&made("steal", 0.9)).fixes[0].text.contains("CPU credits"));
        assert!(found(&made("interrupt", 0.9)).fixes[0].text.contains("which device"));
        // As much as any server has.
        assert!(found(&made("softirq", 0.05)).fixes[0].text.starts_with("Profile"));
    }

    #[test]
    fn time_without_work_has_both_its_names() {
        let cpu = |mode| [("cpu_mode", mode)];
        let waiting = SyntheticRecording::new(12)
            .requests(50, 400)
            .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 0.2)
            .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 0.6)
            .counter("host", "system_cpu_time_seconds_total", &cpu("iowait"), 1.2)
            .counter("pid:7", "process_run_queue_seconds_total", &[], 0.01);
        let Ok(Outcome::Cleared(evidence)) = waiting.judge(&DEFINITION) else { panic!("not cleared") };
        let text = &evidence[0].text;
        assert!(
            text.contains("30 % of CPU time was idle, and for 60 % a CPU had nothing to run while a disk"),
            "{text}"
        );
    }
}
