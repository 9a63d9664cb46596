//! Episodes: stretches in which response time stood clearly above the recording's baseline. holdup
//! finds them all by itself, without being told where to look.
//!
//! The method takes three figures of every second: the middle of the response times of the requests
//! due in it, with unfinished ones at their age, their mean, and their 95th percentile, which a slow
//! tenth of the requests moves. If no request was due because all were waiting, each is the age of
//! the oldest in flight. Then, for each of the three:
//!
//! 1. *Spikes* are removed by a running median of five seconds, on the logarithm, because slowness
//!    multiplies.
//! 2. *Change points*: the series is cut where a cut lowers the sum of squares by more than noise
//!    would. Noise is measured between adjacent points, so neither levels nor slow drifts count as
//!    noise. The penalty for a cut is Schwarz's (G. Schwarz, Annals of Statistics 6(2), 1978),
//!    times what smoothing and autocorrelated noise need. The best set of cuts is found exactly (B.
//!    Jackson and others, IEEE Signal Processing Letters 12(2), 2005: optimal partitioning).
//! 3. *Levels*: the baseline is the level of the fastest quarter of the time, and every level that
//!    steps of less than [`STEP`] lead to: a jump makes an episode, a drift does not. A piece is degraded if
//!    it stands a factor of [`JUMP`] above all of these and further from the baseline than noise
//!    moves a level, or [`SLOWER`] times above the baseline. Pieces between two degraded ones belong
//!    to the episode unless they return to near the baseline.
//!
//! A single slow second is not an episode, and neither is a slow drift by a factor of two or three.

use crate::Window;
use crate::time::requests::Second;

/// A piece is degraded from this many times the baseline on, however it got there: a drift of two
/// or three is ordinary on shared machines.
const SLOWER: f64 = 5.0;

/// … and this many milliseconds above it.
const SLOWER_BY_MS: f64 = 5.0;

/// A piece is degraded from this many times the highest level of the baseline on, too.
const JUMP: f64 = 1.6;

/// … and this many milliseconds above it: less is a matter of where a process happened to run.
const JUMP_BY_MS: f64 = 0.2;

/// A level within this factor of one that belongs to the baseline belongs to it as well, if the
/// service rests there for [`LEAST_SECONDS`].
const STEP: f64 = 1.5;

/// A jump is this many times the error by which noise moves the difference of two levels.
const CLEAR: f64 = 5.0;

/// Shortest episode, seconds; it also needs as many points.
const LEAST_SECONDS: f64 = 5.0;
const LEAST_POINTS: usize = 3;

/// Seconds of the running median: the middle one and two on either side.
const SMOOTHED: usize = 5;

/// Most points to search: longer series are pooled, because the search for cuts takes quadratic
/// time.
const MOST_POINTS: usize = 1_500;

/// The baseline is the level of this share (0-1) of the time, the fastest.
const BASELINE_SHARE: f64 = 0.25;

/// Least noise assumed between adjacent points, as a logarithm: a tenth.
const LEAST_NOISE: f64 = 0.1;

/// Times Schwarz's penalty: a running median of five makes adjacent points alike, and so does
/// autocorrelated noise.
const PENALTY: f64 = 6.0;

/// Response times below this do not differ from zero, milliseconds.
const LEAST_MS: f64 = 0.05;

/// A figure of a second's response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// The geometric mean of three percentiles, which a few slow requests move little and half of
    /// them do.
    Middle,
    /// The mean.
    Mean,
    /// The 95th percentile.
    P95,
}

impl Figure {
    const ALL: [Self; 3] = [Self::Middle, Self::Mean, Self::P95];

    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Middle => "response time",
            Self::Mean => "mean response time",
            Self::P95 => "p95",
        }
    }

    /// Its value, milliseconds.
    fn ms(self, second: &Second) -> Option<f64> {
        match self {
            Self::Middle => {
                let log = |q: f64| second.quantile(q).map(|ms| ms.max(LEAST_MS).ln());
                Some(((log(0.5)? + log(0.75)? + log(0.9)?) / 3.0).exp())
            }
            Self::Mean => second.response_ms.mean(),
            Self::P95 => second.quantile(0.95),
        }
    }
}

/// A stretch of degraded response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// When.
    pub window: Window,
    /// Its level: the median of its seconds' middle response times, milliseconds.
    pub level_ms: f64,
    /// The recording's baseline, milliseconds.
    pub baseline_ms: f64,
    /// The figure that both are of.
    pub figure: Figure,
}

impl Episode {
    /// How many times the baseline its level is.
    pub fn ratio(&self) -> f64 {
        self.level_ms / self.baseline_ms.max(LEAST_MS)
    }
}

/// One point of the series.
#[derive(Clone, Copy, Debug)]
struct Point {
    window: Window,
    log_ms: f64,
}

/// The episodes in `seconds`, in time order.
pub fn find(seconds: &[Second]) -> Vec<Episode> {
    let mut all: Vec<Episode> = Figure::ALL.into_iter().flat_map(|figure| in_series(seconds, figure)).collect();
    all.sort_by_key(|episode| (episode.window.from, episode.window.to));
    let mut joined: Vec<Episode> = Vec::new();
    for episode in all {
        match joined.last_mut() {
            Some(before) if episode.window.from < before.window.to => {
                let window = Window { from: before.window.from, to: before.window.to.max(episode.window.to) };
                // What shows in the middle is best said by the middle.
                let plainest = if episode.figure < before.figure { episode } else { *before };
                *before = Episode { window, ..plainest };
            }
            _ => joined.push(episode),
        }
    }
    joined
}

/// The episodes by one figure of each second.
fn in_series(seconds: &[Second], figure: Figure) -> Vec<Episode> {
    let points = pooled(&seconds.iter().filter_map(|second| point(second, figure.ms(second))).collect::<Vec<_>>());
    if points.len() < 2 * LEAST_POINTS {
        return Vec::new();
    }
    let raw: Vec<f64> = points.iter().map(|p| p.log_ms).collect();
    let noise = noise(&raw);
    let pieces = pieces(&running_median(&raw), noise);
    let levels: Vec<f64> = pieces.iter().map(|(a, b)| median(&raw[*a..*b])).collect();
    let seconds = |(a, b): &(usize, usize)| (points[b - 1].window.to - points[*a].window.from) as f64 * 1e-9;
    let known: Vec<Level> = levels
        .iter()
        .zip(&pieces)
        .map(|(level, piece)| Level { level: *level, points: piece.1 - piece.0, seconds: seconds(piece) })
        .collect();
    let baseline = Baseline::new(known, noise);
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (i, level) in levels.iter().enumerate() {
        // What is slow from the start and then quick may only have warmed up.
        let has_before = levels[..i].iter().any(|before| *before <= baseline.highest);
        let is_jump = has_before && baseline.is_jump(*level, pieces[i].1 - pieces[i].0);
        if !is_jump && !baseline.is_far(*level) {
            continue;
        }
        match runs.last_mut() {
            // The pieces in between do not return to near the baseline.
            Some(run) if levels[run.1..i].iter().all(|between| !baseline.is_near(*between, *level)) => run.1 = i + 1,
            _ => runs.push((i, i + 1)),
        }
    }
    let episode = |(from, to): (usize, usize)| {
        let (a, b) = (pieces[from].0, pieces[to - 1].1);
        let window = Window { from: points[a].window.from, to: points[b - 1].window.to };
        let is_long = window.seconds() >= LEAST_SECONDS && b - a >= LEAST_POINTS;
        let (level_ms, baseline_ms) = (median(&raw[a..b]).exp(), baseline.level.exp());
        is_long.then_some(Episode { window, level_ms, baseline_ms, figure })
    };
    runs.into_iter().filter_map(episode).collect()
}

/// The level of a piece.
struct Level {
    /// As a logarithm.
    level: f64,
    /// Points of the piece.
    points: usize,
    /// Its length.
    seconds: f64,
}

/// The level that episodes stand above, as logarithms.
struct Baseline {
    /// Level of the fastest [`BASELINE_SHARE`] of the time.
    level: f64,
    /// Highest level that small steps lead to from there.
    highest: f64,
    /// Points at these levels.
    points: usize,
    /// Noise of one point.
    noise: f64,
}

impl Baseline {
    fn new(mut levels: Vec<Level>, noise: f64) -> Self {
        levels.sort_by(|a, b| a.level.total_cmp(&b.level));
        let all: usize = levels.iter().map(|of| of.points).sum();
        let (mut level, mut highest, mut points) = (0.0, 0.0, 0);
        for of in levels {
            let is_baseline = (points as f64) < BASELINE_SHARE * all as f64;
            if is_baseline {
                level = of.level;
            } else if of.level - highest >= STEP.ln() {
                break;
            }
            // A short piece is the edge of an episode: nothing rests there.
            if is_baseline || of.seconds >= LEAST_SECONDS {
                highest = of.level;
                points += of.points;
            }
        }
        Self { level, highest, points, noise }
    }

    /// Whether a piece of `points` at `level` is higher than steps and noise explain.
    fn is_jump(&self, level: f64, points: usize) -> bool {
        let error = self.noise * (1.0 / points.max(1) as f64 + 1.0 / self.points.max(1) as f64).sqrt();
        level - self.highest >= JUMP.ln()
            && level.exp() >= self.level.exp() + JUMP_BY_MS
            && level - self.level >= CLEAR * error
    }

    /// Whether `level` is degraded by any path.
    fn is_far(&self, level: f64) -> bool {
        let (ms, baseline_ms) = (level.exp(), self.level.exp());
        ms >= SLOWER * baseline_ms && ms >= baseline_ms + SLOWER_BY_MS
    }

    /// Whether `level` is nearer to the baseline than to the degraded level `after`.
    fn is_near(&self, level: f64, after: f64) -> bool {
        level - self.level < 0.5 * (after - self.level)
    }
}

/// The point of a second; none if no request was due and none in flight.
fn point(second: &Second, ms: Option<f64>) -> Option<Point> {
    let ms = ms.or(second.waiting_ms)?;
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
