//! Performance Insights: a database's load, which is sessions that were active when the agent looked
//! (once a second), by what they waited for, by statement and by user.

use serde_json::{Map, Value};

use holdup_sql::{Dialect, digest_text};

use super::element::{Element, figure, moment};
use super::name::snake;
use super::{Key, Kind, shown};

/// A series and its points.
pub(super) type Points = (Key, Vec<(i64, f64)>);

/// Letters of a label, and of a statement.
const LABEL_LETTERS: usize = 200;
const STATEMENT_LETTERS: usize = 400;

/// What `describe-dimension-keys` counts, unless asked for something else: its answer does not name it.
const LOAD: &str = "db.load";

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
    if metric.is_empty() {
        return Err(format!("{}: a metric without a name", shown(stat)));
    }
    let dimensions = key.and_then(|key| key.get("Dimensions")).and_then(Value::as_object);
    Ok((named(metric, stat, dimensions.into_iter()), element.points))
}

/// The name of a metric by the groups of its dimensions, and those as labels. If the total load and
/// its parts had one name, adding up that name would count it twice.
fn named<'a>(metric: &str, stat: &str, dimensions: impl Iterator<Item = &'a Map<String, Value>>) -> Key {
    let mut labels: Vec<(String, String)> = Vec::new();
    let mut by: Vec<String> = Vec::new();
    for dimensions in dimensions {
        let mut group = None;
        for (name, value) in dimensions {
            let name = name.strip_prefix("db.").unwrap_or(name);
            group.get_or_insert_with(|| snake(name.split_once('.').map_or(name, |(group, _)| group)));
            let Some(value) = value.as_str() else { continue };
            labels.push(match name.ends_with(".statement") {
                true => ("statement".to_owned(), statement(value)),
                false => {
                    let label = snake(name.strip_suffix(".name").unwrap_or(name));
                    (label, value.chars().take(LABEL_LETTERS).collect())
                }
            });
        }
        by.extend(group);
    }
    labels.sort();
    let by = if by.is_empty() { String::new() } else { format!("_by_{}", by.join("_and_")) };
    let stat = if stat == "avg" { "" } else { stat }.to_owned();
    let name = format!("aws_pi_{}{by}", snake(metric));
    Key { stat, labels, ..Key::new(Kind::Insights, name) }
}

/// A statement without its values. The agent cuts it at 500 bytes, perhaps within a value, and the
/// engine may be unknown: as MySQL's, a text in double quotes is hidden, too.
fn statement(text: &str) -> String {
    digest_text(text, Dialect::MySql).chars().take(STATEMENT_LETTERS).collect()
}

/// The parts of an answer of `describe-dimension-keys`.
#[derive(Default)]
pub(super) struct Keys {
    keys: Vec<Map<String, Value>>,
    partitions: Vec<Map<String, Value>>,
}

impl Keys {
    /// One of `Keys`; false if it is another answer's.
    pub fn key(&mut self, element: Element) -> bool {
        let is_one = element.facts.contains_key("Dimensions");
        self.keys.extend(Some(element.facts).filter(|_| is_one));
        is_one
    }

    /// One of `PartitionKeys`.
    pub fn partition(&mut self, element: &Element) {
        let dimensions = element.facts.get("Dimensions").and_then(Value::as_object);
        self.partitions.push(dimensions.cloned().unwrap_or_default());
    }

    /// A point for each key, and for each part of it: means over the time of the answer.
    ///
    /// # Errors
    ///
    /// If the answer does not say its time.
    pub fn points(self, facts: &Map<String, Value>) -> Result<Vec<Points>, String> {
        if self.keys.is_empty() {
            return Ok(Vec::new());
        }
        let at = |key: &str| moment(facts.get(key).unwrap_or(&Value::Null));
        let (from, to) = (at("AlignedStartTime")?, at("AlignedEndTime")?);
        let mut all = Vec::new();
        for key in &self.keys {
            let own = || key.get("Dimensions").and_then(Value::as_object).into_iter();
            let mut put = |key: Key, value: Option<f64>| {
                let key = Key { period_ns: (to - from).max(0), ..key };
                all.extend(value.map(|value| (key, vec![(to, value)])));
            };
            put(named(LOAD, "", own()), key.get("Total").and_then(figure));
            let parts = key.get("Partitions").and_then(Value::as_array).into_iter().flatten();
            for (part, value) in self.partitions.iter().zip(parts) {
                put(named(LOAD, "", own().chain([part])), figure(value));
            }
        }
        Ok(all)
    }
}
