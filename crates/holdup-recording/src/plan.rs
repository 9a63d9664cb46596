//! How a server executes a statement: the tree of nodes that the table `plans` holds as JSON, in
//! one vocabulary for all servers. It has kinds, tables, indexes and conditions without values, the
//! planner's estimates and, if it was executed, the actual figures.
//!
//! Two plans are compared by structure: kinds, tables, indexes, kinds of join and their order, but
//! no figures.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Deepest level; servers make no deeper plans, and recursion must end.
const DEPTH_MAX: usize = 60;

/// The kind of a node that checks a foreign key for each changed row; its `relation` is the constraint.
pub const CONSTRAINT_TRIGGER: &str = "Constraint Trigger";

/// One step of a plan, and the steps it takes its rows from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// The kind of step, in the server's words: `Seq Scan`, `Index Scan`, `Hash Join`; for MySQL
    /// and MariaDB the access type of a table (`ALL`, `ref`, `range`, …) or the operation
    /// (`nested_loop`, `filesort`, …).
    pub kind: String,
    /// The table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// The table's schema, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The kind of join, unless it is an inner one: `Left`, `Semi`, `Anti`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<String>,
    /// The condition by which rows are found or joined, every value as `?`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The condition by which rows are discarded, every value as `?`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The planner's cost of this node and all below it, in the server's own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Rows that the planner expected per run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_estimated: Option<f64>,
    /// Rows that the planner expected to read per run, if the server says so (MySQL, MariaDB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_read: Option<f64>,
    /// Mean rows per run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_actual: Option<f64>,
    /// Mean rows per run that the filter discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_removed: Option<f64>,
    /// Number of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loops: Option<f64>,
    /// Mean duration of a run, milliseconds, including all nodes below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<f64>,
    /// Bytes that it wrote to disk for lack of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled_bytes: Option<f64>,
    /// The sources of its rows, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

impl Node {
    /// The structure as one text: `Hash Join(Seq Scan orders, Hash(Index Scan customer by
    /// customer_pkey))`.
    pub fn structure(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text
    }

    /// The node itself in the same form, without the nodes below.
    pub fn name(&self) -> String {
        let mut text = self.kind.clone();
        for (before, part) in [(" ", &self.join), (" ", &self.relation), (" by ", &self.index)] {
            if let Some(part) = part {
                let _ = write!(text, "{before}{part}");
            }
        }
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        text.push_str(&self.name());
        if self.children.is_empty() || depth >= DEPTH_MAX {
            return;
        }
        for (number, child) in self.children.iter().enumerate() {
            text.push_str(if number == 0 { "(" } else { ", " });
            child.write(text, depth + 1);
        }
        text.push(')');
    }

    /// Serializes it for the column `plan`.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the column `plan`; none if the text is not a plan.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// This node and all below it, from the top, left before right.
    pub fn all(&self) -> Vec<&Self> {
        let (mut all, mut next) = (Vec::new(), vec![self]);
        while let Some(node) = next.pop() {
            all.push(node);
            next.extend(node.children.iter().rev());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(kind: &str, relation: &str, index: Option<&str>) -> Node {
        let (kind, relation, index) = (kind.to_owned(), Some(relation.to_owned()), index.map(str::to_owned));
        Node { kind, relation, index, rows_estimated: Some(5.0), ..Node::default() }
    }

    #[test]
    fn the_structure_has_no_figures_and_json_comes_back() {
        let mut join = Node {
            kind: "Hash Join".to_owned(),
            join: Some("Left".to_owned()),
            children: vec![scan("Seq Scan", "orders", None), scan("Index Scan", "customer", Some("customer_pkey"))],
            ..Node::default()
        };
        let structure = "Hash Join Left(Seq Scan orders, Index Scan customer by customer_pkey)";
        assert_eq!(join.structure(), structure);
        let text = join.to_json();
        assert_eq!(Node::from_json(&text).as_ref(), Some(&join));
        assert!(!text.contains("null"), "{text}");
        join.children[0].rows_estimated = Some(5e6);
        join.children[0].schema = Some("public".to_owned());
        assert_eq!(join.structure(), structure, "figures and schemas are not part of it");
        join.children.reverse();
        assert_ne!(join.structure(), structure, "the order is");
        let names: Vec<String> = join.all().into_iter().map(Node::name).collect();
        assert_eq!(names, ["Hash Join Left", "Index Scan customer by customer_pkey", "Seq Scan orders"]);
        assert_eq!(Node::from_json("plan"), None);
    }
}
