//! `explain("executionStats")` of MongoDB: the stages of the plan with what each read and returned.

use holdup_mongodb::command_shape;
use holdup_recording::plan::Node;

use super::put_of;
use crate::text::kinds::{Context, Document, Kind, Value};

pub(in crate::text::kinds) const KIND: Kind = Kind::document(
    "explain()",
    |head| head.get("queryPlanner").is_some() || head.get("executionStats").is_some(),
    read,
);

/// The source of what MongoDB says.
const SOURCE: &str = "mongodb://pasted";

/// Deepest stage that is read.
const DEPTH_MAX: usize = 60;

fn read(document: &Document, context: &mut Context) {
    let planner = document.value.get("queryPlanner");
    let stats = document.value.get("executionStats");
    let namespace = planner.and_then(|planner| planner.get("namespace")).and_then(Value::text).unwrap_or_default();
    let collection = namespace.split_once('.').map_or(namespace, |(_, collection)| collection);
    let stages = stats.and_then(|stats| stats.get("executionStages"));
    let planned = planner.and_then(|planner| planner.get("winningPlan"));
    // The slot-based engine has the stages as the planner knows them one level deeper.
    let planned = planned.map(|plan| plan.get("queryPlan").unwrap_or(plan));
    let is_old = |stages: &&Value| stages.get("docsExamined").is_some() || stages.get("inputStage").is_some();
    let root = stages.filter(is_old).or(planned).or(stages);
    let Some(mut tree) = root.and_then(|root| node(root, collection, 0)) else {
        return context.unread.extend(0..document.used);
    };
    let count = |name: &str| stats.and_then(|stats| stats.get(name)).and_then(Value::number);
    let (returned, examined) = (count("nReturned"), count("totalDocsExamined"));
    tree.rows_actual = tree.rows_actual.or(returned);
    // Where the stages have no counts, those of the whole belong to its scan.
    if let Some(scan) = scan(&mut tree)
        && scan.rows_removed.is_none()
    {
        scan.rows_actual = scan.rows_actual.or(returned);
        scan.rows_removed = examined.zip(scan.rows_actual).map(|(examined, kept)| (examined - kept).max(0.0));
    }
    let command = document.value.get("command").and_then(|command| command_shape(command, namespace));
    let asked = planner.and_then(|planner| planner.get("parsedQuery"));
    let text = command.unwrap_or_else(|| find(namespace, asked.unwrap_or(&Value::Null)));
    put_of(&tree, SOURCE, (text, count("executionTimeMillis")), context);
}

/// A slow operation as mongod logs it: what its plan read and returned.
pub(in crate::text::kinds) fn read_record(document: &Document, context: &mut Context) {
    let Some(attributes) = document.value.get("attr") else { return };
    let text = |name: &str| attributes.get(name).and_then(Value::text);
    let number = |name: &str| attributes.get(name).and_then(Value::number);
    let (Some(plan), Some(took_ms)) = (text("planSummary"), number("durationMillis")) else {
        return context.unread.extend(0..document.used);
    };
    let namespace = text("ns").unwrap_or_default();
    let collection = namespace.split_once('.').map_or(namespace, |(_, collection)| collection);
    let (kind, index) = plan.split_once(' ').map_or((plan, None), |(kind, index)| (kind, Some(index.to_owned())));
    let returned = number("nreturned");
    let node = Node {
        kind: kind.to_owned(),
        relation: Some(collection.to_owned()).filter(|name| !name.is_empty()),
        index,
        filter: attributes.at(&["command", "filter"]).and_then(condition),
        rows_actual: returned,
        rows_removed: number("docsExamined").zip(returned).map(|(read, kept)| (read - kept).max(0.0)),
        loops: returned.map(|_| 1.0),
        time_ms: Some(took_ms),
        ..Node::default()
    };
    let command = attributes.get("command").and_then(|command| command_shape(command, namespace));
    put_of(&node, SOURCE, (command.unwrap_or_default(), Some(took_ms)), context);
}

/// `find shop.orders filter { state: ? }`
fn find(namespace: &str, filter: &Value) -> String {
    let part = |name: &str, value: Value| (name.to_owned(), value);
    let command = Value::Map(vec![part("find", Value::Text(namespace.to_owned())), part("filter", filter.clone())]);
    command_shape(&command, namespace).unwrap_or_default()
}

/// A condition without its values.
fn condition(filter: &Value) -> Option<String> {
    Some(find("", filter).split_once("filter ")?.1.to_owned())
}

/// The scan of a whole collection.
fn scan(node: &mut Node) -> Option<&mut Node> {
    if node.kind == "COLLSCAN" {
        return Some(node);
    }
    node.children.iter_mut().find_map(scan)
}

fn node(value: &Value, collection: &str, depth: usize) -> Option<Node> {
    let text = |name: &str| value.get(name).and_then(Value::text).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(Value::number);
    let kind = text("stage")?;
    let one = value.get("inputStage").into_iter();
    let several = value.get("inputStages").map(Value::items).unwrap_or_default().iter();
    let below = one.chain(several).filter(|_| depth < DEPTH_MAX);
    let reads = matches!(kind.as_str(), "COLLSCAN" | "FETCH" | "IXSCAN");
    let returned = number("nReturned");
    Some(Node {
        relation: reads.then(|| collection.to_owned()).filter(|name| !name.is_empty()),
        index: text("indexName"),
        filter: value.get("filter").filter(|filter| !filter.entries().is_empty()).and_then(condition),
        rows_actual: returned,
        rows_removed: number("docsExamined").zip(returned).map(|(read, kept)| (read - kept).max(0.0)),
        loops: returned.map(|_| 1.0),
        time_ms: number("executionTimeMillisEstimate"),
        children: below.filter_map(|child| node(child, collection, depth + 1)).collect(),
        kind,
        ..Node::default()
    })
}
