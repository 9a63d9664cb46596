//! What holdup says about slices that are not valid, and how to avoid them.

use super::{BUSY, LAG_MS, Label, Limit, RUN_QUEUE, Reason, THROTTLED, Validity};
use crate::evidence::Fix;
use crate::yardstick::MATTERS;
use holdup_recording::words::{ms, percent, thousands};

/// Seconds with no more digits than needed: `3`, `2.5`.
pub fn seconds(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if (tenths - tenths.round()).abs() < 0.05 { format!("{tenths:.0}") } else { format!("{tenths:.1}") }
}

impl Validity {
    /// A summary in one phrase, e.g. `17 of 20 s valid, 3 s generator-limited`; none without a
    /// load.
    pub fn text(&self) -> Option<String> {
        let all = self.length();
        let of = |label| self.seconds(label);
        if self.slices.is_empty() {
            return None;
        }
        if self.slices.iter().all(|s| s.label == Label::Valid) {
            return Some(format!("all {} s valid", seconds(all)));
        }
        let mut parts = vec![format!("{} of {} s valid", seconds(of(Label::Valid)), seconds(all))];
        for (label, word) in [
            (Label::Capped, "capped"),
            (Label::GeneratorLimited, "generator-limited"),
            (Label::NotJudged, "not judged (without the generator's own samples)"),
        ] {
            if self.slices.iter().any(|s| s.label == label) {
                parts.push(format!("{} s {word}", seconds(of(label))));
            }
        }
        let limited = self.slices.iter().any(|s| s.label == Label::GeneratorLimited);
        if limited && self.spoiled().next().is_none() {
            parts.push(format!("by under {} of response time then: the results stand", percent(MATTERS)));
        }
        Some(parts.join(", "))
    }

    /// A sentence about a limit that bound for `in_seconds`, with its figure.
    pub fn sentence(&self, in_seconds: f64, reason: &Reason) -> String {
        let within = format!("in {} s", seconds(in_seconds));
        let of_loop = if self.loops > 1 && !reason.in_loop.is_empty() {
            format!("loop {} of the generator", reason.in_loop)
        } else {
            "the generator's loop".to_owned()
        };
        let share = percent(reason.value);
        match reason.limit {
            Limit::Busy => {
                format!("{of_loop} did not sleep for {share} of the time ({} is full) {within}", percent(BUSY))
            }
            Limit::SendLag => format!(
                "requests were sent up to {} after they could be, at the 99th percentile of a second ({} is a healthy generator's most), {within}",
                ms(reason.value),
                ms(self.lag_ms.max(LAG_MS))
            ),
            Limit::RunQueue => {
                format!(
                    "{of_loop} waited for a CPU for up to {share} of a second ({} is allowed) {within}",
                    percent(RUN_QUEUE)
                )
            }
            Limit::Throttled => format!(
                "the generator's CPU cgroup was out of quota for up to {share} of a second ({} is allowed) {within}",
                percent(THROTTLED)
            ),
            Limit::LocalPorts => format!("{share} of the requests of a second found no local port left, {within}"),
            Limit::InFlight => {
                let all = self.length();
                let wanted = self.connections_wanted.filter(|n| *n > f64::from(self.connections));
                let raise = wanted.map_or_else(
                    || "raise --connections".to_owned(),
                    |n| {
                        let about = two_digits(n);
                        format!(
                            "raise --connections to about {} (Little's law: offered rate x p99 of response time)",
                            thousands(about)
                        )
                    },
                );
                format!(
                    "the in-flight limit of {} bound in {} of {} s, so the achieved rate there does not show the service's limit; to find that, {raise}",
                    self.connections,
                    seconds(in_seconds),
                    seconds(all)
                )
            }
        }
    }

    /// Every limit that bound, in words, with its explanation.
    pub fn sentences(&self) -> Vec<(Limit, f64, String)> {
        let limits = self.limits().into_iter();
        let mut all: Vec<(Limit, f64, String)> =
            limits.map(|(within, reason)| (reason.limit, within, self.sentence(within, &reason))).collect();
        if let (Some(stolen), Some((.., text))) =
            (self.stolen, all.iter_mut().find(|(limit, ..)| limit.is_generators()))
        {
            text.push_str(&format!(
                "; a hypervisor took up to {} of this machine's CPU time meanwhile",
                percent(stolen)
            ));
        }
        all
    }

    /// How to help a generator that can't keep up.
    pub fn fixes(&self) -> Vec<Fix> {
        let limits: Vec<Limit> = self.limits().into_iter().map(|(_, reason)| reason.limit).collect();
        let has = |limit| limits.contains(&limit);
        let fix = |text: String, command: Option<&str>| Fix {
            text,
            command: command.map(str::to_owned),
            keep: None,
            risk: None,
        };
        let mut fixes = Vec::new();
        if let Some((used, kept)) = self.quota.filter(|_| has(Limit::Throttled)) {
            fixes.push(fix(
                format!(
                    "Raise the quota of the generator's CPU cgroup (cpu.max): it used {used:.2} CPUs and was kept from {kept:.2} more; give it {:.1} at least.",
                    (used + kept).max(used * 1.1)
                ),
                None,
            ));
        }
        // A process out of quota waits for a CPU as well.
        if has(Limit::RunQueue) && !has(Limit::Throttled) || self.stolen.is_some() {
            fixes.push(fix(
                "Run fewer processes beside the generator, or reserve CPUs for it.".to_owned(),
                Some("holdup run --cpus 0,1 …"),
            ));
        }
        if has(Limit::LocalPorts) {
            fixes.push(fix(
                "Give the generator's machine more local ports, or keep connections open.".to_owned(),
                Some("sysctl net.ipv4.ip_local_port_range='1024 65535'"),
            ));
        }
        if has(Limit::Busy) {
            let more = (self.loops.max(1) * 2).to_string();
            fixes.push(fix(
                "Give the generator another core.".to_owned(),
                Some(&format!("holdup run --loops {more} …")),
            ));
            if self.is_precise {
                fixes.push(fix(
                    "Let it wake less often: less CPU per request, sent up to 250 us later.".to_owned(),
                    Some("holdup run --pace economy …"),
                ));
            }
        }
        if fixes.is_empty() && has(Limit::SendLag) {
            fixes.push(fix(
                "The generator's counters do not explain it: it was woken late. Give it dedicated CPUs, and watch the host to see whether a hypervisor took them."
                    .to_owned(),
                Some("holdup run --watch host …"),
            ));
        } else if !fixes.is_empty() {
            fixes.push(fix(
                "Split the load over two machines: each takes its exact part of the schedule.".to_owned(),
                Some("holdup run --shard 1/2 …"),
            ));
        }
        fixes
    }
}

/// `value` rounded up to two digits: more would pretend to be exact.
fn two_digits(value: f64) -> f64 {
    let scale = 10_f64.powf((value.max(1.0).log10() - 1.0).floor());
    (value / scale).ceil() * scale
}
