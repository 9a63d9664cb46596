//! What an answer stands on: response time or, without it, counters or one instant; a search; and
//! whether a disturbance spoils it. From these and the suspects follow the verdict, its sentence
//! and what would tell rivals apart.

use holdup_signals::Window;
use holdup_signals::host::disturbance::Disturbance;

use super::sentences::{answer, is_load_carried, is_spoiled, of_search};
use super::suspects::Suspects;
use super::{CULPRIT_RATIO, failed, given, standing};
use crate::case::Case;
use crate::cause::Cause;
use crate::counters::CounterJudgement;
use crate::ledger::LedgerRow;
use crate::search::{self, SearchReport};
use crate::verdict::{Answer, Finding, NAMED, NotJudged, Role, SplitReport};
use crate::{between, links, rivals};

/// What an answer stands on.
pub(super) struct Grounds<'c, 'r> {
    case: &'c Case<'r>,
    /// Whether a source measured response time.
    pub is_measured: bool,
    /// What counters say alone.
    pub counted: Option<CounterJudgement>,
    /// What the evidence supports, if no source measured response time.
    pub given: Option<given::Judgement>,
    /// The search, if the load was one.
    pub search: Option<SearchReport>,
    pub disturbance: Disturbance,
    /// A cause that is present by itself, while no request was seen to be slow.
    pub uncounted: Option<Finding>,
}

impl<'c, 'r> Grounds<'c, 'r> {
    /// Of `case`.
    pub(super) fn find(case: &'c Case<'r>) -> Self {
        let is_measured = !case.client.seconds.is_empty();
        let counted = CounterJudgement::judge(case);
        let given = (!is_measured).then(|| given::judge(case, counted.as_ref()));
        let disturbance = Disturbance::find(&case.view(case.whole()));
        Self { case, is_measured, counted, given, search: search::report(case.recording), disturbance, uncounted: None }
    }

    /// Where only a part of the service was timed and its times name nothing, what else the evidence shows
    /// answers a user who says that it is slow.
    pub(super) fn or_given(mut self, findings: &[Finding]) -> Self {
        let is_named = || findings.iter().any(|found| found.role == Role::Root && found.confidence >= NAMED);
        if self.speaks_for_a_part() && self.case.is_reported() && !is_named() {
            let given = given::judge(self.case, self.counted.as_ref());
            if !given.findings.is_empty() {
                (self.is_measured, self.given) = (false, Some(given));
            }
        }
        self
    }

    /// Whether nothing was slow in a system that was only watched.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_measured && self.case.degradation.is_none() && self.case.recording.manifest.load.is_none()
    }

    /// Whether `finding` explains enough to carry the answer.
    pub(super) fn carry(&self, finding: &Finding) -> bool {
        let explains = finding.explains_ratio >= CULPRIT_RATIO || !self.is_measured;
        self.uncounted.is_some() || finding.role == Role::Root && explains
    }

    /// Whether only a part of the service was timed, without the requests in front of it.
    fn speaks_for_a_part(&self) -> bool {
        self.is_measured && !self.case.origin.counts_requests()
    }

    /// Whether the measurements can be judged. A search overloads on purpose: if it has an answer,
    /// that is not a symptom.
    pub(super) fn are_fit(&self) -> bool {
        let slow = self.case.degradation.as_ref();
        !is_spoiled(self.case) && slow.is_none_or(|slow| !self.disturbance.spoils(slow.slow))
    }

    /// Whether the generator was the limit and its delay is neither the answer nor follows from it: full
    /// CPUs of its machine make it late, too.
    fn is_spoiled(&self, suspects: &Suspects) -> bool {
        let is_generator = |of: Cause| of == Cause::LoadGeneratorLimit;
        let follows = |of: Cause| suspects.findings.iter().any(|f| is_generator(f.cause) && f.follows_from == Some(of));
        let is_told = suspects.culprit().is_some_and(|found| is_generator(found.cause) || follows(found.cause));
        is_spoiled(self.case) && !is_told
    }

    /// The verdict and its sentence.
    pub(super) fn say(&self, suspects: &Suspects, not_judged: &[NotJudged]) -> (Answer, String) {
        let (case, culprit) = (self.case, suspects.culprit());
        let (mut verdict, mut headline) = match (&self.given, &self.search, &self.uncounted) {
            (Some(given), _, _) => (given.verdict, given.headline.clone()),
            (_, Some(report), _) => of_search(report, case, culprit, &self.disturbance),
            (_, None, Some(found)) => (Answer::Found, standing::uncounted(found)),
            _ => answer(case, culprit, (suspects.tied.as_deref(), self.is_spoiled(suspects)), &self.disturbance),
        };
        if verdict == Answer::Healthy
            && case.slow_requests().is_err()
            && let Some(alarms) = standing::alarms(not_judged)
        {
            verdict = Answer::Undecided;
            headline =
                format!("No slow request was seen, but {alarms}. No source counts the requests that failed of it.");
        }
        let is_nameless = self.is_measured && self.search.is_none() && suspects.root().is_none();
        if verdict == Answer::Undecided && is_nameless {
            headline += &links::symptom_of_nothing(&suspects.findings).unwrap_or_default();
        }
        headline += &failed::text(case).unwrap_or_default();
        (verdict, headline)
    }

    /// What would tell the rivals apart.
    pub(super) fn split(
        &self,
        verdict: Answer,
        suspects: &Suspects,
        not_judged: &[NotJudged],
        ledger: &[LedgerRow],
    ) -> Option<SplitReport> {
        match (&self.given, suspects.root()) {
            _ if verdict == Answer::Healthy => self.speaks_for_a_part().then(rivals::of_a_part),
            (Some(given), _) => given.split.clone(),
            _ if !self.are_fit() => None,
            (_, Some(root)) => match &suspects.rival {
                Some(rival) => Some(rivals::of_two(root, rival, not_judged)),
                None => rivals::of_root(root, not_judged),
            },
            (_, None) => rivals::of_none(between::between(self.case).as_ref(), ledger, &suspects.findings, not_judged),
        }
    }

    /// The cause of a slowdown that leaves the service healthy.
    pub(super) fn minor<'s>(&self, verdict: Answer, suspects: &'s Suspects) -> Option<&'s Finding> {
        let is_healthy = verdict == Answer::Healthy && self.search.is_none() && !is_load_carried(self.case);
        suspects.culprit().filter(|found| is_healthy && found.confidence >= NAMED)
    }

    /// The time that an answer without response time is about.
    pub(super) fn alone(&self) -> Option<Window> {
        self.given.as_ref()?.window
    }
}
