//! Statements whose calls take longer than in the baseline window.

use holdup_recording::rows::Session;
use holdup_recording::words::ms;
use holdup_signals::database::server_waits::{self, SessionWait};
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing, View};

use super::is_felt;
use crate::case::{Band, Case, Change};

/// From this share (0-1) of a statement's sessions, they wait for the same thing.
const MOST: f64 = 0.5;

/// What the server executed in the episode and in the baseline window.
pub struct Executed {
    /// In the episode, longest total time first.
    pub now: Vec<DigestUse>,
    /// In the baseline window.
    pub before: Vec<DigestUse>,
    /// Requests that ended in the episode.
    pub completed: f64,
}

impl Executed {
    /// Of both windows. `why` says what the baseline window is for.
    ///
    /// # Errors
    /// Without a baseline window, or without counters by statement.
    pub fn measure(case: &Case<'_>, why: &str) -> Result<Self, Missing> {
        let (slow, baseline) = (case.slow(), case.baseline().ok_or_else(|| Missing::baseline(why))?);
        let (now, before) = (slow.executed(&["digest_text"])?, baseline.executed(&["digest_text"])?);
        Ok(Self { now, before, completed: case.completed_in(slow.window)?.max(1.0) })
    }

    /// Statements that take longer, by what they cost a request.
    pub fn slower(&self) -> Vec<Slowdown<'_>> {
        let each = self.now.iter().filter_map(|now| Slowdown::between(now, &self.before, self.completed));
        let mut slower: Vec<_> = each.collect();
        slower.sort_by(|a, b| b.extra_ms.total_cmp(&a.extra_ms));
        slower
    }

    /// What clears the causes of slower statements, if all together take `all_ms` of a request longer
    /// and that is not felt.
    pub fn hardly_longer(&self, case: &Case<'_>, all_ms: f64) -> Option<Evidence> {
        let first = self.now.first().filter(|_| is_felt(case, all_ms).is_ok_and(|is| !is))?;
        let text = format!("all statements together take {} of a request longer than before", ms(all_ms));
        Some(case.slow().digest_evidence(first, "duration_ns", format!("{} a request", ms(all_ms)), "", text))
    }
}

/// What all of `slower` take longer together, milliseconds of a request.
pub fn all_ms(slower: &[Slowdown<'_>]) -> f64 {
    slower.iter().fold(0.0, |sum, of| sum + of.extra_ms)
}

/// A statement that takes longer.
pub struct Slowdown<'e> {
    /// Its use now.
    pub now: &'e DigestUse,
    /// Milliseconds of a mean execution, before and now.
    pub each_ms: (f64, f64),
    /// By their means over calls.
    pub change: Change,
    /// Its additional milliseconds per request.
    pub extra_ms: f64,
}

impl<'e> Slowdown<'e> {
    fn between(now: &'e DigestUse, before: &[DigestUse], completed: f64) -> Option<Self> {
        let same = |of: &&DigestUse| of.digest == now.digest && of.database == now.database && of.source == now.source;
        let then = before.iter().find(same)?;
        let each_ms = (then.seconds / then.calls * 1e3, now.seconds / now.calls * 1e3);
        let extra_ms = (each_ms.1 - each_ms.0) * now.calls / completed;
        let change = Band::of_mean(each_ms.1, now.calls).since(Band::of_mean(each_ms.0, then.calls));
        (extra_ms > 0.0).then_some(Self { now, each_ms, change, extra_ms })
    }

    /// What most of the statement's own sessions waited for whenever they were looked at; none if they ran, or
    /// if its server does not say.
    pub fn waits_for(&self, view: &View<'_>) -> Option<&'static str> {
        let rows = view.sessions(&["source", "command", "state", "digest_text"]).ok()?;
        let is_its = |row: &&Session| {
            row.source == self.now.source
                && row.command == "active"
                && row.digest_text.as_deref() == Some(self.now.text.as_str())
        };
        let waits = rows.into_iter().filter(is_its).map(|row| server_waits::at(row.state.as_deref().unwrap_or("")));
        let waits: Vec<SessionWait> = waits.collect();
        let are = |kinds: &[SessionWait]| {
            let count = waits.iter().filter(|wait| kinds.contains(wait)).count();
            count > 0 && count as f64 >= MOST * waits.len() as f64
        };
        let of = [("the disk", &[SessionWait::Disk, SessionWait::Behind][..]), ("a lock", &[SessionWait::Lock])];
        let is_server_known = self.now.source.starts_with("postgres");
        of.into_iter().find(|(_, kinds)| is_server_known && are(kinds)).map(|(what, _)| what)
    }

    /// What a call takes, and took.
    pub fn took(&self, view: &View<'_>) -> Evidence {
        let (before, now) = self.each_ms;
        let text = format!(
            "a call takes {}, against {} in the baseline window: {} of a request",
            ms(now),
            ms(before),
            ms(self.extra_ms)
        );
        view.digest_evidence(self.now, "duration_ns", format!("{} a call", ms(now)), ms(before), text)
    }
}
