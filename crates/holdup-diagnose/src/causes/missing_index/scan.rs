//! A table that a plan reads as a whole: how many rows it reads, how many of them it keeps, and how
//! that is known.

use holdup_recording::metrics;
use holdup_recording::plan::Node;
use holdup_signals::View;
use holdup_signals::database::plans::PLANS;

pub(super) const SEQUENTIAL: &str = metrics::postgresql::STAT_TABLES_SEQ_TUP_READ.name;

/// A table read as a whole.
pub(super) struct Scan {
    pub(super) node: Node,
    /// Rows that one execution reads.
    pub(super) examined: f64,
    /// Rows that pass the filter.
    pub(super) kept: f64,
    /// The source of the figures.
    pub(super) known: &'static str,
}

impl Scan {
    /// The scan of a plan that discards most rows.
    pub(super) fn worst(view: &View<'_>, plan: &Node) -> Option<Self> {
        let scans = plan.all().into_iter().filter(|node| throws_away(node));
        scans
            .filter_map(|node| Self::measure(view, node))
            .max_by(|a, b| (a.examined - a.kept).total_cmp(&(b.examined - b.kept)))
    }

    /// Whether `plan` has a scan that discards rows, and it is unknown how many.
    pub(super) fn is_one_unknown(view: &View<'_>, plan: &Node) -> bool {
        plan.all().into_iter().any(|node| throws_away(node) && Self::measure(view, node).is_none())
    }

    /// Of `node`, by its execution, else by the planner's or the server's counts; none if it is
    /// unknown how many rows it reads.
    fn measure(view: &View<'_>, node: &Node) -> Option<Self> {
        let with = |examined: f64, kept: f64, known| Some(Self { node: node.clone(), examined, kept, known });
        if let (Some(came), Some(removed)) = (node.rows_actual, node.rows_removed) {
            let loops = node.loops.unwrap_or(1.0).max(1.0);
            return with((came + removed) * loops, came * loops, "counted as it was executed");
        }
        // MySQL and MariaDB say how many rows they expect to read.
        if let Some((read, kept)) = node.rows_read.zip(node.rows_estimated) {
            return with(read, kept, "as the planner expected");
        }
        let table = node.relation.as_deref()?;
        let table = |value: &str| {
            value == table
                || value.rsplit_once('.').is_some_and(|(schema, name)| {
                    name == table && node.schema.as_deref().is_none_or(|known| known == schema)
                })
        };
        let expected = node.rows_estimated?;
        let names = view.label_values(metrics::postgresql::TABLE_ROWS.name, "table");
        if let Some(name) = names.iter().find(|name| table(name))
            && let Ok(rows) = view.gauge(metrics::postgresql::TABLE_ROWS.name, &[("table", name)], PLANS)
        {
            return with(rows.mean, expected, "by the planner's statistics");
        }
        let names = view.label_values(SEQUENTIAL, "table");
        let name = names.iter().find(|name| table(name))?;
        let labels = [("table", name.as_str())];
        let read = view.counter(SEQUENTIAL, &labels, PLANS).ok()?;
        let scans = view.counter(metrics::postgresql::STAT_TABLES_SEQ_SCAN.name, &labels, PLANS).ok()?;
        if scans.delta < 1.0 {
            return None;
        }
        with(read.delta / scans.delta, expected, "by the server's counters of the table")
    }
}

/// Whether it reads a whole table and keeps only a part of the rows.
fn throws_away(node: &Node) -> bool {
    let is_whole = node.kind.ends_with("Seq Scan") || matches!(node.kind.as_str(), "ALL" | "index" | "COLLSCAN");
    is_whole && node.filter.is_some()
}
