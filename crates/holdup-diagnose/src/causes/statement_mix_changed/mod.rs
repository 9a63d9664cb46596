//! Other statements than before: one is new, or many times as frequent, and requests wait for its
//! time.

mod release;
#[cfg(test)]
mod tests;

use super::parts::clearing;
use super::{
    Cause, CauseFinding, Contribution, Definition, Doc, Edge, Judge, Outcome, Role, Source::Of, ms, percent, thousands,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::is_felt;
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_signals::database::mix::{Mix, Statement};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, Window};

pub const DEFINITION: Definition = Definition {
    // What a cache no longer has, the database is asked for.
    follows_from: &[Edge::same_time(&[&[Of(Cause::CacheMisses)]])],
    adds_to: &[
        // Which statement grew, and what it makes the server do or waits for, are two answers about the
        // same time.
        Contribution {
            to: &[&[Of(Cause::ToastRewrite), Of(Cause::OnDiskTemporaryTables), Of(Cause::BackupOrBulkLoad)]],
            least: 0.5,
        },
        Contribution { to: &[&[Of(Cause::LockContention)]], least: 0.0 },
    ],
    ..Definition::new(Cause::StatementMixChanged, DOC, Judge::Alone(judge), &next_command::HEAVIEST_STATEMENTS)
};

const DOC: Doc = Doc {
    title: "The mix of statements changed",
    what: "A statement that hardly ran before, or ran far less often, was added: a batch job, a report, a deployment with a new query, retries of one call.",
    hurts: "It takes CPUs, disks and locks from the existing statements; each of them is unchanged and takes longer.",
    needs: "Calls by statement in and outside of episodes: the server's counters by digest (performance_schema, pg_stat_statements), or single executions, or packets.",
    predicts: "Shares of the calls differ by more than chance gives; a statement is new or several times as frequent as outside, for the same number of requests, and the time of its additional calls is a large part of the delay.",
    clears: "The mix is the same, within chance; or the new calls take hardly any time.",
    looks_like: "A spike (more of the same: shares stay). A changed plan (the same calls, more time each). A holdup scenario with phases: there the mix is deliberate.",
    fix: "Find what sends it, and when it began: a job, a release. Move it, make it cheaper, or limit how many run at once.",
    prove: "Without it the same load is as fast as before.",
    references: "B. Gregg, Systems Performance, 2nd edition, workload characterization; total variation distance: D. Levin, Y. Peres, Markov Chains and Mixing Times, ch. 4.",
};

/// Least factor over the time outside from which a statement counts as added.
const TIMES: f64 = 3.0;

/// A smaller part (0-1) of the calls is not another mix, however significant its difference.
const PART: f64 = 0.05;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match compare(case) {
        Err(missing) => clearing::by_statements(case, "whichever statements it ran").ok_or(missing),
        outcome => outcome,
    }
}

fn compare(case: &Case<'_>) -> Result<Outcome, Missing> {
    if case.degradation.is_none() {
        return nothing_slow(case);
    }
    let Some(baseline) = case.baseline() else {
        return Err(Missing::baseline(" to compare with"));
    };
    let view = case.slow();
    let mut inside = case.episodes().to_vec();
    if let Some(judged) = inside.iter_mut().find(|w| w.from == view.window.from) {
        *judged = view.window;
    }
    let outside = if case.is_of_other(baseline.window) { vec![baseline.window] } else { case.outside() };
    let mix = view.mix(&inside, &baseline, &outside)?;
    let whole = mix.evidence(
        view.window,
        None,
        format!("{:.1} % of the calls", 100.0 * mix.distance),
        format!("up to {:.1} %, by chance", 100.0 * mix.by_chance.1),
        words(&mix),
    );
    let completed: f64 = case.completed_in(view.window)?.max(1.0);
    let per_second = completed / view.window.seconds().max(1e-9);
    let all: f64 = per_second * mix.recorded.0;
    let times_as_many = times_as_many(case, per_second, &outside);
    // Milliseconds of a request spent in calls that are new for the same number of requests.
    let further_ms = |of: &Statement| {
        let before = mix.rates(of).1 * mix.recorded.0 * times_as_many;
        let more = (of.calls.0 - before).max(0.0) / of.calls.0.max(1.0);
        // What it took the place of no longer takes its time.
        let saved = release::replaced(&mix, of, times_as_many)
            .map_or(0.0, |old| old.seconds.1 / mix.recorded.1.max(1e-9) * mix.recorded.0 * times_as_many);
        (of.seconds.0 * more - saved).max(0.0) / all.max(1.0) * 1e3
    };
    let joined = mix.statements.iter().filter(|of| mix.more_often(of) >= TIMES * times_as_many);
    let Some(of) = joined.max_by(|a, b| further_ms(a).total_cmp(&further_ms(b))) else {
        return Ok(Outcome::Cleared(vec![whole]));
    };
    let explains_ms = further_ms(of);
    let is_new = of.calls.1 <= 0.0;
    let replaced = release::replaced(&mix, of, times_as_many);
    let mut told = told(&mix, of, view.window, explains_ms);
    told.text += &replaced.map_or_else(String::new, release::told);
    let is_another = mix.distance > mix.by_chance.1 && (mix.distance >= PART || is_new);
    if !is_felt(case, explains_ms)? || !is_another {
        return Ok(Outcome::Cleared(vec![told, whole]));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![told, whole],
        weights: vec![STRONG, if is_new { FAIR } else { WEAK }],
        fixes: vec![replaced.map_or_else(|| sender(case, view.window, of), release::fix)],
        prove: "The same load without that statement: response time is that of the baseline window.".to_owned(),
        role: Role::Root,
    }))
}

/// Advice to find what sends `of`.
fn sender(case: &Case<'_>, window: Window, of: &Statement) -> Fix {
    let began_s = (window.from - case.recording.manifest.started_at) as f64 / 1e9;
    let text = format!(
        "Find what sends it and what started {} s into the recording (a job, a release): {}",
        thousands(began_s),
        of.text
    );
    Fix::advice(text, None)
}

fn nothing_slow(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let executed = view.executed(&["digest_text"])?;
    let calls: f64 = executed.iter().map(|of| of.calls).sum();
    let text = format!("{} statements ran {} times, and nothing was slow", executed.len(), thousands(calls));
    let told = executed.first().map(|of| view.digest_evidence(of, "calls", thousands(of.calls), "", text));
    Ok(Outcome::Cleared(told.into_iter().collect()))
}

/// How often `of` is called, now and outside, and what that takes of a request.
fn told(mix: &Mix, of: &Statement, window: Window, explains_ms: f64) -> Evidence {
    let (now, before) = mix.rates(of);
    let was = if of.calls.1 <= 0.0 { "never outside".to_owned() } else { format!("{}/s outside", rate(before)) };
    let text = format!(
        "{} calls/s, {was}; {} each, {} of a request: {}",
        rate(now),
        ms(of.seconds.0 / of.calls.0.max(1.0) * 1e3),
        ms(explains_ms),
        of.text
    );
    mix.evidence(window, Some(of), format!("{} a second", rate(now)), format!("{} a second", rate(before)), text)
}

/// Factor by which requests per second exceed those in `outside`, at least 1: statements of the
/// requests are called more often by that factor, and are not new for it. 1 if only statements are
/// counted.
fn times_as_many(case: &Case<'_>, per_second: f64, outside: &[Window]) -> f64 {
    if !case.origin.counts_requests() {
        return 1.0;
    }
    let before: f64 = outside.iter().filter_map(|window| case.completed_in(*window).ok()).sum();
    let seconds: f64 = outside.iter().map(Window::seconds).sum();
    (per_second * seconds / before.max(1.0)).max(1.0)
}

/// The mix in words: the distance, and the rates.
fn words(mix: &Mix) -> String {
    let (now, before) = mix.rate();
    let count = mix.statements.len();
    let rates = format!("calls/s {} -> {}", rate(before), rate(now));
    let most = 100.0 * mix.most_moved();
    if mix.distance <= mix.by_chance.1 || mix.distance < PART {
        return format!("the mix is the same: {count} statements, shares differ by at most {most:.1} points, {rates}");
    }
    format!(
        "{} of the calls moved to other statements (chance gives up to {}): {count} statements, shares differ by up to {most:.1} points, {rates}",
        percent(mix.distance),
        percent(mix.by_chance.1)
    )
}

/// `2.5`, `250`.
fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { thousands(per_second) }
}
