//! Turns the output of MySQL's and MariaDB's `EXPLAIN FORMAT=JSON` into a tree. Their operation
//! names differ and change with versions: a known operation becomes a node, and anything else that
//! contains tables is searched.

use holdup_recording::plan::Node;
use holdup_sql::Dialect;

use super::json::Json;
use super::without_values;

/// Deeper nodes are dropped.
const DEPTH_MAX: usize = 60;

/// Fields that represent operations.
const OPERATIONS: &[&str] = &[
    "query_block",
    "nested_loop",
    "ordering_operation",
    "grouping_operation",
    "duplicates_removal",
    "duplicate_removal",
    "windowing",
    "window_functions_computation",
    "filesort",
    "temporary_table",
    "read_sorted_file",
    "block-nl-join",
    "union_result",
    "buffer_result",
    "materialized",
    "materialized_from_subquery",
    "expression_cache",
    "duplicates_weedout",
    "rowid_filter",
    "having_subqueries",
    "attached_subqueries",
];

/// The plan in `text`.
pub fn tree(text: &str) -> Option<Node> {
    let json = Json::read(text)?;
    let mut found = below(&json, 0);
    (found.len() == 1).then(|| found.remove(0))
}

/// The nodes below a value.
fn below(json: &Json, depth: usize) -> Vec<Node> {
    if depth > DEPTH_MAX {
        return Vec::new();
    }
    let mut nodes: Vec<Node> = json.parts().iter().flat_map(|part| below(part, depth + 1)).collect();
    for (name, value) in json.fields() {
        if name == "table" && value.get("access_type").is_some() {
            nodes.push(table(value, depth));
        } else if OPERATIONS.contains(&name.as_str()) && matches!(value, Json::Object(_) | Json::Array(_)) {
            nodes.push(operation(name, value, depth));
        } else {
            nodes.extend(below(value, depth + 1));
        }
    }
    nodes
}

fn operation(name: &str, value: &Json, depth: usize) -> Node {
    let condition = |name: &str| value.text(name).map(|text| without_values(text, Dialect::MySql));
    Node {
        kind: name.to_owned(),
        filter: condition("attached_condition").or_else(|| condition("having_condition")),
        cost: value.number("cost").or_else(|| value.get("cost_info")?.number("query_cost")),
        loops: value.number("r_loops"),
        time_ms: value.number("r_total_time_ms"),
        children: below(value, depth + 1),
        ..Node::default()
    }
}

/// The node of a table access.
fn table(value: &Json, depth: usize) -> Node {
    let rows = value.number("rows").or_else(|| value.number("rows_examined_per_scan"));
    let share = value.number("filtered").map_or(1.0, |percent| percent / 100.0);
    let (read, passed) = (value.number("r_rows"), value.number("r_filtered"));
    Node {
        kind: value.text("access_type").unwrap_or_default().to_owned(),
        relation: value.text("table_name").map(str::to_owned),
        index: value.text("key").map(str::to_owned),
        condition: value.text("index_condition").map(|text| without_values(text, Dialect::MySql)),
        filter: value.text("attached_condition").map(|text| without_values(text, Dialect::MySql)),
        cost: value.number("cost").or_else(|| value.get("cost_info")?.number("prefix_cost")),
        rows_estimated: rows.map(|rows| rows * share),
        rows_read: rows,
        rows_actual: read.map(|read| read * passed.unwrap_or(100.0) / 100.0),
        rows_removed: read.zip(passed).map(|(read, passed)| read * (1.0 - passed / 100.0)),
        loops: value.number("r_loops"),
        time_ms: value.number("r_total_time_ms"),
        children: below(value, depth + 1),
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mariadb_of_two_formats() {
        let new = r#"{"query_block":{"select_id":1,"cost":0.5,"filesort":{"sort_key":"t.a desc, 'canary'","temporary_table":{"nested_loop":[
            {"table":{"table_name":"t","access_type":"ALL","possible_keys":["a"],"rows":1000,"filtered":10,"attached_condition":"t.note = 'canary'"}},
            {"table":{"table_name":"u","access_type":"ref","key":"u_a","ref":["x.t.a"],"rows":1,"filtered":100,"index_condition":"u.b > 4711"}}]}}}}"#;
        let plan = tree(new).unwrap();
        assert_eq!(plan.structure(), "query_block(filesort(temporary_table(nested_loop(ALL t, ref u by u_a))))");
        let scan = plan.all().into_iter().find(|node| node.kind == "ALL").unwrap();
        assert_eq!((scan.rows_read, scan.rows_estimated), (Some(1000.0), Some(100.0)));
        let text = plan.to_json();
        assert!(!text.contains("canary") && !text.contains("4711"), "{text}");
        let old = r#"{"query_block":{"select_id":1,"table":{"table_name":"t","access_type":"ALL","rows":3,"filtered":100},
            "table":{"table_name":"u","access_type":"eq_ref","key":"PRIMARY","rows":1,"filtered":100}}}"#;
        assert_eq!(tree(old).unwrap().structure(), "query_block(ALL t, eq_ref u by PRIMARY)");
    }

    #[test]
    fn mysql() {
        let text = r#"{"query_block":{"select_id":1,"cost_info":{"query_cost":"10.25"},"ordering_operation":{"using_filesort":true,
            "table":{"table_name":"t","access_type":"range","key":"a","used_key_parts":["a"],"rows_examined_per_scan":20,
            "rows_produced_per_join":2,"filtered":"10.00","cost_info":{"prefix_cost":"9.00"},"used_columns":["a"],
            "attached_condition":"(`x`.`t`.`a` > 4711)","attached_subqueries":[{"dependent":true,"query_block":{"select_id":2,
            "table":{"table_name":"u","access_type":"index","key":"PRIMARY"}}}]}}}}"#;
        let plan = tree(text).unwrap();
        let structure =
            "query_block(ordering_operation(range t by a(attached_subqueries(query_block(index u by PRIMARY)))))";
        assert_eq!(plan.structure(), structure);
        let range = plan.all().into_iter().find(|node| node.kind == "range").unwrap();
        assert_eq!((range.rows_estimated, range.cost, plan.cost), (Some(2.0), Some(9.0), Some(10.25)));
        assert_eq!(range.filter.as_deref(), Some("(x.t.a > ?)"));
        assert_eq!(tree("{}"), None);
    }
}
