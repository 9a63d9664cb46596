//! Limits that a cloud's percentages show as reached, where no source measured response time: the
//! provider itself says that the limit binds. What that costs requests is not known.

use crate::cause::Cause;
use crate::change::Fix;
use crate::resources::full_disk::ShownBy;
use holdup_recording::clock;
use holdup_recording::words::{percent, round};
use holdup_signals::Window;
use holdup_signals::host::limit_shares::{LimitShare, Limited};

use super::snapshot::Judgement;
use crate::case::Case;
use crate::causes;
use crate::strength::CERTAIN;
use crate::verdict::{Answer, Finding, Role};

/// What remains (0-1) of the evidence without response times, as for causes named by counters.
const UNMEASURED: f64 = 0.8;

/// Judges the percentages of limits; none if none of them was reached for a while. The limit that
/// was reached first leads.
pub(super) fn judge(case: &Case<'_>) -> Option<Judgement> {
    if let Some(full) = full(case) {
        return Some(full);
    }
    let shares = case.view(case.whole()).limit_shares();
    let mut reached: Vec<(Window, LimitShare)> =
        shares.into_iter().filter_map(|share| Some((share.longest()?, share))).collect();
    reached.sort_by_key(|(window, _)| window.from);
    let (window, first) = reached.first()?;
    let headline = format!(
        "{}. No source measures response time, so its cost is not known{}.",
        says(*window, first),
        doubt(first.limited)
    );
    let window = *window;
    let mut findings: Vec<Finding> = Vec::new();
    for (window, share) in &reached {
        if findings.iter().all(|known| known.cause != cause(share.limited)) {
            findings.push(finding(*window, share, findings.is_empty()));
        }
    }
    Some(Judgement {
        verdict: Answer::Found,
        headline,
        findings,
        cleared: Vec::new(),
        split: None,
        report: None,
        window: Some(window),
    })
}

/// A cloud's volume without storage: nothing else matters before there is room.
fn full(case: &Case<'_>) -> Option<Judgement> {
    let view = case.view(case.whole());
    let full =
        crate::resources::full_disk::room(&view).ok()?.full.into_iter().find(|full| full.shown_by == ShownBy::Cloud)?;
    let of = Cause::DiskFull.definition();
    let from = full.since.unwrap_or(view.window.from);
    let headline = format!(
        "{}: {}, from {} UTC on. No source measures response time, so its cost is not known.",
        of.doc.title,
        full.evidence.text,
        time(from)
    );
    let finding = Finding {
        cause: of.cause,
        title: of.doc.title.to_owned(),
        role: Role::Root,
        follows_from: None,
        adds_to: None,
        hosts: Vec::new(),
        confidence: round(UNMEASURED * CERTAIN.chance(), 2),
        explains_ms: 0.0,
        explains_ratio: 0.0,
        fixes: causes::disk_full::fixes(&view, std::slice::from_ref(&full)),
        evidence: vec![full.evidence],
        prove: of.doc.prove.to_owned(),
    };
    Some(Judgement {
        verdict: Answer::Found,
        headline,
        findings: vec![finding],
        cleared: Vec::new(),
        split: None,
        report: None,
        window: Some(Window { from, to: view.window.to }),
    })
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

fn says(window: Window, share: &LimitShare) -> String {
    format!(
        "From {} to {} UTC {} used {} of {} by the provider's own percentage",
        time(window.from),
        time(window.to),
        share.instance,
        percent(share.mean(window)),
        share.limit
    )
}

fn finding(window: Window, share: &LimitShare, is_first: bool) -> Finding {
    let cause = cause(share.limited);
    let doc = &cause.definition().doc;
    let observed = percent(share.mean(window));
    let text = format!("{}{}", says(window, share), doubt(share.limited));
    let fix = is_first.then(|| Fix { text: doc.fix.to_owned(), command: None, keep: None, risk: None });
    Finding {
        cause,
        title: doc.title.to_owned(),
        role: if is_first { Role::Root } else { Role::Contributor },
        follows_from: None,
        adds_to: None,
        hosts: Vec::new(),
        confidence: round(UNMEASURED * CERTAIN.chance(), 2),
        explains_ms: 0.0,
        explains_ratio: 0.0,
        evidence: vec![share.evidence(window, observed, text)],
        fixes: fix.into_iter().collect(),
        prove: doc.prove.to_owned(),
    }
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
            assert!(found.headline.contains("No source measures response time"), "{}", found.headline);
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
