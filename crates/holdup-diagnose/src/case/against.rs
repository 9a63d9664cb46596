//! Another recording as the healthy time: where a recording has no calm stretch of its own, or is to be held against a day on which
//! all was well. Windows are absolute times, and the two never overlap: so a window says which of both it is of, and whatever
//! looks through one ([`Case::view`], [`Case::requests_in`], [`Case::completed_in`]) sees the right one.
//!
//! It says why two recordings can't be held against each other. What became of them is the rules'.

use std::collections::BTreeSet;
use std::fmt;

use holdup_recording::manifest::CoverageState;
use holdup_recording::{Manifest, Recording};

use super::{Case, SPOILED};
use holdup_signals::Window;
use holdup_signals::complaint::{CALM_SECONDS, Calm};
use holdup_signals::disturbance::{DISTURBED, Disturbance};

/// Tables that every recording has, whatever it is of.
const OF_ANYTHING: [&str; 3] = ["events", "samples", "settings"];

/// The other recording, and what of it is the healthy time.
pub(crate) struct Against<'a> {
    /// All of it, laid out.
    pub healthy: Box<Case<'a>>,
    /// Its calm time.
    pub calm: Calm,
    /// Kinds of sources that only the judged one has, e.g. `mysql`: nothing of them can be held against anything.
    pub lacks: Vec<String>,
}

/// Why a recording can't stand for the healthy time of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// It is the same one.
    Same,
    /// Both are of the same time.
    SameTime,
    /// Nothing in it measured response time.
    NoResponseTime,
    /// Its response time is by another's account: of the judged one, then of it.
    Measured(&'static str, &'static str),
    /// It is slow itself, and has no calm stretch: what its requests suffered.
    NotHealthy(String),
    /// Its load generator, or the machine, was not fit to measure.
    Spoiled(String),
    /// Too short.
    Short,
    /// None of the sources of either is one of the other: of the judged one, then of it.
    Sources(String, String),
    /// Nothing but settings and samples is in both.
    Tables,
    /// None of the operations of either is one of the other: of the judged one, then of it.
    Operations(String, String),
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => write!(f, "it is the same recording: name one that was made while all was well"),
            Self::SameTime => {
                write!(
                    f,
                    "both are of the same time: a healthy time is another one; judge a part of a recording with --from and --to"
                )
            }
            Self::NoResponseTime => {
                write!(
                    f,
                    "nothing in it measured response time, so it does not say what healthy is; record with holdup run, or --watch the app's metrics"
                )
            }
            Self::Measured(judged, healthy) => {
                write!(
                    f,
                    "response time is {healthy} in it, and {judged} in what is judged: record both in the same way"
                )
            }
            Self::NotHealthy(complaint) => write!(f, "it is not healthy itself, and has no calm stretch: {complaint}"),
            Self::Spoiled(why) => write!(f, "what it measured is not the service's: {why}; record it again"),
            Self::Short => write!(f, "it has less than {CALM_SECONDS} s of calm: record it for longer"),
            Self::Sources(judged, healthy) => {
                write!(
                    f,
                    "it has other sources ({healthy}) than what is judged ({judged}): record both with the same --watch"
                )
            }
            Self::Tables => {
                write!(f, "it has no table of facts in common with what is judged: record both in the same way")
            }
            Self::Operations(judged, healthy) => {
                write!(
                    f,
                    "it is of other requests ({healthy}) than what is judged ({judged}): record both with the same load"
                )
            }
        }
    }
}

impl std::error::Error for Incomparable {}

impl<'a> Against<'a> {
    /// `healthy` as the healthy time of `judged`.
    ///
    /// # Errors
    /// If that makes no sense, why.
    pub fn of(judged: &'a Recording, healthy: &'a Recording) -> Result<Self, Incomparable> {
        let (a, b) = (&judged.manifest, &healthy.manifest);
        let end = |m: &Manifest| m.ended_at.unwrap_or(i64::MAX);
        if a.started_at == b.started_at && end(a) == end(b) {
            return Err(Incomparable::Same);
        }
        if a.started_at < end(b) && b.started_at < end(a) {
            return Err(Incomparable::SameTime);
        }
        let (of_a, of_b) = (sources(a), sources(b));
        if !of_a.is_empty() && !of_b.is_empty() && of_a.is_disjoint(&of_b) {
            return Err(Incomparable::Sources(listed(&of_a), listed(&of_b)));
        }
        let (facts_a, facts_b) = (facts(a), facts(b));
        if !facts_a.is_empty() && !facts_b.is_empty() && facts_a.is_disjoint(&facts_b) {
            return Err(Incomparable::Tables);
        }
        let case = Case::new(healthy, None);
        let calm = calm(&case)?;
        let lacks = of_a.difference(&of_b).map(|kind| (*kind).to_owned()).collect();
        Ok(Self { healthy: Box::new(case), calm, lacks })
    }

    /// Whether `window` is of it, rather than of what is judged.
    pub fn has(&self, window: Window) -> bool {
        let whole = self.healthy.whole();
        whole.from <= window.from && window.from < whole.to && window.to < i64::MAX
    }

    /// That `judged` is of the same requests, measured in the same way.
    ///
    /// # Errors
    /// If not, what differs.
    pub fn fits(&self, judged: &Case<'_>) -> Result<(), Incomparable> {
        if !judged.client.seconds.is_empty() && judged.origin != self.healthy.origin {
            return Err(Incomparable::Measured(judged.origin.whose(), self.healthy.origin.whose()));
        }
        let names = |case: &Case<'_>| case.operations.iter().map(|o| o.name.clone()).collect::<BTreeSet<String>>();
        let (a, b) = (names(judged), names(&self.healthy));
        if !a.is_empty() && !b.is_empty() && a.is_disjoint(&b) {
            let listed = |of: &BTreeSet<String>| of.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Incomparable::Operations(listed(&a), listed(&b)));
        }
        Ok(())
    }
}

/// The calm time of a recording: all that was measured if there is nothing to complain about, else its calm stretch.
fn calm(case: &Case<'_>) -> Result<Calm, Incomparable> {
    let (Some(first), Some(last)) = (case.client.seconds.first(), case.client.seconds.last()) else {
        return Err(Incomparable::NoResponseTime);
    };
    let window = match &case.complaint {
        None => Window { from: first.window.from, to: last.window.to },
        Some(complaint) => complaint.calm.ok_or_else(|| Incomparable::NotHealthy(complaint.text.clone()))?,
    };
    // Where all of the load was put on, its delay only hides how quick the service is.
    if case.validity.spoiled_ratio(window) >= SPOILED && !case.validity.is_put_on {
        return Err(Incomparable::Spoiled("the load generator could not keep up".to_owned()));
    }
    let disturbance = Disturbance::find(&case.view(case.whole()));
    if disturbance.share_of(window) > DISTURBED {
        return Err(Incomparable::Spoiled(disturbance.text().unwrap_or_default()));
    }
    let within = case.client.seconds.iter().filter(|s| window.contains(s.window.from));
    let seconds: Vec<_> = within.cloned().collect();
    if window.seconds() < CALM_SECONDS as f64 || seconds.iter().all(|s| s.response_ms.mean().is_none()) {
        return Err(Incomparable::Short);
    }
    Ok(Calm { window, seconds })
}

/// Kinds of sources that said something: `host`, `mysql`, `pid`.
fn sources(manifest: &Manifest) -> BTreeSet<&str> {
    let spoke = manifest.coverage.iter().filter(|c| c.state != CoverageState::Absent);
    spoke.map(|c| c.source.split([':', ' ']).next().unwrap_or_default()).collect()
}

/// Tables with rows that not every recording has.
fn facts(manifest: &Manifest) -> BTreeSet<&str> {
    let with_rows = manifest.tables.iter().filter(|(name, rows)| **rows > 0 && !OF_ANYTHING.contains(&name.as_str()));
    with_rows.map(|(name, _)| name.as_str()).collect()
}

fn listed(of: &BTreeSet<&str>) -> String {
    of.iter().copied().collect::<Vec<_>>().join(", ")
}
