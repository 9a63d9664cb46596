//! A source until its first answer. A thread asks it, so a source that is slow, refuses or is gone
//! delays no other. It is asked again after pauses that grow, and until then its line of the coverage
//! says what is missing, since when and why.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_recording::rows::Event;
use holdup_recording::{Coverage, CoverageState, Labels, clock};

use crate::backoff::Backoff;
use crate::coverage::{Line as _, complete};
use crate::reading::event;
use crate::{Collector, ProbeError};

/// With an answer from another source, a recording begins after this time at the latest. It exceeds
/// the time limit of one connection, so the reason of most failures is known by then.
const FIRST_ANSWER: Duration = Duration::from_secs(4);

/// Without any answer, nothing is recorded after this time.
const ANY_ANSWER: Duration = Duration::from_secs(10);

/// Longest pause where an attempt fails at once.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The same for an attempt that runs into a time limit, and costs the server that time.
const SLOW_PAUSE_MAX: Duration = Duration::from_secs(60);

/// An attempt of this length fails at once.
const AT_ONCE: Duration = Duration::from_millis(500);

/// The same after a refused login: several in a row may lock the account.
const DENIED_PAUSE_MAX: Duration = Duration::from_secs(900);

/// A refused login counts as an attempt of at least this length, so its first pause is a minute.
const DENIED_TOOK: Duration = Duration::from_secs(15);

/// Numbers of failed attempts that are reported although the reason is still the same.
const REPORTED: [u32; 4] = [3, 10, 30, 100];

/// How often a source's thread is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The user ended it.
    #[error("stopped before any source answered")]
    Stopped,
    /// No source answered, and why.
    #[error("{0}")]
    Failed(String),
}

/// One source, from before its first answer.
pub struct Arrival {
    source: String,
    /// The parameters of its address, e.g. `plans`: a part with that name was asked for.
    wishes: Vec<String>,
    state: State,
    begun: Instant,
    begun_at: i64,
    /// When the last attempt began.
    asked: Instant,
    /// Attempts that failed.
    tried: u32,
    /// Why the last one failed.
    failure: Option<ProbeError>,
    backoff: Backoff,
    /// Whether the recording began without it.
    is_late: bool,
}

/// The result of one probe, with the collector that made it.
type Probed = (Box<dyn Collector>, Result<Vec<Coverage>, ProbeError>);

enum State {
    /// A thread is asking it.
    Asked(JoinHandle<Probed>),
    /// An attempt failed; the next one follows.
    Pausing(Box<dyn Collector>),
    /// It can be read.
    Answered(Box<dyn Collector>, Vec<Coverage>),
    /// Its collector is lost.
    Broken,
}

/// Asks all sources, each given with its address, until the recording can begin: all have answered or
/// failed, or some have answered and the others are late. Tells `say` which are missing, and which
/// parts of those that answer were asked for in vain.
///
/// # Errors
/// If no source answers within a bounded time, or if `stop` was set meanwhile.
pub(crate) fn first_answers(
    sources: Vec<(String, Box<dyn Collector>)>,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Arrival>, NoAnswer> {
    let mut all: Vec<Arrival> = sources.into_iter().map(|(address, it)| Arrival::new(&address, it)).collect();
    let begun = Instant::now();
    while !all.is_empty() {
        let news: Vec<String> = all.iter_mut().flat_map(Arrival::poll).collect();
        let is_known = all.iter().all(Arrival::is_known);
        let has_answer = all.iter().any(Arrival::is_answered);
        if !has_answer && (all.iter().all(Arrival::is_in_vain) || begun.elapsed() >= ANY_ANSWER) {
            return Err(NoAnswer::Failed(none_answers(&all, begun.elapsed())));
        }
        news.iter().for_each(|text| say(text));
        if has_answer && (is_known || begun.elapsed() >= FIRST_ANSWER) {
            // Those that have not failed yet are unknown to the reader until now.
            all.iter().filter(|it| !it.is_known()).for_each(|it| say(&it.waiting()));
            break;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(NoAnswer::Stopped);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(all)
}

/// The error if no source answers.
fn none_answers(all: &[Arrival], took: Duration) -> String {
    let each: Vec<String> = all.iter().map(Arrival::reason).collect();
    match (all.len(), all.iter().map(|it| it.tried).max().unwrap_or(0)) {
        (1, ..=1) => each.join(""),
        (1, tried) => format!("{}; tried {tried} times in {:.0} s", each.join(""), took.as_secs_f64()),
        (n, _) => format!("none of {n} sources answers: {}", each.join(" | ")),
    }
}

impl Arrival {
    fn new(address: &str, collector: Box<dyn Collector>) -> Self {
        let parameters = address.rsplit_once('?').map_or("", |(_, parameters)| parameters);
        let keys = parameters.split('&').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
        let now = Instant::now();
        let mut arrival = Self {
            source: collector.source(),
            wishes: keys.collect(),
            state: State::Broken,
            begun: now,
            begun_at: clock::now_ns(),
            asked: now,
            tried: 0,
            failure: None,
            backoff: Backoff::default(),
            is_late: false,
        };
        arrival.ask(collector);
        arrival
    }

    /// Its name in the tables.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether it can be read.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.state, State::Answered(..))
    }

    /// Whether its first attempt has ended.
    fn is_known(&self) -> bool {
        self.tried > 0 || !matches!(self.state, State::Asked(_))
    }

    /// Whether waiting alone will not make it answer.
    fn is_in_vain(&self) -> bool {
        let is_of_account = matches!(self.failure, Some(ProbeError::Denied { .. } | ProbeError::MissingGrant { .. }));
        matches!(self.state, State::Broken) || is_of_account || self.is_gone()
    }

    /// Whether it can never answer again.
    fn is_gone(&self) -> bool {
        matches!(self.failure, Some(ProbeError::Gone { .. } | ProbeError::BadAddress(_)))
    }

    /// Looks at the attempt in flight, or makes the next one if it is due. Returns what is new.
    pub(crate) fn poll(&mut self) -> Vec<String> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Asked(thread) if thread.is_finished() => match thread.join() {
                Ok((collector, Ok(coverage))) => {
                    self.state = State::Answered(collector, coverage);
                    return self.arrived();
                }
                Ok((collector, Err(failure))) => {
                    self.state = State::Pausing(collector);
                    return self.failed(failure).into_iter().collect();
                }
                Err(_) => return self.broken("its collector panicked; please report this"),
            },
            State::Pausing(collector) if self.backoff.is_due() && !self.is_gone() => self.ask(collector),
            same => self.state = same,
        }
        Vec::new()
    }

    /// Asks in a thread of its own.
    fn ask(&mut self, mut collector: Box<dyn Collector>) {
        self.asked = Instant::now();
        let name: String = format!("ask {}", self.source).chars().take(15).collect();
        let spawned = std::thread::Builder::new().name(name).spawn(move || {
            let result = collector.probe();
            (collector, result)
        });
        match spawned {
            Ok(thread) => self.state = State::Asked(thread),
            Err(error) => drop(self.broken(&format!("cannot start its thread: {error}"))),
        }
    }

    fn broken(&mut self, why: &str) -> Vec<String> {
        self.state = State::Broken;
        self.failure = Some(ProbeError::Gone { source_name: self.source.clone(), why: why.to_owned() });
        vec![self.waiting()]
    }

    /// Notes a failed attempt. Returns the line about it if the reason is new, or the number of
    /// attempts is one to report.
    fn failed(&mut self, failure: ProbeError) -> Option<String> {
        let took = self.asked.elapsed();
        match &failure {
            ProbeError::Denied { .. } => self.backoff.failed(took.max(DENIED_TOOK), DENIED_PAUSE_MAX),
            _ if took < AT_ONCE => self.backoff.failed(took, PAUSE_MAX),
            _ => self.backoff.failed(took, SLOW_PAUSE_MAX),
        }
        self.tried = self.tried.saturating_add(1);
        let before = self.failure.replace(failure).map(|before| before.to_string());
        let is_new = before.is_none_or(|before| before != self.reason());
        (is_new || REPORTED.contains(&self.tried)).then(|| self.waiting())
    }

    /// Why it does not answer, with its name.
    fn reason(&self) -> String {
        match &self.failure {
            Some(failure) => failure.to_string(),
            None => format!("{}: no answer within {:.0} s", self.source, self.begun.elapsed().as_secs_f64()),
        }
    }

    /// The line of progress about a source that does not answer.
    fn waiting(&self) -> String {
        let tried = match self.tried {
            0 => String::new(),
            1 => "; tried once".to_owned(),
            n => format!("; tried {n} times"),
        };
        let lead = if self.is_gone() { "not watched:" } else { "waiting for" };
        format!("{lead} {}{tried}", self.reason())
    }

    /// The lines about a source that answers: since when, and which of the parts that its address
    /// asks for it lacks.
    fn arrived(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.tried > 0 || self.is_late {
            let seconds = self.begun.elapsed().as_secs_f64();
            told.push(format!("{} answers after {seconds:.1} s; it is recorded from now on", self.source));
        }
        let State::Answered(_, coverage) = &self.state else { return told };
        let is_wish = |line: &&Coverage| {
            let name = line.source.rsplit(' ').next().unwrap_or_default();
            line.state != CoverageState::Complete && self.wishes.iter().any(|wish| wish == name)
        };
        told.extend(coverage.iter().filter(is_wish).map(|line| {
            let why = line.why.as_deref().unwrap_or("not available");
            let enable = line.enable.as_ref().map_or_else(String::new, |enable| format!("; to get it: {enable}"));
            format!("asked for in vain: {}: {why}{enable}", line.source)
        }));
        told
    }

    /// Its lines of the coverage as it is now.
    pub fn coverage(&self) -> Vec<Coverage> {
        if let State::Answered(_, coverage) = &self.state {
            let mut coverage = coverage.clone();
            if let Some(own) = coverage.first_mut().filter(|_| self.is_late) {
                let late = self.late();
                own.why = Some(own.why.take().map_or_else(|| late.clone(), |why| format!("{why}; {late}")));
                own.state = CoverageState::Partial;
                own.gaps_total = u64::from(self.tried);
            }
            return coverage;
        }
        let tried = if self.tried > 1 { format!("; tried {} times", self.tried) } else { String::new() };
        let why = format!("no answer since {}: {}{tried}", seconds(self.begun_at), self.without_name());
        let own = complete(&self.source).absent(why);
        let state = if matches!(self.state, State::Broken) { CoverageState::Failed } else { own.state };
        let enable = match &self.failure {
            Some(ProbeError::MissingGrant { grant, .. }) => Some(grant.clone()),
            _ => None,
        };
        vec![Coverage { state, enable, gaps_total: u64::from(self.tried), ..own }]
    }

    /// Since when it is recorded, and why not before.
    fn late(&self) -> String {
        let answered_at = self.begun_at + i64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(0);
        format!("recorded since {} only: before, {}", seconds(answered_at), self.without_name())
    }

    fn without_name(&self) -> String {
        let reason = self.reason();
        reason.strip_prefix(&format!("{}: ", self.source)).map_or(reason.clone(), str::to_owned)
    }

    /// The recording begins. Returns the gap with which that of this source does.
    pub(crate) fn begin(&mut self) -> Option<Event> {
        self.is_late = !self.is_answered();
        let text = format!("not recorded yet: {}", self.without_name());
        self.is_late.then(|| event(&self.source, clock::now_ns(), "gap", text, Labels::none()))
    }

    /// Its collector and coverage, once it has answered.
    pub(crate) fn into_collector(self) -> Option<(Box<dyn Collector>, Vec<Coverage>)> {
        let coverage = self.coverage();
        match self.state {
            State::Answered(collector, _) => Some((collector, coverage)),
            _ => None,
        }
    }
}

/// A time of the coverage, to the second.
fn seconds(at: i64) -> String {
    let text = clock::rfc3339(at);
    format!("{}Z", text.split('.').next().unwrap_or(&text))
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
