//! Each stage: how far behind, since when, and whether what comes in or what goes out changed.

use holdup_recording::words::thousands;
use holdup_signals::app::pipeline::{Course, ENOUGH_S, USUAL_S, seconds};
use holdup_signals::evidence::Evidence;

use crate::stages::{outlook, per_second};
use crate::strength::{CERTAIN, FAIR, NONE, STRONG, Strength, WEAK};

/// Users notice data this old, seconds.
const FAR_S: f64 = 60.0;

/// A consumer that takes nothing for this long is taken for dead, seconds (`max.poll.interval.ms`).
const POLL_S: f64 = 300.0;

/// Producers that send this many times as much as before make a burst.
const BURST: f64 = 1.3;

/// A group that takes less than this share of what it took has become slower.
pub(super) const SLOWER: f64 = 0.8;

/// A time without a commit is more than a pause if it is this many times as long as the longest pause.
const PAUSES: f64 = 3.0;

/// Fewer commits than these show no pace.
const FEW: usize = 3;

pub(super) type Piece = (Strength, Evidence);

/// What shows that a stage is behind, or that it is not: a piece of no worth clears. None without a lag.
pub(super) fn judged(of: &Course<'_>) -> Option<Piece> {
    let most = of.lag.iter().map(|point| point.1).reduce(f64::max)?;
    if most < USUAL_S {
        return Some(piece(of, NONE, most, &format!("is at most {} s behind", thousands(most))));
    }
    let (since, peak) = of.growth()?;
    let commits = of.commits(peak);
    if commits.is_empty() && !of.had_members() && since.is_none() {
        let lag = of.lag_at(i64::MAX);
        let text = format!(
            "is {} s behind and has read nothing since before the recording: left over, or stopped",
            thousands(lag)
        );
        return Some(piece(of, WEAK, lag, &text));
    }
    let from = since.unwrap_or(of.window.from);
    Some(stopped(of, from, peak, &commits).unwrap_or_else(|| slow(of, since, peak, &commits)))
}

/// It takes nothing any more.
fn stopped(of: &Course<'_>, from: i64, peak: i64, commits: &[i64]) -> Option<Piece> {
    let longest = commits.windows(2).map(|pair| seconds(pair[0], pair[1])).fold(USUAL_S, f64::max);
    // Where its figures end before the peak, nothing says what it did then.
    let seen = of.done.last().map_or(peak, |point| point.0.min(peak));
    let pause = seconds(*commits.last().unwrap_or(&from), seen);
    let lag = of.lag_at(peak);
    let takes = if of.unit == "records" { "commits" } else { "takes" };
    let (strength, why) = match () {
        // A program that assigns itself its partitions commits without being a member.
        () if of.had_members() && of.is_empty(from, peak) && pause >= USUAL_S => {
            (CERTAIN, "it has no member any more".to_owned())
        }
        () if !commits.is_empty() && pause >= PAUSES * longest => (STRONG, format!("it {takes} nothing any more")),
        () if commits.is_empty() && lag >= POLL_S => (FAIR, format!("it {takes} nothing")),
        () => return None,
    };
    let comes = of.rates(from, peak).map(|(comes, _)| comes);
    // Where nothing comes in, it has nothing to take.
    if comes == Some(0.0) {
        return None;
    }
    let comes = comes.map_or_else(String::new, |rate| format!(", while {} come in", per_second(of, rate)));
    let text = format!("has stopped: {why} for {} s{comes}; it is {} s behind", thousands(pause), thousands(lag));
    Some(piece(of, strength * (lag / FAR_S), lag, &(text + &rebalanced(of, from, peak) + &outlook(of))))
}

/// It takes less than comes in.
fn slow(of: &Course<'_>, since: Option<i64>, peak: i64, commits: &[i64]) -> Piece {
    let from = since.unwrap_or(of.window.from);
    let at_peak = of.lag_at(peak);
    if seconds(from, peak) < ENOUGH_S {
        let now = thousands(of.lag_at(i64::MAX));
        return piece(of, NONE, at_peak, &format!("was {} s behind, and is {now} s behind now", thousands(at_peak)));
    }
    if commits.iter().filter(|at| **at >= from).count() < FEW {
        let text = format!("commits rarely, and is up to {} s behind before it does", thousands(at_peak));
        return piece(of, NONE, at_peak, &text);
    }
    let lag = of.least_lag(peak - peak.saturating_sub(from) / 3, peak);
    let Some((comes, goes)) = of.rates(from, peak) else {
        return piece(of, NONE, lag, &format!("is {} s behind for a moment", thousands(lag)));
    };
    let flow = format!("{} come in and it takes {}", per_second(of, comes), per_second(of, goes));
    if lag < USUAL_S || goes >= comes {
        return piece(of, NONE, lag, &format!("falls no further behind than {} s: {flow}", thousands(at_peak)));
    }
    let before = since.and_then(|at| of.rates(of.window.from, at));
    let (strength, than) = match before {
        Some((came, went)) if comes > BURST * came && goes >= SLOWER * went => {
            let (lag_s, came) = (thousands(lag), per_second(of, came));
            let text = format!(
                "is at least {lag_s} s behind because producers send more: {came} came in before, now {flow}{}",
                outlook(of)
            );
            return piece(of, NONE, lag, &text);
        }
        Some((came, went)) => (CERTAIN, format!(", before {} and {}", per_second(of, came), per_second(of, went))),
        None => (FAIR, "; how it was before is not recorded".to_owned()),
    };
    let text = format!("does not keep up: it is at least {} s behind, {flow}{than}", thousands(lag));
    piece(of, strength * (lag / FAR_S), lag, &(text + &rebalanced(of, from, peak) + &outlook(of)))
}

/// `; its partitions were given out anew 4 times meanwhile`
fn rebalanced(of: &Course<'_>, from: i64, to: i64) -> String {
    match of.rebalances(from, to) {
        // One is how a member comes or goes.
        few if few < 2.0 => String::new(),
        many => format!("; its partitions were given out anew {many:.0} times meanwhile"),
    }
}

pub(super) fn piece(of: &Course<'_>, strength: Strength, lag: f64, text: &str) -> Piece {
    let (observed, text) = (format!("{} s", thousands(lag)), format!("{} {text}", of.name));
    (strength, Evidence::new("samples", "value", of.labels.clone(), of.window, observed, "a few seconds", text))
}
