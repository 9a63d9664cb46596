//! The Grafana dashboard in `docs/grafana/`: every query of it has an answer on the real servers, with Grafana's macros and
//! variables filled in as its ClickHouse plugin does. Grafana itself is not here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::server::Kind;
use super::{DATABASE, fixture, push, stored, with_tables};
use crate::program::root;

/// Recordings of which each operation and each account is in both.
const RECORDING: &str = "hidden-queue-accounts";
const BASELINE: &str = "it's before";

fn dashboard() -> Value {
    serde_json::from_str(&std::fs::read_to_string(root().join("docs/grafana/holdup.json")).unwrap()).unwrap()
}

fn list<'v>(value: &'v Value, at: &str) -> &'v [Value] {
    value.pointer(at).and_then(Value::as_array).unwrap_or_else(|| panic!("no list {at}"))
}

/// A variable as `sqlstring` writes it.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// The statement that Grafana sends: a time filter is on seconds, and variables are texts.
fn filled(sql: &str, variables: &[(String, String)]) -> String {
    let mut text = sql.to_owned();
    for (name, value) in variables {
        text = text.replace(&format!("${{{name}:sqlstring}}"), &quoted(value));
    }
    while let Some((before, rest)) = text.split_once("$__timeFilter(") {
        let (column, after) = rest.split_once(')').unwrap();
        text = format!("{before}{column} >= toDateTime(0) AND {column} <= toDateTime(2000000000){after}");
    }
    assert!(!text.contains('$'), "{sql}: a macro or variable that nothing fills in: {text}");
    text
}

/// The rows of the answer.
fn rows(url: &str, sql: &str) -> Vec<Value> {
    let answer = stored(&["query", url, sql, "--json"]).json();
    let rows = answer["data"].as_array().cloned().unwrap_or_default();
    assert!(!rows.is_empty(), "no rows: {sql}");
    rows
}

/// The first value of a query of a variable: what Grafana sends, not what it shows.
fn first(url: &str, sql: &str) -> String {
    let row = rows(url, sql).swap_remove(0);
    let value = row.get("__value").or_else(|| row.as_object()?.values().next());
    value.and_then(Value::as_str).unwrap().to_owned()
}

fn every_query(kind: Kind) {
    let Some(server) = with_tables(kind) else { return };
    let url = server.url(DATABASE);
    push(&fixture(RECORDING), &url, "now");
    push(&fixture(RECORDING), &url, BASELINE);
    let dashboard = dashboard();
    let mut variables = vec![("recording".to_owned(), "now".to_owned()), ("baseline".to_owned(), BASELINE.to_owned())];
    for variable in list(&dashboard, "/templating/list").iter().filter(|variable| variable["type"] == "query") {
        let value = first(&url, &filled(variable["query"].as_str().unwrap(), &variables));
        let name = variable["name"].as_str().unwrap();
        if variables.iter().all(|(known, _)| known != name) {
            variables.push((name.to_owned(), value));
        }
    }
    for panel in list(&dashboard, "/panels") {
        for target in list(panel, "/targets") {
            let found = rows(&url, &filled(target["rawSql"].as_str().unwrap(), &variables));
            let is_series = target["queryType"] == "timeseries";
            assert_eq!(found[0].get("time").is_some(), is_series, "{}: {}", panel["title"], found[0]);
        }
    }
}

#[test]
fn every_query_of_the_dashboard_on_debian() {
    every_query(Kind::Debian);
}

#[test]
fn every_query_of_the_dashboard_on_the_engine() {
    every_query(Kind::Engine);
}

#[test]
fn the_dashboard_is_one_that_grafana_loads() {
    let dashboard = dashboard();
    // From Grafana 9.2 on.
    assert!((37..=42).contains(&dashboard["schemaVersion"].as_u64().unwrap()), "{}", dashboard["schemaVersion"]);
    let names: Vec<&str> =
        list(&dashboard, "/templating/list").iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in list(&dashboard, "/panels") {
        let id = panel["id"].as_u64().unwrap();
        assert!(id > 0 && ids.insert(id), "two panels have the id {id}");
        assert!(!panel["title"].as_str().unwrap().is_empty() && panel["type"].is_string(), "{panel}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{}", panel["title"]);
        for cell in (y..y + h).flat_map(|row| (x..x + w).map(move |column| (row, column))) {
            assert!(cells.insert(cell), "{} lies on another panel", panel["title"]);
        }
        for target in list(panel, "/targets") {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
            assert_eq!(target["datasource"]["type"], "grafana-clickhouse-datasource");
        }
    }
    assert!(names.contains(&"datasource"), "{names:?}");
    // Every view has a panel.
    let text = dashboard.to_string();
    for view in holdup_store::VIEWS {
        assert!(text.contains(&format!("FROM {view} ")), "no panel asks {view}");
    }
}
