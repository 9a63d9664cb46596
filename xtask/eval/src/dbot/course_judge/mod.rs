//! What can be said of PostgreSQL from the counters of its host, from what alarms fired, and from the texts of its statements,
//! each of which may be missing. Most of its anomalies are no change against a normal time but a course of events (a load, a
//! mass delete, a crowd that then reads what is left), so causes look at phases. Each cause is a file in [`causes`] with the
//! same accounts that [`holdup_diagnose::counters::judge`] ranks elsewhere. Nothing here is learned from labelled cases.

pub mod causes;
pub mod course;
pub mod evidence;
pub mod exporter;
pub mod statements;
pub mod workload;

pub use course::Course;
pub use evidence::{Alarm, Evidence};
pub use exporter::{alarm_of_alert, signal_of_metric};
pub use workload::{Executed, Workload};

use holdup_diagnose::counters::judge::{Ranking, Suspect};
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::jitter::Jitter;

/// A cause: its name, and what must and can't be seen of it.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// The name, as in holdup's list of causes where it is one of them.
    pub slug: &'static str,
    /// Takes the account of an episode.
    pub account: fn(&Evidence) -> Votes,
}

/// Judges an episode by every cause, the likeliest first. Where two carry the same, the one that is the more specific in
/// the order of [`causes::ALL`] comes first.
#[must_use]
pub fn judge(course: Option<&Course>, alarms: &[Alarm], workload: Option<&Workload>, jitter: Jitter) -> Ranking {
    let suspects = causes::ALL.iter().map(|cause| {
        let account = (cause.account)(&Evidence { course, alarms, workload, jitter, place: cause.slug });
        Suspect::new(cause.slug, cause.slug, account, jitter)
    });
    Ranking::new(suspects.collect())
}
