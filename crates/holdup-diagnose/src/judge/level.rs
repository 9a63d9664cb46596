//! The level of response time where nothing says whether it is good: no change in the recording, no
//! baseline recording and no objective. Then the verdict says so and where the time goes. Work that
//! an answer does not need is seen by its level alone: most of the time is a finding, a part of it
//! is named with what it could save at most. So is what takes most of a time that people notice.

use std::fmt::Write as _;

use holdup_recording::objective::{State, Unit};
use holdup_recording::words::{ms, percent};
use holdup_signals::Distribution;
use holdup_signals::client::latency::Origin;

use super::sentences::nothing;
use super::{CULPRIT_RATIO, Outcomes, conspicuous};
use crate::case::Case;
use crate::causes::{Cause, CauseFinding, MATTERS, Trait};
use crate::ledger::{LedgerRow, WHOLE_BAND};
use crate::origin::OriginWords;
use crate::resources::statements;
use crate::search;
use crate::verdict::{Answer, DearReport, Diagnosis, Finding, LevelReport, NAMED, NotJudged, Role, round};

/// A mean request that takes less time is quick, whatever it does, milliseconds.
const QUICK_MS: f64 = 5.0;

/// A wait that people notice (J. Nielsen, Usability Engineering, 1993, section 5.5: 0.1 s), milliseconds.
const NOTICED_MS: f64 = 100.0;

/// The level of `case`; none if something says whether it is good, or nothing measured it.
pub(super) fn report(case: &Case<'_>, ledger: &[LedgerRow]) -> Option<LevelReport> {
    let is_open = case.degradation.is_none() && case.against.is_none() && !has_objective(case);
    if !is_open || search::report(case.recording).is_some() {
        return None;
    }
    let times = Distribution::merged(case.client.seconds.iter().map(|second| &second.response_ms));
    let mean_ms = times.mean()?;
    let p50_ms = times.quantile(0.5).filter(|_| case.origin.times_each()).map(|ms| round(ms, 3));
    let database_ms = match case.origin {
        Origin::DatabaseStatements => Some(mean_ms),
        origin if origin.counts_requests() => in_database(case, ledger),
        _ => None,
    };
    let database_ms = database_ms.map(|ms| round(ms.min(mean_ms), 3));
    Some(LevelReport { p50_ms, mean_ms: round(mean_ms, 3), database_ms, dear: Vec::new() })
}

/// Whether an objective on response time was met.
fn has_objective(case: &Case<'_>) -> bool {
    case.objectives.iter().any(|of| of.judgement.unit == Unit::Ms && of.judgement.state == State::Met)
}

/// Milliseconds of a mean request in the database: by the ledger, else by the server's own timing of
/// statements.
fn in_database(case: &Case<'_>, ledger: &[LedgerRow]) -> Option<f64> {
    let is_split = whole(ledger).any(|row| row.parts.iter().any(|part| part.part.starts_with("database")));
    match is_split {
        true => mean(ledger, |row| parts_ms(row, |part| part.starts_with("database"))),
        false => statements::executed_ms(case),
    }
}

/// Milliseconds of a mean request that no source accounts for: without an owner, or in the app and
/// neither computing, waiting for a pool, nor calling anything.
fn unaccounted_ms(ledger: &[LedgerRow]) -> Option<f64> {
    mean(ledger, |row| row.residual_ms.max(0.0) + parts_ms(row, |part| part == "app_other"))
}

/// Of all bands together.
fn whole(ledger: &[LedgerRow]) -> impl Iterator<Item = &LedgerRow> {
    ledger.iter().filter(|row| row.band == WHOLE_BAND)
}

fn parts_ms(row: &LedgerRow, is: impl Fn(&str) -> bool) -> f64 {
    row.parts.iter().filter(|part| is(&part.part)).map(|part| part.ms).sum()
}

/// The mean over the requests of all operations; none without any.
fn mean(ledger: &[LedgerRow], of: impl Fn(&LedgerRow) -> f64) -> Option<f64> {
    let requests: f64 = whole(ledger).map(|row| row.requests as f64).sum();
    (requests > 0.0).then(|| whole(ledger).map(|row| of(row) * row.requests as f64).sum::<f64>() / requests)
}

/// The verdict and its sentence: those that were `said`, or of a healthy one that nothing compares with
/// those of its level.
pub(super) fn say(
    case: &Case<'_>,
    level: Option<&LevelReport>,
    ledger: &[LedgerRow],
    said: (Answer, String),
    not_judged: &[NotJudged],
) -> (Answer, String) {
    let rest = said.1.strip_prefix(nothing(case)).filter(|_| said.0 == Answer::Healthy);
    let Some((level, rest)) = level.zip(rest) else { return said };
    let mut text = case.origin.qualify(&format!("No change seen; {}", middle(level)));
    if let Some(database_ms) = level.database_ms.filter(|_| case.origin.counts_requests()) {
        let _ = write!(
            text,
            ", and {} of the {} of an average request in the database",
            ms(database_ms),
            ms(level.mean_ms)
        );
    }
    // A database alone does not see what waits in front of it: what stands out leaves the verdict open.
    if let Some(conspicuous) = (!case.origin.counts_requests()).then(|| conspicuous::text(case)).flatten() {
        return (Answer::Undecided, format!("{text}{rest} What stands out: {conspicuous}."));
    }
    let is_noticed = case.origin.counts_requests() && level.mean_ms >= NOTICED_MS;
    let lost_ms = unaccounted_ms(ledger).filter(|ms| is_noticed && *ms >= CULPRIT_RATIO * level.mean_ms);
    if let Some(lost_ms) = lost_ms {
        let why = format!("No source shows what {} of the {} are for.", ms(lost_ms), ms(level.mean_ms));
        return (Answer::Undecided, format!("{text}. {why}"));
    }
    let is_dear = |ms: f64| ms >= CULPRIT_RATIO * level.mean_ms && level.mean_ms >= QUICK_MS;
    let unseen = not_judged.iter().find(|n| n.cause.is(Trait::Avoidable) && n.cause.is(Trait::WithinStatement));
    match unseen.filter(|_| level.database_ms.is_some_and(is_dear)) {
        Some(unseen) => {
            let why = format!("No source shows whether the work needs that time: it lacks {}.", unseen.missing);
            (Answer::Undecided, format!("{text}. {why}"))
        }
        None => (Answer::Healthy, format!("{text}{rest}")),
    }
}

/// The median, or the mean if nothing timed each request.
fn middle(level: &LevelReport) -> String {
    level.p50_ms.map_or_else(|| format!("mean {}", ms(level.mean_ms)), |p50_ms| format!("p50 {}", ms(p50_ms)))
}

/// Says how long requests take, if the first of `findings` of a case that has all of that time to explain
/// takes most of it, and an answer does not need it or people notice it.
pub(super) fn line(case: &Case<'_>, level: &LevelReport, findings: &[Finding]) -> Option<String> {
    let root = findings.iter().find(|finding| finding.role == Role::Root)?;
    let is_most = root.explains_ratio >= CULPRIT_RATIO && root.confidence >= NAMED;
    (is_most && is_too_long(case, level, root)).then(|| {
        let middle = level.p50_ms.map_or_else(String::new, |_| format!(" ({})", middle(level)));
        format!("an average request took {} from the first second on{middle}", ms(level.mean_ms))
    })
}

/// Whether `finding` takes a time that an answer does not need, or that people notice: that of a request,
/// as statements may be a nightly report's.
fn is_too_long(case: &Case<'_>, level: &LevelReport, finding: &Finding) -> bool {
    let is_noticed = level.mean_ms >= NOTICED_MS && case.origin.counts_requests() && finding.role == Role::Root;
    level.mean_ms >= QUICK_MS && finding.cause.is(Trait::Avoidable) || is_noticed && !finding.cause.is(Trait::Outside)
}

/// Completes `diagnosis` by what is dear at its level: `findings` and the uncounted causes of the case
/// that has all of response time to explain.
pub(super) fn complete(
    case: &Case<'_>,
    diagnosis: &mut Diagnosis,
    mut level: LevelReport,
    findings: &[Finding],
    open: &Outcomes,
) {
    let is_dear = |f: &Finding| f.cause.is(Trait::Avoidable) || is_too_long(case, &level, f);
    let found = findings.iter().filter(|f| f.explains_ratio >= MATTERS && is_dear(f));
    level.dear = found.map(|finding| dear(&level, finding)).collect();
    let uncounted = open.uncounted.iter().filter(|(cause, _)| cause.is(Trait::Avoidable));
    level.dear.extend(uncounted.map(|(cause, found)| uncounted_dear(*cause, found)));
    let is_quick = level.mean_ms < QUICK_MS;
    let most = level.dear.iter().find(|dear| dear.saves_ms.is_none_or(|ms| ms >= CULPRIT_RATIO * level.mean_ms));
    if let Some(dear) = most.filter(|_| !is_quick && diagnosis.verdict == Answer::Healthy) {
        diagnosis.verdict = Answer::Undecided;
        let _ = write!(diagnosis.headline, " What stands out: {}.", dear.text);
    }
    diagnosis.level = Some(level);
}

fn dear(level: &LevelReport, finding: &Finding) -> DearReport {
    let cost = format!(
        "at most {} of the {} of an average request ({})",
        ms(finding.explains_ms),
        ms(level.mean_ms),
        percent(finding.explains_ratio)
    );
    DearReport {
        cause: finding.cause,
        saves_ms: Some(finding.explains_ms),
        text: format!("{}, {cost}", finding.title.to_lowercase()),
        command: finding.fixes.iter().rev().find_map(|fix| fix.command.clone()),
    }
}

fn uncounted_dear(cause: Cause, found: &CauseFinding) -> DearReport {
    let text = found.evidence.first().map_or_else(|| cause.title().to_lowercase(), |piece| piece.text.clone());
    DearReport { cause, saves_ms: None, text: format!("{text}; no source shows what that costs"), command: None }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
