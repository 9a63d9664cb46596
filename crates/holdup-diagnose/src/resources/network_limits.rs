//! Limits of the network that have a name and a counter of their own: the kernel's table of tracked
//! connections, the backlog of received packets, the one CPU that handles them, and what a cloud
//! allows an instance. Which of them packets exceeded, and when.
//!
//! A cloud's allowance for its own services (`link_local`: name servers, time) is recorded and not
//! judged: no source times what asks them.

use holdup_recording::metrics::host as metric;
use holdup_recording::words::{percent, thousands};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::cpu::{CpuMode, CpuTime, softirq_by_cpu};
use holdup_signals::{Missing, View, Window};

pub use holdup_signals::host::cpu::HOST;

/// From this share (0-1) of its time in soft interrupts a CPU has no room for more packets …
const FULL: f64 = 0.9;

/// … although the others together have this share (0-1) of theirs left.
const IDLE: f64 = 0.25;

/// Bytes of a full packet: those of an Ethernet frame without TCP's and IP's headers.
const PACKET_BYTES: f64 = 1_448.0;

/// The kind of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// The kernel's table of tracked connections.
    Conntrack,
    /// A CPU's backlog of received packets.
    Backlog,
    /// One CPU's time.
    ReceivingCpu,
    /// The instance's bytes per second.
    Bandwidth,
    /// The instance's packets per second.
    Packets,
    /// The instance's tracked connections.
    Connections,
}

impl LimitKind {
    /// Whether packets beyond it also wait, rather than only being dropped.
    pub fn is_delay(self) -> bool {
        matches!(self, Self::ReceivingCpu | Self::Bandwidth | Self::Packets)
    }
}

/// Allowances by their label, and what one is called.
const ALLOWANCES: [(&str, LimitKind, &str); 4] = [
    ("bandwidth_in", LimitKind::Bandwidth, "the instance's allowance of received bytes per second"),
    ("bandwidth_out", LimitKind::Bandwidth, "the instance's allowance of sent bytes per second"),
    ("packets", LimitKind::Packets, "the instance's allowance of packets per second"),
    ("connections", LimitKind::Connections, "the instance's allowance of tracked connections"),
];

/// A limit that was exceeded.
pub struct NetworkLimit {
    /// Its kind.
    pub kind: LimitKind,
    /// The device or the CPU; empty if it is the machine's.
    pub place: String,
    /// Packets beyond it; infinite where they are not counted.
    pub packets: f64,
    /// When.
    pub windows: Vec<Window>,
    /// How much.
    pub evidence: Evidence,
}

/// Every limit that was recorded.
pub struct NetworkLimits {
    /// Those exceeded.
    pub exceeded: Vec<NetworkLimit>,
    /// What shows that the others were not.
    pub within: Vec<Evidence>,
    /// Whether a network device counts what exceeds its allowances.
    pub has_allowances: bool,
}

impl NetworkLimits {
    /// In the slow window, beyond what was usual in the baseline window.
    ///
    /// # Errors
    /// If none was recorded.
    pub fn measure(slow: &View<'_>, baseline: Option<&View<'_>>) -> Result<Self, Missing> {
        let mut limits = Self { exceeded: Vec::new(), within: Vec::new(), has_allowances: false };
        let table = ("the kernel's table of tracked connections", LimitKind::Conntrack);
        limits.take(slow, baseline, metric::NETWORK_CONNTRACK_DROPPED.name, &[], table);
        let backlog = ("a CPU's backlog of received packets", LimitKind::Backlog);
        limits.take(slow, baseline, metric::NETWORK_SOFTNET_DROPPED.name, &[], backlog);
        for metric in [metric::NETWORK_ALLOWANCE_EXCEEDED.name, metric::NETWORK_ALLOWANCE_EXCEEDED_BYTES.name] {
            for device in slow.label_values(metric, "device") {
                for (allowance, kind, name) in ALLOWANCES {
                    let labels = [("device", device.as_str()), ("allowance", allowance)];
                    limits.has_allowances |= limits.take(slow, baseline, metric, &labels, (name, kind));
                }
            }
        }
        limits.receiving_cpu(slow, baseline);
        if limits.exceeded.is_empty() && limits.within.is_empty() {
            return Err(Missing::new("what packets exceeded: limits of the kernel and allowances of a cloud", HOST));
        }
        Ok(limits)
    }

    /// One counter; whether it was recorded.
    fn take(
        &mut self,
        slow: &View<'_>,
        baseline: Option<&View<'_>>,
        metric: &str,
        labels: &[(&str, &str)],
        (name, kind): (&str, LimitKind),
    ) -> bool {
        let Ok(counter) = slow.counter(metric, labels, HOST) else { return false };
        let usual = baseline.and_then(|baseline| baseline.counter(metric, labels, HOST).ok()).map_or(0.0, |c| c.rate());
        let beyond = counter.delta - usual * counter.seconds;
        let is_bytes = metric == metric::NETWORK_ALLOWANCE_EXCEEDED_BYTES.name;
        let packets = (if is_bytes { beyond / PACKET_BYTES } else { beyond }).max(0.0);
        let place = labels.first().map_or("", |(_, device)| device);
        let on = if place.is_empty() { String::new() } else { format!(" on {place}") };
        let text = format!("{} packets exceeded {name}{on}", thousands(packets.ceil()));
        let evidence = counter.evidence(thousands(packets.ceil()), "0", text);
        if packets <= 0.0 {
            self.within.push(evidence);
            return true;
        }
        let grew = slow.growths(|_| true, metric, labels).into_iter().filter(|growth| growth.delta > 0.0);
        let windows = grew.map(|growth| growth.window).collect();
        self.exceeded.push(NetworkLimit { kind, place: place.to_owned(), packets, windows, evidence });
        true
    }

    /// The CPU with most soft interrupts.
    fn receiving_cpu(&mut self, slow: &View<'_>, baseline: Option<&View<'_>>) {
        let cpus = softirq_by_cpu(slow);
        let most = cpus.iter().max_by(|(_, a), (_, b)| a.rate().total_cmp(&b.rate()));
        let Some((cpu, busy)) = most else { return };
        // A CPU whose threads wait for I/O has room for packets as well.
        let idle = CpuTime::measure(slow).map_or(0.0, |of| of.cpus(CpuMode::Idle) + of.cpus(CpuMode::Iowait));
        let text = format!(
            "CPU {cpu} spent {} of its time in soft interrupts, which are mostly packets; of {} CPUs {idle:.1} were idle",
            percent(busy.rate()),
            cpus.len()
        );
        let evidence = busy.evidence(percent(busy.rate()), "shared among all CPUs", text);
        let before = baseline.map(softirq_by_cpu).unwrap_or_default();
        let is_new = !before.iter().any(|(before, busy)| before == cpu && busy.rate() >= FULL);
        if busy.rate() < FULL || idle < IDLE * (cpus.len() as f64 - 1.0) || cpus.len() < 2 || !is_new {
            self.within.push(evidence);
            return;
        }
        let (kind, windows) = (LimitKind::ReceivingCpu, vec![slow.window]);
        self.exceeded.push(NetworkLimit { kind, place: cpu.clone(), packets: f64::INFINITY, windows, evidence });
    }
}
