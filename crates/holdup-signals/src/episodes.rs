//! Episodes: stretches in which response time stood at a far higher level than the recording's own calm level, found without being
//! told where to look, as many as there are.
//!
//! The method. Of every second one figure is taken: what requests that were due in it took, those that did not finish at their age;
//! of a second in which none was due because all were waiting, the age of the oldest under way. Then:
//!
//! 1. *Spikes* go: a running median of five seconds, on the logarithm, as slowness multiplies.
//! 2. *Change points*: the series is cut where cutting lowers the sum of squares by more than noise gives. Noise is measured between
//!    neighbours, so that neither levels nor slow drifts count as noise; the penalty for a cut is Schwarz's (G. Schwarz, Annals
//!    of Statistics 6(2), 1978), times what the smoothing and noise with a memory need. The best set of cuts is found exactly
//!    (B. Jackson and others, IEEE Signal Processing Letters 12(2), 2005: optimal partitioning).
//! 3. *Levels*: the calm one is that of the quickest quarter of the time. A piece is degraded from [`SLOWER`] times that on and
//!    [`SLOWER_BY_MS`] more; what lies between two degraded pieces and is not back near calm belongs to them.
//!
//! A second that is slow by itself is no episode, and a slow drift of a factor of two or three is none either.

use super::Window;
use super::client::Second;

/// Times the calm level from which on a piece is degraded. On shared machines a healthy second's median moves by a factor of two
/// to three.
const SLOWER: f64 = 5.0;

/// … and milliseconds that it has to be above it.
const SLOWER_BY_MS: f64 = 5.0;

/// Between two degraded pieces, a piece of this many times the calm level or more is still part of the episode.
const NOT_BACK: f64 = 2.5;

/// Shorter than this no stretch is an episode, seconds; nor is one of fewer points.
const LEAST_SECONDS: f64 = 5.0;
const LEAST_POINTS: usize = 3;

/// Seconds for the running median, one to the left and right of the middle twice.
const SMOOTHED: usize = 5;

/// Points that are looked at, at most: longer series are pooled, as the search for cuts takes the square of it.
const MOST_POINTS: usize = 1_500;

/// The calm level is that of this share (0-1) of the time, the quickest.
const CALM_SHARE: f64 = 0.25;

/// Least noise that is assumed between neighbours, as a logarithm: a tenth.
const LEAST_NOISE: f64 = 0.1;

/// Times Schwarz's penalty: a running median of five leaves neighbours alike, and so does noise with a memory.
const PENALTY: f64 = 6.0;

/// Less than this is no different from nothing, milliseconds.
const LEAST_MS: f64 = 0.05;

/// A stretch of degraded response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// When.
    pub window: Window,
    /// Its level: the median of its seconds' middle response times, milliseconds.
    pub level_ms: f64,
    /// The recording's calm level, milliseconds.
    pub calm_ms: f64,
}

/// One point of the series.
#[derive(Clone, Copy, Debug)]
struct Point {
    window: Window,
    log_ms: f64,
}

/// Episodes in `seconds`, in time order.
pub fn find(seconds: &[Second]) -> Vec<Episode> {
    let points = pooled(&seconds.iter().filter_map(point).collect::<Vec<_>>());
    if points.len() < 2 * LEAST_POINTS {
        return Vec::new();
    }
    let raw: Vec<f64> = points.iter().map(|p| p.log_ms).collect();
    let smooth = running_median(&raw);
    let pieces = pieces(&smooth, noise(&raw));
    let levels: Vec<f64> = pieces.iter().map(|(a, b)| median(&raw[*a..*b])).collect();
    let calm = calm(&pieces, &levels);
    let (calm_ms, ms) = (calm.exp(), |level: f64| level.exp());
    let is_degraded = |level: f64| ms(level) >= SLOWER * calm_ms && ms(level) >= calm_ms + SLOWER_BY_MS;
    let is_back = |level: f64| ms(level) < NOT_BACK * calm_ms;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (i, level) in levels.iter().enumerate() {
        if !is_degraded(*level) {
            continue;
        }
        match runs.last_mut() {
            // What lies between is not back near calm.
            Some(run) if levels[run.1..i].iter().all(|between| !is_back(*between)) => run.1 = i + 1,
            _ => runs.push((i, i + 1)),
        }
    }
    let episode = |(from, to): (usize, usize)| {
        let (a, b) = (pieces[from].0, pieces[to - 1].1);
        let window = Window { from: points[a].window.from, to: points[b - 1].window.to };
        let is_long = window.seconds() >= LEAST_SECONDS && b - a >= LEAST_POINTS;
        is_long.then(|| Episode { window, level_ms: median(&raw[a..b]).exp(), calm_ms })
    };
    runs.into_iter().filter_map(episode).collect()
}

/// The middle of a second's response times, so that a few slow ones move it little and half of them do: the geometric mean of three
/// percentiles. None where nothing was due and nothing under way.
fn point(second: &Second) -> Option<Point> {
    let ms = match (second.quantile(0.5), second.quantile(0.75), second.quantile(0.9)) {
        (Some(a), Some(b), Some(c)) => {
            let log = |ms: f64| ms.max(LEAST_MS).ln();
            return Some(Point { window: second.window, log_ms: (log(a) + log(b) + log(c)) / 3.0 });
        }
        _ => second.waiting_ms?,
    };
    Some(Point { window: second.window, log_ms: ms.max(LEAST_MS).ln() })
}

/// As few points as can be searched: medians of neighbours.
fn pooled(points: &[Point]) -> Vec<Point> {
    let each = points.len().div_ceil(MOST_POINTS).max(1);
    let pool = |part: &[Point]| Point {
        window: Window { from: part[0].window.from, to: part[part.len() - 1].window.to },
        log_ms: median(&part.iter().map(|p| p.log_ms).collect::<Vec<_>>()),
    };
    points.chunks(each).map(pool).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

fn running_median(values: &[f64]) -> Vec<f64> {
    let half = SMOOTHED / 2;
    (0..values.len()).map(|i| median(&values[i.saturating_sub(half)..(i + half + 1).min(values.len())])).collect()
}

/// Deviation of the noise between neighbours: by the median of their differences, which few levels and spikes move.
fn noise(values: &[f64]) -> f64 {
    let differences: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    (median(&differences) / (0.674_5 * std::f64::consts::SQRT_2)).max(LEAST_NOISE)
}

/// The series cut into pieces of one level each, as index ranges: the set of cuts with the least sum of squares and penalties.
fn pieces(values: &[f64], noise: f64) -> Vec<(usize, usize)> {
    let n = values.len();
    let penalty = PENALTY * noise * noise * (n as f64).ln();
    let (mut sums, mut squares) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for (i, value) in values.iter().enumerate() {
        sums[i + 1] = sums[i] + value;
        squares[i + 1] = squares[i] + value * value;
    }
    let cost = |a: usize, b: usize| {
        let (sum, count): (f64, f64) = (sums[b] - sums[a], (b - a) as f64);
        (squares[b] - squares[a] - sum * sum / count).max(0.0)
    };
    let mut best = vec![f64::INFINITY; n + 1];
    let mut from = vec![0; n + 1];
    best[0] = -penalty;
    for end in LEAST_POINTS..=n {
        for start in 0..=end - LEAST_POINTS {
            let total = best[start] + penalty + cost(start, end);
            if total < best[end] {
                (best[end], from[end]) = (total, start);
            }
        }
    }
    let (mut cuts, mut at) = (Vec::new(), n);
    while at > 0 {
        cuts.push((from[at], at));
        at = from[at];
    }
    cuts.reverse();
    cuts
}

/// The level of the quickest [`CALM_SHARE`] of the time.
fn calm(pieces: &[(usize, usize)], levels: &[f64]) -> f64 {
    let mut by_level: Vec<(f64, usize)> = levels.iter().zip(pieces).map(|(level, (a, b))| (*level, b - a)).collect();
    by_level.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: usize = by_level.iter().map(|(_, count)| count).sum();
    let mut taken = 0;
    for (level, count) in by_level {
        taken += count;
        if taken as f64 >= CALM_SHARE * all as f64 {
            return level;
        }
    }
    0.0
}
