//! The symptom: whether anything is wrong, since when, and by how much. This is what the rules have
//! to explain.

mod usual;

use holdup_recording::objective::{Metric, State};

use self::usual::{baseline_median, baseline_tail, usual_mean};
use crate::Window;
use crate::client::objectives::Objective;
use crate::client::operations::{Operation, failures};
use crate::time::distribution::Distribution;
use crate::time::episodes::{self, Episode};
use crate::time::requests::{ClientView, Second};
use holdup_recording::words::{ms, thousands};

/// Response time that counts as slow if the scenario has no objective. About a second is the limit
/// for a user's flow of thought to stay uninterrupted (R. B. Miller 1968; J. Nielsen, "Usability
/// Engineering", 1993, ch. 5).
pub const SLOW_WITHOUT_OBJECTIVE_MS: f64 = 1_000.0;

/// A second is degraded if its median is this many times that of the recording's baseline seconds.
/// On shared machines a healthy second's median moves by a factor of two to three; queues past a
/// knee move it by tens.
const DEGRADED_FACTOR: f64 = 5.0;

/// … and at least this much slower: 0.2 ms against 1 ms is not a symptom.
const DEGRADED_AT_LEAST_MS: f64 = 50.0;

/// … or this many more requests stood in the service at a time. CPUs and disks of a quiet service
/// work on a few at once.
const CROWD: f64 = 8.0;

/// Share (0-1) of failed requests that degrades a second if the scenario has no objective for
/// errors.
const ERRORS_WITHOUT_OBJECTIVE: f64 = 0.05;

/// Percentiles of a second with fewer requests than this say little; its slowest request decides.
const FEW: u64 = 10;

/// The percentile (0-1) of a second that shows a stall which meets a part of its requests.
const TAIL: f64 = 0.95;

/// With as many requests in a second two or more are beyond that percentile.
const MANY: u64 = 30;

/// Milliseconds by which a stall lengthens a request at least: less is one slice of a shared CPU.
const LATE_BY_MS: f64 = 15.0;

/// Episodes by change points that hold this share (0-1) of the degraded seconds stand for all.
const MOST_DEGRADED: f64 = 0.5;

/// Shortest baseline window, seconds.
pub const BASELINE_SECONDS: usize = 2;

/// If a request in two fails, the service is out of use.
const OUTAGE_FAILED: f64 = 0.5;

/// What the text of a degradation ends with, in brackets, if so.
pub const EVERY_MET: &str = "every objective was met";

/// How bad it is, by absolute standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Response time rose clearly, and every objective was met; without one, too little for users to notice.
    Minor,
    /// An objective was missed, or users notice.
    Major,
    /// Half of the requests fail.
    Outage,
}

/// The baseline window of another recording, to compare with.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// From its first second to its last.
    pub window: Window,
    /// Its seconds.
    pub seconds: Vec<Second>,
}

/// The symptom: the episode, the baseline window it is compared with, and by how much they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Degradation {
    /// In words, e.g. `p99 was 4,120 ms, the objective is p99 < 400ms`.
    pub text: String,
    /// Whether requests are slow. If not, they only fail, and no wait explains that.
    pub is_slow: bool,
    /// From the first to the last degraded second. With several [`Self::episodes`]: the one that
    /// lost most time.
    pub slow: Window,
    /// All episodes in time order: several if response time returned to the baseline in between.
    pub episodes: Vec<Window>,
    /// The longest baseline window of at least [`BASELINE_SECONDS`], or that of the recording it is
    /// compared with.
    pub baseline: Option<Window>,
    /// Mean response time in `slow`, milliseconds.
    pub slow_mean_ms: f64,
    /// Mean response time in `baseline`, milliseconds; 0 without one.
    pub baseline_mean_ms: f64,
    /// p99 in `slow`, milliseconds.
    pub slow_p99_ms: f64,
    /// How bad it is.
    pub severity: Severity,
}

impl Degradation {
    /// Milliseconds that a mean request of the episode lost: what findings have to explain.
    pub fn excess_ms(&self) -> f64 {
        if self.is_slow { (self.slow_mean_ms - self.baseline_mean_ms).max(0.0) } else { 0.0 }
    }

    /// The part of it in `window`, with the same figures; none if it lies elsewhere.
    pub fn within(&self, window: Window) -> Option<Self> {
        let part = |of: &Window| {
            let (from, to) = (of.from.max(window.from), of.to.min(window.to));
            (from < to).then_some(Window { from, to })
        };
        Some(Self {
            slow: part(&self.slow)?,
            episodes: self.episodes.iter().filter_map(part).collect(),
            baseline: self.baseline.as_ref().and_then(part),
            ..self.clone()
        })
    }

    /// Finds the symptom in `view`, whose requests sum to `operations`; none if all is well.
    /// Objectives decide if there are any; without, the recording's own baseline or that of another
    /// (`baseline`).
    pub fn find(
        view: &ClientView,
        operations: &[Operation],
        objectives: &[Objective],
        baseline: Option<&Baseline>,
    ) -> Option<Self> {
        let seconds = &view.seconds;
        let reference = baseline_median(baseline.map_or(seconds, |c| &c.seconds));
        let mut degraded: Vec<bool> = seconds.iter().map(|s| is_degraded(s, objectives, reference)).collect();
        let levels = levels(seconds, baseline);
        let missed: Vec<&Objective> = objectives.iter().filter(|o| o.missed.is_some()).collect();
        let is_long = objectives.is_empty() && is_sustained(seconds, &degraded);
        let is_stalled = |s: &Second| is_slow(s, reference) || is_crowded(s, reference);
        let stalled: Vec<bool> = seconds.iter().map(is_stalled).collect();
        let (text, is_slow) = if !missed.is_empty() {
            what_was_missed(&missed, seconds, reference)
        } else if is_long {
            what_rose(seconds, reference, operations, objectives)
        } else if let Some(worst) = worst(&levels) {
            let within = |s: &Second| levels.iter().any(|e| e.window.contains(s.window.from));
            degraded = seconds.iter().map(within).collect();
            (what_stood(worst, objectives), true)
        } else if is_sustained(seconds, &stalled) {
            // Too short for a level, and too short to miss an objective over all of the time.
            degraded = stalled;
            what_rose(seconds, reference, operations, objectives)
        } else {
            let (late, text) = late_part(seconds, baseline, objectives)?;
            degraded = late;
            (text, true)
        };
        let times = |part: &[Second]| Distribution::merged(part.iter().map(|s| &s.response_ms));
        let stretches = stretches(seconds, &degraded, &levels)?;
        let lost = |&(a, b): &(usize, usize)| {
            let of = |s: &Second| s.response_ms.mean().unwrap_or(0.0) * s.offered as f64;
            seconds[a..=b].iter().map(of).sum::<f64>()
        };
        let (first, last) = stretches.iter().copied().max_by(|a, b| lost(a).total_cmp(&lost(b)))?;
        let slow = times(&seconds[first..=last]);
        for (i, second) in seconds.iter().enumerate() {
            let is_within = stretches.iter().any(|(a, b)| (*a..=*b).contains(&i));
            degraded[i] |= is_within || levels.iter().any(|level| level.window.contains(second.window.from));
        }
        let own = || {
            let (a, b) = longest_baseline(seconds, &degraded)?;
            Some((Window { from: seconds[a].window.from, to: seconds[b - 1].window.to }, &seconds[a..b]))
        };
        let baseline = baseline.map_or_else(own, |c| Some((c.window, &c.seconds[..])));
        // Objectives say what users notice.
        let noticed = if objectives.is_empty() { &levels[..] } else { &[] };
        Some(Self {
            text,
            is_slow,
            slow: Window { from: seconds[first].window.from, to: seconds[last].window.to },
            episodes: stretches
                .iter()
                .map(|(a, b)| Window { from: seconds[*a].window.from, to: seconds[*b].window.to })
                .collect(),
            baseline: baseline.map(|(window, _)| window),
            slow_mean_ms: slow.mean().unwrap_or(0.0),
            baseline_mean_ms: baseline.and_then(|(_, seconds)| usual_mean(seconds)).unwrap_or(0.0),
            slow_p99_ms: slow.quantile(0.99).unwrap_or(0.0),
            severity: severity(&seconds[first..=last], !missed.is_empty() || is_long, noticed),
        })
    }
}

impl Degradation {
    /// The symptom in a stretch that is named rather than found; `text` says by whom. None if nothing
    /// was measured in it.
    pub fn named(view: &ClientView, (slow, baseline): (Window, Option<Window>), text: &str) -> Option<Self> {
        let times = |window: Window| {
            let within = view.seconds.iter().filter(|s| window.contains(s.window.from));
            Distribution::merged(within.map(|s| &s.response_ms))
        };
        let slow_times = times(slow);
        Some(Self {
            text: text.to_owned(),
            is_slow: true,
            slow,
            episodes: vec![slow],
            baseline,
            slow_mean_ms: slow_times.mean()?,
            baseline_mean_ms: baseline.and_then(|w| times(w).mean()).unwrap_or(0.0),
            slow_p99_ms: slow_times.quantile(0.99)?,
            severity: Severity::Major,
        })
    }
}

/// Levels of response time that stand out from the baseline seconds of this recording or of
/// another.
fn levels(seconds: &[Second], baseline: Option<&Baseline>) -> Vec<Episode> {
    let (Some(baseline), Some(first)) = (baseline, seconds.first()) else { return episodes::find(seconds) };
    // As one series: if all of this recording is slow, only the other one shows it.
    let all: Vec<Second> = baseline.seconds.iter().chain(seconds).cloned().collect();
    let mut levels = episodes::find(&all);
    for level in &mut levels {
        level.window.from = level.window.from.max(first.window.from);
    }
    levels.retain(|l| l.window.from < l.window.to);
    levels
}

/// Whether any second of `view` is degraded, or stands out of the baseline with others.
pub fn is_any_degraded(view: &ClientView, objectives: &[Objective], baseline: Option<&Baseline>) -> bool {
    let reference = baseline_median(baseline.map_or(&view.seconds[..], |c| &c.seconds[..]));
    view.seconds.iter().any(|s| is_degraded(s, objectives, reference)) || !levels(&view.seconds, baseline).is_empty()
}

/// Episodes as index ranges, ends included: those of the change points, each with the degraded
/// seconds next to it. If these do not hold most degraded seconds: from the first degraded second to
/// the last. None without a degraded second.
fn stretches(seconds: &[Second], degraded: &[bool], levels: &[Episode]) -> Option<Vec<(usize, usize)>> {
    let last = seconds.len().checked_sub(1)?;
    let first_degraded = degraded.iter().position(|d| *d).unwrap_or(0);
    let last_degraded = degraded.iter().rposition(|d| *d).unwrap_or(last);
    let mut all: Vec<(usize, usize)> = Vec::new();
    for level in levels {
        let within = |s: &Second| s.window.from < level.window.to && s.window.to > level.window.from;
        let (Some(mut a), Some(mut b)) = (seconds.iter().position(within), seconds.iter().rposition(within)) else {
            continue;
        };
        if !degraded[a..=b].iter().any(|d| *d) {
            continue;
        }
        while a > 0 && degraded[a - 1] {
            a -= 1;
        }
        while b < last && degraded[b + 1] {
            b += 1;
        }
        match all.last_mut() {
            Some(before) if a <= before.1 + 1 => before.1 = before.1.max(b),
            _ => all.push((a, b)),
        }
    }
    let count = |range: &[bool]| range.iter().filter(|d| **d).count();
    let held: usize = all.iter().map(|(a, b)| count(&degraded[*a..=*b])).sum();
    let is_most = held as f64 >= MOST_DEGRADED * count(degraded) as f64;
    Some(if all.is_empty() || !is_most { vec![(first_degraded, last_degraded)] } else { all })
}

/// The episode that stands furthest above the baseline.
fn worst(levels: &[Episode]) -> Option<&Episode> {
    levels.iter().max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
}

/// How bad the seconds of an episode are; `is_missed` if objectives, or what stands for them, say so.
fn severity(episode: &[Second], is_missed: bool, levels: &[Episode]) -> Severity {
    let (failed, all) = episode.iter().fold((0, 0), |(failed, all), s| (failed + s.errors, all + s.offered));
    if failed as f64 >= OUTAGE_FAILED * all.max(1) as f64 {
        return Severity::Outage;
    }
    let is_noticed = |level: &Episode| level.level_ms >= level.baseline_ms + DEGRADED_AT_LEAST_MS;
    if is_missed || levels.iter().any(is_noticed) { Severity::Major } else { Severity::Minor }
}

/// Says that response time stood high although no objective was missed and no single second counts
/// as slow.
fn what_stood(worst: &Episode, objectives: &[Objective]) -> String {
    let seconds = thousands(worst.window.seconds());
    let (level, baseline) = (ms(worst.level_ms), ms(worst.baseline_ms));
    let of = of_objectives(objectives);
    format!(
        "{} stood at {level} for {seconds} s, against {baseline} in the baseline window ({of})",
        worst.figure.name()
    )
}

/// What `objectives` say of a stretch that missed none.
fn of_objectives(objectives: &[Objective]) -> &'static str {
    let is_open = objectives.iter().any(|of| of.judgement.state == State::NotJudged);
    match () {
        () if objectives.is_empty() => "no objective was given",
        () if is_open => "not every objective could be judged",
        () => EVERY_MET,
    }
}

/// What got worse, in words, and whether that is response time.
fn what_rose(
    seconds: &[Second],
    reference: Option<f64>,
    operations: &[Operation],
    objectives: &[Objective],
) -> (String, bool) {
    let mut parts = Vec::new();
    let slow = seconds.iter().any(|s| is_slow(s, reference) || is_crowded(s, reference));
    if slow {
        let worst = seconds.iter().filter_map(|s| s.quantile(0.5)).fold(0.0, f64::max);
        let baseline = reference.map_or_else(String::new, |r| format!(", against {} in the baseline window", ms(r)));
        parts.push(format!("response time rose to a median of {} in its worst second{baseline}", ms(worst)));
    }
    if seconds.iter().any(too_many_errors) {
        parts.push(if operations.is_empty() { failed_of(seconds) } else { failures(operations) });
    }
    (format!("{} ({})", parts.join("; "), of_objectives(objectives)), slow)
}

/// What the missed objectives say, and whether that is response time.
fn what_was_missed(missed: &[&Objective], seconds: &[Second], reference: Option<f64>) -> (String, bool) {
    let texts: Vec<&str> = missed.iter().filter_map(|o| o.missed.as_deref()).collect();
    // A missed rate says nothing about the reason: the seconds do.
    let of_time = |o: &&Objective| match Metric::parse(&o.threshold.metric) {
        Ok(Metric::Errors) => false,
        Ok(Metric::Rate) => seconds.iter().any(|s| is_slow(s, reference)),
        _ => true,
    };
    (texts.join("; "), missed.iter().any(of_time))
}

/// The seconds of a stall that meets a part of the requests, and what to say of it; none if no two
/// seconds in a row have one.
fn late_part(seconds: &[Second], baseline: Option<&Baseline>, objectives: &[Objective]) -> Option<(Vec<bool>, String)> {
    let usual = baseline_tail(baseline.map_or(seconds, |c| &c.seconds))?;
    // What is late from the start and then quick may only have warmed up.
    let first = seconds.iter().position(|s| !is_late(s, usual))?;
    let late: Vec<bool> = seconds.iter().enumerate().map(|(i, s)| i > first && is_late(s, usual)).collect();
    let is_sustained = late.windows(2).any(|pair| pair[0] && pair[1]);
    is_sustained.then(|| (late, what_was_late(seconds, usual, objectives)))
}

/// Says that a part of the requests was late for some seconds.
fn what_was_late(seconds: &[Second], usual: f64, objectives: &[Objective]) -> String {
    let worst = seconds.iter().filter(|s| is_late(s, usual)).filter_map(|s| s.quantile(TAIL)).fold(0.0, f64::max);
    format!(
        "p95 rose to {} in its worst second, against {} in the baseline window ({})",
        ms(worst),
        ms(usual),
        of_objectives(objectives)
    )
}

/// `120 of 500 requests failed`, where no operations have them by kind.
fn failed_of(seconds: &[Second]) -> String {
    let (failed, all) = seconds.iter().fold((0, 0), |(failed, all), s| (failed + s.errors, all + s.offered));
    format!("{} of {} requests failed", thousands(failed as f64), thousands(all as f64))
}

/// Whether a part of the second's requests met a stall: its 95th percentile is far above the usual
/// one.
fn is_late(second: &Second, usual: f64) -> bool {
    let tail = second.quantile(TAIL).unwrap_or(0.0);
    second.offered >= MANY && tail >= DEGRADED_FACTOR * usual && tail >= usual + LATE_BY_MS
}

/// Two degraded seconds in a row, or one in which a tenth of all requests began.
fn is_sustained(seconds: &[Second], degraded: &[bool]) -> bool {
    let all: u64 = seconds.iter().map(|s| s.offered).sum();
    degraded.windows(2).any(|pair| pair[0] && pair[1])
        || seconds.iter().zip(degraded).any(|(s, d)| *d && s.offered * 10 >= all)
}

/// The longest run of baseline seconds as indices, if long enough. A second that was left out ends
/// a run.
fn longest_baseline(seconds: &[Second], degraded: &[bool]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut from = 0;
    for i in 0..=seconds.len() {
        let apart = i > 0 && seconds.get(i).is_some_and(|s| s.window.from > seconds[i - 1].window.to);
        if i == seconds.len() || degraded[i] || apart {
            if best.is_none_or(|(a, b)| i.saturating_sub(from) > b - a) {
                best = Some((from.min(i), i));
            }
            from = if i < seconds.len() && !degraded[i] { i } else { i + 1 };
        }
    }
    best.filter(|(a, b)| b - a >= BASELINE_SECONDS)
}

/// Whether a second is slow compared with the rest of the recording.
fn is_slow(second: &Second, reference: Option<f64>) -> bool {
    let median = second.quantile(0.5).unwrap_or(0.0);
    median >= SLOW_WITHOUT_OBJECTIVE_MS
        || second.quantile(0.99).unwrap_or(0.0) >= SLOW_WITHOUT_OBJECTIVE_MS && second.offered >= FEW
        || reference.is_some_and(|r| median > DEGRADED_FACTOR * r && median > r + DEGRADED_AT_LEAST_MS)
}

/// Whether a crowd stands in the service because each of its requests takes so much longer: by
/// Little's law the rate times the time that they take longer. A few milliseconds are not felt once.
/// They are if many stand at a time, as statements do that wait for the same lock.
fn is_crowded(second: &Second, reference: Option<f64>) -> bool {
    let median = second.quantile(0.5).unwrap_or(0.0);
    let per_second = second.offered as f64 / second.window.seconds().max(1e-9);
    reference.is_some_and(|r| median > DEGRADED_FACTOR * r && (median - r) / 1e3 * per_second >= CROWD)
}

/// Whether more of its requests failed than do by chance: one of a few may.
fn too_many_errors(second: &Second) -> bool {
    let is_chance = second.errors == 1 && second.offered > 2;
    !is_chance && second.errors as f64 > ERRORS_WITHOUT_OBJECTIVE * second.offered as f64
}

fn is_degraded(second: &Second, objectives: &[Objective], reference: Option<f64>) -> bool {
    let by_itself = || is_slow(second, reference) || too_many_errors(second);
    if objectives.is_empty() {
        return by_itself();
    }
    objectives.iter().any(|Objective { threshold: t, .. }| match Metric::parse(&t.metric) {
        Ok(Metric::Errors) => {
            second.offered > 0 && second.errors as f64 >= t.below.max(f64::MIN_POSITIVE) * second.offered as f64
        }
        Ok(Metric::Mean) => second.response_ms.mean().is_some_and(|m| m >= t.below),
        // The achieved rate follows from when requests ended, not from when they were due.
        Ok(Metric::Rate) => by_itself(),
        Ok(Metric::Quantile(q)) if second.offered >= FEW => second.quantile(q).is_some_and(|ms| ms >= t.below),
        Ok(Metric::Quantile(_) | Metric::Max) => second.quantile(1.0).is_some_and(|ms| ms >= t.below),
        Err(_) => false,
    })
}

#[cfg(test)]
mod tests;
