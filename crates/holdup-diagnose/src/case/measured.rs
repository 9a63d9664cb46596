//! Which account of response time a case goes by, and the symptom in it.

use crate::origin::OriginWords;
use holdup_recording::Recording;
use holdup_recording::objective::State;
use holdup_recording::rows::Request;
use holdup_signals::client::degradation::{self, Baseline};
use std::sync::OnceLock;

use holdup_signals::app::accounts::Sources;
use holdup_signals::app::services;
use holdup_signals::client::latency::{self, Origin};
use holdup_signals::client::objectives::{Objective, Run, watched};
use holdup_signals::client::operations::Operation;
use holdup_signals::view::Index;
use holdup_signals::{ClientView, Degradation, Distribution, Validity, Window};

use super::SPOILED;
use crate::search;

/// From this factor on, requests were slower in the time that the user named: below it the difference
/// is chance.
const SLOWER: f64 = 1.1;

/// One account of how requests fared.
pub(super) struct Measured {
    /// Its seconds.
    pub client: ClientView,
    /// Its source.
    pub origin: Origin,
    /// Outcomes of the objectives by it.
    pub objectives: Vec<Objective>,
}

/// What accounts are judged with.
pub(super) struct Basis<'c, 'a> {
    pub recording: &'a Recording,
    pub requests: &'c [&'a Request],
    pub operations: &'c [Operation],
    /// The part to judge, if not all.
    pub window: Option<Window>,
    /// When the user said that it was slow, and the time to compare it with.
    pub reported: Option<(Window, Option<Window>)>,
    /// The baseline recording's time, and what measured it.
    pub healthy: Option<(&'c Baseline, Origin)>,
    /// The objectives' outcomes over all of a recording of which this is a part.
    pub of_whole: Option<&'c [Objective]>,
}

/// The episode with the time before it in which no request ended: those that ended late in it were
/// in flight then, and came at their usual rate.
fn with_stall(slow: Window, client: &ClientView) -> Window {
    let before = client.seconds.iter().map(|second| second.window.to).filter(|to| *to <= slow.from).max();
    Window { from: before.unwrap_or(slow.from), ..slow }
}

/// `others`, of which the first is the best, behind the accounts by traces if these are better.
pub(super) fn with_traces<'a>(
    recording: &'a Recording,
    index: &Index,
    mut others: Vec<(ClientView, Origin)>,
    whole: Window,
    sources: &OnceLock<Sources<'a>>,
) -> Vec<(ClientView, Origin)> {
    let rows = &recording.tables.spans.rows;
    let Some((_, best)) = others.first() else { return others };
    let is_of_traces = |source: &str| rows.first().is_some_and(|span| span.source == source);
    if rows.is_empty() || !latency::traces_say_more(*best, index, is_of_traces) {
        return others;
    }
    let requests = services::requests(sources.get_or_init(|| Sources::new(recording)));
    let front = services::view(&requests, whole, |request| request.has_failed);
    let inner = services::view(&requests, whole, |request| request.calls.values().any(|(_, failed)| *failed > 0));
    if !front.seconds.is_empty() {
        others.retain(|(_, origin)| !origin.counts_requests());
        others.splice(0..0, [(front, Origin::Traces), (inner, Origin::InnerTraces)]);
    }
    others
}

impl Basis<'_, '_> {
    /// The account to go by, and the symptom in it: the best one, unless only another shows one. A
    /// baseline recording has to be measured in the same way.
    pub(super) fn choose(&self, mut measured: Vec<(ClientView, Origin)>, from: i64) -> (Measured, Option<Degradation>) {
        if let Some((_, same)) = self.healthy
            && measured.iter().any(|(_, origin)| origin.account() == same.account())
        {
            measured.retain(|(_, origin)| origin.account() == same.account());
        }
        let mut best = None;
        for (client, origin) in measured {
            let of = self.judge(client, origin, from);
            let found = self.find(&of, &of.client);
            let is_shown = found.is_some();
            if best.is_none() || is_shown {
                best = Some((of, found));
            }
            if is_shown {
                break;
            }
        }
        let nothing = || (self.judge(ClientView::default(), Origin::DatabaseSessions, from), None);
        let (mut of, found) = best.unwrap_or_else(nothing);
        // A quick volume says nothing about requests. Nor do sessions of which none waits for a lock or a
        // thread: what they execute, and what waits in front of the database, is not in that account.
        if matches!(of.origin, Origin::Volume | Origin::DatabaseSessions) && found.is_none() {
            of.origin = Origin::DatabaseSessions;
            of.client.seconds.clear();
        }
        (of, found)
    }

    fn judge(&self, mut client: ClientView, origin: Origin, from: i64) -> Measured {
        client.seconds.retain(|second| second.window.from >= from);
        let (recording, requests, operations, window) = (self.recording, self.requests, self.operations, self.window);
        let objectives = match &recording.manifest.load {
            _ if self.of_whole.is_some() => self.of_whole.unwrap_or_default().to_vec(),
            None => watched::judge(&recording.manifest, &client, origin),
            Some(_) => Run { recording, requests, operations, window, measured_from: from }.judge(),
        };
        Measured { client, origin, objectives }
    }

    /// The objectives that decide. Those that nothing watched can judge say nothing of whether it
    /// was slow.
    fn held<'m>(&self, of: &'m Measured) -> &'m [Objective] {
        let is_watched = self.recording.manifest.load.is_none();
        let is_open = is_watched && of.objectives.iter().all(|o| o.judgement.state == State::NotJudged);
        if is_open { &[] } else { &of.objectives }
    }

    fn find(&self, of: &Measured, client: &ClientView) -> Option<Degradation> {
        let baseline = self.healthy.map(|(baseline, _)| baseline);
        let find = || Degradation::find(client, self.operations, self.held(of), baseline);
        let degradation = self.reported(client).or_else(find).or_else(|| {
            let limited = search::limited(self.recording).filter(|_| self.window.is_none())?;
            Degradation::named(client, limited, "the load generator was the limit, so holdup cannot name a knee")
        })?;
        let slow = if of.origin == Origin::Client { degradation.slow } else { with_stall(degradation.slow, client) };
        Some(Degradation { text: of.origin.qualify(&degradation.text), slow, ..degradation })
    }

    /// The symptom in the time that the user named, if requests were slower in it.
    fn reported(&self, client: &ClientView) -> Option<Degradation> {
        let (slow, rest) = self.reported?;
        let usual = self.healthy.map(|(baseline, _)| baseline.window).or(rest)?;
        let named = Degradation::named(client, (slow, rest), "users reported it")?;
        let baseline_mean_ms = match self.healthy {
            Some((baseline, _)) => Distribution::merged(baseline.seconds.iter().map(|s| &s.response_ms)).mean()?,
            None => named.baseline_mean_ms,
        };
        let text = format!(
            "response time was {:.0} ms in the time that you named, {baseline_mean_ms:.0} ms otherwise",
            named.slow_mean_ms
        );
        let is_slower = baseline_mean_ms > 0.0 && named.slow_mean_ms >= SLOWER * baseline_mean_ms;
        is_slower.then_some(Degradation { text, baseline: Some(usual), baseline_mean_ms, ..named })
    }

    /// The symptom without the seconds that the generator spoiled, the share (0-1) of it or of
    /// `whole` that it spoiled, and what is left out.
    pub(super) fn leave_out_spoiled(
        &self,
        of: &Measured,
        found: Option<Degradation>,
        validity: &Validity,
        whole: Window,
    ) -> (Option<Degradation>, f64, Vec<Window>) {
        let ratio = validity.spoiled_ratio(found.as_ref().map_or(whole, |c| c.slow));
        if found.is_none() || ratio <= 0.0 || ratio >= SPOILED {
            return (found, ratio, Vec::new());
        }
        let limited: Vec<Window> = validity.spoiled().collect();
        let overlaps = |s: Window| limited.iter().any(|l| l.from < s.to && s.from < l.to);
        let mut rest = of.client.clone();
        rest.seconds.retain(|s| !overlaps(s.window));
        let baseline = self.healthy.map(|(baseline, _)| baseline);
        let is_degraded = |_: &Degradation| degradation::is_any_degraded(&rest, self.held(of), baseline);
        match self.find(of, &rest).filter(is_degraded) {
            Some(degradation) => (Some(degradation), ratio, limited),
            // The generator causes the whole symptom.
            None => (found, 1.0, Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_signals::time::requests::Second;

    #[test]
    fn the_stall_before_late_answers_belongs_to_their_episode() {
        let second = |from: i64, to: i64| Second {
            window: Window { from, to },
            offered: 1,
            errors: 0,
            response_ms: Distribution::from_counts([(1.0, 1)]),
            waiting_ms: None,
        };
        let client = ClientView { seconds: vec![second(0, 1), second(1, 2), second(7, 8), second(8, 9)] };
        assert_eq!(with_stall(Window { from: 7, to: 9 }, &client), Window { from: 2, to: 9 });
        assert_eq!(with_stall(Window { from: 8, to: 9 }, &client), Window { from: 8, to: 9 });
        assert_eq!(with_stall(Window { from: 0, to: 9 }, &client), Window { from: 0, to: 9 });
    }
}
