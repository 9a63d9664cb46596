//! A verdict without a stopwatch: what the given evidence supports, in one instant or over a longer
//! time, and how much of the harm each suspect accounts for. Signs of causes, counters that left their
//! usual level and limits that a provider reports as reached are weighed together. Then: what is left
//! open, and which commands would decide.

mod cleared;
mod limits;
mod next;
mod suspects;

use holdup_recording::words::{percent, round};
use holdup_signals::Window;

use self::suspects::{Search, Suspect};
use crate::case::Case;
use crate::causes::{self, Cause, Role};
use crate::change::Fix;
use crate::counters::{CounterJudgement, FoundBy};
use crate::figures;
use crate::finding::HarmShare;
use crate::host_load;
use crate::instant::facts::Facts;
use crate::resources::disk::what_it_does;
use crate::rivals;
use crate::verdict::{Answer, Cleared, Finding, NAMED, SnapshotReport, SplitReport};

/// Most suspects to name.
const SUSPECTS: usize = 2;

/// A suspect with less than this share (0-1) of the first one's confidence is not its rival.
const RIVALS: f64 = 0.4;

/// The longest stretch that is judged as one instant, seconds …
const LONGEST_S: f64 = 120.0;

/// … unless the same thing was read no more often than this: with more readings a longer stretch has a
/// past, and what changed in it matters.
const INSTANTS: usize = 5;

/// How a sentence begins that clears a cause.
const NOT: &str = "Not ";

/// The verdict on what was given.
pub(super) struct Judgement {
    pub verdict: Answer,
    pub headline: String,
    /// The suspects, the likeliest first.
    pub findings: Vec<Finding>,
    pub cleared: Vec<Cleared>,
    pub split: Option<SplitReport>,
    /// What it settles and leaves open; none if nothing stands out.
    pub report: Option<SnapshotReport>,
    /// The stretch that is judged; none if that is all.
    pub window: Option<Window>,
}

/// What is judged, and how.
struct Ground<'c, 'r> {
    case: &'c Case<'r>,
    counted: Option<&'c CounterJudgement>,
    /// The stretch to explain.
    slow: Window,
    facts: Facts<'c>,
    /// One moment, without a time before it.
    is_instant: bool,
}

/// Judges what was given.
pub(super) fn judge(case: &Case<'_>, counted: Option<&CounterJudgement>) -> Judgement {
    let (slow, facts) = stretch(case, counted);
    let is_instant = slow == case.whole() && (slow.seconds() <= LONGEST_S || facts.instants() <= INSTANTS);
    Ground { case, counted, slow, facts, is_instant }.judge()
}

/// The stretch to explain, and its facts: what the user named, or what stands out in the counters, or
/// all. Evidence without a time in the named stretch is about it all the same.
fn stretch<'c>(case: &'c Case<'_>, counted: Option<&CounterJudgement>) -> (Window, Facts<'c>) {
    let stands_out = || counted.filter(|of| of.found_by != FoundBy::Recording)?.episodes.first().map(|of| of.window);
    let named = case.reported().or_else(stands_out).filter(|named| *named != case.whole());
    let of_named = named.map(|named| (named, Facts::read(case.view(named)))).filter(|(_, facts)| facts.are_any());
    of_named.unwrap_or_else(|| (case.whole(), Facts::read(case.view(case.whole()))))
}

impl Ground<'_, '_> {
    fn judge(&self) -> Judgement {
        let search = Search { case: self.case, counted: self.counted, facts: &self.facts, is_instant: self.is_instant };
        let mut found = search.suspects(limits::reached(self.case, &self.facts));
        let said = self.facts.pods.says();
        let first = found.first().map_or(0.0, |suspect| suspect.confidence);
        found.retain(|suspect| suspect.confidence >= RIVALS * first);
        found.truncate(SUSPECTS);
        if found.is_empty() && said.is_empty() {
            return self.nothing();
        }
        let (cleared, innocent) = cleared::cleared(&self.facts);
        let settles = self.settles(said, innocent);
        let is_clear = found.get(1).is_none_or(|second| second.confidence < first || second.is_linked());
        let is_named = first >= NAMED && is_clear;
        let open = self.open(&found, is_named);
        let paste_next = next::next(&self.facts, &found);
        let shown = settles.iter().find(|settled| !settled.starts_with(NOT));
        let headline = match (is_named, found.first()) {
            (true, Some(suspect)) => says(suspect),
            _ => format!("{} {open}", shown.map_or_else(String::new, |settled| format!("{settled}."))),
        };
        let names: Vec<Cause> = found.iter().map(|suspect| suspect.cause).collect();
        // Who watches can measure more; who was given outputs can ask for others.
        let is_watched = !self.is_instant && !self.case.is_reported();
        let command = paste_next.first().filter(|_| !is_named || names.len() > 1).map(|next| SplitReport {
            rivals: names.clone(),
            measure: next.shows.clone(),
            command: Some(next.command.clone()),
            watch: None,
        });
        let split = if is_watched { Some(rivals::of_counters(names)) } else { command };
        Judgement {
            verdict: if is_named { Answer::Found } else { Answer::Undecided },
            headline: headline.trim().to_owned(),
            findings: found.into_iter().enumerate().map(|(i, of)| self.finding(i, of, is_named)).collect(),
            cleared,
            split,
            report: (!is_watched).then_some(SnapshotReport { settles, open, paste_next }),
            window: Some(self.slow).filter(|slow| *slow != self.case.whole()),
        }
    }

    /// Nothing names a cause: what stands out anyway, and what to measure.
    fn nothing(&self) -> Judgement {
        let counted = self.counted.map(|counted| causes::capital(&counted.text(self.case)) + ".");
        let stands_out = super::conspicuous::text(self.case).map(|text| format!("This stands out: {text}."));
        let figures = figures::headline(self.case);
        let said =
            stands_out.or(figures).or(counted).unwrap_or_else(|| "Nothing in the evidence stands out.".to_owned());
        let rivals = self.counted.and_then(CounterJudgement::rivals).unwrap_or_default();
        Judgement {
            verdict: Answer::Undecided,
            headline: format!("No cause shows. {said}"),
            findings: Vec::new(),
            cleared: Vec::new(),
            split: Some(rivals::of_counters(rivals)),
            report: None,
            window: Some(self.slow).filter(|slow| *slow != self.case.whole()),
        }
    }

    /// What is settled whatever the suspects are, the largest queue first.
    fn settles(&self, said: Vec<String>, innocent: Vec<String>) -> Vec<String> {
        let facts = &self.facts;
        let mut all: Vec<String> = said.iter().map(|text| causes::capital(text)).collect();
        if let Some((disk, _)) = facts.full_disk() {
            all.push(format!("The disk has no time left: {}", what_it_does(disk)));
        }
        all.extend(facts.full.iter().map(|full| causes::capital(&full.evidence.text)));
        let asleep = facts.asleep.as_ref().filter(|asleep| asleep.mean >= 1.0);
        let load = facts.load.as_ref().zip(facts.cpus).filter(|(load, cpus)| load.max > *cpus);
        if load.is_some() || asleep.is_some() {
            all.extend(host_load::explain(self.case).map(|load| causes::capital(&load.text)));
        }
        all.extend(innocent);
        all
    }

    /// What this evidence cannot show.
    fn open(&self, found: &[Suspect], is_named: bool) -> String {
        const SINCE: &str = "since when, and how much of response time it costs";
        /// Tools that each run for some seconds, one after another, still show one moment.
        const INSTANT_S: f64 = 5.0;
        let seconds = self.slow.seconds();
        let shows = match (self.is_instant, seconds > INSTANT_S) {
            (true, true) => format!("these {seconds:.0} s do not show"),
            (true, false) => "one instant does not show".to_owned(),
            (false, _) => "no source measured response time to show".to_owned(),
        };
        // What leads to the first is not known, unless it follows from another one here.
        let own = found.first().filter(|_| is_named).and_then(|one| one.cause.definition().leaves_open);
        match found {
            _ if own.is_some() => own.unwrap_or_default().to_owned(),
            [one, other] if is_named && other.follows_from == Some(one.cause) => {
                format!("{} {SINCE}; {} follows from it.", causes::capital(&shows), other.cause)
            }
            [one] if is_named => format!("{} {SINCE}: {} is the only suspect.", causes::capital(&shows), one.cause),
            [_, other] if is_named => format!("{} {SINCE}; {} is possible too.", causes::capital(&shows), other.cause),
            [one, other] => format!("Either {} or {}: {shows} which.", one.cause, other.cause),
            [one] => format!("It may be {}: {shows} it.", one.cause),
            _ => String::new(),
        }
    }

    /// A suspect as a finding; its remedy only if it is named, because a change on a guess costs time.
    fn finding(&self, i: usize, suspect: Suspect, is_named: bool) -> Finding {
        let doc = &suspect.cause.definition().doc;
        let mut fixes = Vec::new();
        if is_named && i == 0 {
            fixes = (suspect.cause.definition().fixes)(&self.facts);
            if fixes.is_empty() {
                fixes.push(Fix::advice(suspect.fix.unwrap_or(doc.fix).to_owned(), None));
            }
        }
        let role = match (i, suspect.follows_from) {
            (0, _) => Role::Root,
            (_, Some(_)) => Role::Symptom,
            _ => Role::Contributor,
        };
        Finding {
            cause: suspect.cause,
            title: suspect.title.unwrap_or_else(|| doc.title.to_owned()),
            role,
            follows_from: suspect.follows_from,
            adds_to: None,
            hosts: Vec::new(),
            confidence: round(suspect.confidence, 2),
            explains_ms: 0.0,
            explains_ratio: 0.0,
            share: suspect.share.map(|share| HarmShare { ratio: round(share.ratio, 3), of: share.of }),
            evidence: suspect.evidence,
            fixes,
            prove: doc.prove.to_owned(),
        }
    }
}

/// A named suspect in a sentence or two: its strongest sign, and what it accounts for.
fn says(suspect: &Suspect) -> String {
    let title = suspect.title.as_deref().unwrap_or_else(|| suspect.cause.title());
    let sign = suspect.evidence.first().map_or_else(String::new, |sign| format!(": {}", sign.text));
    let share = suspect.share.as_ref();
    let share = share.map_or_else(String::new, |of| format!(" It accounts for {} {}.", percent(of.ratio), of.of));
    format!("{title}{sign}.{share}")
}
