//! Another recording as the baseline: for a recording without a baseline window of its own, or for
//! comparison with a healthy day. Windows are absolute times and the two recordings never overlap.
//! So a window says which of the two it belongs to, and every access through one ([`Case::view`],
//! [`Case::requests_in`], [`Case::completed_in`]) reaches the right recording.
//!
//! It says why two recordings can't be compared. Rules interpret their differences.

use crate::generator::DisturbanceWords;
use crate::origin::OriginWords;
use std::collections::BTreeSet;
use std::fmt;

use holdup_recording::manifest::CoverageState;
use holdup_recording::{Manifest, Recording};

use super::{Case, SPOILED};
use holdup_signals::Window;
use holdup_signals::client::degradation::{BASELINE_SECONDS, Baseline};
use holdup_signals::host::disturbance::Disturbance;

/// Tables that every recording has.
const OF_ANYTHING: [&str; 3] = ["events", "samples", "settings"];

/// The baseline recording, and its baseline window.
pub(crate) struct BaselineRecording<'a> {
    /// All of it, laid out.
    pub healthy: Box<Case<'a>>,
    /// Its baseline window.
    pub baseline: Baseline,
    /// Kinds of sources that only the judged recording has, e.g. `mysql`: their figures have no
    /// baseline.
    pub lacks: Vec<String>,
}

/// Why a recording can't be the baseline of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// It is the same one.
    Same,
    /// Both cover the same time.
    SameTime,
    /// No source in it measured response time.
    NoResponseTime,
    /// Different sources measured response time: in the judged one, then in the baseline.
    Measured(&'static str, &'static str),
    /// It is slow itself and has no baseline window; its symptom.
    NotHealthy(String),
    /// Its load generator, or the machine, was not fit to measure.
    Spoiled(String),
    /// Too short.
    Short,
    /// The two have no kind of source in common: those of the judged one, then of the baseline.
    Sources(String, String),
    /// The two have nothing but settings and samples in common.
    Tables,
    /// The two have no operation in common: those of the judged one, then of the baseline.
    Operations(String, String),
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => write!(f, "it is the same recording: name one made at a healthy time"),
            Self::SameTime => {
                write!(
                    f,
                    "both cover the same time: name a recording of another time, or judge a part of one with --from and --to"
                )
            }
            Self::NoResponseTime => {
                write!(
                    f,
                    "no source in it measured response time, so it cannot show what is healthy; record with holdup run, or --watch the app's metrics"
                )
            }
            Self::Measured(judged, healthy) => {
                write!(
                    f,
                    "response time is {healthy} in it, and {judged} in the judged recording: record both in the same way"
                )
            }
            Self::NotHealthy(symptom) => {
                write!(f, "it is not healthy itself, and has no baseline window: {symptom}")
            }
            Self::Spoiled(why) => write!(f, "it does not show the service: {why}; record it again"),
            Self::Short => write!(f, "its baseline window is shorter than {BASELINE_SECONDS} s: record for longer"),
            Self::Sources(judged, healthy) => {
                write!(
                    f,
                    "it has other sources ({healthy}) than the judged recording ({judged}): record both with the same --watch"
                )
            }
            Self::Tables => {
                write!(f, "it has no table of facts in common with the judged recording: record both in the same way")
            }
            Self::Operations(judged, healthy) => {
                write!(
                    f,
                    "it has other requests ({healthy}) than the judged recording ({judged}): record both with the same load"
                )
            }
        }
    }
}

impl std::error::Error for Incomparable {}

impl<'a> BaselineRecording<'a> {
    /// `healthy` as the baseline of `judged`.
    ///
    /// # Errors
    /// Why that makes no sense.
    pub fn new(judged: &'a Recording, healthy: &'a Recording) -> Result<Self, Incomparable> {
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
        let baseline = baseline(&case)?;
        let lacks = of_a.difference(&of_b).map(|kind| (*kind).to_owned()).collect();
        Ok(Self { healthy: Box::new(case), baseline, lacks })
    }

    /// Whether `window` belongs to the baseline recording.
    pub fn has(&self, window: Window) -> bool {
        let whole = self.healthy.whole();
        whole.from <= window.from && window.from < whole.to && window.to < i64::MAX
    }

    /// Checks that `judged` has the same requests, measured in the same way.
    ///
    /// # Errors
    /// What differs.
    pub fn fits(&self, judged: &Case<'_>) -> Result<(), Incomparable> {
        if !judged.client.seconds.is_empty() && self.healthy.client.seconds.is_empty() {
            return Err(Incomparable::NoResponseTime);
        }
        if !judged.client.seconds.is_empty() && judged.origin.account() != self.healthy.origin.account() {
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

/// The baseline window of a recording: all of it if it has no symptom.
fn baseline(case: &Case<'_>) -> Result<Baseline, Incomparable> {
    let (Some(first), Some(last)) = (case.client.seconds.first(), case.client.seconds.last()) else {
        // Series alone are compared over all of it.
        return Ok(Baseline { window: case.whole(), seconds: Vec::new() });
    };
    let window = match &case.degradation {
        None => Window { from: first.window.from, to: last.window.to },
        Some(symptom) => symptom.baseline.ok_or_else(|| Incomparable::NotHealthy(symptom.text.clone()))?,
    };
    // If all of the load was generated, the delay only hides how quick the service is.
    if case.validity.spoiled_ratio(window) >= SPOILED && !case.validity.is_put_on {
        return Err(Incomparable::Spoiled("the load generator could not keep up".to_owned()));
    }
    let disturbance = Disturbance::find(&case.view(case.whole()));
    if let Some(text) = disturbance.spoiled_text(window) {
        return Err(Incomparable::Spoiled(text));
    }
    let within = case.client.seconds.iter().filter(|s| window.contains(s.window.from));
    let seconds: Vec<_> = within.cloned().collect();
    if window.seconds() < BASELINE_SECONDS as f64 || seconds.iter().all(|s| s.response_ms.mean().is_none()) {
        return Err(Incomparable::Short);
    }
    Ok(Baseline { window, seconds })
}

/// Kinds of sources that reported something: `host`, `mysql`, `pid`.
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

impl<'a> Case<'a> {
    /// Lays out the stretch of `recording` in `window`, the only one that was read in full. `course`
    /// has all of the recording; what it says of objectives and of an episode holds here as well.
    pub(crate) fn within(
        recording: &'a Recording,
        window: Window,
        course: &Case<'_>,
        healthy: Option<&'a Recording>,
    ) -> Result<Self, Incomparable> {
        let against = healthy.map(|healthy| BaselineRecording::new(recording, healthy)).transpose()?;
        let mut case = Self::laid_out(recording, Some(window), against, Some(&course.objectives));
        case.degradation = case.degradation.or_else(|| course.degradation.as_ref()?.within(window));
        Ok(case)
    }
}
