//! The end of a burst: balances of credits, and a rate that steps down from one level to a lower one while
//! as much is demanded.

use holdup_recording::metrics;
use holdup_signals::Gauge;
use holdup_signals::host::flows::FlowSource;

use super::level::at_ceiling;
use crate::case::Case;
use crate::resources::changes::Changes;

/// Balances of credits, as ratios.
const BALANCES: [&str; 3] = [
    metrics::aws::EBS_BYTE_BALANCE_RATIO.name,
    metrics::aws::EBS_IO_BALANCE_RATIO.name,
    metrics::aws::BURST_BALANCE_RATIO.name,
];

/// A balance (0-1) below this is used up: it is an average over a minute or more.
const USED_UP: f64 = 0.05;

/// A balance that never falls below this is not used up.
const LEFT: f64 = 0.5;

/// Up to this factor as many requests are due as in the baseline window.
const SAME: f64 = 1.2;

/// A step within so many intervals of when requests became slow is why: an episode begins with a whole second,
/// and an interval may have part of both.
const NEAR: f64 = 3.0;

/// The baseline window moves more than this times the level: as much was demanded before.
const MORE: f64 = 1.1;

/// Settings by the beginning of their names that limit a disk or a volume.
const LIMITS: [&str; 3] = ["cgroup.disk_limit", "volume.", "instance.class"];

/// Balances of credits in the episode.
pub struct Balances(pub Vec<(&'static str, Gauge)>);

impl Balances {
    /// Those that were recorded.
    pub fn read(case: &Case<'_>) -> Self {
        let view = case.slow();
        Self(BALANCES.into_iter().filter_map(|name| Some((name, view.gauge(name, &[], "").ok()?))).collect())
    }

    /// Whether one is used up.
    pub fn is_used_up(&self) -> bool {
        self.0.iter().any(|(_, balance)| balance.min <= USED_UP)
    }

    /// Whether credits are left of all of them.
    pub fn is_left(&self) -> bool {
        !self.is_used_up() && !self.0.is_empty() && self.0.iter().all(|(_, balance)| balance.min >= LEFT)
    }
}

/// Whether the end of a burst is what changed: the rate steps down as requests become slow, from a level of
/// its own or as the credits end, no more requests are due than before, and no limit was lowered.
pub fn ended(case: &Case<'_>) -> bool {
    let Some(baseline) = case.baseline().filter(|baseline| !case.is_of_other(baseline.window)) else { return false };
    let slow = case.episode();
    let balances = Balances::read(case);
    let steps_down = [FlowSource::Cloud, FlowSource::Host].into_iter().any(|counted| {
        let (_, all) = at_ceiling(case, counted).unwrap_or_default();
        all.first().is_some_and(|at| {
            let (unit, level) = (at.binding.unit, at.binding.ceiling.level);
            let had_more = at.flow.mean(unit, baseline.window).is_some_and(|before| before > MORE * level);
            let step_ns = at.flow.bytes.first().map_or(0, |i| i.window.to - i.window.from);
            let level = at.burst().and_then(|_| at.falls().last().map(|fall| fall.at));
            let free = at.freer().filter(|_| balances.is_used_up()).map(|freer| freer.window.to);
            let is_near = |at: i64| (at - slow.from).abs() as f64 <= NEAR * step_ns as f64;
            had_more && level.or(free).is_some_and(is_near)
        })
    });
    let demanded =
        |window| case.due_per_second(window).or_else(|_| case.completed_in(window).map(|n| n / window.seconds()));
    let is_same = demanded(slow).ok().zip(demanded(baseline.window).ok()).is_none_or(|(now, was)| now <= SAME * was);
    let is_lowered =
        Changes::for_case(case).0.iter().any(|of| LIMITS.iter().any(|name| of.change.key.name.starts_with(name)));
    steps_down && is_same && !balances.is_left() && !is_lowered
}

#[cfg(test)]
mod tests {
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// A volume that does 3,000 operations a second until 60 s of 180, and 600 then, with a queue at both; `from` 60 s on requests
    /// are slow. The balance of credits ends then.
    fn made(from: i64) -> SyntheticRecording {
        let labels = [("db_instance", "db")];
        let wave = |s: i64| 1.0 + 0.01 * (s as f64 * 1.7).sin();
        let operations = move |s: i64| wave(s) * if s < 60 { 3_000.0 } else { 600.0 };
        let mut made = SyntheticRecording::new(180)
            .requests(100, 400)
            .each_request(move |n, r| {
                if n < 100 * from {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .counted("cw", "aws_disk_queue_depth", &labels, |s| {
                if s < 60 { 2.0 + (s as f64 * 0.9).sin() } else { 40.0 + 10.0 * (s as f64 * 0.9).sin() }
            })
            .counted("cw", "aws_burst_balance_ratio", &labels, |s| if s < 60 { 0.5 - 0.008 * s as f64 } else { 0.0 });
        for (direction, share) in [("read", 0.8), ("write", 0.2)] {
            made = made
                .counted("cw", &format!("aws_{direction}_iops"), &labels, move |s| share * operations(s))
                .counted("cw", &format!("aws_{direction}_throughput_bytes_per_second"), &labels, move |s| {
                    share * 8_192.0 * operations(s)
                });
        }
        made
    }

    #[test]
    fn a_rate_that_steps_down_under_an_unchanged_demand_is_the_end_of_a_burst() {
        let found = made(60).diagnose();
        assert_eq!(found.culprit, Some(Cause::BurstExhausted), "{}", found.headline);
        let ceiling = found.findings.iter().find(|f| f.cause == Cause::IopsCeiling).unwrap();
        assert_eq!(ceiling.follows_from, Some(Cause::BurstExhausted));
    }

    #[test]
    fn a_step_at_another_time_and_a_lowered_limit_do_not_end_a_burst() {
        assert!(!made(30).with(super::ended), "requests were slow before");
        let labels = [
            ("what", "setting"),
            ("object", "volume.iops"),
            ("from", "3000"),
            ("to", "600"),
            ("since_ns", "58000000000"),
        ];
        let lowered = made(60).events(&[(60, "aws", holdup_recording::events::CHANGED, &labels)]);
        assert!(made(60).with(super::ended) && !lowered.with(super::ended));
    }
}
