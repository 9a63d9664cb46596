//! Limits that a cloud's percentages show as reached: the provider itself says that the limit binds. What
//! that costs requests is not known.

use holdup_recording::clock;
use holdup_recording::words::percent;
use holdup_signals::Window;
use holdup_signals::host::limit_shares::{LimitShare, Limited};

use super::suspects::Suspect;
use crate::case::Case;
use crate::cause::Cause;
use crate::instant::facts::Facts;
use crate::strength::CERTAIN;

/// The causes whose limits were reached for a while in the judged stretch, each once.
pub(super) fn reached(case: &Case<'_>, facts: &Facts<'_>) -> Vec<Suspect> {
    let judged = facts.view.window;
    let longest = |share: LimitShare| Some((share.longest()?, share));
    let mut reached: Vec<(Window, LimitShare)> =
        case.view(case.whole()).limit_shares().into_iter().filter_map(longest).collect();
    reached.retain(|(window, _)| window.from < judged.to && judged.from < window.to);
    reached.sort_by_key(|(window, _)| window.from);
    let mut suspects: Vec<Suspect> = Vec::new();
    for (window, share) in &reached {
        if suspects.iter().all(|known| known.cause != cause(share.limited)) {
            suspects.push(suspect(*window, share));
        }
    }
    suspects
}

/// The time of day.
fn time(ns: i64) -> String {
    clock::rfc3339(ns).get(11..19).unwrap_or_default().to_owned()
}

fn cause(limited: Limited) -> Cause {
    match limited {
        Limited::Cpu => Cause::CpuSaturated,
        Limited::Bytes | Limited::LogBytes => Cause::ThroughputCeiling,
        Limited::Operations | Limited::OperationsOrBytes => Cause::IopsCeiling,
    }
}

/// What the percentage leaves open about its limit.
fn doubt(limited: Limited) -> &'static str {
    match limited {
        Limited::OperationsOrBytes => ", and the percentage does not say whether operations or bytes are limited",
        _ => "",
    }
}

fn suspect(window: Window, share: &LimitShare) -> Suspect {
    let observed = percent(share.mean(window));
    let text = format!(
        "from {} to {} UTC {} used {observed} of {} by the provider's own percentage{}",
        time(window.from),
        time(window.to),
        share.instance,
        share.limit,
        doubt(share.limited)
    );
    let evidence = share.evidence(window, observed.clone(), text);
    Suspect { since: Some(window.from), ..Suspect::new(cause(share.limited), CERTAIN.chance(), vec![evidence]) }
}

#[cfg(test)]
mod tests {
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};
    use crate::verdict::{Answer, Diagnosis};

    fn diagnosed(metric: &str, of: fn(i64) -> f64) -> Diagnosis {
        SyntheticRecording::new(60).counted("azure", metric, &[("db_instance", "db")], of).diagnose()
    }

    #[test]
    fn a_percentage_at_its_limit_names_it_and_what_it_leaves_open() {
        let busy = |s: i64| if (20..50).contains(&s) { 0.99 } else { 0.4 };
        for (metric, cause) in [
            ("aws_disk_io_consumed_ratio", Cause::IopsCeiling),
            ("aws_disk_throughput_consumed_ratio", Cause::ThroughputCeiling),
            ("aws_cpu_utilization_ratio", Cause::CpuSaturated),
        ] {
            let found = diagnosed(metric, busy);
            assert_eq!((found.verdict, found.culprit), (Answer::Found, Some(cause)), "{}", found.headline);
            assert!((0.6..0.8).contains(&found.findings[0].confidence), "{:?}", found.findings[0]);
            let open = found.snapshot.as_ref().map(|of| of.open.clone()).unwrap_or_default();
            assert!(open.contains("how much of response time it costs"), "{open}");
        }
        let found = diagnosed("aws_disk_io_consumed_ratio", busy);
        assert!(found.headline.contains("whether operations or bytes"), "{}", found.headline);
        // No storage goes before every other limit.
        let full = diagnosed("aws_storage_utilization_ratio", |s| if s < 30 { 0.97 } else { 1.0 });
        assert_eq!((full.verdict, full.culprit), (Answer::Found, Some(Cause::DiskFull)), "{}", full.headline);
        assert!(full.findings[0].fixes.iter().any(|fix| fix.text.contains("Add storage to db")));
        let below = diagnosed("aws_disk_io_consumed_ratio", |_| 0.9);
        assert_eq!((below.verdict, below.culprit), (Answer::Undecided, None));
    }
}
