//! Stages in a known order: which of them binds. A stage whose output goes into a full queue is held back by
//! the next one; a stage that is slow itself leaves the next one with less to do.

use holdup_recording::words::thousands;
use holdup_signals::app::pipeline::Course;

use super::stages::{Piece, SLOWER, piece};
use crate::causes::parts::present::Shown;
use crate::stages::{outlook, per_second};
use crate::strength::NONE;

/// A queue that stays within this share of its height is full.
const FULL: f64 = 0.8;

/// A queue that was at most this share of that before, on average, was not full then.
const WAS_LESS: f64 = 0.5;

/// A stage feeds the next one as before within this share.
const ALIKE: f64 = 0.2;

/// What the stages before and behind each stage say of it. Of equals the last binds: what speeds up an
/// earlier one only moves the queue.
pub(super) fn linked(stages: &[Course<'_>], mut pieces: Vec<Option<Piece>>) -> Shown {
    // From the end, so that what one holds back is known before the ones before it are looked at.
    for at in (1..stages.len()).rev() {
        let [stage, next] = &stages[at - 1..=at] else { continue };
        let Some((strength, evidence)) = pieces[at - 1].clone().filter(|(strength, _)| *strength > NONE) else {
            continue;
        };
        let Some((Some(since), peak)) = stage.growth() else { continue };
        if let Some(full) = full_queue(stage, next, since, peak) {
            let lag = stage.lag_at(peak);
            let waits = format!("waits for {}: {full}; it is {} s behind itself", next.name, thousands(lag));
            let behind = format!("{} is {} s behind{}", stage.name, thousands(lag), outlook(stage));
            let holds = format!("does not keep up and holds back {}: {full}; {behind}", stage.name);
            let own = pieces[at].take().filter(|(own, _)| *own >= strength);
            pieces[at] = Some(own.unwrap_or_else(|| piece(next, strength, lag, &holds)));
            pieces[at - 1] = Some(piece(stage, NONE, lag, &waits));
        } else if let Some((before, now)) = starved(stage, next, since, peak) {
            let (before, now) = (per_second(next, before), per_second(next, now));
            let mut evidence = evidence;
            evidence.text += &format!("; the next stage, {}, gets {now}, before {before}", next.name);
            pieces[at - 1] = Some((strength, evidence));
        }
    }
    pieces.into_iter().rev().flatten().collect()
}

/// What shows that the queue of `next` is full and that `stage` is as slow as it, since `since`.
fn full_queue(stage: &Course<'_>, next: &Course<'_>, since: i64, peak: i64) -> Option<String> {
    let full = peak - peak.saturating_sub(since) / 3;
    let (least, _, most) = next.waiting(full, peak)?;
    let (_, before, _) = next.waiting(stage.window.from, since)?;
    if least <= 0.0 || least < FULL * most || before > WAS_LESS * least {
        return None;
    }
    // What the stage is done with is what comes into the queue, in whatever unit: the ratio stays.
    let flow = |from, to| Some((stage.rates(from, to)?.1, next.rates(from, to)?));
    let (own_before, (came_before, before)) = flow(stage.window.from, since)?;
    let (own, (came, now)) = flow(full, peak)?;
    let (fed_before, fed) = (came_before / own_before, came / own);
    let is_fed = (fed + fed_before).is_finite() && (fed - fed_before).abs() <= ALIKE * fed.max(fed_before);
    if now > SLOWER * before || !is_fed {
        return None;
    }
    let (waits, before, now) = (thousands(most), per_second(next, before), per_second(next, now));
    Some(format!("its queue is full ({waits} {}) and {now} leave it, before {before}", next.unit))
}

/// How much came into `next` a second before and since, if it gets less and is done with it.
fn starved(stage: &Course<'_>, next: &Course<'_>, since: i64, peak: i64) -> Option<(f64, f64)> {
    let (before, _) = next.rates(stage.window.from, since)?;
    let (now, done) = next.rates(since, peak)?;
    (now < SLOWER * before && done >= SLOWER * now).then_some((before, now))
}
