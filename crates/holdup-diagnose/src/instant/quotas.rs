//! How often a quota of CPU ran out, by a cgroup's own counters: of a cgroup that was read, or of containers
//! as their exporter names them.

use holdup_recording::Labels;
use holdup_recording::metrics;
use holdup_recording::words::percent;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::within;

use crate::strength::{FAIR, STRONG, Strength};

/// Names of both counters: all periods, and those in which the quota ran out.
const NAMES: [(&str, &str); 2] = [
    (metrics::cgroup::CPU_PERIODS.name, metrics::cgroup::CPU_THROTTLED_PERIODS.name),
    (metrics::kubernetes::CPU_CFS_PERIODS.name, metrics::kubernetes::CPU_CFS_THROTTLED_PERIODS.name),
];

/// From this share (0-1) of the periods on, each request is likely to meet one.
const OFTEN: f64 = 0.25;

/// So few periods show no share.
const LEAST: f64 = 100.0;

/// The cgroup whose quota ran out most often.
pub(crate) fn throttled(view: &View<'_>) -> Option<(Strength, Evidence)> {
    let all = NAMES.iter().flat_map(|(periods, throttled)| {
        let counts = view.index.series(throttled, &[]);
        counts.filter_map(move |((source, labels), points)| {
            let of = |points: &[(i64, f64)]| {
                let points = within(points, view.window);
                let (first, last) = (points.first()?.1, points.last()?.1);
                Some(if points.len() > 1 { ((last - first).max(0.0), true) } else { (last, false) })
            };
            let mut whole = view.index.series(periods, &[]);
            let whole =
                whole.find(|((of, own), _)| of == source && own == labels).and_then(|(_, points)| of(points))?;
            let (count, is_growth) = of(points)?;
            (whole.0 >= LEAST).then(|| (count / whole.0, is_growth, *throttled, labels))
        })
    });
    let (ratio, is_growth, metric, labels) = all.filter(|of| of.0.is_finite()).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let of =
        labels.get("pod").or_else(|| labels.get("container")).map_or_else(String::new, |name| format!(" of {name}"));
    let when = if is_growth { "" } else { " since its start" };
    let share = percent(ratio.min(1.0));
    let text = format!("the CPU quota{of} ran out in {share} of its periods{when}");
    let labels = labels.iter().fold(Labels::new([("metric", metric)]), |all, (k, v)| all.with(k, v));
    let evidence = Evidence::new("samples", "value", labels, view.window, share, "hardly any", text);
    (ratio >= OFTEN).then_some((if is_growth { STRONG } else { FAIR }, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn a_quota_that_runs_out_often_is_a_sign_and_one_that_suffices_is_not() {
        let chance = |throttled: f64| {
            let made = SyntheticRecording::new(1).gauge("cgroup:", "cgroup_cpu_periods_total", &[], 9_000.0).gauge(
                "cgroup:",
                "cgroup_cpu_throttled_periods_total",
                &[],
                throttled,
            );
            made.seen(|view| super::throttled(view).map(|(strength, _)| strength.chance()))
        };
        assert_eq!(chance(6_000.0), Some(FAIR.chance()));
        assert_eq!(chance(90.0), None);
    }
}
