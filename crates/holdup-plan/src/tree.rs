//! Turns MySQL's `EXPLAIN FORMAT=TREE` and `EXPLAIN ANALYZE` into a tree: one line a node, each behind an
//! arrow. A filter is part of the access below it, as in the other formats.

use holdup_recording::plan::Node;
use holdup_sql::Dialect;

use crate::without_values;

/// Largest number of nodes, and deepest level.
const NODES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 60;

/// Ways to a table, each with the access type of the other formats.
const ACCESSES: &[(&str, &str)] = &[
    ("Table scan on ", "ALL"),
    ("Covering index scan on ", "index"),
    ("Index scan on ", "index"),
    ("Single-row covering index lookup on ", "eq_ref"),
    ("Single-row index lookup on ", "eq_ref"),
    ("Covering index lookup on ", "ref"),
    ("Index lookup on ", "ref"),
    ("Covering index range scan on ", "range"),
    ("Index range scan on ", "range"),
    ("Multi-range index lookup on ", "ref"),
    ("Full-text index search on ", "fulltext"),
    ("Constant row from ", "const"),
];

/// The tree of these lines; none if the first is not a node.
pub fn tree(text: &str) -> Option<Node> {
    // Open nodes, each with its column.
    let mut open: Vec<(usize, Node)> = Vec::new();
    let mut count = 0;
    for line in text.lines() {
        let content = line.trim_start_matches(' ');
        let Some(node) = content.strip_prefix("-> ").and_then(node) else {
            if open.is_empty() && !content.is_empty() {
                return None;
            }
            continue;
        };
        count += 1;
        if count > NODES_MAX {
            break;
        }
        let column = line.len() - content.len();
        close(&mut open, column);
        if open.len() < DEPTH_MAX {
            open.push((column, node));
        }
    }
    close(&mut open, 0);
    open.pop().map(|(_, node)| folded(node))
}

/// Closes the nodes at or right of `column`, except the topmost.
fn close(open: &mut Vec<(usize, Node)>, column: usize) {
    while open.len() > 1 && open.last().is_some_and(|(at, _)| *at >= column) {
        if let (Some((_, node)), Some((_, above))) = (open.pop(), open.last_mut()) {
            above.children.push(node);
        }
    }
}

/// The number behind `name`. Large ones are written with an exponent, or with a unit: `1.2e+6`, `12.3M`.
fn number(text: &str, name: &str) -> Option<f64> {
    let behind = text.split_once(name)?.1;
    let end = behind.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | 'e' | '+' | '-')).unwrap_or(behind.len());
    let value: f64 = behind.get(..end)?.trim_end_matches('.').parse().ok()?;
    let unit = match behind.get(end..).and_then(|rest| rest.chars().next()) {
        Some('K') => 1e3,
        Some('M') => 1e6,
        Some('G' | 'B') => 1e9,
        _ => 1.0,
    };
    Some(value * unit).filter(|value| value.is_finite())
}

/// `Index lookup on t using t_a (a=5)  (cost=0.35 rows=1) (actual time=0.02..0.03 rows=1 loops=1)`
fn node(line: &str) -> Option<Node> {
    let begin =
        ["  (cost=", "  (rows=", "  (actual ", "  (never executed)"].iter().filter_map(|mark| line.find(mark)).min();
    let (head, figures) = line.split_at_checked(begin.unwrap_or(line.len()))?;
    let (planned, actual) = figures.split_once("(actual ").map_or((figures, ""), |(planned, actual)| (planned, actual));
    let access = ACCESSES.iter().find_map(|(words, kind)| Some((head.strip_prefix(words)?, *kind)));
    let mut node = match access {
        Some((rest, kind)) => {
            let mut words = rest.split(' ');
            let relation = words.next().map(|name| name.trim_matches('`').to_owned());
            let index =
                rest.split_once(" using ").and_then(|(_, rest)| rest.split([' ', ',']).next()).map(str::to_owned);
            Node { kind: kind.to_owned(), relation, index, ..Node::default() }
        }
        None => {
            let (kind, rest) = head.split_once(": ").unwrap_or((head, ""));
            let condition = (kind == "Filter").then(|| without_values(rest, Dialect::MySql));
            let kind: String = kind.split(" (").next().unwrap_or(kind).chars().take(80).collect();
            Node { kind, filter: condition, ..Node::default() }
        }
    };
    if node.kind.is_empty() {
        return None;
    }
    node.cost = number(planned, "cost=").or_else(|| number(planned, ".."));
    node.rows_estimated = number(planned, "rows=");
    node.rows_actual = number(actual, "rows=");
    node.loops = if figures.contains("(never executed)") { Some(0.0) } else { number(actual, "loops=") };
    node.time_ms = actual.split_once("time=").and_then(|(_, rest)| number(rest, ".."));
    Some(node)
}

/// The node with each filter made part of the access to a table below it.
fn folded(mut node: Node) -> Node {
    node.children = node.children.into_iter().map(folded).collect();
    if node.kind != "Filter"
        || node.children.first().is_none_or(|child| child.relation.is_none() || child.filter.is_some())
    {
        return node;
    }
    let rest = node.children.split_off(1);
    let Some(below) = node.children.pop() else { return node };
    Node {
        kind: below.kind,
        relation: below.relation,
        index: below.index,
        filter: node.filter,
        rows_read: below.rows_estimated,
        rows_estimated: node.rows_estimated,
        rows_actual: node.rows_actual,
        rows_removed: below.rows_actual.zip(node.rows_actual).map(|(read, kept)| (read - kept).max(0.0)),
        loops: node.loops.or(below.loops),
        time_ms: node.time_ms.or(below.time_ms),
        cost: node.cost.or(below.cost),
        children: rest,
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "-> Limit: 10 row(s)  (cost=912 rows=10) (actual time=351..352 rows=10 loops=1)
    -> Sort: o.placed DESC  (actual time=351..351 rows=10 loops=1)
        -> Nested loop inner join  (cost=912 rows=99.5) (actual time=0.4..350 rows=40 loops=1)
            -> Filter: (o.state = 'canary')  (cost=10.5 rows=99) (actual time=0.3..340 rows=40 loops=1)
                -> Table scan on o  (cost=10.5 rows=1.2e+6) (actual time=0.1..290 rows=1.2M loops=1)
            -> Single-row index lookup on c using PRIMARY (id=o.customer)  (cost=0.25 rows=1) (never executed)
";

    #[test]
    fn a_filter_is_part_of_the_scan_below_it() {
        let plan = tree(PLAN).unwrap();
        assert_eq!(plan.structure(), "Limit(Sort(Nested loop inner join(ALL o, eq_ref c by PRIMARY)))");
        let all = plan.all();
        let scan = all.iter().find(|node| node.kind == "ALL").unwrap();
        assert_eq!((scan.rows_actual, scan.rows_removed, scan.loops), (Some(40.0), Some(1_199_960.0), Some(1.0)));
        assert_eq!((scan.rows_read, scan.time_ms, plan.time_ms), (Some(1.2e6), Some(340.0), Some(352.0)));
        assert_eq!(scan.filter.as_deref(), Some("(o.state = ?)"));
        assert_eq!(all.iter().find(|node| node.kind == "eq_ref").unwrap().loops, Some(0.0));
        assert!(!plan.to_json().contains("canary"));
        assert_eq!((tree("SELECT 1"), tree("")), (None, None));
        assert!(
            tree(&"    ".repeat(500).lines().map(|line| format!("{line}-> Limit\n")).collect::<String>()).is_some()
        );
    }
}
