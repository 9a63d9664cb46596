//! The heaviest statements of a log, each with the advice for it, and the total relief.

use std::collections::BTreeMap;

use holdup_sql::Dialect;
use serde::Serialize;

use crate::advice::Table;
use crate::advice::index::{Candidate, candidates};
use crate::advice::replica::{self, Replica};
use crate::advice::touches::Touches;
use crate::digest::report::RestReport;

/// A statement of a log with its cost. All statements are needed: those that write determine how
/// stale a replica may be.
#[derive(Clone, Debug)]
pub struct StatementCost {
    /// Its digest.
    pub id: String,
    /// Its text without values.
    pub text: String,
    /// Executions.
    pub calls: u64,
    /// Time of all of them, microseconds.
    pub total_us: u128,
    /// Rows examined and sent, if the server reports them.
    pub rows: Option<(u128, u128)>,
}

/// The advice for one statement.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Its digest.
    pub id: String,
    /// Its text without values.
    pub text: String,
    /// Executions.
    pub calls: u64,
    /// Share (0-1) of the log's time.
    pub share_ratio: f64,
    /// Rows examined per row sent, if the server reports them.
    pub examined_per_sent: Option<f64>,
    /// Indexes that may help, most promising first; empty if its tables are unknown.
    pub indexes: Vec<Proposal>,
    /// What a replica would mean.
    pub replica: Replica,
    /// Whether its text could be parsed. Statements that cannot be parsed get no advice.
    pub is_read: bool,
}

/// An index, and the server's plan with it.
#[derive(Clone, Debug, Serialize)]
pub struct Proposal {
    /// The index.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// The statement that creates it.
    pub statement: String,
    /// The server's answer; none if the server was not asked or could not answer.
    pub trial: Option<Trial>,
}

/// A plan with the index and one without, neither of them executed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The planner's cost without the index.
    pub cost_before: f64,
    /// The same with the index.
    pub cost_after: f64,
    /// Whether the planner would use it.
    pub is_used: bool,
}

/// The whole advice.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Heaviest first.
    pub advice: Vec<Advice>,
    /// Share (0-1) of the log's time that a replica could take: statements whose tables are never
    /// written.
    pub replica_never_stale_ratio: f64,
    /// The same for statements whose tables are sometimes written.
    pub replica_stale_ratio: f64,
    /// The same for statements that have to stay.
    pub stays_ratio: f64,
    /// The same for statements that did not fit in memory, which were not looked at.
    pub rest_ratio: f64,
    /// The statements that did not fit in memory; none if all did.
    pub rest: Option<RestReport>,
    /// Why indexes were not tried, if they were not.
    pub not_tried: Option<String>,
}

/// All tables that the heaviest `limit` statements touch, so that the caller can ask the server
/// about them.
pub fn touched_tables(all: &[StatementCost], limit: usize, dialect: Dialect) -> Vec<String> {
    let touched = heaviest(all, limit).into_iter().filter_map(|heavy| Touches::parse(&heavy.text, dialect));
    let mut names: Vec<String> = touched.flat_map(|touches| [touches.reads, touches.writes].concat()).collect();
    names.sort();
    names.dedup();
    names
}

fn heaviest(all: &[StatementCost], limit: usize) -> Vec<&StatementCost> {
    let mut ranked: Vec<&StatementCost> = all.iter().collect();
    ranked.sort_by(|a, b| b.total_us.cmp(&a.total_us).then_with(|| a.id.cmp(&b.id)));
    ranked.truncate(limit);
    ranked
}

/// Advises on the `limit` heaviest statements of a log of `seconds`. `rest` are statements of the
/// log that are not in `all`, `tables` are the known ones; `try_index` asks the server to plan a
/// statement with a candidate.
pub fn advise(
    (all, rest): (&[StatementCost], Option<&RestReport>),
    seconds: f64,
    dialect: Dialect,
    (limit, fresh, tables): (usize, &[String], &[Table]),
    mut try_index: impl FnMut(&Touches, &Candidate) -> Option<Trial>,
) -> Report {
    let touches: BTreeMap<&str, Touches> =
        all.iter().filter_map(|heavy| Some((heavy.id.as_str(), Touches::parse(&heavy.text, dialect)?))).collect();
    let parsed = |heavy: &StatementCost| touches.get(heavy.id.as_str());
    let writes =
        replica::writes_per_second(all.iter().filter_map(|heavy| Some((parsed(heavy)?, heavy.calls))), seconds);
    let rest_us = rest.map_or(0, |rest| rest.total_us);
    let total: u128 = all.iter().map(|heavy| heavy.total_us).sum::<u128>() + rest_us;
    let share = |us: u128| us as f64 / total.max(1) as f64;
    let moves = |heavy: &StatementCost| {
        parsed(heavy).map_or_else(
            || Replica::No { why: "its text can't be read".to_owned() },
            |touches| replica::assess(touches, &writes, fresh),
        )
    };
    let (mut never_stale, mut stale, mut stays) = (0, 0, 0);
    for heavy in all {
        match moves(heavy) {
            Replica::No { .. } => stays += heavy.total_us,
            could if could.is_never_stale() => never_stale += heavy.total_us,
            Replica::Could { .. } => stale += heavy.total_us,
        }
    }
    let advice = heaviest(all, limit).into_iter().map(|heavy| {
        let read = parsed(heavy);
        let wanted = read.map(|touches| candidates(touches, tables)).unwrap_or_default();
        let mut indexes: Vec<Proposal> = wanted
            .into_iter()
            .map(|candidate| Proposal {
                statement: candidate.statement(dialect),
                trial: read.and_then(|touches| try_index(touches, &candidate)),
                candidate,
            })
            .collect();
        // First the indexes that the planner would use, by their savings; then the untried ones.
        let saves = |p: &Proposal| {
            p.trial.as_ref().map_or(0.0, |t| if t.is_used { t.cost_before - t.cost_after } else { -1.0 })
        };
        indexes.sort_by(|a, b| saves(b).total_cmp(&saves(a)));
        Advice {
            id: heavy.id.clone(),
            text: heavy.text.clone(),
            calls: heavy.calls,
            share_ratio: share(heavy.total_us),
            examined_per_sent: heavy.rows.map(|(examined, sent)| examined as f64 / sent.max(1) as f64),
            indexes,
            replica: moves(heavy),
            is_read: read.is_some(),
        }
    });
    Report {
        advice: advice.collect(),
        replica_never_stale_ratio: share(never_stale),
        replica_stale_ratio: share(stale),
        stays_ratio: share(stays),
        rest_ratio: share(rest_us),
        rest: rest.cloned(),
        not_tried: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::Index;

    fn heavy(id: &str, text: &str, calls: u64, total_us: u128) -> StatementCost {
        StatementCost { id: id.to_owned(), text: text.to_owned(), calls, total_us, rows: Some((9_000, 9)) }
    }

    #[test]
    fn the_heaviest_come_first_and_what_would_be_relieved_is_summed() {
        let all = [
            heavy("a", "SELECT * FROM orders WHERE customer = ?", 100, 600),
            heavy("b", "SELECT * FROM prices WHERE id = ?", 100, 300),
            heavy("c", "UPDATE orders SET a = ? WHERE id = ?", 60, 60),
            heavy("d", "BROKEN (((", 1, 40),
        ];
        let orders = Table {
            name: "orders".to_owned(),
            columns: ["id", "customer", "a"].map(str::to_owned).to_vec(),
            indexes: vec![Index { name: "PRIMARY".to_owned(), columns: vec!["id".to_owned()], is_unique: true }],
            rows: Some(1e6),
        };
        let mut tried = Vec::new();
        let report = advise((&all, None), 60.0, Dialect::MySql, (2, &[], &[orders]), |_, candidate| {
            tried.push(candidate.statement(Dialect::MySql));
            Some(Trial { cost_before: 100.0, cost_after: 1.0, is_used: true })
        });
        assert_eq!(tried, ["ALTER TABLE `orders` ADD INDEX (`customer`)"]);
        assert_eq!(report.advice.iter().map(|a| a.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(report.advice[0].examined_per_sent, Some(1_000.0));
        let shares = [report.replica_never_stale_ratio, report.replica_stale_ratio, report.stays_ratio];
        assert_eq!(shares, [0.3, 0.6, 0.1]);
        assert_eq!(touched_tables(&all, 2, Dialect::MySql), ["orders", "prices"]);
    }
}
