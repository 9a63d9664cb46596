//! Plans that were pasted or logged with the figures of their execution: which step took the time, what it
//! wrote to disk, and how far the planner was wrong.

use holdup_recording::Labels;
use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;
use holdup_recording::words::{bytes, ms, percent};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use super::Share;

/// A plan that a server executed, with its tree.
pub(crate) struct Executed<'a> {
    pub(crate) row: &'a Plan,
    pub(crate) tree: Node,
}

/// The plans of the view.
pub(crate) fn all<'a>(view: &View<'a>) -> Vec<Executed<'a>> {
    let rows = view.recording.tables.plans.rows.iter().filter(|row| view.window.contains(row.observed_at));
    rows.filter_map(|row| Some(Executed { row, tree: Node::from_json(&row.plan)? })).collect()
}

/// The plans of the view without those that were the better one of two of a statement: what these read is not why it
/// takes long.
pub(crate) fn telling<'a>(view: &View<'a>) -> Vec<Executed<'a>> {
    let all = all(view);
    let is_better = |plan: &Executed<'_>| {
        let took_ms = plan.took_ms().unwrap_or(f64::INFINITY);
        all.iter().any(|other| plan.is_same(other) && other.took_ms().is_some_and(|ms| took_ms <= BETTER * ms))
    };
    let better: Vec<bool> = all.iter().map(is_better).collect();
    all.into_iter().zip(better).filter(|(_, is_better)| !is_better).map(|(plan, _)| plan).collect()
}

/// Two plans of one statement: the better one takes at most this part (0-1) of the time.
pub(crate) const BETTER: f64 = 1.0 / 3.0;

impl Executed<'_> {
    /// How long its execution took, milliseconds.
    pub(crate) fn took_ms(&self) -> Option<f64> {
        self.row.duration_ns.map(|ns| ns as f64 / 1e6).or(self.tree.time_ms)
    }

    /// Whether it is another plan of the same statement: by its text, or, if none stands above, by the tables that it reads.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let tables = |plan: &Self| {
            let mut tables: Vec<String> =
                plan.tree.all().into_iter().filter_map(|node| node.relation.clone()).collect();
            tables.sort_unstable();
            tables.dedup();
            tables
        };
        self.row.shape != other.row.shape
            && match (self.row.digest_text.is_empty(), other.row.digest_text.is_empty()) {
                (false, false) => self.row.digest == other.row.digest,
                _ => !tables(self).is_empty() && tables(self).iter().any(|table| tables(other).contains(table)),
            }
    }

    /// Share (0-1) of the plan's time in `node`, by the server's own timing of it without the steps below;
    /// none if it was not timed.
    pub(crate) fn share(&self, node: &Node) -> Option<f64> {
        let whole = self.took_ms().filter(|whole| *whole > 0.0)?;
        Some((own_ms(node)? / whole).clamp(0.0, 1.0))
    }

    /// The part of the harm that `node` accounts for.
    pub(crate) fn part(&self, node: &Node) -> Share {
        let whole = self.row.duration_ns.map_or_else(String::new, |ns| format!(" of {}", ms(ns as f64 / 1e6)));
        Share { ratio: self.share(node).unwrap_or(0.0), of: format!("of the statement's time{whole}") }
    }

    /// Evidence that points at the plan's row.
    pub(crate) fn evidence(&self, view: &View<'_>, observed: String, text: &str) -> Evidence {
        let labels = [("kind", &self.row.kind), ("digest", &self.row.digest), ("shape", &self.row.shape)];
        let labels = Labels::new(labels.map(|(name, value)| (name, value.as_str())));
        let statement: String = self.row.digest_text.chars().take(120).collect();
        let of = if statement.is_empty() { String::new() } else { format!(": {statement}") };
        Evidence::new("plans", "shape", labels, view.window, observed, "", format!("{text}{of}"))
    }
}

/// Milliseconds of all runs of a node without the nodes below.
fn own_ms(node: &Node) -> Option<f64> {
    let of = |node: &Node| Some(node.time_ms? * node.loops.unwrap_or(1.0).max(1.0));
    let below: f64 = node.children.iter().filter_map(of).sum();
    Some((of(node)? - below).max(0.0))
}

/// Steps that wrote to disk for lack of memory, each with its part of the time.
pub(crate) fn spilled(view: &View<'_>) -> Vec<(Evidence, Share)> {
    let mut found = Vec::new();
    for plan in all(view) {
        let nodes = plan.tree.all();
        let most = nodes.into_iter().filter(|node| node.spilled_bytes.is_some());
        let Some(node) = most.max_by(|a, b| a.spilled_bytes.unwrap_or(0.0).total_cmp(&b.spilled_bytes.unwrap_or(0.0)))
        else {
            continue;
        };
        let size = bytes(node.spilled_bytes.unwrap_or(0.0));
        let share = plan.part(node);
        let text =
            format!("{} wrote {size} to disk for lack of memory, {} of the time", node.name(), percent(share.ratio));
        found.push((plan.evidence(view, size, &text), share));
    }
    found
}
