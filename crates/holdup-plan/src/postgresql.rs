//! Turns PostgreSQL's JSON plan (`EXPLAIN (FORMAT JSON)`, auto_explain) into a tree. Node kinds are
//! named as in the text format, so that both formats yield the same tree.

use holdup_recording::plan::Node;
use holdup_sql::Dialect;

use super::json::Json;
use super::without_values;

/// Deeper nodes are dropped: the output must be parseable again, and JSON parsers accept a depth of
/// 128, of which a node uses two.
pub(crate) const DEPTH_MAX: usize = 60;

/// Conditions by which rows are found or joined; the first present one is used.
pub(crate) const CONDITIONS: &[&str] = &["Index Cond", "Hash Cond", "Merge Cond", "Recheck Cond", "TID Cond"];

/// Conditions that discard rows.
pub(crate) const FILTERS: &[&str] = &["Filter", "Join Filter", "One-Time Filter"];

/// The plan in `text`: an array with one object that has a `Plan` (EXPLAIN), or that object (auto_explain).
pub fn tree(text: &str) -> Option<Node> {
    let json = Json::read(text)?;
    let of = json.parts().first().unwrap_or(&json);
    let mut root = node(of.get("Plan")?, 0)?;
    root.children.extend(of.get("Triggers").map(Json::parts).unwrap_or_default().iter().filter_map(trigger));
    Some(root)
}

fn trigger(json: &Json) -> Option<Node> {
    let constraint = json.text("Constraint Name");
    let name = constraint.or_else(|| json.text("Trigger Name"))?;
    Some(super::trigger(name, constraint.is_some(), json.number("Time")?, json.number("Calls")?))
}

/// The statement that auto_explain puts before the plan.
pub fn statement(text: &str) -> Option<String> {
    Json::read(text)?.text("Query Text").map(str::to_owned)
}

fn node(json: &Json, depth: usize) -> Option<Node> {
    let word = |name: &str| json.text(name).map(str::to_owned);
    let condition = |names: &[&str]| {
        let text = names.iter().find_map(|name| json.text(name))?;
        Some(without_values(text, Dialect::PostgreSql))
    };
    let below = json.get("Plans").filter(|_| depth < DEPTH_MAX).map(Json::parts).unwrap_or_default();
    let loops = json.number("Actual Loops");
    Some(Node {
        kind: kind(json)?,
        relation: word("Relation Name").or_else(|| word("CTE Name")).or_else(|| word("Function Name")).or_else(|| {
            let is_named_so = matches!(json.text("Node Type"), Some("Subquery Scan" | "Values Scan"));
            word("Alias").filter(|_| is_named_so)
        }),
        schema: word("Schema"),
        index: word("Index Name"),
        join: word("Join Type").filter(|join| join != "Inner"),
        condition: condition(CONDITIONS),
        filter: condition(FILTERS),
        cost: json.number("Total Cost"),
        rows_estimated: json.number("Plan Rows"),
        rows_read: None,
        // A node that never ran has no actual rows.
        rows_actual: json.number("Actual Rows").filter(|_| loops != Some(0.0)),
        rows_removed: json.number("Rows Removed by Filter").or_else(|| json.number("Rows Removed by Join Filter")),
        loops,
        time_ms: json.number("Actual Total Time"),
        spilled_bytes: spilled_bytes(json),
        children: below.iter().filter_map(|child| node(child, depth + 1)).collect(),
    })
}

/// What a sort or a hash wrote to disk; the server counts it in kilobytes.
fn spilled_bytes(json: &Json) -> Option<f64> {
    let of_sort = json.number("Sort Space Used").filter(|_| json.text("Sort Space Type") == Some("Disk"));
    of_sort.or_else(|| json.number("Disk Usage")).filter(|kb| *kb > 0.0).map(|kb| kb * 1024.0)
}

fn kind(json: &Json) -> Option<String> {
    let base = json.text("Node Type")?;
    let strategy = json.text("Strategy").unwrap_or_default();
    let named = match base {
        "Aggregate" => {
            let partial = json.text("Partial Mode").filter(|mode| *mode != "Simple");
            let before = partial.map_or(String::new(), |mode| format!("{mode} "));
            let way = match strategy {
                "Sorted" => "Group",
                "Hashed" => "Hash",
                "Mixed" => "Mixed",
                _ => "",
            };
            format!("{before}{way}Aggregate")
        }
        "ModifyTable" => json.text("Operation").unwrap_or(base).to_owned(),
        "SetOp" => {
            let way = if strategy == "Hashed" { "Hash" } else { "" };
            format!("{way}SetOp {}", json.text("Command").unwrap_or_default())
        }
        _ if json.text("Scan Direction") == Some("Backward") => format!("{base} Backward"),
        _ => base.to_owned(),
    };
    Some(if json.is("Parallel Aware") { format!("Parallel {named}") } else { named })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"[{"Plan": {"Node Type": "Aggregate", "Strategy": "Hashed", "Partial Mode": "Simple", "Parallel Aware": false,
      "Startup Cost": 1.5, "Total Cost": 20.25, "Plan Rows": 7, "Plan Width": 8, "Output": ["'canary'::text"], "Group Key": ["t.a"],
      "Plans": [
        {"Node Type": "Hash Join", "Parent Relationship": "Outer", "Parallel Aware": false, "Join Type": "Left", "Total Cost": 18,
         "Plan Rows": 100, "Hash Cond": "(t.a = u.a)", "Join Filter": "(u.note <> 'canary'::text)", "Rows Removed by Join Filter": 3,
         "Actual Rows": 90, "Actual Loops": 2, "Actual Total Time": 1.25, "Plans": [
           {"Node Type": "Seq Scan", "Parallel Aware": true, "Schema": "public", "Relation Name": "t", "Alias": "x", "Plan Rows": 5,
            "Filter": "((note = 'canary'::text) AND (id = ANY ('{4711,4712}'::integer[])))", "Rows Removed by Filter": 995,
            "Actual Rows": 5, "Actual Loops": 2},
           {"Node Type": "Index Scan", "Scan Direction": "Backward", "Index Name": "u_a", "Relation Name": "u", "Plan Rows": 1,
            "Index Cond": "(a > 4711)", "Actual Rows": 0, "Actual Loops": 0}]}]},
      "Settings": {"work_mem": "4711kB"}}]"#;

    #[test]
    fn deep_plans_are_cut_to_a_readable_depth() {
        let mut text = "{\"Node Type\": \"Limit\"}".to_owned();
        for _ in 0..62 {
            text = format!("{{\"Node Type\": \"Limit\", \"Plans\": [{text}]}}");
        }
        let plan = tree(&format!("{{\"Plan\": {text}}}"));
        // Deeper than what is read at all.
        assert!(plan.is_none_or(|plan| Node::from_json(&plan.to_json()).is_some()));
        let lines: String = (0..200)
            .map(|depth| format!("{}->  Limit  (cost=0.00..1.00 rows=1 width=1)\n", " ".repeat(2 + 6 * depth)))
            .collect();
        let plan = crate::text::tree(&format!("Limit  (cost=0.00..1.00 rows=1 width=1)\n{lines}")).unwrap();
        assert_eq!(Node::from_json(&plan.to_json()).map(|plan| plan.all().len()), Some(DEPTH_MAX));
    }

    #[test]
    fn the_tree_has_all_but_the_values() {
        let plan = tree(PLAN).unwrap();
        let structure = "HashAggregate(Hash Join Left(Parallel Seq Scan t, Index Scan Backward u by u_a))";
        assert_eq!(plan.structure(), structure);
        assert_eq!((plan.cost, plan.rows_estimated, plan.rows_actual), (Some(20.25), Some(7.0), None));
        let scan = &plan.children[0].children[0];
        assert_eq!(
            (scan.rows_removed, scan.rows_actual, scan.schema.as_deref()),
            (Some(995.0), Some(5.0), Some("public"))
        );
        assert_eq!(scan.filter.as_deref(), Some("((note = ?) AND (id = ANY (?)))"));
        assert_eq!(plan.children[0].children[1].rows_actual, None, "it was never run");
        let text = plan.to_json();
        assert!(!text.contains("canary") && !text.contains("471"), "{text}");
        assert_eq!(tree("[]"), None);
        assert_eq!(tree("{\"Plan\": {}}"), None);
    }
}
