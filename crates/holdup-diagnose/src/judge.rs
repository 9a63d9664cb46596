//! From rules' outcomes to one answer: ranked by explained milliseconds and linked, with a culprit
//! only if the evidence suffices.

use std::collections::BTreeMap;

use holdup_recording::objective::{Judgement, State, Unit};
use holdup_recording::{Recording, clock};

use crate::case::{Case, Incomparable, SPOILED};
use crate::counters::CounterJudgement;
use crate::ledger::{self, ledger};
use crate::load::{self, LoadReport};
use crate::resources::share;
use crate::rules::{self, Outcome, Rule, capital};
use crate::search::{self, SearchReport};
use crate::verdict::{
    Answer, Cleared, CoverageEntry, Diagnosis, Evidence, Finding, NotJudged, ObjectiveReport, Role, Span, round,
};
use crate::{applicable, audit, between, chain, confidence, figures, host_load, indicators, links, rivals};
use holdup_signals::degradation::Severity;
use holdup_signals::disturbance::{DISTURBED, Disturbance};
use holdup_signals::validity::{self, Label};
use holdup_signals::{Missing, Window};

/// A root cause that explains a smaller share (0-1) of the excess is not called the culprit: more
/// than half of the time would have another cause.
const CULPRIT_RATIO: f64 = 0.5;

/// A minor slowdown without a culprit is no reason to call a service unhealthy below this factor.
const UNEXPLAINED: f64 = 3.0;

/// What to record to measure response time.
const NO_LATENCY: &str = "--watch prometheus:http://APP/metrics or --watch mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE, or load from holdup run";

/// Each rival that could not be judged takes this from the confidence: it may hide another cause.
const UNJUDGED_PENALTY: f64 = 0.01;

/// Lowest confidence of a finding.
const LEAST_CONFIDENCE: f64 = 0.05;

/// Judges `recording`, or the part of it in `window`.
pub fn diagnose(recording: &Recording, window: Option<Window>) -> Diagnosis {
    judged(Case::new(recording, window))
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
    Case::against(recording, window, healthy).map(judged)
}

fn judged(case: Case<'_>) -> Diagnosis {
    let mut diagnosis = Outcomes::judge(&case).answer(&case);
    if diagnosis.verdict != Answer::Undecided {
        diagnosis.next = next(case, &diagnosis.findings);
    }
    diagnosis
}

/// What makes up most of the remaining time, by a second pass that has to explain all of it.
/// Findings of the first pass, outside causes and mere consequences are not next.
fn next(case: Case<'_>, known: &[Finding]) -> Option<Finding> {
    let case = case.laid_open()?;
    let findings = Outcomes::judge(&case).rank(&case).into_iter();
    let open = findings.filter(|f| f.role != Role::Symptom && !chain::is_outside(&f.cause));
    let mut next = open
        .filter(|f| f.explains_ratio >= rules::MATTERS && !known.iter().any(|k| k.cause == f.cause))
        .max_by(|a, b| a.explains_ms.total_cmp(&b.explains_ms))?;
    next.role = Role::Next;
    place(&mut next.evidence, &case);
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
    found: Vec<(&'static Rule, rules::RuleFinding)>,
    /// Share (0-1) of the failed requests by cause, for causes that make requests fail.
    fails: BTreeMap<&'static str, f64>,
    cleared: Vec<Cleared>,
    not_judged: Vec<NotJudged>,
    /// Causes that would be roots if another did not explain more.
    claims: Vec<&'static str>,
}

impl Outcomes {
    fn judge(case: &Case<'_>) -> Self {
        let mut judged = Self::default();
        // Without a measured delay, no cause can be cleared of it.
        let unmeasured = || Missing::new("response time, by any source", NO_LATENCY);
        if case.client.seconds.is_empty() {
            rules::ALL.iter().for_each(|rule| judged.take(rule, Err(unmeasured())));
        } else {
            rules::judge_all(case).into_iter().for_each(|(rule, outcome)| judged.take(rule, outcome));
        }
        judged
    }

    fn take(&mut self, rule: &'static Rule, outcome: Result<Outcome, Missing>) {
        let (cause, title) = (rule.cause.to_owned(), rule.doc.title.to_owned());
        match outcome {
            Ok(Outcome::Found(found)) => self.found.push((rule, found)),
            Ok(Outcome::Fails(found, failed)) => {
                self.fails.insert(rule.cause, failed);
                self.found.push((rule, found));
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
        let not_judged: Vec<&str> = unseen.iter().map(|n| n.cause.as_str()).collect();
        let links = chain::link(&mut found, &not_judged, case);
        let mut found: Vec<_> = found.into_iter().zip(links).collect();
        // If requests fail, a cause explains as much of the excess as of the failures.
        let ratio = |rule: &Rule, ms: f64| share(case, ms).max(self.fails.get(rule.cause).copied().unwrap_or(0.0));
        let confidence = |rule: &Rule, found: &rules::RuleFinding| {
            // The chance that not all of the evidence misleads; then how much is left unexplained.
            confidence::combine(found) * (0.5 + 0.5 * (ratio(rule, found.explains_ms) / 0.8).min(1.0))
                - UNJUDGED_PENALTY * unseen.len() as f64
                - rivals::upstream_penalty(rule.cause, &unseen)
        };
        found.sort_by(|((a_rule, a), _), ((b_rule, b), _)| {
            (a.role == Role::Symptom)
                .cmp(&(b.role == Role::Symptom))
                .then(ratio(b_rule, b.explains_ms).total_cmp(&ratio(a_rule, a.explains_ms)))
                .then(b.explains_ms.total_cmp(&a.explains_ms))
        });
        // A contributor may make up more of the time than any other cause, and is not the root. Of
        // several that may be, and that explain nearly as much as the largest, it is the surest.
        let roots = || found.iter().enumerate().filter(|(_, ((_, f), _))| f.role == Role::Root);
        let most = roots().map(|(_, ((rule, f), _))| ratio(rule, f.explains_ms)).fold(0.0, f64::max);
        let near = roots().filter(|(_, ((rule, f), _))| ratio(rule, f.explains_ms) >= rivals::WITHIN * most);
        // Of equals the first.
        let surest = near.rev().max_by(|(_, ((a_rule, a), _)), (_, ((b_rule, b), _))| {
            confidence(a_rule, a).total_cmp(&confidence(b_rule, b))
        });
        if let Some((root, _)) = surest {
            found[..=root].rotate_right(1);
        }
        let mut findings: Vec<Finding> = Vec::new();
        for ((rule, found), link) in found {
            let explains_ratio = ratio(rule, found.explains_ms);
            let confidence = confidence(rule, &found);
            let role = match found.role {
                Role::Root if findings.iter().any(|f| f.role == Role::Root) => {
                    self.claims.push(rule.cause);
                    Role::Contributor
                }
                role => role,
            };
            findings.push(Finding {
                cause: rule.cause.to_owned(),
                title: rule.doc.title.to_owned(),
                role,
                follows_from: link.follows_from.map(str::to_owned),
                adds_to: link.adds_to.map(str::to_owned),
                confidence: round(confidence.clamp(LEAST_CONFIDENCE, 0.99), 2),
                explains_ms: round(found.explains_ms, 1),
                explains_ratio: round(explains_ratio, 3),
                evidence: found.evidence,
                fixes: found.fixes,
                prove: found.prove,
            });
        }
        findings
    }

    fn answer(mut self, case: &Case<'_>) -> Diagnosis {
        let mut findings = self.rank(case);
        applicable::ask_for_watched(&mut self.not_judged, case.recording);
        let counted = CounterJudgement::judge(case);
        let is_measured = !case.client.seconds.is_empty();
        if !is_measured {
            findings = counted.as_ref().map_or_else(Vec::new, CounterJudgement::findings);
            self.not_judged.retain(|n| findings.iter().all(|f| f.cause != n.cause));
        }
        let carries = |f: &&Finding| f.role == Role::Root && (f.explains_ratio >= CULPRIT_RATIO || !is_measured);
        let root = findings.iter().position(|f| carries(&f));
        let rival = root.and_then(|i| rivals::find_rival(&findings[i], &findings, &self.claims)).cloned();
        // If the evidence for another cause of the same time is as strong, no name is given.
        let tied = root.zip(rival.as_ref()).filter(|(i, rival)| rival.confidence >= findings[*i].confidence);
        let tied = tied.map(|(i, rival)| rivals::tied(&findings[i], rival));
        if let (Some(i), Some(rival)) = (root, &rival) {
            let shared = rivals::shared(findings[i].confidence, rival.confidence);
            findings[i].confidence = round(shared.max(LEAST_CONFIDENCE), 2);
        }
        let culprit = root.map(|i| &findings[i]).filter(|_| tied.is_none());
        let disturbance = Disturbance::find(&case.view(case.whole()));
        let search = search::report(case.recording);
        let (verdict, mut headline) = match &search {
            _ if !is_measured => by_counters(case, counted.as_ref(), culprit),
            Some(report) => of_search(report, case, culprit, &disturbance),
            None => answer(case, culprit, tied.as_deref(), &disturbance),
        };
        if verdict == Answer::Undecided && is_measured && search.is_none() && root.is_none() {
            headline += &links::symptom_of_nothing(&findings).unwrap_or_default();
        }
        // A search overloads on purpose: if it has an answer, that is not a symptom.
        let is_fit = case.limited_ratio < SPOILED
            && case.degradation.as_ref().is_none_or(|c| disturbance.share_of(c.slow) <= DISTURBED);
        let ledger = ledger(case);
        let split = match (verdict, root.map(|i| &findings[i])) {
            (Answer::Healthy, _) => None,
            _ if !is_measured => counted.as_ref().and_then(CounterJudgement::rivals).map(rivals::of_counters),
            _ if !is_fit => None,
            (_, Some(root)) => match &rival {
                Some(rival) => Some(rivals::of_two(root, rival, &self.not_judged)),
                None => rivals::of_root(root, &self.not_judged),
            },
            (_, None) => rivals::of_none(between::between(case).as_ref(), &ledger, &findings, &self.not_judged),
        };
        let complaint = case.degradation.as_ref().filter(|_| search.is_none() || verdict != Answer::Healthy);
        let culprit = culprit.filter(|_| verdict == Answer::Found).map(|f| f.cause.clone());
        let start = case.recording.manifest.started_at;
        findings.iter_mut().for_each(|f| place(&mut f.evidence, case));
        self.cleared.iter_mut().for_each(|c| place(&mut c.evidence, case));
        let notes = audit::notes(case, &findings);
        let found: Vec<&str> = findings.iter().map(|f| f.cause.as_str()).collect();
        let load = load::report(case, &found);
        Diagnosis {
            verdict,
            culprit,
            headline,
            started_at: clock::rfc3339(start),
            complaint: complaint.map(|c| c.text.clone() + &left_out(case)),
            episode: complaint.map(|c| c.slow).or_else(|| counted.as_ref()?.alone(case)).map(|w| span(w, start)),
            against: links::against(case),
            episodes: complaint.map_or_else(Vec::new, |c| links::episodes(case, c)),
            debt: links::debt(case),
            chain: links::chain(case, &findings),
            findings,
            cleared: self.cleared,
            not_judged: applicable::among(self.not_judged, case.recording),
            split,
            next: None,
            notes,
            host_load: host_load::explain(case),
            indicators: indicators::collect(case),
            ledger,
            accounts: ledger::accounts::report(case),
            by_counters: counted.as_ref().map(|c| c.report(case)),
            objectives: case.objectives.iter().map(|o| ObjectiveReport::new(o, &case.recording.manifest)).collect(),
            search,
            load: LoadReport { disturbed: disturbance.text(), ..load },
            coverage: case.recording.manifest.coverage.iter().map(CoverageEntry::from).collect(),
        }
    }
}

/// The same for a search, which overloads the service: the rates come first, then what limits it.
fn of_search(
    report: &SearchReport,
    case: &Case<'_>,
    culprit: Option<&Finding>,
    disturbance: &Disturbance,
) -> (Answer, String) {
    let headline = search::headline(report);
    let is_generator = culprit.is_some_and(|f| f.cause == rules::load_generator_limit::RULE.cause);
    if !report.is_answered() {
        // If the generator is the culprit, it is also why the search has no answer.
        return (if is_generator { Answer::Found } else { Answer::Undecided }, format!("{headline}."));
    }
    let disturbed = case.degradation.as_ref().is_some_and(|c| disturbance.share_of(c.slow) > DISTURBED);
    let is_spoiled = disturbed || case.limited_ratio >= SPOILED && !is_generator;
    let is_missed = case.objectives.iter().any(|o| o.judgement.state == State::Missed);
    match (&case.degradation, culprit) {
        (Some(_), Some(f)) if !is_spoiled => (Answer::Found, format!("{headline}; beyond it {}.", f.cause)),
        _ if is_spoiled && !report.stable => {
            let why = disturbance.text().filter(|_| disturbed);
            let why = why.unwrap_or_else(|| "the load generator could not keep up".to_owned());
            (Answer::Undecided, format!("{headline}; but {why}. Run it again."))
        }
        _ if report.fails_below() => (
            Answer::Undecided,
            format!("{headline}; requests fail below it too, and none of the judged causes explains it."),
        ),
        _ if is_missed => (
            Answer::Undecided,
            format!("{headline}; an objective was missed, and none of the judged causes explains it."),
        ),
        _ => (Answer::Healthy, format!("{headline}.")),
    }
}

/// The answer if no source measured response time: from counters alone, if they are strong enough.
fn by_counters(case: &Case<'_>, counted: Option<&CounterJudgement>, culprit: Option<&Finding>) -> (Answer, String) {
    match (counted, culprit) {
        (Some(counted), Some(f)) => {
            let headline = format!(
                "{}: {}. No source measures response time, so its cost is not known.",
                f.title,
                counted.text(case)
            );
            (Answer::Found, headline)
        }
        (Some(counted), None) if !counted.episodes.is_empty() => {
            let text = capital(&counted.text(case));
            (Answer::Undecided, format!("{text}. No source measures response time to show if that matters."))
        }
        (Some(counted), None) => {
            (Answer::Undecided, format!("{} {}.", figures::headline(case), capital(&counted.text(case))))
        }
        (None, _) => (Answer::Undecided, figures::headline(case)),
    }
}

/// The kind of answer and its sentence.
fn answer(
    case: &Case<'_>,
    culprit: Option<&Finding>,
    tied: Option<&str>,
    disturbance: &Disturbance,
) -> (Answer, String) {
    let disturbed = case.degradation.as_ref().is_some_and(|c| disturbance.share_of(c.slow) > DISTURBED);
    let is_generator = culprit.is_some_and(|f| f.cause == rules::load_generator_limit::RULE.cause);
    match (&case.degradation, culprit) {
        (Some(_), _) if disturbed => {
            let what = capital(&disturbance.text().unwrap_or_default());
            (Answer::Undecided, format!("{what}: those measurements do not show the service. Run it again."))
        }
        // If all of the load was generated, the generator's delay only hides how good the service
        // is.
        (complaint, _)
            if case.limited_ratio >= SPOILED && !is_generator && (complaint.is_some() || !case.validity.is_put_on) =>
        {
            (Answer::Undecided, limited(case))
        }
        // If the question cannot be answered, finding nothing conspicuous is not an answer.
        (None, _) if is_open(case) => {
            (Answer::Undecided, format!("No cause of delay was found{}; {}.", met(case), unjudged(case)))
        }
        (None, _) => (Answer::Healthy, format!("Nothing is holding requests up{}{}.", met(case), caveat(case))),
        (Some(c), Some(f)) if f.cause == rules::workload_spike::RULE.cause => (
            Answer::Found,
            format!(
                "There is more load than the service carries, and nothing is broken: at the old rate, the {:.0} ms that the average request lost would be gone.",
                c.excess_ms()
            ),
        ),
        (Some(_), Some(f)) if case.share(f.explains_ms) < CULPRIT_RATIO => (
            Answer::Found,
            format!(
                "{}: it accounts for {} of the failed requests.",
                f.title,
                holdup_recording::words::percent(f.explains_ratio)
            ),
        ),
        (Some(c), Some(f)) => (
            Answer::Found,
            format!(
                "{}: it accounts for {:.0} of the {:.0} ms that the average request lost.",
                f.title,
                f.explains_ms.min(c.excess_ms()),
                c.excess_ms()
            ),
        ),
        // Clear by itself, and nothing to act on: no objective was missed, no user would notice.
        (Some(c), None) if c.severity == Severity::Minor && c.slow_mean_ms < UNEXPLAINED * c.calm_mean_ms => (
            Answer::Healthy,
            format!("Nothing is holding requests up{}; but {}, and no judged cause explains it.", met(case), c.text),
        ),
        (Some(_), None) if tied.is_some() => (Answer::Undecided, tied.unwrap_or_default().to_owned()),
        (Some(c), None) => {
            let what = if c.is_slow { "Requests are too slow" } else { "Requests fail" };
            // Better than nothing: where to look, and with which source.
            let between = between::between(case).map_or_else(String::new, |b| format!(" {}.", b.text));
            (Answer::Undecided, format!("{what}, and none of the judged causes explains it.{between}"))
        }
    }
}

/// Says that the generator was the limit, why, and what to do.
fn limited(case: &Case<'_>) -> String {
    // The first limit is the cause of the others, if any is.
    let reason = case.validity.sentences().into_iter().find(|(limit, ..)| limit.is_generators());
    let whose = match &case.degradation {
        Some(_) => "it is unknown whether the service was slow",
        None => "the achieved rate is its own limit, and the service may carry more",
    };
    let fix = case.validity.fixes().into_iter().next().map_or_else(String::new, |fix| format!(" {}", fix.text));
    let why = reason.map_or_else(String::new, |(.., text)| format!(": {text}"));
    format!("The load generator could not keep up, so {whose}{why}.{fix}")
}

/// What a healthy verdict does not claim: that the service can carry no more, or be no faster.
fn caveat(case: &Case<'_>) -> String {
    let validity = &case.validity;
    let limited = validity.spoiled().map(|w| w.seconds()).fold(0.0, |sum, s| sum + s);
    let (of_limited, capped) = (validity::seconds(limited), validity.seconds(Label::Capped));
    match () {
        () if limited > 0.0 && validity.is_put_on => {
            format!("; but for {of_limited} s response times include the load generator's own delay")
        }
        () if limited > 0.0 => format!(
            "; but for {of_limited} s the load generator could not keep up, so the achieved rate is its limit, not the service's"
        ),
        () if capped > 0.0 => format!(
            "; but for {} s the limit of {} requests in flight bound, so the achieved rate does not show the service's limit",
            validity::seconds(capped),
            validity.connections
        ),
        () => String::new(),
    }
}

/// `; 3 s in which the generator could not keep up are left out`, if so.
fn left_out(case: &Case<'_>) -> String {
    let seconds = case.left_out.iter().fold(0.0, |sum, w| sum + w.seconds());
    if seconds <= 0.0 {
        return String::new();
    }
    format!("; {} s in which the load generator could not keep up are left out", validity::seconds(seconds))
}

/// Objectives on response time, or all if there are none: without them the question is open.
fn asked<'c>(case: &'c Case<'_>) -> Vec<&'c Judgement> {
    let all: Vec<&Judgement> = case.objectives.iter().map(|o| &o.judgement).collect();
    let timed: Vec<&Judgement> = all.iter().copied().filter(|j| j.unit == Unit::Ms).collect();
    if timed.is_empty() { all } else { timed }
}

/// Whether there is a question on response time that nothing recorded can answer.
fn is_open(case: &Case<'_>) -> bool {
    let asked = asked(case);
    !asked.is_empty() && asked.iter().all(|j| j.state == State::NotJudged)
}

/// Why the question is open.
fn unjudged(case: &Case<'_>) -> String {
    let why = asked(case).into_iter().find_map(|j| j.why.clone());
    why.unwrap_or_else(|| "its metric was not recorded".to_owned())
}

/// `: every objective was met (p99 < 400ms)`, if there was one, and which could not be judged.
fn met(case: &Case<'_>) -> String {
    let texts = |state: State| {
        let of_state = case.objectives.iter().filter(|o| o.judgement.state == state);
        of_state.map(|o| o.threshold.text.as_str()).collect::<Vec<_>>().join(", ")
    };
    match (texts(State::Met), texts(State::NotJudged)) {
        (met, open) if met.is_empty() && open.is_empty() => String::new(),
        (met, open) if open.is_empty() => format!(": every objective was met ({met})"),
        (met, open) if met.is_empty() => format!("; but no objective could be judged ({open})"),
        (met, open) => format!(": every objective that could be judged was met ({met}), and {open} could not"),
    }
}
