//! One document of a file: recognises Amazon's answer by its keys, and passes its parts on.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::element::{Each, Element, Small, figure, moment};
use super::{Aws, Key, Kind, Query, UNKNOWN, events, insights, os, parameters, settings, shown};

/// The keys that it looks for.
const LOOKED_FOR: &str = "MetricDataResults (aws cloudwatch get-metric-data), Datapoints (get-metric-statistics), \
    MetricDataQueries (its --metric-data-queries), MetricList (aws pi get-resource-metrics), Keys (aws pi describe-dimension-keys), \
    events or cpuUtilization (aws logs get-log-events on RDSOSMetrics), DBInstances, Events, Parameters and \
    PendingMaintenanceActions (aws rds describe-...), InstanceTypes and Volumes (aws ec2 describe-...)";
/// Most keys of an answer that a message shows.
const SHOWN_KEYS: usize = 8;
/// Deepest nesting of lists of documents.
const DEEPEST: usize = 4;

/// Reads a document.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D, aws: &mut Aws) -> Result<(), D::Error> {
    Document { aws, depth: 0 }.deserialize(deserializer)
}

/// Takes one element of a list.
type Take = fn(&mut Aws, Element) -> Result<(), String>;

/// Lists that are an answer by themselves, and what takes their elements.
const LISTS: [(&str, Take); 10] = [
    ("MetricDataResults", result),
    ("MetricDataQueries", |aws, element| query(aws, &element.facts)),
    ("Events", |aws, element| events::event(aws, &element)),
    ("Parameters", |aws, element| parameters::parameter(aws, &element)),
    ("PendingMaintenanceActions", |aws, element| parameters::maintenance(aws, &element)),
    ("events", |aws, element| event(aws, &element)),
    ("logEvents", |aws, element| event(aws, &element)),
    ("DBInstances", |aws, element| settings::db_instance(aws, &element)),
    ("InstanceTypes", |aws, element| settings::instance_type(aws, &element)),
    ("Volumes", |aws, element| settings::volume(aws, &element)),
];

struct Document<'a> {
    aws: &'a mut Aws,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the output of aws with --output json; expected keys: {LOOKED_FOR}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.depth >= DEEPEST {
            return Err(A::Error::custom("the lists are nested deeper than in any output of aws"));
        }
        while list.next_element_seed(Document { aws: self.aws, depth: self.depth + 1 })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let aws = self.aws;
        let mut open = Open::default();
        let left = Small::bound();
        while let Some(key) = map.next_key::<String>()? {
            if let Some((_, take)) = LISTS.iter().find(|(of, _)| *of == key) {
                map.next_value_seed(Each(|element| take(aws, element)))?;
                open.is_known = true;
                continue;
            }
            let is_known = match key.as_str() {
                "Datapoints" => map.next_value_seed(Each(|element| open.datapoint(&element))).map(|()| true)?,
                "MetricList" => {
                    map.next_value_seed(Each(|element| {
                        let (key, points) = insights::series(element)?;
                        open.count(points.len() + 100)?;
                        open.insights.push((key, points));
                        Ok(())
                    }))?;
                    true
                }
                "Keys" => {
                    let mut is_all = true;
                    map.next_value_seed(Each(|element| {
                        is_all &= open.keys.key(element);
                        open.count(100)
                    }))?;
                    is_all
                }
                "PartitionKeys" => map
                    .next_value_seed(Each(|element: Element| {
                        open.keys.partition(&element);
                        open.count(1)
                    }))
                    .map(|()| false)?,
                "NextToken" | "nextToken" | "Marker" => {
                    // Pages of log events always have a nextForwardToken, so it does not mean that
                    // there is more.
                    open.has_more |= map.next_value_seed(Small(&left))? != Value::Null;
                    true
                }
                _ if os::KEYS.contains(&key.as_str()) || OTHER_KEYS.contains(&key.as_str()) => {
                    let value = map.next_value_seed(Small(&left))?;
                    open.facts.insert(key.clone(), value);
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    if open.others.len() < SHOWN_KEYS {
                        open.others.push(shown(&key));
                    }
                    false
                }
            };
            open.is_known |= is_known;
        }
        open.end(aws).map_err(A::Error::custom)
    }
}

/// Keys that belong to an answer but do not identify it.
const OTHER_KEYS: [&str; 8] =
    ["Label", "Identifier", "Id", "MetricStat", "Expression", "Messages", "AlignedStartTime", "AlignedEndTime"];

/// Parts of a document that wait for its end, because keys may come in any order.
#[derive(Default)]
struct Open {
    facts: Map<String, Value>,
    /// Statistic, unit, moment and value of each datapoint.
    datapoints: Vec<(String, String, i64, f64)>,
    insights: Vec<insights::Points>,
    keys: insights::Keys,
    points: usize,
    has_more: bool,
    is_known: bool,
    others: Vec<String>,
}

impl Open {
    /// Counts points; a series without any counts as some.
    fn count(&mut self, points: usize) -> Result<(), String> {
        const MOST: usize = 4_000_000;
        self.points += points;
        if self.points > MOST {
            Err(format!("one answer has more than {MOST} points; request fewer at once"))
        } else {
            Ok(())
        }
    }

    fn datapoint(&mut self, element: &Element) -> Result<(), String> {
        let at = moment(element.facts.get("Timestamp").unwrap_or(&Value::Null))?;
        let unit = element.text("Unit").unwrap_or_default();
        let extended = element.facts.get("ExtendedStatistics").and_then(Value::as_object);
        for (stat, value) in element.facts.iter().chain(extended.into_iter().flatten()) {
            if matches!(stat.as_str(), "Timestamp" | "Unit" | "ExtendedStatistics") {
                continue;
            }
            if let Some(value) = figure(value) {
                self.datapoints.push((stat.clone(), unit.to_owned(), at, value));
            }
        }
        self.count(1)
    }

    fn end(self, aws: &mut Aws) -> Result<(), String> {
        let Self { facts, datapoints, mut insights, keys, has_more, mut is_known, others, .. } = self;
        insights.extend(keys.points(&facts)?);
        if has_more && is_known {
            aws.lacks("it is one page of an answer (NextToken): give the other pages as well, or leave out --no-paginate and --max-items, so that aws returns all of it");
        }
        let text = |key: &str| facts.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !datapoints.is_empty() && text("Label").is_empty() {
            return Err("Datapoints without a Label, so the metric is unknown; save the whole output of aws cloudwatch get-metric-statistics".to_owned());
        }
        for (stat, unit, at, value) in datapoints {
            let file = aws.file();
            aws.push(Key { file, stat, unit, ..Key::new(Kind::Statistics, text("Label")) }, [(at, value)])?;
        }
        for (key, points) in insights {
            aws.push(Key { label: text("Identifier"), ..key }, points)?;
        }
        if facts.contains_key("instanceID") && (facts.contains_key("cpuUtilization") || facts.contains_key("memory")) {
            os::take(aws, &facts)?;
            is_known = true;
        }
        if facts.contains_key("Id") && (facts.contains_key("MetricStat") || facts.contains_key("Expression")) {
            query(aws, &facts)?;
            is_known = true;
        }
        if is_known {
            return Ok(());
        }
        let has: Vec<String> = facts.keys().map(|key| shown(key)).chain(others).take(SHOWN_KEYS).collect();
        let has = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
        Err(format!("{UNKNOWN}; its keys: {has}; expected: {LOOKED_FOR}, as aws prints them without --query"))
    }
}

/// A result of `get-metric-data`.
fn result(aws: &mut Aws, element: Element) -> Result<(), String> {
    let id = element.text("Id").unwrap_or_default().to_owned();
    let label = element.text("Label").unwrap_or_default().to_owned();
    if let Some(status) = element.text("StatusCode").filter(|status| *status != "Complete") {
        aws.lacks(&format!("{} of result {} ({}): it is incomplete", shown(status), shown(&id), shown(&label)));
    }
    let file = aws.file();
    aws.push(Key { file, label, ..Key::new(Kind::Data, id) }, element.timestamps.into_iter().zip(element.values))
}

/// An event of CloudWatch Logs, whose message is a separate JSON document.
fn event(aws: &mut Aws, element: &Element) -> Result<(), String> {
    let Some(message) = element.text("message").or_else(|| element.text("Message")) else {
        return Err("an event without a message; save the whole output of aws logs get-log-events".to_owned());
    };
    let mut json = serde_json::Deserializer::from_str(message);
    let left = Small::bound();
    let value = Small(&left).deserialize(&mut json).map_err(|e| {
        format!("a message is not JSON ({e}): is the log group RDSOSMetrics? it begins {}", shown(message))
    })?;
    match value.as_object() {
        Some(facts) if facts.contains_key("instanceID") => os::take(aws, facts),
        _ => Err(format!("a message without instanceID: is the log group RDSOSMetrics? it begins {}", shown(message))),
    }
}

/// An entry of the input of `get-metric-data`, which gives the meaning of a result's id.
fn query(aws: &mut Aws, facts: &Map<String, Value>) -> Result<(), String> {
    let at = |path: &str| facts.get("MetricStat").and_then(|stat| stat.pointer(path));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (id, metric) = (text(facts.get("Id")), text(at("/Metric/MetricName")));
    // For an expression, only its label says what it measures.
    if id.is_empty() || metric.is_empty() {
        return Ok(());
    }
    let dimensions = at("/Metric/Dimensions").and_then(Value::as_array).into_iter().flatten();
    let query = Query {
        metric,
        dimensions: dimensions.map(|d| (text(d.get("Name")), text(d.get("Value")))).collect(),
        stat: text(at("/Stat")),
        period_ns: at("/Period").and_then(Value::as_i64).unwrap_or(0).clamp(0, 86_400 * 366) * 1_000_000_000,
    };
    if aws.queries.len() >= super::MOST_DESCRIBED {
        return Err(format!("there are more than {} queries", super::MOST_DESCRIBED));
    }
    let known = aws.queries.entry(id).or_insert_with(|| Some(query.clone()));
    if known.as_ref() != Some(&query) {
        *known = None;
    }
    Ok(())
}
