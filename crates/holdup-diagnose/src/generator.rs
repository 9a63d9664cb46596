//! What holdup says about times in which the load generator or its machine was not fit to measure,
//! and how to avoid them. `holdup-signals` judges the times.

use crate::change::Fix;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::client::validity::{BUSY, LAG_MS, Label, Limit, RUN_QUEUE, Reason, THROTTLED};
use holdup_signals::host::disturbance::Disturbance;
use holdup_signals::yardstick::MATTERS;
use holdup_signals::{Validity, Window};

/// Seconds with no more digits than needed: `3`, `2.5`.
pub fn seconds(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if (tenths - tenths.round()).abs() < 0.05 { format!("{tenths:.0}") } else { format!("{tenths:.1}") }
}

/// The fitness of a load's generator, in words.
pub trait GeneratorWords {
    /// A summary in one phrase, e.g. `17 of 20 s valid, 3 s generator-limited`; none without a
    /// load.
    fn text(&self) -> Option<String>;

    /// Every limit that bound, in words, with its explanation.
    fn sentences(&self) -> Vec<(Limit, f64, String)>;

    /// How to help a generator that can't keep up.
    fn fixes(&self) -> Vec<Fix>;
}

impl GeneratorWords for Validity {
    fn text(&self) -> Option<String> {
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

    fn sentences(&self) -> Vec<(Limit, f64, String)> {
        let limits = self.limits().into_iter();
        let mut all: Vec<(Limit, f64, String)> =
            limits.map(|(within, reason)| (reason.limit, within, sentence(self, within, &reason))).collect();
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

    fn fixes(&self) -> Vec<Fix> {
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

/// A sentence about a limit that bound for `in_seconds`, with its figure.
fn sentence(validity: &Validity, in_seconds: f64, reason: &Reason) -> String {
    let within = format!("in {} s", seconds(in_seconds));
    let of_loop = if validity.loops > 1 && !reason.in_loop.is_empty() {
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
            ms(validity.lag_ms.max(LAG_MS))
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
            let all = validity.length();
            let wanted = validity.connections_wanted.filter(|n| *n > f64::from(validity.connections));
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
                validity.connections,
                seconds(in_seconds),
                seconds(all)
            )
        }
    }
}

/// Whether a machine had its CPUs, in words.
pub trait DisturbanceWords {
    /// For how long it had not; none if they were never away for most of the time.
    fn text(&self) -> Option<String>;

    /// The same of a `window` that it spoils; also if only the sum did.
    fn spoiled_text(&self, window: Window) -> Option<String>;
}

impl DisturbanceWords for Disturbance {
    fn text(&self) -> Option<String> {
        let (seconds, worst) = self.away_s()?;
        Some(format!(
            "for {seconds:.1} s the hypervisor gave this machine's CPUs to others (up to {:.0} % of their time stolen)",
            worst * 100.0
        ))
    }

    fn spoiled_text(&self, window: Window) -> Option<String> {
        let stolen = || {
            let share = 100.0 * self.stolen_ratio(window);
            format!("the hypervisor gave {share:.0} % of this machine's CPU time to others")
        };
        self.spoils(window).then(|| self.text().unwrap_or_else(stolen))
    }
}

/// `value` rounded up to two digits: more would pretend to be exact.
fn two_digits(value: f64) -> f64 {
    let scale = 10_f64.powf((value.max(1.0).log10() - 1.0).floor());
    (value / scale).ceil() * scale
}

#[cfg(test)]
mod tests {
    use holdup_signals::client::validity::Slice;

    use super::*;

    /// Ten seconds, the fourth with `limit` at `value` in loop 1.
    fn limited(limit: Limit, value: f64, loops: usize) -> Validity {
        const S: i64 = 1_000_000_000;
        let (label, spoils) = match limit.is_generators() {
            true => (Label::GeneratorLimited, true),
            false => (Label::Capped, false),
        };
        let slice = |second: i64| Slice {
            window: Window { from: second * S, to: (second + 1) * S },
            label: if second == 3 { label } else { Label::Valid },
            reasons: if second == 3 { vec![Reason { limit, value, in_loop: "1".into() }] } else { Vec::new() },
            spoils: second == 3 && spoils,
        };
        Validity { slices: (0..10).map(slice).collect(), connections: 50, loops, lag_ms: LAG_MS, ..Validity::default() }
    }

    #[test]
    fn each_limit_has_a_sentence_with_its_figure_and_the_generators_have_a_fix() {
        for (limit, value, figure) in [
            (Limit::SendLag, 7.0, "7.00 ms"),
            (Limit::RunQueue, 0.4, "40 % of a second"),
            (Limit::Throttled, 0.35, "35 % of a second"),
            (Limit::Busy, 0.99, "99 % of the time"),
            (Limit::InFlight, 0.3, "limit of 50 bound in 1 of 10 s"),
        ] {
            let validity = Validity { quota: Some((0.0, 0.6)), ..limited(limit, value, 1) };
            let [(.., text)] = &validity.sentences()[..] else { panic!("{limit:?}") };
            assert!(text.contains(figure), "{text}");
            assert_eq!(validity.fixes().is_empty(), !limit.is_generators(), "{figure}");
        }
        let named = limited(Limit::RunQueue, 0.5, 2).sentences();
        assert!(named[0].2.starts_with("loop 1 "), "{named:?}");
    }

    #[test]
    fn a_quota_and_connections_are_told_with_what_would_do() {
        let fix = &Validity { quota: Some((0.0, 0.6)), ..limited(Limit::Throttled, 0.6, 1) }.fixes()[0].text;
        assert!(fix.contains("kept from 0.60 more") && fix.contains("0.6 at least"), "{fix}");
        let wanted = Validity { connections_wanted: Some(200.0), ..limited(Limit::InFlight, 0.4, 1) };
        assert!(wanted.sentences()[0].2.contains("--connections to about 200"), "{:?}", wanted.sentences());
    }

    #[test]
    fn a_summary_says_how_many_seconds_were_valid_and_whether_the_results_stand() {
        let mut validity = limited(Limit::SendLag, 7.0, 1);
        validity.slices[3].spoils = false;
        assert!(validity.text().is_some_and(|text| text.contains("the results stand")), "{:?}", validity.text());
        validity.slices[3].label = Label::NotJudged;
        assert!(validity.text().is_some_and(|text| text.contains("1 s not judged")), "{:?}", validity.text());
        validity.slices.remove(3);
        assert!(validity.fixes().is_empty());
        assert_eq!(validity.text().as_deref(), Some("all 9 s valid"));
    }
}
