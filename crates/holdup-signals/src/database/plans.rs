//! Plans of statements over a window, by statement and shape; and two plans compared: where they
//! differ, and where the planner misjudged rows. Rules interpret it.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;

use crate::Evidence;
use crate::{DigestUse, Missing, View};

/// What to record for plans.
pub const PLANS: &str = "add ?plans=explain to the address of --watch postgresql://… or mysql://… (docs/security.md has the grants), or log plans \
     with auto_explain and name the log (?log=PATH)";

/// Plans of one shape of one statement.
#[derive(Clone, Debug)]
pub struct Shape<'a> {
    /// How many there are.
    pub count: usize,
    /// The last of them.
    pub plan: &'a Plan,
    /// Its tree.
    pub tree: Node,
}

impl<'a> View<'a> {
    /// Plans of the window.
    ///
    /// # Errors
    /// If none were recorded at any time, or a column is missing.
    pub fn plans(&self) -> Result<Vec<&'a Plan>, Missing> {
        let columns = ["observed_at", "source", "kind", "digest", "shape", "plan"];
        let rows = self.recording.tables.plans.with_columns(&columns).map_err(|what| Missing::new(what, PLANS))?;
        if rows.is_empty() {
            return Err(Missing::new("plans of statements (table plans)", PLANS));
        }
        Ok(rows.iter().filter(|row| self.window.contains(row.observed_at)).collect())
    }

    /// Evidence that points at plans of one statement and shape.
    pub fn plan_evidence(
        &self,
        shape: &Shape<'_>,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let labels = [("kind", &shape.plan.kind), ("digest", &shape.plan.digest), ("shape", &shape.plan.shape)];
        let labels = Labels::new(labels.map(|(name, value)| (name, value.as_str())));
        Evidence::new("plans", "shape", labels, self.window, observed, expected, text)
    }
}

/// Shapes of the plans of `of` by kind of plan (`explain`, `auto_explain`, …), most frequent first.
pub fn shapes<'a>(plans: &[&'a Plan], of: &DigestUse) -> BTreeMap<&'a str, Vec<Shape<'a>>> {
    let mut by_kind: BTreeMap<&str, Vec<Shape<'_>>> = BTreeMap::new();
    for plan in plans.iter().filter(|plan| plan.source == of.source && plan.digest == of.digest) {
        let shapes = by_kind.entry(plan.kind.as_str()).or_default();
        match shapes.iter_mut().find(|shape| shape.plan.shape == plan.shape) {
            Some(shape) => {
                shape.count += 1;
                if shape.plan.observed_at <= plan.observed_at
                    && let Some(tree) = Node::from_json(&plan.plan)
                {
                    (shape.plan, shape.tree) = (plan, tree);
                }
            }
            None => {
                if let Some(tree) = Node::from_json(&plan.plan) {
                    shapes.push(Shape { count: 1, plan, tree });
                }
            }
        }
    }
    for shapes in by_kind.values_mut() {
        shapes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.plan.shape.cmp(&b.plan.shape)));
    }
    by_kind
}

/// Where two plans differ: the node of each, if it has one there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parting<'p> {
    /// In the earlier plan.
    pub before: Option<&'p Node>,
    /// In the later plan.
    pub after: Option<&'p Node>,
}

impl Parting<'_> {
    /// Both in words.
    pub fn text(&self) -> String {
        // For a table reached by a bitmap, the index is on the node beneath.
        let name = |node: Option<&Node>| match node {
            Some(node) if node.index.is_none() && node.relation.is_some() => {
                let beneath = node.children.iter().find_map(|child| child.index.as_ref());
                beneath.map_or_else(|| node.name(), |index| format!("{} by {index}", node.name()))
            }
            Some(node) => node.name(),
            None => "nothing".to_owned(),
        };
        format!("{} became {}", name(self.before), name(self.after))
    }
}

/// Where two plans differ. Another access path to a table says more than what is built upon it, so
/// holdup looks for that first; else it is the first different node from the top.
pub fn parting<'p>(before: &'p Node, after: &'p Node) -> Option<Parting<'p>> {
    let tables = |plan: &'p Node| plan.all().into_iter().filter(|node| node.relation.is_some());
    for now in tables(after) {
        let mut then = tables(before).filter(|node| node.relation == now.relation).peekable();
        if then.peek().is_some() && then.clone().all(|node| node.name() != now.name()) {
            return Some(Parting { before: then.next(), after: Some(now) });
        }
    }
    first(before, after)
}

fn first<'p>(before: &'p Node, after: &'p Node) -> Option<Parting<'p>> {
    if before.name() != after.name() {
        return Some(Parting { before: Some(before), after: Some(after) });
    }
    let most = before.children.len().max(after.children.len());
    (0..most).find_map(|at| match (before.children.get(at), after.children.get(at)) {
        (Some(before), Some(after)) => first(before, after),
        (before, after) => Some(Parting { before, after }),
    })
}

/// The node whose rows were most misjudged, and by what factor: 2 means twice too few or too many.
/// None if rows were not counted.
pub fn misestimate(plan: &Node) -> Option<(&Node, f64)> {
    let factor = |node: &Node| {
        let (expected, came) = (node.rows_estimated?.max(1.0), node.rows_actual?.max(1.0));
        Some((came / expected).max(expected / came))
    };
    plan.all().into_iter().filter_map(|node| Some((node, factor(node)?))).max_by(|(_, a), (_, b)| a.total_cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, relation: Option<&str>, index: Option<&str>, children: Vec<Node>) -> Node {
        let text = |value: Option<&str>| value.map(str::to_owned);
        Node { kind: kind.to_owned(), relation: text(relation), index: text(index), children, ..Node::default() }
    }

    #[test]
    fn plans_part_where_a_table_is_reached_in_another_way() {
        let by_index = node("Index Scan", Some("t"), Some("t_a"), vec![]);
        let whole = node("Seq Scan", Some("t"), None, vec![]);
        let before = node("Limit", None, None, vec![by_index.clone()]);
        let after = node("Limit", None, None, vec![node("Sort", None, None, vec![whole.clone()])]);
        let found = parting(&before, &after).unwrap();
        assert_eq!((found.before, found.after), (Some(&by_index), Some(&whole)));
        assert_eq!(found.text(), "Index Scan t by t_a became Seq Scan t");
        assert_eq!(parting(&before, &before), None);
        let bitmap =
            node("Bitmap Heap Scan", Some("t"), None, vec![node("Bitmap Index Scan", None, Some("t_a"), vec![])]);
        assert_eq!(parting(&bitmap, &whole).unwrap().text(), "Bitmap Heap Scan t by t_a became Seq Scan t");
        // Of the same ways to tables it is the node above.
        let nested = node("Nested Loop", None, None, vec![whole.clone(), by_index.clone()]);
        let hashed = node("Hash Join", None, None, vec![whole.clone(), by_index.clone()]);
        assert_eq!(parting(&nested, &hashed).unwrap().text(), "Nested Loop became Hash Join");
        let more = node("Nested Loop", None, None, vec![whole, by_index, node("Result", None, None, vec![])]);
        assert_eq!(parting(&nested, &more).unwrap().text(), "nothing became Result");
    }

    #[test]
    fn the_worst_estimate_is_found() {
        let mut plan = node("Nested Loop", None, None, vec![node("Seq Scan", Some("t"), None, vec![])]);
        assert_eq!(misestimate(&plan), None);
        (plan.rows_estimated, plan.rows_actual) = (Some(10.0), Some(5.0));
        (plan.children[0].rows_estimated, plan.children[0].rows_actual) = (Some(1.0), Some(40_000.0));
        let (worst, factor) = misestimate(&plan).unwrap();
        assert_eq!((worst.kind.as_str(), factor), ("Seq Scan", 40_000.0));
    }
}
