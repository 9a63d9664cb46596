//! Episodes: stretches in which response time stood far above the recording's baseline. holdup
//! finds them all by itself, without being told where to look.
//!
//! The method takes one figure of every second: the response time of the requests due in it, with
//! unfinished ones at their age. If no request was due because all were waiting, it is the age of
//! the oldest in flight. Then:
//!
//! 1. *Spikes* are removed by a running median of five seconds, on the logarithm, because slowness
//!    multiplies.
//! 2. *Change points*: the series is cut where a cut lowers the sum of squares by more than noise
//!    would. Noise is measured between adjacent points, so neither levels nor slow drifts count as
//!    noise. The penalty for a cut is Schwarz's (G. Schwarz, Annals of Statistics 6(2), 1978),
//!    times what smoothing and autocorrelated noise need. The best set of cuts is found exactly (B.
//!    Jackson and others, IEEE Signal Processing Letters 12(2), 2005: optimal partitioning).
//! 3. *Levels*: the baseline is the level of the fastest quarter of the time. A piece is degraded
//!    from [`SLOWER`] times that and [`SLOWER_BY_MS`] more. Pieces between two degraded ones belong
//!    to the episode unless they return to near the baseline.
//!
//! A single slow second is not an episode, and neither is a slow drift by a factor of two or three.

use super::Window;
use super::client::Second;

/// A piece is degraded from this many times the baseline. On shared machines a healthy second's
/// median moves by a factor of two to three.
const SLOWER: f64 = 5.0;

/// … and this many milliseconds above it.
const SLOWER_BY_MS: f64 = 5.0;

/// Between two degraded pieces, a piece of at least this many times the baseline is still part of
/// the episode.
const NOT_BACK: f64 = 2.5;

/// Shortest episode, seconds; it also needs as many points.
const LEAST_SECONDS: f64 = 5.0;
const LEAST_POINTS: usize = 3;

/// Seconds of the running median: the middle one and two on either side.
const SMOOTHED: usize = 5;

/// Most points to search: longer series are pooled, because the search for cuts takes quadratic
/// time.
const MOST_POINTS: usize = 1_500;

/// The baseline is the level of this share (0-1) of the time, the fastest.
const CALM_SHARE: f64 = 0.25;

/// Least noise assumed between adjacent points, as a logarithm: a tenth.
const LEAST_NOISE: f64 = 0.1;

/// Times Schwarz's penalty: a running median of five makes adjacent points alike, and so does
/// autocorrelated noise.
const PENALTY: f64 = 6.0;

/// Response times below this do not differ from zero, milliseconds.
const LEAST_MS: f64 = 0.05;

/// A stretch of degraded response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// When.
    pub window: Window,
    /// Its level: the median of its seconds' middle response times, milliseconds.
    pub level_ms: f64,
    /// The recording's baseline, milliseconds.
    pub calm_ms: f64,
}

/// One point of the series.
#[derive(Clone, Copy, Debug)]
struct Point {
    window: Window,
    log_ms: f64,
}

/// The episodes in `seconds`, in time order.
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
            // The pieces in between do not return to near the baseline.
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

/// The middle of a second's response times, which a few slow requests move little and half of them
/// do: the geometric mean of three percentiles. None if no request was due and none in flight.
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

/// Pools the points to as few as can be searched: medians of adjacent ones.
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

/// Standard deviation of the noise between adjacent points: by the median of their differences,
/// which few levels and spikes move.
fn noise(values: &[f64]) -> f64 {
    let differences: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    (median(&differences) / (0.674_5 * std::f64::consts::SQRT_2)).max(LEAST_NOISE)
}

/// Cuts the series into pieces of one level each, as index ranges: the set of cuts with the least
/// sum of squares and penalties.
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

/// The level of the fastest [`CALM_SHARE`] of the time.
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
