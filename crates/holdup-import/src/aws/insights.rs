//! Performance Insights: database load by wait event.

use serde_json::Value;

use super::element::Element;
use super::name::snake;
use super::{Key, Kind, shown};

/// A series and its points.
pub(super) type Points = (Key, Vec<(i64, f64)>);

/// A series of `MetricList`, without its instance yet.
pub(super) fn series(element: Element) -> Result<Points, String> {
    let key = element.facts.get("Key");
    let Some(metric) = key.and_then(|key| key.get("Metric")).and_then(Value::as_str) else {
        return Err("a series of MetricList without Key.Metric; save the whole output of aws pi get-resource-metrics"
            .to_owned());
    };
    // The statistic comes last: db.load.avg.
    let (metric, stat) = match metric.rsplit_once('.') {
        Some((metric, stat @ ("avg" | "min" | "max" | "sum" | "total"))) => (metric, stat),
        _ => (metric, ""),
    };
    let dimensions = key.and_then(|key| key.get("Dimensions")).and_then(Value::as_object);
    let mut labels = Vec::new();
    let mut by = None;
    for (name, value) in dimensions.into_iter().flatten() {
        let name = name.strip_prefix("db.").unwrap_or(name);
        let group = name.split_once('.').map_or(name, |(group, _)| group);
        by.get_or_insert_with(|| snake(group));
        // A statement's text holds its literals, or half of them: it is cut at 500 bytes. Its id
        // stays.
        if name.ends_with(".statement") {
            continue;
        }
        let label = snake(name.strip_suffix(".name").unwrap_or(name));
        if let Some(value) = value.as_str() {
            labels.push((label, value.chars().take(200).collect::<String>()));
        }
    }
    labels.sort();
    // If the total load and its parts had one name, adding up that name would count it twice.
    let by = by.map_or_else(String::new, |by| format!("_by_{by}"));
    let name = format!("aws_pi_{}{by}", snake(metric));
    if metric.is_empty() {
        return Err(format!("{}: a metric without a name", shown(stat)));
    }
    let stat = if stat == "avg" { "" } else { stat }.to_owned();
    let key = Key { kind: Kind::Insights, file: 0, name, label: String::new(), stat, unit: String::new(), labels };
    Ok((key, element.points))
}
