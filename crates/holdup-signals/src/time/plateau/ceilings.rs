//! Ceilings: levels that a rate stays at while more is demanded. They are found in single series
//! and in sums of series, whose parts may be arbitrarily ragged, and whether or not the limit is
//! known. Rules decide which limit a level is, and whose.
//!
//! The method needs two figures of every interval: the rate, and how much was queued or in service.
//!
//! 1. *Levels*: the densest bands of rates (each as wide as [`NEAR`] to both sides) among intervals
//!    with a queue; there may be several, as with a burst and a baseline.
//! 2. *Runs*: a level's intervals in time, cut where the rate stays above it or at another level.
//!    Gaps in the recording and intervals with a shorter queue do not cut, because they had less
//!    demand.
//! 3. *Flatness*: within a run, most intervals with as long a queue are at the level ([`AT_LEVEL`])
//!    and hardly any above it ([`ABOVE`]). The medians of the run's three thirds agree ([`DRIFT`],
//!    plus the noise between adjacent intervals), which those of a slow drift or of the rounded top
//!    of a daily curve do not.
//! 4. *Demand*: by Little's law (J. D. C. Little, Operations Research 9(3), 1961) the number in a
//!    system is rate times wait. Below a limit the wait is constant, so queue and rate move
//!    together; at a limit the rate is constant and only the queue moves. If there are quieter
//!    intervals, the wait at the level must be [`LONGER`] times theirs. If there are none, a queue
//!    that follows the rate up and down (a correlation beyond chance, by Student's t) shows a
//!    demand that is met. If neither moves, the rate is a ceiling as far as the data can tell,
//!    marked [`Demand::Standing`].
//!
//! A rate without its queue is out of scope: a level by itself proves nothing.

use crate::Window;

/// A rate within this share (0-1) of a level is at it: intervals miss by a few per cent, and so do
/// a token bucket's burst and a late read.
const NEAR: f64 = 0.06;

/// Least number of intervals at a level, and in one run of it.
const LEAST_INTERVALS: usize = 8;
const LEAST_IN_RUN: usize = 5;

/// Least share (0-1) of the intervals with a queue for a level: fewer are chance.
const LEAST_RATIO: f64 = 0.06;

/// Most levels to look for.
const MOST_LEVELS: usize = 4;

/// With fewer operations queued or in service than this, none waits for another.
const QUEUED: f64 = 1.0;

/// An interval with this share (0-1) of the level's own queue has as much demand.
const AS_MUCH: f64 = 0.4;

/// Share (0-1) of a run's intervals with as long a queue that must be at the level: a machine that
/// stalls falls short of a limit.
const AT_LEVEL: f64 = 0.6;

/// … and that may be above it: a limit is not exceeded, but a bucket's burst may show in one
/// interval.
const ABOVE: f64 = 0.05;

/// Intervals above a level, or at another, that end a run.
const ENDS_ABOVE: usize = 2;
const ENDS_ELSEWHERE: usize = 3;

/// Thirds of a run may differ by this share (0-1) of the level, beyond noise.
const DRIFT: f64 = 0.02;

/// An interval is quiet below this share (0-1) of the level, with less than [`FEWER`] of its queue.
/// This many quiet intervals suffice for a comparison.
const QUIETER: f64 = 0.85;
const FEWER: f64 = 0.5;
const LEAST_QUIET: usize = 5;

/// Below this share (0-1) of the level's queue, hardly a request waits. The same rate with so short
/// a queue counts if there are this many times as many such intervals as ones with the queue.
const HARDLY: f64 = 0.25;
const OFTEN: f64 = 0.2;

/// The wait at a ceiling must be this many times that of quiet intervals.
const LONGER: f64 = 1.5;

/// … and this many times that of intervals above it: at a higher limit, which is twice [`NEAR`] or
/// more above, the same queue waits shorter.
const SHORTER: f64 = 1.12;

/// From this value of Student's t, a correlation is not chance (one in a thousand for ten intervals
/// or more, one-sided).
const BEYOND_CHANCE: f64 = 3.3;

/// Change of the rate per change of the queue (logarithms of both) from which a rate follows its
/// queue.
const FOLLOWS: f64 = 0.04;

/// Spread of the queue (logarithm) from which it moves by itself.
const MOVES: f64 = 0.1;

/// Shortest interval with a steady rate, nanoseconds: half a second's rates vary by a tenth where a
/// second's vary by a twentieth (a disk of 6 MB/s with requests of 30 KB).
const STEADY_NS: i64 = 900_000_000;

/// A level from this share (0-1) of a rate's own bound is that bound.
const BOUND: f64 = 0.93;

/// An interval: the rate, and the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueuedRate {
    /// When.
    pub window: Window,
    /// Throughput, per second.
    pub done: f64,
    /// Queued or in service on average.
    pub queued: f64,
}

impl QueuedRate {
    /// Merges both into one.
    fn with(&self, next: &Self) -> Self {
        let (own, other) = (self.window.seconds(), next.window.seconds());
        let mean = |a: f64, b: f64| (a * own + b * other) / (own + other).max(f64::MIN_POSITIVE);
        Self {
            window: Window { from: self.window.from, to: next.window.to },
            done: mean(self.done, next.done),
            queued: mean(self.queued, next.queued),
        }
    }

    /// Time in the queue per unit of throughput, seconds.
    pub(crate) fn wait(&self) -> f64 {
        self.queued / self.done.max(f64::MIN_POSITIVE)
    }
}

/// What shows that more was demanded than done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The wait is longer than in quieter intervals.
    Longer,
    /// The queue varies, and the rate does not.
    Insensitive,
    /// There is a queue, and neither it nor the rate varies.
    Standing,
    /// It is that of the baseline window, and waits many times as long. Without a level: the limit
    /// is near the demand.
    Unchanged,
}

/// A level at which a rate stays while more is demanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Median of the intervals at it, per second.
    pub level: f64,
    /// When, in time order.
    pub stretches: Vec<Window>,
    /// Intervals at it.
    pub intervals: usize,
    /// Their share (0-1) among the intervals with as long a queue in these stretches.
    pub at_level_ratio: f64,
    /// Median of the queue.
    pub queued: f64,
    /// What shows the demand.
    pub demand: Demand,
    /// Whether it is the rate's own bound, as 1 is for a CPU: then the limit is known, not hidden.
    pub is_own_bound: bool,
}

/// A stretch before a ceiling with a higher rate, never reached again: the limit was higher, or
/// absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Freer {
    /// From the first interval above the ceiling to the end of the last.
    pub window: Window,
    /// Intervals above it.
    pub intervals: usize,
    /// The highest of their rates, per second.
    pub most: f64,
}

/// The stretch above `ceiling` before it, if it has at least [`ENDS_ABOVE`] intervals and no
/// interval above follows. One later interval may be above, when the higher limit's last tokens are
/// spent.
pub fn freer_before(series: &[QueuedRate], ceiling: &Ceiling) -> Option<Freer> {
    let begun = ceiling.stretches.first()?.from;
    let is_above = |i: &&QueuedRate| i.done > (1.0 + 2.0 * NEAR) * ceiling.level;
    let (before, after): (Vec<&QueuedRate>, Vec<&QueuedRate>) =
        series.iter().filter(is_above).partition(|i| i.window.from < begun);
    let (first, last) = (before.first()?, before.last()?);
    let most = before.iter().map(|i| i.done).fold(0.0, f64::max);
    let window = Window { from: first.window.from, to: last.window.to };
    (before.len() >= ENDS_ABOVE && after.len() < ENDS_ABOVE).then_some(Freer { window, intervals: before.len(), most })
}

/// The end of a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// Start of the first interval at the lower level, nanoseconds since the Unix epoch.
    pub at: i64,
    /// Level before, per second.
    pub from: f64,
    /// Level after, per second.
    pub to: f64,
}

/// Adds up series by instant, where each has a sample: a gap in one part is a gap in the sum, never
/// a zero.
pub fn sum(parts: &[Vec<(i64, f64)>]) -> Vec<(i64, f64)> {
    let Some((first, rest)) = parts.split_first() else { return Vec::new() };
    let at = |part: &[(i64, f64)], at: i64| part.binary_search_by_key(&at, |(t, _)| *t).ok().map(|i| part[i].1);
    let whole = |&(t, value): &(i64, f64)| {
        rest.iter().map(|part| at(part, t)).try_fold(value, |sum, part| Some(sum + part?)).map(|sum| (t, sum))
    };
    first.iter().filter_map(whole).collect()
}

/// The ceilings of a rate, by the start of their first stretch. `bound` is the rate's own bound, if
/// it has one.
pub fn ceilings(intervals: &[QueuedRate], bound: Option<f64>) -> Vec<Ceiling> {
    let usable = |i: &&QueuedRate| i.done.is_finite() && i.queued.is_finite() && i.done >= 0.0;
    let mut intervals: Vec<QueuedRate> = intervals.iter().filter(usable).copied().collect();
    intervals.sort_by_key(|i| i.window.from);
    let intervals = steady(intervals);
    let levels = levels(&intervals);
    let mut found: Vec<Ceiling> = (0..levels.len()).filter_map(|of| ceiling(&intervals, &levels, of, bound)).collect();
    found.sort_by_key(|c| c.stretches.first().map(|s| s.from));
    found
}

/// Merges intervals shorter than [`STEADY_NS`] with adjacent ones. In a short interval, the time of
/// reading the counters and requests counted at their end would outweigh the effect.
fn steady(intervals: Vec<QueuedRate>) -> Vec<QueuedRate> {
    let mut whole: Vec<QueuedRate> = Vec::new();
    for next in intervals {
        match whole.last_mut() {
            Some(last) if last.window.to - last.window.from < STEADY_NS && last.window.to == next.window.from => {
                *last = last.with(&next);
            }
            _ => whole.push(next),
        }
    }
    whole
}

/// Where a stretch at a higher ceiling is followed by one at a lower: when bursts end.
pub fn falls(ceilings: &[Ceiling]) -> Vec<Fall> {
    let mut stretches: Vec<(Window, f64)> =
        ceilings.iter().flat_map(|c| c.stretches.iter().map(|s| (*s, c.level))).collect();
    stretches.sort_by_key(|(window, _)| window.from);
    let pairs = stretches.windows(2).filter(|pair| pair[1].1 < pair[0].1);
    pairs.map(|pair| Fall { at: pair[1].0.from, from: pair[0].1, to: pair[1].1 }).collect()
}

fn is_near(rate: f64, level: f64) -> bool {
    (rate - level).abs() <= NEAR * level
}

/// Middles of the densest bands, densest first.
fn levels(intervals: &[QueuedRate]) -> Vec<f64> {
    let mut rates: Vec<f64> = intervals.iter().filter(|i| i.queued >= QUEUED && i.done > 0.0).map(|i| i.done).collect();
    rates.sort_by(f64::total_cmp);
    let least = LEAST_INTERVALS.max((LEAST_RATIO * rates.len() as f64).ceil() as usize);
    let mut levels = Vec::new();
    while levels.len() < MOST_LEVELS && rates.len() >= least {
        let (mut best, mut end) = ((0, 0), 0);
        for start in 0..rates.len() {
            end = end.max(start);
            while end < rates.len() && rates[end] <= rates[start] * (1.0 + NEAR) / (1.0 - NEAR) {
                end += 1;
            }
            if end - start > best.1 - best.0 {
                best = (start, end);
            }
        }
        if best.1 - best.0 < least {
            break;
        }
        let level = rates[usize::midpoint(best.0, best.1)];
        rates.retain(|rate| !is_near(*rate, level) && (rate - level).abs() > 1.5 * NEAR * level);
        levels.push(level);
    }
    levels
}

/// The runs of level `of` as ranges of intervals, from the first to the last at it.
fn runs(intervals: &[QueuedRate], levels: &[f64], of: usize) -> Vec<std::ops::Range<usize>> {
    let level = levels[of];
    let elsewhere = |rate: f64| levels.iter().enumerate().any(|(i, l)| i != of && is_near(rate, *l));
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    let (mut above, mut other, mut is_cut) = (0, 0, true);
    for (i, interval) in intervals.iter().enumerate() {
        let has_queue = interval.queued >= QUEUED;
        above = if interval.done > (1.0 + NEAR) * level { above + 1 } else { 0 };
        if is_near(interval.done, level) {
            other = 0;
        } else if has_queue && elsewhere(interval.done) {
            other += 1;
        }
        is_cut |= above >= ENDS_ABOVE || other >= ENDS_ELSEWHERE;
        if !is_near(interval.done, level) || !has_queue {
            continue;
        }
        match runs.last_mut().filter(|_| !is_cut) {
            Some(run) => run.end = i + 1,
            None => runs.push(i..i + 1),
        }
        is_cut = false;
    }
    runs
}

fn ceiling(intervals: &[QueuedRate], levels: &[f64], of: usize, bound: Option<f64>) -> Option<Ceiling> {
    let runs = runs(intervals, levels, of);
    let at_it = |run: &std::ops::Range<usize>| {
        let here = intervals[run.clone()].iter();
        here.filter(|i| i.queued >= QUEUED && is_near(i.done, levels[of])).copied().collect::<Vec<QueuedRate>>()
    };
    let runs: Vec<_> =
        runs.into_iter().map(|run| (at_it(&run), run)).filter(|(at, _)| at.len() >= LEAST_IN_RUN).collect();
    let at: Vec<QueuedRate> = runs.iter().flat_map(|(at, _)| at).copied().collect();
    if at.len() < LEAST_INTERVALS {
        return None;
    }
    let level = median(at.iter().map(|i| i.done))?;
    let queued = median(at.iter().map(|i| i.queued))?;
    let as_much = |i: &&QueuedRate| i.queued >= (AS_MUCH * queued).max(QUEUED);
    let asked: Vec<&QueuedRate> = runs.iter().flat_map(|(_, run)| &intervals[run.clone()]).filter(as_much).collect();
    let near = asked.iter().filter(|i| is_near(i.done, level)).count() as f64 / asked.len().max(1) as f64;
    let above = |by: f64| asked.iter().filter(|i| i.done > (1.0 + by) * level).count();
    // One slightly above is a late read of the counters; the interval before it is as much below.
    let exceeded = if above(2.0 * NEAR) == 0 { above(NEAR).saturating_sub(1) } else { above(NEAR) };
    let above = exceeded as f64 / asked.len().max(1) as f64;
    let longest = runs.iter().max_by_key(|(at, _)| at.len())?;
    if near < AT_LEVEL || above > ABOVE || !is_level(&longest.0, level) {
        return None;
    }
    let demand = demand(intervals, &at, level, queued)?;
    let is_own_bound = bound.is_some_and(|bound| level >= BOUND * bound);
    let stretch = |run: &std::ops::Range<usize>| Window {
        from: intervals[run.start].window.from,
        to: intervals[run.end - 1].window.to,
    };
    let stretches = runs.iter().map(|(_, run)| stretch(run)).collect();
    Some(Ceiling { level, stretches, intervals: at.len(), at_level_ratio: near, queued, demand, is_own_bound })
}

/// Whether a run neither rises nor falls nor bends: the medians of its thirds agree, apart from the
/// noise between adjacent intervals.
fn is_level(at: &[QueuedRate], level: f64) -> bool {
    let third = at.len() / 3;
    let of = |part: &[QueuedRate]| median(part.iter().map(|i| i.done)).unwrap_or(level);
    let thirds = [of(&at[..third]), of(&at[third..at.len() - third]), of(&at[at.len() - third..])];
    let (least, most) = thirds.iter().fold((f64::MAX, f64::MIN), |(a, b), t| (a.min(*t), b.max(*t)));
    // Adjacent values differ by √2 of the noise (J. von Neumann 1941); a median of n is 1.25/√n of
    // it off.
    let steps = median(at.windows(2).map(|pair| (pair[1].done - pair[0].done).abs())).unwrap_or(0.0);
    let noise = 1.4826 * steps / std::f64::consts::SQRT_2;
    most - least <= DRIFT * level + 2.5 * 1.25 * noise / (third.max(1) as f64).sqrt()
}

/// What shows that more was demanded while the rate stood at `level`; none if nothing does.
fn demand(all: &[QueuedRate], at: &[QueuedRate], level: f64, queued: f64) -> Option<Demand> {
    let wait = median(at.iter().map(QueuedRate::wait))?;
    let (slope, t, spread) = follows(at);
    let moves_alone = spread >= MOVES && slope < FOLLOWS;
    let is_quiet = |i: &&QueuedRate| i.done > 0.0 && i.done < QUIETER * level && i.queued < FEWER * queued;
    let quiet: Vec<f64> = all.iter().filter(is_quiet).map(QueuedRate::wait).collect();
    if t > BEYOND_CHANCE && slope >= FOLLOWS {
        return None;
    }
    // If the rate is the same with hardly any queue, it is that of the demand, which is met; only
    // the wait varies.
    let is_free = |i: &&QueuedRate| i.queued < (HARDLY * queued).max(QUEUED);
    let free: Vec<f64> = all.iter().filter(is_free).map(|i| i.done).collect();
    if free.len() as f64 >= OFTEN * at.len() as f64
        && median(free.iter().copied()).is_some_and(|rate| is_near(rate, level))
    {
        return None;
    }
    // An interval with a higher rate and as long a wait was not at a limit; below one, the wait
    // would be longer.
    let above: Vec<f64> = all.iter().filter(|i| i.done > (1.0 + 2.0 * NEAR) * level).map(QueuedRate::wait).collect();
    if above.len() >= LEAST_QUIET
        && !(moves_alone && spread >= 3.0 * MOVES)
        && wait < SHORTER * median(above.iter().copied())?
    {
        return None;
    }
    if quiet.len() >= LEAST_QUIET {
        return (wait >= LONGER * median(quiet.iter().copied())?).then_some(Demand::Longer);
    }
    Some(if moves_alone { Demand::Insensitive } else { Demand::Standing })
}

/// How the rate moves with the queue, as logarithms: slope, Student's t of the correlation, and the queue's spread.
fn follows(at: &[QueuedRate]) -> (f64, f64, f64) {
    let pairs: Vec<(f64, f64)> = at.iter().map(|i| (i.queued.ln(), i.done.ln())).collect();
    let n = pairs.len() as f64;
    let (mean_q, mean_r) = pairs.iter().fold((0.0, 0.0), |(q, r), p| (q + p.0 / n, r + p.1 / n));
    let (mut qq, mut qr, mut rr) = (0.0, 0.0, 0.0);
    for (q, r) in &pairs {
        let (dq, dr) = (q - mean_q, r - mean_r);
        (qq, qr, rr) = (qq + dq * dq, qr + dq * dr, rr + dr * dr);
    }
    let spread = (qq / n).sqrt();
    // Neither moves: nothing to follow.
    if qq < 1e-9 || rr < 1e-9 {
        return (0.0, 0.0, spread);
    }
    let r = qr / (qq * rr).sqrt();
    let t = r * ((n - 2.0) / (1.0 - r * r).max(1e-9)).sqrt();
    (qr / qq, t, spread)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(from: i64) -> Ceiling {
        Ceiling {
            level: 6.0,
            stretches: vec![Window { from, to: 40 }],
            intervals: 20,
            at_level_ratio: 0.9,
            queued: 9.0,
            demand: Demand::Longer,
            is_own_bound: false,
        }
    }

    fn series(rates: &[f64]) -> Vec<QueuedRate> {
        let interval =
            |(from, done): (i64, &f64)| QueuedRate { window: Window { from, to: from + 1 }, done: *done, queued: 9.0 };
        (0..).zip(rates).map(interval).collect()
    }

    #[test]
    fn half_seconds_that_jump_are_a_second_that_stands() {
        const HALF: i64 = 500_000_000;
        let jumps = |i: i64| QueuedRate {
            window: Window { from: i * HALF, to: (i + 1) * HALF },
            done: if i % 2 == 0 { 5.6 } else { 6.8 },
            queued: 12.0 + 5.0 * (i as f64 * 0.9).sin(),
        };
        let found = ceilings(&(0..40).map(jumps).collect::<Vec<_>>(), None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].level - 6.2).abs() < 0.01 && found[0].intervals == 20, "{found:?}");
    }

    #[test]
    fn a_limit_was_higher_as_long_as_more_was_done_and_never_again() {
        let burst = [3.0, 14.0, 22.0, 5.0, 9.0, 6.0, 6.1, 5.9, 6.0];
        let freer = freer_before(&series(&burst), &ceiling(5)).unwrap();
        assert_eq!((freer.window, freer.intervals, freer.most), (Window { from: 1, to: 5 }, 3, 22.0));
        // More in the middle of it: this is no ceiling that began.
        let again = [3.0, 14.0, 22.0, 5.0, 9.0, 6.0, 6.1, 9.0, 6.0, 9.5, 6.0];
        assert_eq!(freer_before(&series(&again), &ceiling(5)), None);
        // A ceiling all along.
        assert_eq!(freer_before(&series(&[3.0, 6.0, 6.2, 5.9, 6.0, 6.1]), &ceiling(1)), None);
    }
}
