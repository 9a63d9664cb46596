//! Requests plans: of the statements that sessions run, one or two a sample are explained. Values stay
//! in memory: a server's error text may contain one, so it is dropped.

use std::time::Instant;

use holdup_recording::clock;
use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;
use holdup_sql::{Dialect, digest_of_text, digest_text, trace_id};

use super::allowed::{self, AllowedStatement};
use super::pace::Pace;
use super::row;
use crate::database::Failure;
use crate::reading::Out;

/// Largest number of statements explained per sample.
const EXPLAINED: usize = 2;

/// A statement that may be explained.
pub(crate) struct Candidate {
    session: Option<i64>,
    pub(crate) database: Option<String>,
    digest: String,
    digest_text: String,
    trace_id: Option<String>,
    pub(crate) allowed: AllowedStatement,
}

impl Candidate {
    /// The statement `sql` that a session runs or ran, if it may be explained.
    pub(crate) fn new(sql: &str, dialect: Dialect, session: Option<i64>, database: Option<&str>) -> Option<Self> {
        let allowed = allowed::check(sql, dialect)?;
        let digest_text = digest_text(sql, dialect);
        Some(Self {
            session,
            database: database.map(str::to_owned),
            digest: digest_of_text(&digest_text),
            digest_text,
            trace_id: trace_id(sql, dialect),
            allowed,
        })
    }
}

/// Explains those of `candidates` that are due. `explain` returns the plan and the kind of row for it.
pub(crate) fn request<Code, Of>(
    pace: &mut Pace,
    candidates: impl IntoIterator<Item = (Candidate, Of)>,
    out: &mut Out,
    is_denied: impl Fn(&Failure<Code>) -> bool,
    explain: impl Fn(&Candidate, &Of) -> Result<Option<(&'static str, Node)>, Failure<Code>>,
) -> Result<(), Failure<Code>> {
    let mut due: Vec<(f64, Candidate, Of)> = Vec::new();
    for (candidate, of) in candidates {
        let is_new = due.iter().all(|(_, other, _)| other.digest != candidate.digest);
        if let Some(urgency) = pace.urgency(&candidate.digest, Instant::now()).filter(|_| is_new) {
            due.push((urgency, candidate, of));
        }
    }
    due.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    for (_, candidate, of) in due.into_iter().take(EXPLAINED) {
        let now = Instant::now();
        match explain(&candidate, &of) {
            Ok(Some((kind, tree))) => {
                pace.record(&candidate.digest, true, now);
                out.batch.plans.push(Plan {
                    observed_at: clock::now_ns(),
                    source: out.source().to_owned(),
                    session_id: candidate.session,
                    database: candidate.database,
                    trace_id: candidate.trace_id,
                    ..row(kind, &tree, candidate.digest_text)
                });
            }
            Err(failure) if is_denied(&failure) => pace.record_denial(&candidate.digest, now),
            // The server's message may contain values of the statement.
            Ok(None) | Err(Failure::Server(..)) => pace.record(&candidate.digest, false, now),
            Err(lost) => return Err(lost),
        }
    }
    Ok(())
}
