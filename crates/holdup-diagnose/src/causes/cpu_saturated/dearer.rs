//! The app computes longer for each request than in the baseline window: no queue shows that, and
//! CPUs may be idle.

use crate::case::{Band, Case};
use crate::causes::{Fix, ms};
use crate::resources::cpu;
use crate::resources::runtime::RuntimePauses;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, View};

/// CPU time of a request counts as more from this factor: two windows differ by less.
const DEARER: f64 = 1.25;

/// What the app computes more.
pub(super) struct DearerRequests {
    /// Milliseconds of a request.
    pub explains_ms: f64,
    pub evidence: Evidence,
}

/// The growth of the app's CPU time per request; none without a baseline window or without growth.
/// What its runtime's collector computes is left to the rule on pauses, which knows who computes it.
pub(super) fn find(case: &Case<'_>, view: &View<'_>) -> Option<DearerRequests> {
    let baseline = case.baseline()?;
    let (now_ms, used) = cpu::app_ms_per_request(case, view)?;
    let (before_ms, earlier) = cpu::app_ms_per_request(case, &baseline)?;
    let band = |ms: f64, view: &View<'_>, used: &Counter| {
        case.completed_in(view.window).map(|completed| Band::of_mean(ms, completed).read(used.reads)).ok()
    };
    let change = band(now_ms, view, &used)?.since(band(before_ms, &baseline, &earlier)?);
    let explains_ms = now_ms - before_ms - RuntimePauses::for_case(case).map_or(0.0, |pauses| pauses.collected_ms);
    (change.rose(DEARER) && explains_ms > 0.0).then(|| {
        let text = format!("the app used {} of CPU per request, {} in the baseline window", ms(now_ms), ms(before_ms));
        let evidence = used.evidence(ms(now_ms), ms(before_ms), text);
        DearerRequests { explains_ms, evidence }
    })
}

pub(super) fn fix() -> Fix {
    Fix {
        text: "Profile the app (perf, py-spy, async-profiler) for what it computes more per request since then; a release or a setting changed there."
            .to_owned(),
        command: None,
        keep: None,
        risk: None,
    }
}
