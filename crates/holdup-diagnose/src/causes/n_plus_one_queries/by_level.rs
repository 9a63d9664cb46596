//! By level, without a baseline window: the server's counters by statement beside the number of
//! requests. A call costs its own time, and the time until the app's next statement where sessions
//! stand idle inside a transaction meanwhile. Where none was seen there the second part is unknown,
//! and so is the cost.

use super::LOOP;
use crate::case::Case;
use crate::causes::{Outcome, ms, percent};
use crate::resources::{is_too_small, statements};
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_recording::Labels;
use holdup_recording::metrics::postgresql::STAT_DATABASE_IDLE_IN_TRANSACTION_TIME;
use holdup_recording::rows::Session;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing, View};

/// From this many calls of one statement per request, on average over all operations, a loop makes them.
const TENS: f64 = 10.0;

/// The state of a session whose client is at work between two statements of a transaction.
const BETWEEN: &str = "idle_in_transaction";

/// A session that stands there for longer waits for something else than the app's next call of a loop.
const SHORT_NS: i64 = 50_000_000;

/// Fewer sightings are chance: they tell what sessions did between statements, and not for how long.
const LEAST: f64 = 3.0;

/// Without the time between calls, the calls alone must be this share (0-1) of what is to explain.
const MOST: f64 = 0.5;

/// What to record to see what the calls cost.
const COST: &str = "--watch otlp with the app's database spans";

/// None with a baseline window, where the growth of calls decides, and where the number of requests
/// or of calls is unknown.
pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    if case.baseline().is_some() || case.asks_statements() || !case.origin.counts_requests() {
        return None;
    }
    let view = case.slow();
    let completed = case.completed_in(view.window).ok().filter(|completed| *completed > 0.0)?;
    let executed = view.executed(&["digest_text"]).ok()?;
    let of_requests = executed.iter().filter(|of| statements::is_of_requests(case, &view, of, completed));
    let of = of_requests.max_by(|a, b| a.calls.total_cmp(&b.calls))?;
    let each = of.calls / completed;
    let all = executed.iter().map(|of| of.calls).sum::<f64>();
    let text = format!(
        "a request runs {:.1} statements, one of them {each:.1} times, {} each by the server's own timing: {}",
        all / completed,
        ms(of.seconds / of.calls * 1e3),
        of.text
    );
    let seen =
        view.digest_evidence(of, "calls", format!("{each:.1} calls per request"), format!("below {LOOP:.0}"), text);
    if each < TENS {
        return Some(Outcome::Cleared(vec![seen]));
    }
    let between = between_ms(&view, of);
    let is_measured = between.is_some();
    let call_ms = of.seconds / of.calls * 1e3 + between.as_ref().map_or(0.0, |(ms, _)| *ms);
    // One call is left.
    let saved_ms = (each - 1.0) * call_ms;
    let explains_ms = if case.is_felt() { saved_ms.min(case.excess_ms()) } else { saved_ms };
    let mut evidence = vec![seen];
    evidence.extend(between.map(|(_, piece)| piece));
    if is_measured && is_too_small(case, explains_ms).ok()? {
        return Some(Outcome::Cleared(evidence));
    }
    if is_measured || case.share(explains_ms) >= MOST {
        let said = format!("as one query they would take {} less", ms(explains_ms));
        evidence.push(evidence[0].clone().saying("", said));
        return Some(super::found(explains_ms, evidence, if is_measured { vec![STRONG, FAIR] } else { vec![STRONG] }));
    }
    let Outcome::Found(found) = super::found(explains_ms, evidence, vec![WEAK]) else { return None };
    Some(Outcome::Uncounted(found, Missing::new("the time between the calls of a request", COST)))
}

/// The time from the end of a call of `of` to the next statement of its transaction, milliseconds: by
/// Little's law over sessions that stand between the two, or by the server's own count of that time.
fn between_ms(view: &View<'_>, of: &DigestUse) -> Option<(f64, Evidence)> {
    let rows = view.sessions(&["source", "true_state", "digest_text", "age_ns"]).ok()?;
    let between = rows.iter().filter(|row| row.source == of.source && row.true_state == BETWEEN);
    let (short, long): (Vec<&Session>, Vec<&Session>) =
        between.partition(|row| row.age_ns.is_some_and(|age| age < SHORT_NS));
    let count = short.iter().filter(|row| row.digest_text.as_deref() == Some(of.text.as_str())).count() as f64;
    if count < LEAST {
        // Another session's long transaction is in the server's count as well.
        return long.is_empty().then(|| counted_ms(view, of, count / short.len() as f64)).flatten();
    }
    let sessions = count / (view.session_instants() as f64).max(1.0);
    let each_ms = sessions / (of.calls / view.window.seconds().max(1e-9)) * 1e3;
    let text = format!(
        "{sessions:.1} sessions at a time stood between a call of it and the next statement of their transaction: {} after each call",
        ms(each_ms)
    );
    let labels = Labels::new([("true_state", BETWEEN), ("digest_text", of.text.as_str())]);
    let piece =
        Evidence::new("sessions", "true_state", labels, view.window, format!("{sessions:.1} sessions"), "", text);
    Some((each_ms, piece))
}

/// The same by PostgreSQL's counter of the time that all sessions stood there, of which `share` (0-1) of
/// the samples were after a call of `of`; none without one.
fn counted_ms(view: &View<'_>, of: &DigestUse, share: f64) -> Option<(f64, Evidence)> {
    let metric = STAT_DATABASE_IDLE_IN_TRANSACTION_TIME.name;
    let counted = view.counter_where(|source| source == of.source, metric, &[], COST).ok()?;
    let all_ms = counted.rate() * view.window.seconds();
    let each_ms = all_ms * share / of.calls;
    let text = format!(
        "the server counted {} inside transactions without a statement, and {} of the sessions seen there stood after a call of this one: {} after each call",
        ms(all_ms),
        percent(share),
        ms(each_ms)
    );
    (each_ms > 0.0).then(|| (each_ms, counted.evidence(ms(all_ms), "", text)))
}
