//! Executions and their twins: the same number in the log, on both servers, in the same round.

use std::collections::{BTreeMap, HashMap};

use holdup_recording::Recording;
use holdup_recording::rows::Execution;

/// An execution on both servers.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// Its round.
    pub round: usize,
    /// Seconds from the round's start at which it was due.
    pub due_s: f64,
    pub trace: Option<String>,
    /// Nanoseconds from send to end, if it succeeded on both.
    pub times_ns: Option<(i64, i64)>,
    /// The answers.
    pub old: Answer,
    pub new: Answer,
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub error: Option<String>,
    pub is_ok: bool,
    pub rows: i64,
    pub affected: i64,
    pub warnings: i64,
    pub hash: Option<i64>,
}

impl Answer {
    fn from_row(row: &Execution) -> Self {
        Self {
            error: row.error.clone(),
            is_ok: row.outcome == "ok",
            rows: row.rows,
            affected: row.affected,
            warnings: row.warnings,
            hash: row.rows_hash,
        }
    }
}

/// All pairs of a digest.
#[derive(Clone, Debug)]
pub(super) struct Digest {
    pub digest: String,
    /// Executions of one round.
    pub calls: u64,
    /// Uninterrupted series of it in a session, in one round.
    pub in_a_row: u64,
    /// Mean times on both servers, of executions that succeeded on both, milliseconds.
    pub means_ms: (f64, f64),
    pub all: Vec<Pair>,
}

impl Digest {
    /// Mean times of executions that succeeded on both, milliseconds.
    fn measured(&self) -> (f64, f64) {
        let times: Vec<(i64, i64)> = self.all.iter().filter_map(|pair| pair.times_ns).collect();
        let mean = |of: fn(&(i64, i64)) -> i64| {
            times.iter().map(|t| of(t) as f64 / 1e6).sum::<f64>() / times.len().max(1) as f64
        };
        (mean(|t| t.0), mean(|t| t.1))
    }

    /// Time on the old server in one round, seconds.
    pub fn old_seconds(&self) -> f64 {
        self.calls as f64 * self.means_ms.0 / 1e3
    }
}

/// The executions that both servers played.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// By digest.
    pub digests: Vec<Digest>,
    pub rounds: usize,
    /// Longest round, seconds.
    pub length_s: f64,
    /// Time of all statements on the old server in one round, seconds.
    pub old_seconds: f64,
}

impl Pairs {
    pub fn match_executions(old: &[Recording], new: &[Recording]) -> Result<Self, String> {
        if old.len() != new.len() {
            return Err(format!(
                "{} recordings of the old server and {} of the new one: each round needs both",
                old.len(),
                new.len()
            ));
        }
        let mut digests: BTreeMap<String, Digest> = BTreeMap::new();
        let mut length_s: f64 = 0.0;
        for (round, (old, new)) in old.iter().zip(new).enumerate() {
            let (old_rows, new_rows) = (executions(old)?, executions(new)?);
            let twins: HashMap<i64, &Execution> = new_rows.iter().map(|row| (row.number, row)).collect();
            let start = old_rows.iter().map(|row| row.intended_at).min().unwrap_or(0);
            for row in old_rows {
                let Some(twin) = twins.get(&row.number) else { continue };
                if twin.digest != row.digest {
                    return Err(format!(
                        "{}: execution {} is another statement: both servers must play the same log",
                        new.dir.display(),
                        row.number
                    ));
                }
                let due_s = (row.intended_at - start) as f64 / 1e9;
                length_s = length_s.max(due_s);
                let took = |row: &Execution| row.sent_at.map(|sent| (row.done_at - sent).max(1));
                let (was, is) = (Answer::from_row(row), Answer::from_row(twin));
                let times_ns = took(row).zip(took(twin)).filter(|_| was.is_ok && is.is_ok);
                let of = digests.entry(row.digest.clone()).or_insert_with(|| Digest {
                    digest: row.digest.clone(),
                    calls: 0,
                    in_a_row: 0,
                    means_ms: (0.0, 0.0),
                    all: Vec::new(),
                });
                of.calls += u64::from(round == 0);
                of.all.push(Pair { round, due_s, trace: row.trace_id.clone(), times_ns, old: was, new: is });
            }
        }
        let mut digests: Vec<Digest> = digests.into_values().collect();
        if digests.is_empty() {
            return Err("no execution was played on both: replay the same log on each of them".to_owned());
        }
        let in_a_row = old.first().map(|first| in_a_row(&first.tables.executions.rows)).unwrap_or_default();
        for of in &mut digests {
            of.calls = of.calls.max(1);
            of.means_ms = of.measured();
            of.in_a_row = in_a_row.get(of.digest.as_str()).copied().unwrap_or(of.calls);
        }
        let old_seconds = digests.iter().map(Digest::old_seconds).sum();
        Ok(Self { digests, rounds: old.len(), length_s: length_s.max(1e-3), old_seconds })
    }
}

fn executions(recording: &Recording) -> Result<&[Execution], String> {
    let rows = recording.tables.executions.rows.as_slice();
    if rows.is_empty() {
        return Err(format!(
            "{}: it holds no executions: compare recordings of holdup replay",
            recording.dir.display()
        ));
    }
    Ok(rows)
}

/// How often each digest began in a session that had run something else before.
fn in_a_row(rows: &[Execution]) -> HashMap<&str, u64> {
    let mut order: Vec<&Execution> = rows.iter().collect();
    order.sort_by_key(|row| (row.session, row.number));
    let mut begun: HashMap<&str, u64> = HashMap::new();
    for (i, row) in order.iter().enumerate() {
        let goes_on =
            i.checked_sub(1).is_some_and(|i| order[i].session == row.session && order[i].digest == row.digest);
        *begun.entry(row.digest.as_str()).or_default() += u64::from(!goes_on);
    }
    begun
}
