//! What counters show, as data and in words. [`super`] computes it.

use crate::cause::Cause;
use crate::trace::quantities;
use std::collections::BTreeSet;

use crate::counters::judge::{NAMED, Suspect};
use crate::trace::Pattern;
use crate::trace::votes::{Part, Vote};
use holdup_recording::Labels;
use holdup_signals::time::counters::{Family, Signal};
use serde::{Deserialize, Serialize};

use super::{CounterJudgement, JudgedEpisode, causes};
use crate::case::Case;
use holdup_recording::words::{percent, round};
use holdup_signals::Window;
use holdup_signals::evidence::Evidence;

/// What counters alone show. If response time was measured, this stands beside the verdict and
/// never overrules it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountersReport {
    /// In words.
    pub text: String,
    /// How the stretches were found.
    pub found_by: FoundBy,
    /// Length of the steps, seconds.
    pub step_s: f64,
    /// Kinds of counters that were not recorded: `host`, `sessions`, `locks`, `statements`, `storage`, `settings`.
    pub lacks: Vec<String>,
    /// Stretches, the most conspicuous first; empty if none stands out.
    pub episodes: Vec<CountersEpisode>,
}

/// How stretches were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// By response time, which was measured and shows when requests were slow.
    ResponseTime,
    /// By the counters themselves: they changed together.
    Counters,
    /// All of the recording, compared with another.
    Recording,
    /// By the user, who said when it was slow.
    Report,
}

/// A stretch, and the causes that change counters in this way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountersEpisode {
    /// Start, seconds from the start of the recording.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Causes that are named, likeliest first; empty if no score is high enough.
    pub named: Vec<Cause>,
    /// Every pattern, the likeliest first; those that could not be judged last.
    pub suspects: Vec<CountersSuspect>,
}

/// A pattern of a cause, judged by counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountersSuspect {
    /// Slug of the cause.
    pub cause: Cause,
    /// The pattern; a cause may have several.
    pub pattern: String,
    /// In words.
    pub title: String,
    /// -1 (refuted) to 1 (the whole mechanism was seen); none if it could not be judged. From 0.5
    /// it is named.
    pub score: Option<f64>,
    /// The votes for and against it.
    pub votes: Vec<CountersVote>,
}

/// One expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountersVote {
    /// `defines` (the mechanism), `supports`, `refutes`, or `gates` (without it nothing else
    /// counts).
    pub part: String,
    /// In words.
    pub what: String,
    /// Its weight beside the others.
    pub weight: f64,
    /// How much of it was seen, 0-1; none if it was not recorded.
    pub strength: Option<f64>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A figure in a stretch beside its usual value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name.
    pub name: String,
    /// Its usual value; none if unknown.
    pub normal: Option<f64>,
    /// Its value in the stretch.
    pub episode: Option<f64>,
}

/// A cause that counters name.
pub(crate) struct Named {
    pub cause: Cause,
    /// In words.
    pub title: String,
    /// 0-1.
    pub chance: f64,
    pub evidence: Vec<Evidence>,
    /// What to do, if the pattern says more than the cause.
    pub fix: Option<&'static str>,
    /// When the episode began, nanoseconds since the epoch.
    pub since: i64,
}

impl CounterJudgement {
    /// As data.
    pub fn report(&self, case: &Case<'_>) -> CountersReport {
        let start = case.recording.manifest.started_at;
        let families: BTreeSet<&str> = self.table.frame.signals().map(|s| s.family().name()).collect();
        let lacking = Family::ALL.iter().filter(|f| **f != Family::Latency && !families.contains(f.name()));
        let at = |t: i64| round((t - start) as f64 / 1e9, 3);
        let episode = |of: &JudgedEpisode| CountersEpisode {
            from_s: at(of.window.from),
            to_s: at(of.window.to),
            named: causes(of.named().into_iter()),
            suspects: of.ranking.suspects.iter().map(suspect).collect(),
        };
        CountersReport {
            text: self.text(case),
            found_by: self.found_by,
            step_s: round(self.table.frame.period_s(), 3),
            lacks: lacking.map(|f| f.name().to_owned()).collect(),
            episodes: self.episodes.iter().map(episode).collect(),
        }
    }

    /// In words: what stands out, which cause is named or nearest, and what speaks against it.
    pub fn text(&self, case: &Case<'_>) -> String {
        let Some(worst) = self.episodes.first() else {
            return "no stretch stands out in the counters".to_owned();
        };
        let span = when(case, worst.window);
        let several = match self.episodes.len() {
            1 => String::new(),
            n => format!(" (the clearest of {n} stretches)"),
        };
        let named = worst.named();
        let Some(first) = worst.first() else {
            return format!("{span}{several} the counters do not tell the causes apart");
        };
        let telling = telling(first);
        if named.is_empty() {
            return format!(
                "{span}{several} counters name no cause; the nearest is {} ({} of its expected signs{telling})",
                first.cause,
                percent(first.score.unwrap_or(0.0).max(0.0))
            );
        }
        let names = causes(named.iter().copied());
        let next = worst
            .ranking
            .suspects
            .iter()
            .find(|s| !names.contains(&s.cause) && s.score.is_some_and(|score| score < NAMED));
        let next = next.map_or_else(String::new, |s| format!("; next is {}{}", s.cause, against(s)));
        format!("{span}{several} counters name {}{telling}{next}", Cause::join(&names, " and "))
    }

    /// Named causes and the episode's evidence of each, likeliest first.
    pub fn suspects(&self) -> Vec<Named> {
        let Some(worst) = self.episodes.first() else { return Vec::new() };
        let named = worst.named();
        let strongest = |cause: &Cause| named.iter().copied().find(|suspect| suspect.cause == *cause);
        let suspects = causes(named.iter().copied());
        suspects.iter().filter_map(strongest).map(|suspect| self.named(worst, suspect)).collect()
    }

    fn named(&self, of: &JudgedEpisode, suspect: &Suspect) -> Named {
        let seen = suspect.votes.iter().filter(|v| strength(v) >= 0.5 && v.part != Part::Refutes);
        Named {
            cause: suspect.cause,
            title: title(suspect),
            chance: suspect.score.unwrap_or(0.0).clamp(0.0, 1.0),
            evidence: seen.map(|vote| self.evidence(of.window, vote)).collect(),
            fix: pattern(suspect).and_then(|pattern| pattern.fix),
            since: of.window.from,
        }
    }

    fn evidence(&self, window: Window, vote: &Vote) -> Evidence {
        let figures = vote.reading.as_ref().map_or(&[][..], |r| &r.figures);
        let (normal, now): (Vec<String>, Vec<String>) = figures
            .iter()
            .map(|(name, normal, now)| (format!("{name} {}", brief(*normal)), format!("{name} {}", brief(*now))))
            .unzip();
        let metric = figures.iter().find_map(|(name, ..)| self.metric(name));
        let labels = metric.map_or_else(Labels::none, |metric| Labels::new([("metric", metric)]));
        let told: Vec<String> = figures
            .iter()
            .map(|(name, normal, now)| {
                let usual = if normal.is_finite() { format!(" instead of {}", brief(*normal)) } else { String::new() };
                format!("{name} {}{usual}", brief(*now))
            })
            .collect();
        let text = format!("{}: {}", vote.what, told.join(", "));
        Evidence::new("samples", "value", labels, window, now.join(", "), normal.join(", "), text)
    }

    /// The metric of a quantity's first recorded signal.
    fn metric(&self, quantity: &str) -> Option<&'static str> {
        let of = quantities::ALL.iter().find(|q| q.name == quantity)?;
        let signals: Vec<Signal> = of.over.iter().chain(of.per).copied().collect();
        signals.iter().find_map(|signal| self.table.read_from.get(signal).copied())
    }
}

/// `from 12 s to 40 s`.
fn when(case: &Case<'_>, window: Window) -> String {
    let start = case.recording.manifest.started_at;
    let at = |t: i64| (t - start) as f64 / 1e9;
    format!("from {:.0} s to {:.0} s", at(window.from), at(window.to))
}

/// A pattern in words: the title of the cause's rule, with how counters show it if that adds
/// something.
fn title(of: &Suspect) -> String {
    let pattern = pattern(of).map_or(of.pattern, |pattern| pattern.title);
    match of.pattern == of.cause.slug() {
        true => of.cause.title().to_owned(),
        false => format!("{}: {pattern}", of.cause.title()),
    }
}

fn pattern(of: &Suspect) -> Option<&'static Pattern> {
    of.cause.definition().traces.iter().find(|pattern| pattern.name == of.pattern)
}

fn suspect(of: &Suspect) -> CountersSuspect {
    let figure = |(name, normal, episode): &(&'static str, f64, f64)| Figure {
        name: (*name).to_owned(),
        normal: normal.is_finite().then(|| digits(*normal)),
        episode: episode.is_finite().then(|| digits(*episode)),
    };
    let vote = |v: &Vote| CountersVote {
        part: part(v.part).to_owned(),
        what: v.what.to_owned(),
        weight: v.weight,
        strength: v.reading.as_ref().map(|r| round(r.strength, 3)),
        figures: v.reading.as_ref().map_or_else(Vec::new, |r| r.figures.iter().map(figure).collect()),
    };
    CountersSuspect {
        cause: of.cause,
        pattern: of.pattern.to_owned(),
        title: title(of),
        score: of.score.map(|s| round(s, 3)),
        votes: of.votes.iter().map(vote).collect(),
    }
}

fn part(of: Part) -> &'static str {
    match of {
        Part::Defines => "defines",
        Part::Supports => "supports",
        Part::Refutes => "refutes",
        Part::Gates => "gates",
    }
}

fn strength(vote: &Vote) -> f64 {
    vote.reading.as_ref().map_or(0.0, |r| r.strength)
}

/// The weightiest observation for a cause: `: the CPU has no idle time left`.
fn telling(of: &Suspect) -> String {
    let seen = of.votes.iter().filter(|v| strength(v) >= 0.5 && matches!(v.part, Part::Defines | Part::Supports));
    let most = seen.max_by(|a, b| (a.weight * strength(a)).total_cmp(&(b.weight * strength(b))));
    most.map_or_else(String::new, |v| format!(": {}", v.what))
}

/// The weightiest observation against a cause.
fn against(of: &Suspect) -> String {
    let refuting = of.votes.iter().filter(|v| strength(v) >= 0.5 && v.part == Part::Refutes);
    let closed = of.votes.iter().filter(|v| v.reading.is_some() && strength(v) < 0.5 && v.part == Part::Gates);
    let most = refuting.max_by(|a, b| a.weight.total_cmp(&b.weight));
    let missing = closed.map(|v| format!(", which requires that {}", v.what)).next();
    most.map(|v| format!("; against it: {}", v.what)).or(missing).unwrap_or_default()
}

/// Rounds to three digits.
fn digits(value: f64) -> f64 {
    if value.abs() < 1e-9 { 0.0 } else { round(value, 3 - value.abs().log10().ceil() as i32) }
}

fn brief(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "not known".to_owned(),
        v if v >= 1_000.0 => holdup_recording::words::thousands(value),
        v if v >= 10.0 => format!("{value:.0}"),
        _ => format!("{}", digits(value)),
    }
}
