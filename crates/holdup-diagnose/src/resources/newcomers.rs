//! What began beside the requests' own statements: statements of the server that hardly ran in the
//! baseline window, by its counters of each. And how much longer the requests' own statements take
//! since. An import, a purge or a rebuild begins so: it hurts requests without being one of theirs.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Session;
use holdup_recording::words::thousands;
use holdup_signals::database::written::bare;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing};

use crate::case::Case;

/// A statement is new if it changes or runs this many times as much per second as in the baseline
/// window.
const TIMES: f64 = 3.0;

/// Rows that one execution changes from which it is bulk work: a request changes a few.
const BULK_ROWS: f64 = 100.0;

/// A statement that runs at least this often per request may belong to the requests, as after a
/// release.
const PER_REQUEST: f64 = 0.25;

/// Least number of samples in which a session must be seen, on average, to know what else it runs.
const SEEN: f64 = 3.0;

/// First words of statements that read rows of a table for their result.
const READERS: &[&str] = &["SELECT", "COPY", "UPDATE", "DELETE", "INSERT", "WITH", "DECLARE"];

/// Longest text of a statement to show.
const TEXT: usize = 90;

/// The statements of the episode and of the baseline window.
pub struct Newcomers {
    /// Statements of the episode that hardly ran in the baseline window.
    fresh: Vec<DigestUse>,
    /// Rows that all statements changed per second.
    changed_per_second: f64,
    /// Seconds of the episode.
    seconds: f64,
    /// Texts of `fresh` that run far less often than requests do, or in sessions of their own; in
    /// lower case.
    aside: BTreeSet<String>,
    /// Milliseconds per request that the requests' own statements take longer.
    pub slowed_ms: f64,
    /// The same by text of the statement.
    slowed: Vec<(String, f64)>,
}

/// Bulk changes that began.
pub struct BulkChange {
    /// The statement that changes most rows.
    pub text: String,
    /// Rows changed per second by all such statements.
    pub rows_per_second: f64,
    /// Rows that one execution changes.
    pub rows_each: f64,
    /// Share (0-1) of all changed rows.
    pub share: f64,
    /// The evidence.
    pub evidence: Evidence,
}

impl BulkChange {
    /// Whether `statement` is the one that changes most rows.
    pub fn is_of(&self, statement: &str) -> bool {
        let (statement, text) = (statement.to_lowercase(), self.text.to_lowercase());
        !text.is_empty() && statement.starts_with(&text)
    }
}

impl Newcomers {
    /// Measured once for a case.
    ///
    /// # Errors
    /// Without a baseline window, or without counters by statement.
    pub fn for_case(case: &Case<'_>) -> Result<std::sync::Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let slow = case.slow();
        let baseline = case.well_before().ok_or_else(|| Missing::baseline(", for its statements to compare with"))?;
        let columns = ["digest_text", "rows_affected"];
        let (now, before) = (slow.executed(&columns)?, baseline.executed(&columns)?);
        let (seconds, earlier) = (slow.window.seconds().max(1e-9), baseline.window.seconds().max(1e-9));
        let completed = case.completed_in(slow.window)?.max(1.0);
        // More requests run their own statements more often, and a stall makes fewer of them.
        let rose = (completed / seconds) / (case.completed_in(baseline.window)?.max(1.0) / earlier);
        let times = TIMES * rose.max(1.0);
        let by_session = texts_by_session(case);
        let changed_per_second = now.iter().map(|of| of.rows_changed).fold(0.0, |sum, rows| sum + rows) / seconds;
        let (mut fresh, mut aside, mut slowed) = (Vec::new(), BTreeSet::new(), Vec::new());
        for of in now {
            let was =
                before.iter().find(|b| b.digest == of.digest && b.database == of.database && b.source == of.source);
            let rate = |of: &DigestUse, seconds: f64| (of.calls / seconds, of.rows_changed / seconds);
            let (calls, rows) = rate(&of, seconds);
            let (calls_before, rows_before) = was.map_or((0.0, 0.0), |was| rate(was, earlier));
            let changes_more = rows > 0.0 && rows >= times * rows_before.max(1.0);
            if calls >= times * calls_before || changes_more {
                if of.calls < PER_REQUEST * completed {
                    aside.insert(of.text.to_lowercase());
                }
                fresh.push(of);
            } else if let Some(was) = was {
                let longer = of.seconds / of.calls - was.seconds / was.calls;
                let longer_ms = longer.max(0.0) * of.calls / completed * 1e3;
                slowed.push((of.text, longer_ms));
            }
        }
        let new: BTreeSet<String> = fresh.iter().map(|of| of.text.to_lowercase()).collect();
        aside.extend(new.iter().filter(|text| has_own_sessions(text, &new, &by_session)).cloned());
        let slowed_ms = slowed.iter().map(|(_, ms)| ms).fold(0.0, |sum, ms| sum + ms);
        Ok(Self { fresh, changed_per_second, seconds, aside, slowed_ms, slowed })
    }

    /// Milliseconds per request that those of the requests' own statements take longer that read or
    /// change rows of `table`.
    pub fn slowed_on(&self, table: &str) -> f64 {
        let of_table = self.slowed.iter().filter(|(text, _)| names(text, table));
        of_table.map(|(_, ms)| ms).fold(0.0, |sum, ms| sum + ms)
    }

    /// Whether a session's statement is new and runs beside the requests.
    pub fn is_aside(&self, session: &Session) -> bool {
        session.digest_text.as_deref().is_some_and(|text| self.aside.contains(&text.to_lowercase()))
    }

    /// Whether a new statement reads or changes rows of `table`, other than by maintaining it.
    pub fn reads(&self, table: &str) -> bool {
        self.fresh.iter().any(|of| names(&of.text, table))
    }

    /// Bulk changes among the new statements; none if they change few rows at a time.
    pub fn bulk(&self, case: &Case<'_>) -> Option<BulkChange> {
        let is_bulk = |of: &&DigestUse| of.rows_changed / of.calls.max(1.0) >= BULK_ROWS;
        let bulk: Vec<&DigestUse> = self.fresh.iter().filter(is_bulk).collect();
        let most = bulk.iter().max_by(|a, b| a.rows_changed.total_cmp(&b.rows_changed))?;
        let rows_per_second = bulk.iter().map(|of| of.rows_changed).sum::<f64>() / self.seconds;
        let rows_each = most.rows_changed / most.calls.max(1.0);
        let text: String = most.text.chars().take(TEXT).collect();
        let rate = format!("{} rows/s", thousands(rows_per_second));
        let words = format!(
            "statements that hardly ran in the baseline window changed {rate}, of {} rows/s in all; most of them, {} at a time: {text}",
            thousands(self.changed_per_second),
            thousands(rows_each)
        );
        Some(BulkChange {
            share: (rows_per_second / self.changed_per_second.max(1e-9)).min(1.0),
            evidence: case.slow().digest_evidence(most, "rows_affected", rate, "few rows at a time", words),
            text,
            rows_per_second,
            rows_each,
        })
    }
}

/// The statements that each session was seen with, in lower case, and how often.
type TextsBySession = BTreeMap<(String, i64), BTreeMap<String, usize>>;

fn texts_by_session(case: &Case<'_>) -> TextsBySession {
    let mut all = TextsBySession::new();
    let view = case.view(case.whole());
    for row in view.sessions(&["source", "session_id", "digest_text"]).unwrap_or_default() {
        if let Some(text) = row.digest_text.as_deref().filter(|text| !text.is_empty()) {
            let texts = all.entry((row.source.to_string(), row.session_id)).or_default();
            *texts.entry(text.to_lowercase()).or_default() += 1;
        }
    }
    all
}

/// Whether the sessions that run the new statement `text` run `new` ones only: a job has sessions of
/// its own, while connections of an app run whatever its requests need. Sessions that are hardly seen
/// show neither.
fn has_own_sessions(text: &str, new: &BTreeSet<String>, by_session: &TextsBySession) -> bool {
    let theirs: Vec<_> = by_session.values().filter(|texts| texts.contains_key(text)).collect();
    let seen: usize = theirs.iter().flat_map(|texts| texts.values()).sum();
    let is_new = |texts: &&BTreeMap<String, usize>| texts.keys().all(|text| new.contains(text));
    seen as f64 >= SEEN * (theirs.len() as f64).max(1.0) && theirs.iter().all(is_new)
}

/// Whether the statement `text` reads or changes rows of `table`.
fn names(text: &str, table: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default().to_uppercase();
    let table = bare(table);
    READERS.contains(&first.as_str())
        && text.split_whitespace().any(|word| bare(word.split('(').next().unwrap_or(word)) == table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 100 requests a second of 10 ms, and of 400 from 30 to 60 s of 90: an own statement of 1 ms takes 300 then, and a purge deletes
    /// `rows` at a time, 5 times a second.
    fn made(rows: i64) -> SyntheticRecording {
        let during = |s: i64| (s - 30).clamp(0, 30);
        SyntheticRecording::new(90)
            .requests(100, 400)
            .each_request(|n, r| {
                if !(30..60).contains(&(n / 100)) {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .digest("UPDATE item SET n = ? WHERE id = ?", move |s| {
                (100 * s, 100 * s + 100 * 299 * during(s), 0, 100 * s, 0)
            })
            .digest("DELETE FROM item WHERE id > ?", move |s| {
                (5 * during(s), 50 * during(s), 0, 5 * rows * during(s), 0)
            })
            .tables(|tables| {
                tables.statements.rows.iter_mut().for_each(|row| {
                    row.rows_affected = row.rows_sent;
                    row.rows_sent = 0;
                });
            })
    }

    #[test]
    fn a_job_is_known_by_sessions_of_its_own() {
        let seen = |all: &[(i64, &[(&str, usize)])]| -> TextsBySession {
            let of = |texts: &[(&str, usize)]| texts.iter().map(|(text, n)| ((*text).to_owned(), *n)).collect();
            all.iter().map(|(id, texts)| (("mysql://db".to_owned(), *id), of(texts))).collect()
        };
        let new = BTreeSet::from(["insert".to_owned(), "commit".to_owned()]);
        let is_own = |all: &[(i64, &[(&str, usize)])]| has_own_sessions("insert", &new, &seen(all));
        assert!(is_own(&[(1, &[("insert", 9), ("commit", 1)]), (2, &[("select", 9)])]));
        assert!(!is_own(&[(1, &[("insert", 9), ("select", 1)])]), "a connection of the app");
        assert!(!is_own(&[(1, &[("insert", 1)]), (2, &[("insert", 1)])]), "a connection for each request");
        assert!(!is_own(&[(2, &[("select", 9)])]), "never seen");
    }

    #[test]
    fn a_purge_is_a_bulk_change_and_the_own_statements_are_slowed() {
        made(1_000).with(|case| {
            let new = Newcomers::for_case(case).unwrap();
            assert!((new.slowed_ms - 299.0).abs() < 15.0, "{}", new.slowed_ms);
            let bulk = new.bulk(case).unwrap();
            assert!(bulk.share > 0.9 && (bulk.rows_each - 1_000.0).abs() < 1.0, "{} {}", bulk.share, bulk.rows_each);
            let session = |text: &str| Session { digest_text: Some(text.into()), ..Session::default() };
            assert!(new.is_aside(&session("delete from item where id > ?")));
            assert!(!new.is_aside(&session("UPDATE item SET n = ? WHERE id = ?")));
        });
        assert!(made(2).with(|case| Newcomers::for_case(case).unwrap().bulk(case).is_none()), "two rows at a time");
    }
}
