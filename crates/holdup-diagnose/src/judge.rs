//! From rules' outcomes to one answer: ranked by the milliseconds they explain, linked into root, contributor
//! and symptom, with a culprit only where the evidence carries it.

use std::collections::BTreeMap;

use holdup_recording::{Recording, RunState};

use crate::case::Case;
use crate::ledger::ledger;
use crate::rules::{self, Outcome, Rule};
use crate::signals::Window;
use crate::signals::client::{client_queue_ms, failed, is_latency, mean, response_ms, send_lag_ms, service_ms};
use crate::signals::disturbance::{DISTURBED, Disturbance};
use crate::verdict::{
    Answer, Cleared, CoverageEntry, Diagnosis, Finding, LoadReport, NotJudged, OperationReport, Percentiles, Role,
    Span, round,
};

/// A root cause that explains a smaller share of the excess than this is not called the culprit: more than
/// half of the time would still be somebody else's.
const CULPRIT_RATIO: f64 = 0.5;

/// What would measure response time.
const NO_LATENCY: &str = "holdup run; or --watch prometheus:http://APP/metrics, or --watch mysql://USER@HOST:PORT as an account with PROCESS";

/// Each rival that could not be judged takes this from the confidence: what was not looked at may hide another cause.
const UNJUDGED_PENALTY: f64 = 0.02;

/// Judges `recording`, or the part of it in `window`.
pub fn diagnose(recording: &Recording, window: Option<Window>) -> Diagnosis {
    let case = Case::new(recording, window);
    let mut judged = Judged::default();
    for rule in rules::ALL {
        judged.take(rule, &case);
    }
    judged.answer(&case)
}

#[derive(Default)]
struct Judged {
    found: Vec<(&'static Rule, rules::Found)>,
    cleared: Vec<Cleared>,
    not_judged: Vec<NotJudged>,
}

impl Judged {
    fn take(&mut self, rule: &'static Rule, case: &Case<'_>) {
        let (cause, title) = (rule.cause.to_owned(), rule.doc.title.to_owned());
        if case.client.seconds.is_empty() {
            // Nothing is cleared of a delay that nobody measured.
            let (missing, enable) = ("response time, by anybody's account".to_owned(), NO_LATENCY.to_owned());
            self.not_judged.push(NotJudged { cause, title, missing, enable });
            return;
        }
        match (rule.judge)(case) {
            Ok(Outcome::Found(found)) => self.found.push((rule, found)),
            Ok(Outcome::Cleared(evidence)) => self.cleared.push(Cleared { cause, title, evidence }),
            Err(missing) => {
                self.not_judged.push(NotJudged { cause, title, missing: missing.what, enable: missing.enable })
            }
        }
    }

    fn answer(mut self, case: &Case<'_>) -> Diagnosis {
        rules::link(&mut self.found, case);
        self.found.sort_by(|a, b| {
            (a.1.role == Role::Symptom)
                .cmp(&(b.1.role == Role::Symptom))
                .then(b.1.explains_ms.total_cmp(&a.1.explains_ms))
        });
        let unjudged = self.not_judged.len() as f64;
        let mut findings: Vec<Finding> = Vec::new();
        for (rule, found) in self.found {
            let explains_ratio = case.share(found.explains_ms);
            // Independent pieces of evidence: the chance that all of them mislead. Then how much is left unexplained.
            let doubt: f64 = found.weights.iter().map(|w| 1.0 - w).product();
            let confidence =
                (1.0 - doubt) * (0.5 + 0.5 * (explains_ratio / 0.8).min(1.0)) - UNJUDGED_PENALTY * unjudged;
            let role = match found.role {
                Role::Root if !findings.is_empty() => Role::Contributor,
                role => role,
            };
            findings.push(Finding {
                cause: rule.cause.to_owned(),
                title: rule.doc.title.to_owned(),
                role,
                confidence: round(confidence.clamp(0.05, 0.99), 2),
                explains_ms: round(found.explains_ms, 1),
                explains_ratio: round(explains_ratio, 3),
                evidence: found.evidence,
                fixes: found.fixes,
                prove: found.prove,
            });
        }
        let culprit = findings.iter().find(|f| f.role == Role::Root && f.explains_ratio >= CULPRIT_RATIO);
        let disturbance = Disturbance::find(&case.view(case.whole()));
        let disturbed = case.complaint.as_ref().is_some_and(|c| disturbance.share_of(c.slow) > DISTURBED);
        let (verdict, headline) = match (&case.complaint, culprit) {
            (None, _) if case.client.seconds.is_empty() => {
                (Answer::Undecided, "Nothing here measured response time, so there is nothing to explain.".to_owned())
            }
            (None, _) => (Answer::Healthy, format!("Nothing is holding requests up{}.", met(case))),
            (Some(_), _) if disturbed => (
                Answer::Undecided,
                format!("{}: what was measured then is not the service's. Run it again.", capital(&disturbance.text())),
            ),
            (Some(c), Some(f)) => (
                Answer::Found,
                format!(
                    "{}: it explains {:.0} of the {:.0} ms by which a mean request was too slow.",
                    f.title,
                    f.explains_ms.min(c.excess_ms()),
                    c.excess_ms()
                ),
            ),
            (Some(c), None) => {
                let what = if c.is_slow { "Requests are too slow" } else { "Requests fail" };
                (Answer::Undecided, format!("{what}, and no cause that was looked at explains it."))
            }
        };
        let culprit = culprit.filter(|_| verdict == Answer::Found).map(|f| f.cause.clone());
        let start = case.recording.manifest.started_at;
        let span = |w: Window| Span {
            from_s: round((w.from - start) as f64 / 1e9, 3),
            to_s: round((w.to - start) as f64 / 1e9, 3),
        };
        for evidence in findings
            .iter_mut()
            .flat_map(|f| &mut f.evidence)
            .chain(self.cleared.iter_mut().flat_map(|c| &mut c.evidence))
        {
            evidence.window = evidence.at.filter(|w| w.to < i64::MAX).map(span);
        }
        let generator_limited = findings.iter().any(|f| f.cause == rules::load_generator_limit::RULE.cause);
        Diagnosis {
            verdict,
            culprit,
            headline,
            complaint: case.complaint.as_ref().map(|c| c.text.clone()),
            episode: case.complaint.as_ref().map(|c| span(c.slow)),
            findings,
            cleared: self.cleared,
            not_judged: self.not_judged,
            ledger: ledger(case),
            load: LoadReport { disturbed: disturbance.text(), ..load_report(case, generator_limited) },
            coverage: case.recording.manifest.coverage.iter().map(CoverageEntry::from).collect(),
        }
    }
}

/// The text as the beginning of a sentence.
fn capital(text: &Option<String>) -> String {
    let mut letters = text.as_deref().unwrap_or_default().chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `: every objective was met (p99 < 400ms)`, if there was one.
fn met(case: &Case<'_>) -> String {
    let thresholds = case.recording.manifest.load.as_ref().map_or(&[][..], |l| l.thresholds.as_slice());
    let texts: Vec<&str> = thresholds.iter().map(|t| t.text.as_str()).collect();
    if texts.is_empty() { String::new() } else { format!(": every objective was met ({})", texts.join(", ")) }
}

fn load_report(case: &Case<'_>, generator_limited: bool) -> LoadReport {
    let Ok(requests) = case.requests_in(case.whole()) else { return LoadReport::default() };
    let mut names: Vec<&str> = Vec::new();
    for request in &requests {
        if !names.contains(&request.operation.as_str()) {
            names.push(&request.operation);
        }
    }
    let first = requests.iter().map(|r| r.intended_at).min().unwrap_or(0);
    // Rates are over the schedule, or as far as it got; completions that came after its end count, over the
    // longer time they took.
    let manifest = &case.recording.manifest;
    let last_intended = requests.iter().map(|r| r.intended_at).max().unwrap_or(first);
    let planned = manifest.phases.last().map_or(last_intended, |p| p.to).min(case.whole().to);
    let scheduled = if manifest.state == RunState::Complete { planned } else { last_intended } - first;
    let offered_s = scheduled.max(1_000_000) as f64 / 1e9;
    let operations = names
        .into_iter()
        .map(|name| {
            let mine: Vec<_> = requests.iter().copied().filter(|r| r.operation == name).collect();
            let completed = mine.iter().filter(|r| r.outcome == "ok").count() as u64;
            let last = mine.iter().map(|r| r.done_at).max().unwrap_or(first);
            let achieved_s = ((last - first) as f64 / 1e9).max(offered_s);
            let mut errors_by_kind = BTreeMap::new();
            for request in mine.iter().filter(|r| failed(r)) {
                *errors_by_kind.entry(request.outcome.clone()).or_insert(0) += 1;
            }
            OperationReport {
                operation: name.to_owned(),
                offered: round(mine.len() as f64 / offered_s, 3),
                achieved: round(completed as f64 / achieved_s, 3),
                completed,
                errors: errors_by_kind.values().sum(),
                errors_by_kind,
                response_ms: Percentiles::of(mine.iter().filter(|r| is_latency(r)).map(|r| response_ms(r))),
                service_ms: Percentiles::of(mine.iter().filter(|r| is_latency(r)).filter_map(|r| service_ms(r))),
                send_lag_ms: Percentiles::of(mine.iter().filter_map(|r| send_lag_ms(r))),
            }
        })
        .collect();
    let capped = mean(requests.iter().map(|r| if client_queue_ms(r) > 1.0 { 1.0 } else { 0.0 })).unwrap_or(0.0);
    LoadReport { operations, generator_limited, capped_ratio: round(capped, 4), disturbed: None }
}
