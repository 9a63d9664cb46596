//! Each group and topic: how far behind, since when, and whether what comes in or what goes out changed.

use holdup_recording::Labels;
use holdup_recording::metrics::kafka as metric;
use holdup_recording::words::thousands;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use super::course::{Course, ENOUGH_S, USUAL_S, seconds};
use crate::causes::parts::present::Shown;
use crate::strength::{CERTAIN, FAIR, NONE, STRONG, Strength, WEAK};

/// Users notice data this old, seconds.
const FAR_S: f64 = 60.0;

/// A consumer that takes nothing for this long is taken for dead, seconds (`max.poll.interval.ms`).
const POLL_S: f64 = 300.0;

/// Producers that send this many times as much as before make a burst.
const BURST: f64 = 1.3;

/// A group that takes less than this share of what it took has become slower.
const SLOWER: f64 = 0.8;

/// A time without a commit is more than a pause if it is this many times as long as the longest pause.
const PAUSES: f64 = 3.0;

/// Fewer commits than these show no pace.
const FEW: usize = 3;

/// Most stages that are named, the worst first.
const SHOWN: usize = 4;

type Piece = (Strength, Evidence);

/// What shows that stages are behind, the worst first; pieces of no worth clear.
pub(super) fn shown(view: &View<'_>) -> Shown {
    let mut all: Shown = Course::all(view).filter_map(|of| judged(&of)).collect();
    all.sort_by(|a, b| b.0.chance().total_cmp(&a.0.chance()));
    all.truncate(SHOWN);
    all
}

fn judged(of: &Course<'_>) -> Option<Piece> {
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
    let pause = seconds(*commits.last().unwrap_or(&from), peak);
    let lag = of.lag_at(peak);
    let (strength, why) = match () {
        // A program that assigns itself its partitions commits without being a member.
        () if of.had_members() && of.is_empty(from, peak) && pause >= USUAL_S => (CERTAIN, "it has no member any more"),
        () if !commits.is_empty() && pause >= PAUSES * longest => (STRONG, "it commits nothing any more"),
        () if commits.is_empty() && lag >= POLL_S => (FAIR, "it commits nothing"),
        () => return None,
    };
    let comes = of.rates(from, peak).map(|(comes, _)| comes);
    // Where nothing comes in, it has nothing to take.
    if comes == Some(0.0) {
        return None;
    }
    let comes = comes.map_or_else(String::new, |rate| format!(", while {}/s come in", thousands(rate)));
    let text = format!("has stopped: {why} for {} s{comes}; it is {} s behind", thousands(pause), thousands(lag));
    Some(piece(of, strength * (lag / FAR_S), lag, &(text + &rebalanced(of, from, peak))))
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
    let flow = format!("{}/s come in and it takes {}/s", thousands(comes), thousands(goes));
    if lag < USUAL_S || goes >= comes {
        return piece(of, NONE, lag, &format!("falls no further behind than {} s: {flow}", thousands(at_peak)));
    }
    let before = since.and_then(|at| of.rates(of.window.from, at));
    let (strength, than) = match before {
        Some((came, went)) if comes > BURST * came && goes >= SLOWER * went => {
            let (lag_s, came) = (thousands(lag), thousands(came));
            let text = format!(
                "is at least {lag_s} s behind because producers send more: {came}/s came in before, now {flow}"
            );
            return piece(of, NONE, lag, &text);
        }
        Some((came, went)) => (CERTAIN, format!(", before {}/s and {}/s", thousands(came), thousands(went))),
        None => (FAIR, "; how it was before is not recorded".to_owned()),
    };
    let text = format!("does not keep up: it is at least {} s behind, {flow}{than}", thousands(lag));
    piece(of, strength * (lag / FAR_S), lag, &(text + &rebalanced(of, from, peak)))
}

/// `; its partitions were given out anew 4 times meanwhile`
fn rebalanced(of: &Course<'_>, from: i64, to: i64) -> String {
    match of.rebalances(from, to) {
        // One is how a member comes or goes.
        few if few < 2.0 => String::new(),
        many => format!("; its partitions were given out anew {many:.0} times meanwhile"),
    }
}

fn piece(of: &Course<'_>, strength: Strength, lag: f64, text: &str) -> Piece {
    let labels = of.labels.iter().fold(Labels::new([("metric", metric::LAG.name)]), |all, (k, v)| all.with(k, v));
    let (observed, text) = (format!("{} s", thousands(lag)), format!("{} {text}", of.name()));
    (strength, Evidence::new("samples", "value", labels, of.window, observed, "a few seconds", text))
}
