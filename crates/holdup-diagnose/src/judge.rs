//! From the causes' outcomes to one answer: ranked by explained milliseconds and linked, with a culprit
//! only if the evidence suffices.

mod conspicuous;
pub mod excerpt;
mod failed;
mod fleet;
mod given;
mod grounds;
mod level;
mod sentences;
mod standing;
mod suspects;

use crate::generator::DisturbanceWords;
use std::collections::BTreeMap;

use holdup_recording::{Recording, clock};

pub use self::fleet::diagnose_fleet;
use self::grounds::Grounds;
use self::sentences::{is_good_enough, left_out};
use self::suspects::Suspects;
use crate::case::{Case, Incomparable};
use crate::causes::{self, Cause, CauseFinding, Outcome, Trait};
use crate::ledger::{self, LedgerRow, ledger};
use crate::link::{self, Circumstances, Linked};
use crate::load::{self, LoadReport};
use crate::resources::share_of_all;
use crate::strength::UNSEEN;
use crate::verdict::{
    Answer, Cleared, CoverageEntry, Diagnosis, Evidence, Finding, LevelReport, NAMED, NotJudged, ObjectiveReport, Role,
    Span, round,
};
use crate::{applicable, audit, changed, confidence, host_load, indicators, links, rivals, services, stages};
use holdup_signals::client::degradation::Severity;
use holdup_signals::{Missing, Window};

/// A root cause that explains a smaller share (0-1) of the excess is not called the culprit: more
/// than half of the time would have another cause.
const CULPRIT_RATIO: f64 = 0.5;

/// What to record to measure response time.
const NO_LATENCY: &str = "--watch prometheus:http://APP/metrics or --watch mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE, or load from holdup run";

/// Each rival that could not be judged takes this from the confidence: it may hide another cause.
const UNJUDGED_PENALTY: f64 = 0.01;

/// Lowest confidence of a finding.
const LEAST_CONFIDENCE: f64 = 0.05;

/// Judges `recording`, or the part of it in `window`.
pub fn diagnose(recording: &Recording, window: Option<Window>) -> Diagnosis {
    likeliest(recording, window).named()
}

/// The same with the likeliest cause as the culprit, however unsure it is.
pub(crate) fn likeliest(recording: &Recording, window: Option<Window>) -> Diagnosis {
    diagnose_beside(recording, window, Vec::new)
}

/// The same, with what was found on other hosts.
fn diagnose_beside(
    recording: &Recording,
    window: Option<Window>,
    elsewhere: impl Fn() -> Vec<causes::Outcomes>,
) -> Diagnosis {
    let excerpt = recording.excerpt.as_ref();
    let of_excerpt = excerpt.and_then(|of| excerpt::judged(recording, of, window, None, elsewhere()).ok()?);
    of_excerpt.unwrap_or_else(|| judged(Case::new(recording, window), elsewhere()))
}

/// The same, with `healthy`, a recording of a healthy time, as the baseline.
///
/// # Errors
/// Why the two can't be compared.
pub fn diagnose_against(
    recording: &Recording,
    window: Option<Window>,
    healthy: &Recording,
) -> Result<Diagnosis, Incomparable> {
    let excerpt = recording.excerpt.as_ref();
    let of_excerpt =
        excerpt.map(|of| excerpt::judged(recording, of, window, Some(healthy), Vec::new())).transpose()?.flatten();
    let whole = || Case::against(recording, window, healthy).map(|case| judged(case, Vec::new()));
    of_excerpt.map_or_else(whole, Ok).map(Diagnosis::named)
}

fn judged(case: Case<'_>, elsewhere: Vec<causes::Outcomes>) -> Diagnosis {
    let mut diagnosis = Outcomes::beside(&case, elsewhere).answer(&case);
    let level = diagnosis.level.take();
    if diagnosis.verdict == Answer::Undecided && level.is_none() {
        return diagnosis;
    }
    let is_quiet = case.degradation.is_none() && case.recording.manifest.load.is_none() && !is_good_enough(&case);
    let Some(mut open) = case.laid_open() else { return diagnosis };
    let mut outcomes = Outcomes::judge(&open);
    let findings = outcomes.rank(&open);
    let standing = standing::line(&open, &findings).filter(|_| is_quiet);
    let line = standing.or_else(|| level::line(&open, level.as_ref()?, &findings));
    if let Some((slow, text)) = open.degradation.as_mut().zip(line) {
        (slow.text, slow.severity) = (text, Severity::Major);
        return Diagnosis { level, ..Outcomes::judge(&open).answer(&open) };
    }
    if let Some(level) = level {
        level::complete(&open, &mut diagnosis, level, &findings, &outcomes);
    }
    if diagnosis.verdict == Answer::Undecided {
        return diagnosis;
    }
    diagnosis.next = next(&open, findings, &diagnosis.findings);
    diagnosis
}

/// What makes up most of the remaining time, by a second pass that has to explain all of it:
/// `findings` of the case `open`. Those of the first pass, outside causes and mere consequences are
/// not next.
fn next(open: &Case<'_>, findings: Vec<Finding>, known: &[Finding]) -> Option<Finding> {
    let of_service = findings.into_iter().filter(|f| f.role != Role::Symptom && !f.cause.is(Trait::Outside));
    let mut next = of_service
        .filter(|f| f.explains_ratio >= causes::MATTERS && !known.iter().any(|k| k.cause == f.cause))
        .max_by(|a, b| a.explains_ms.total_cmp(&b.explains_ms))?;
    next.role = Role::Next;
    place(&mut next.evidence, open);
    Some(next)
}

/// A window as seconds from the start of the recording.
fn span(window: Window, start: i64) -> Span {
    let at = |t: i64| round((t - start) as f64 / 1e9, 3);
    Span { from_s: at(window.from), to_s: at(window.to) }
}

/// Gives each piece of evidence its window in seconds, and its recording.
fn place(evidence: &mut [Evidence], case: &Case<'_>) {
    for piece in evidence {
        let at = piece.at.filter(|w| w.to < i64::MAX);
        piece.against = at.is_some_and(|w| case.is_of_other(w));
        piece.window = at.map(|w| span(w, case.at(w).recording.manifest.started_at));
    }
}

#[derive(Default)]
struct Outcomes {
    found: Vec<(Cause, CauseFinding)>,
    /// Share (0-1) of the failed requests by cause, for causes that make requests fail.
    fails: BTreeMap<Cause, f64>,
    cleared: Vec<Cleared>,
    not_judged: Vec<NotJudged>,
    /// Causes that are present by themselves; what they cost requests is `not_judged`.
    uncounted: Vec<(Cause, CauseFinding)>,
    /// Causes that would be roots if another did not explain more.
    claims: Vec<Cause>,
}

impl Outcomes {
    fn judge(case: &Case<'_>) -> Self {
        Self::beside(case, Vec::new())
    }

    /// The same, with what was found on other hosts.
    fn beside(case: &Case<'_>, elsewhere: Vec<causes::Outcomes>) -> Self {
        let mut judged = Self::default();
        // Without a measured delay, no cause can be cleared of it.
        let unmeasured = || Missing::new("response time, by any source", NO_LATENCY);
        if case.client.seconds.is_empty() {
            Cause::ALL.iter().for_each(|cause| judged.take(*cause, Err(unmeasured())));
        } else {
            fleet::merged(changed::told(case, causes::judge_all(case)), elsewhere)
                .into_iter()
                .for_each(|(cause, outcome)| judged.take(cause, outcome));
        }
        applicable::leave_out_absent(&mut judged.not_judged, case.recording);
        judged
    }

    fn take(&mut self, cause: Cause, outcome: Result<Outcome, Missing>) {
        let title = cause.title().to_owned();
        match outcome {
            Ok(Outcome::Found(found)) => self.found.push((cause, found)),
            Ok(Outcome::Fails(found, failed)) => {
                self.fails.insert(cause, failed);
                self.found.push((cause, found));
            }
            Ok(Outcome::Uncounted(found, missing)) => {
                self.uncounted.push((cause, found));
                self.not_judged.push(NotJudged { cause, title, missing: missing.what, enable: missing.enable });
            }
            Ok(Outcome::Cleared(evidence)) => self.cleared.push(Cleared { cause, title, evidence }),
            Err(missing) => {
                self.not_judged.push(NotJudged { cause, title, missing: missing.what, enable: missing.enable })
            }
        }
    }

    /// The findings, linked: root first, symptoms last.
    fn rank(&mut self, case: &Case<'_>) -> Vec<Finding> {
        let mut found = std::mem::take(&mut self.found);
        let unseen = applicable::unseen(&self.not_judged, case);
        let links = links_of(&mut found, &unseen, case);
        let mut found: Vec<_> = found.into_iter().zip(links).collect();
        // If requests fail, a cause explains as much of the excess as of the failures.
        let ratio = |cause: Cause, ms: f64| share_of_all(case, ms).max(self.fails.get(&cause).copied().unwrap_or(0.0));
        let certainty = certainty(case);
        let confidence = |cause: Cause, found: &CauseFinding| {
            // The chance that not all of the evidence misleads; then how much is left unexplained.
            let explained = ratio(cause, found.explains_ms);
            // A cause hides only in time that no request's own account assigns.
            let open = if confidence::is_accounted(found) { (1.0 - explained).max(0.0) } else { 1.0 };
            certainty * confidence::combine(found) * (0.5 + 0.5 * (explained / 0.8).min(1.0))
                - UNJUDGED_PENALTY * open * unseen.len() as f64
                - rivals::upstream_penalty(cause, &unseen)
        };
        found.sort_by(|((a_cause, a), _), ((b_cause, b), _)| {
            (a.role == Role::Symptom)
                .cmp(&(b.role == Role::Symptom))
                .then(ratio(*b_cause, b.explains_ms).total_cmp(&ratio(*a_cause, a.explains_ms)))
                .then(b.explains_ms.total_cmp(&a.explains_ms))
        });
        // A contributor may make up more of the time than any other cause, and is not the root. Of
        // several that may be, and that explain nearly as much as the largest, it is the surest.
        let roots = || found.iter().enumerate().filter(|(_, ((_, f), _))| f.role == Role::Root);
        let most = roots().map(|(_, ((cause, f), _))| ratio(*cause, f.explains_ms)).fold(0.0, f64::max);
        let near = roots().filter(|(_, ((cause, f), _))| ratio(*cause, f.explains_ms) >= rivals::WITHIN * most);
        // More load outside explains all that its consequences do. Of equals the first.
        let is_outside =
            roots().any(|(_, ((cause, f), _))| cause.is(Trait::Outside) && ratio(*cause, f.explains_ms) >= most);
        let surest = near.rev().filter(|(_, ((cause, _), _))| !is_outside || cause.is(Trait::Outside)).max_by(
            |(_, ((a_cause, a), _)), (_, ((b_cause, b), _))| {
                confidence(*a_cause, a).total_cmp(&confidence(*b_cause, b))
            },
        );
        if let Some((root, _)) = surest {
            found[..=root].rotate_right(1);
        }
        let mut findings: Vec<Finding> = Vec::new();
        for ((cause, found), link) in found {
            let explains_ratio = ratio(cause, found.explains_ms);
            let confidence = confidence(cause, &found);
            let role = match found.role {
                Role::Root if findings.iter().any(|f| f.role == Role::Root) => {
                    self.claims.push(cause);
                    Role::Contributor
                }
                role => role,
            };
            findings.push(Finding {
                follows_from: link.follows_from,
                adds_to: link.adds_to,
                ..finding(cause, found, role, confidence, explains_ratio)
            });
        }
        findings
    }

    /// Of the causes that are present by themselves, the surest that may be named.
    fn surest_uncounted(&mut self) -> Option<Finding> {
        let sure = |(_, found): &(Cause, CauseFinding)| confidence::combine(found);
        let (i, confidence) = self.uncounted.iter().map(sure).enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let (cause, found) = self.uncounted.swap_remove(i);
        Some(finding(cause, found, Role::Root, confidence, 0.0)).filter(|finding| finding.confidence >= NAMED)
    }

    /// The findings without response time.
    fn without_latency(&mut self, grounds: &Grounds<'_, '_>) -> Vec<Finding> {
        let findings = grounds.given.as_ref().map_or_else(Vec::new, |given| given.findings.clone());
        self.cleared.extend(grounds.given.iter().flat_map(|given| given.cleared.iter().cloned()));
        self.cleared.retain(|cleared| findings.iter().all(|found| found.cause != cleared.cause));
        let is_open =
            |cause: Cause| findings.iter().all(|f| f.cause != cause) && self.cleared.iter().all(|c| c.cause != cause);
        self.not_judged.retain(|n| is_open(n.cause));
        findings
    }

    /// The answer, and its headline: what changed comes first.
    fn say(
        &self,
        case: &Case<'_>,
        grounds: &Grounds<'_, '_>,
        suspects: &Suspects,
        level: Option<&LevelReport>,
        ledger: &[LedgerRow],
    ) -> (Answer, String) {
        let said = grounds.say(suspects, &self.not_judged);
        let (verdict, headline) = level::say(case, level, ledger, said, &self.not_judged);
        let culprit = suspects.culprit().filter(|_| verdict == Answer::Found);
        (verdict, culprit.map_or_else(String::new, |culprit| changed::lead(case, &culprit.evidence)) + &headline)
    }

    fn answer(mut self, case: &Case<'_>) -> Diagnosis {
        let mut findings = self.rank(case);
        self.not_judged = applicable::among(self.not_judged, case.recording);
        applicable::ask_for_watched(&mut self.not_judged, case.recording);
        let mut grounds = Grounds::find(case).or_given(&findings);
        if !grounds.is_measured {
            findings = self.without_latency(&grounds);
        } else if grounds.is_quiet()
            && let Some(found) = self.surest_uncounted()
        {
            self.not_judged.retain(|n| n.cause != found.cause);
            findings = vec![found.clone()];
            grounds.uncounted = Some(found);
        }
        let mut suspects = Suspects::weigh(findings, &self.claims, |finding| grounds.carry(finding));
        let ledger = ledger(case);
        let level = level::report(case, &ledger).filter(|_| grounds.uncounted.is_none());
        let (verdict, headline) = self.say(case, &grounds, &suspects, level.as_ref(), &ledger);
        let split = grounds.split(verdict, &suspects, &self.not_judged, &ledger);
        let split = split.map(|split| applicable::ask_for_lacking(split, case.recording));
        let symptom = case.degradation.as_ref().filter(|_| grounds.search.is_none() || verdict != Answer::Healthy);
        let cause = |of: &Finding| of.cause;
        let minor = grounds.minor(verdict, &suspects).map(cause);
        let culprit = suspects.culprit().filter(|_| verdict == Answer::Found).map(cause);
        if verdict == Answer::Undecided && !grounds.are_fit() {
            suspects.withdraw();
        }
        let mut findings = suspects.findings;
        findings.iter_mut().for_each(|f| place(&mut f.evidence, case));
        self.cleared.iter_mut().for_each(|c| place(&mut c.evidence, case));
        let notes = audit::notes(case, &findings);
        let found: Vec<Cause> = findings.iter().map(|f| f.cause).collect();
        let load = load::report(case, &found);
        let start = case.recording.manifest.started_at;
        Diagnosis {
            verdict,
            culprit,
            minor,
            headline,
            started_at: clock::rfc3339(start),
            symptom: symptom.map(|c| c.text.clone() + &left_out(case)),
            episode: symptom.map(|c| c.slow).or_else(|| grounds.alone()).map(|w| span(w, start)),
            against: links::against(case),
            episodes: symptom.map_or_else(Vec::new, |c| links::episodes(case, c)),
            debt: links::debt(case),
            chain: links::chain(case, &findings),
            findings,
            cleared: self.cleared,
            not_judged: self.not_judged,
            split,
            snapshot: grounds.given.and_then(|given| given.report),
            level,
            next: None,
            notes,
            host_load: host_load::explain(case),
            indicators: indicators::collect(case),
            ledger,
            accounts: ledger::accounts::report(case),
            services: services::report(case),
            stages: stages::report(case),
            critical_path: ledger::critical_paths(case),
            by_counters: grounds.counted.as_ref().map(|c| c.report(case)),
            objectives: case.objectives.iter().map(|o| ObjectiveReport::new(o, &case.recording.manifest)).collect(),
            search: grounds.search,
            load: LoadReport { disturbed: grounds.disturbance.text(), ..load },
            coverage: case.recording.manifest.coverage.iter().map(CoverageEntry::from).collect(),
            read: None,
            fleet: None,
        }
    }
}

/// Links the findings: each gets its role and its share, and loses certainty for what may be behind it.
fn links_of(found: &mut [(Cause, CauseFinding)], unseen: &[NotJudged], case: &Case<'_>) -> Vec<Linked> {
    let causes: Vec<Cause> = found.iter().map(|(cause, _)| *cause).collect();
    let of = Circumstances::read(case, &causes, unseen.iter().map(|n| n.cause).collect());
    let linked = found.iter().map(|(cause, found)| Linked::new(*cause, found.explains_ms, found.role));
    let mut linked = link::link(linked.collect(), &of);
    linked.sort_by_key(|link| causes.iter().position(|cause| *cause == link.cause));
    for ((_, found), link) in found.iter_mut().zip(&linked) {
        (found.explains_ms, found.role) = (link.explains_ms, link.role);
        found.weights.iter_mut().for_each(|weight| *weight = *weight * UNSEEN.powi(link.unseen as i32));
    }
    linked
}

/// A finding without links, of `explains_ratio` (0-1) of the excess.
fn finding(cause: Cause, found: CauseFinding, role: Role, confidence: f64, explains_ratio: f64) -> Finding {
    Finding {
        cause,
        title: cause.title().to_owned(),
        role,
        follows_from: None,
        adds_to: None,
        hosts: Vec::new(),
        confidence: round(confidence::calibrated(confidence).max(LEAST_CONFIDENCE), 2),
        explains_ms: round(found.explains_ms, 1),
        explains_ratio: round(explains_ratio, 3),
        share: None,
        evidence: found.evidence,
        fixes: found.fixes,
        prove: found.prove,
    }
}

/// The chance (0-1) that there is something to explain: where every objective was met, a mean that
/// rose by a fifth is hardly more than a coincidence, and one that doubled is.
fn certainty(case: &Case<'_>) -> f64 {
    let minor = case.degradation.as_ref().filter(|c| c.severity == Severity::Minor && c.baseline_mean_ms > 0.0);
    minor.map_or(1.0, |c| 1.0 - (c.baseline_mean_ms / c.slow_mean_ms.max(c.baseline_mean_ms)).powi(2))
}

#[cfg(test)]
mod tests;
