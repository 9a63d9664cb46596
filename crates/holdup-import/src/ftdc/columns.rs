//! Which figure of a sample is which metric. The readers of live answers say it themselves: they
//! get the first sample twice, once with each number replaced by its own index, once by ones. What
//! they make of the second is the factor, and of both the index. So a figure has the name that it
//! has live.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use holdup_mongodb::{BsonError, Document, Element, Figure, Value, replica_set, status};
use holdup_recording::metrics;

use super::chunk::leaf;
use super::column::{Column, index};
use super::machine;

/// The metrics that have a constant.
static NAMED: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| metrics::all().map(|metric| metric.name).collect());

/// Roles of a server that since 8.0 keep their figures apart.
const ROLES: [&str; 3] = ["common", "shard", "router"];

/// The columns of a chunk.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The figure that is the time of a sample, milliseconds since 1970.
    pub(super) time: Option<usize>,
    pub(super) columns: Vec<Column>,
}

/// The columns of a chunk with this first sample.
pub(super) fn columns(reference: Result<Document<'_>, BsonError>) -> Result<Plan, BsonError> {
    let reference = reference?;
    let (indexes, ones) = (numbered(reference, &mut Count::indexes()), numbered(reference, &mut Count::ones()));
    let mut plan = Plan { time: index(indexes.get("start")), columns: Vec::new() };
    let mut is_machine_known = false;
    for (indexes, ones) in [(Some(&indexes), Some(&ones))]
        .into_iter()
        .chain(ROLES.iter().map(|role| (indexes.get(role), ones.get(role))))
        .filter_map(|(indexes, ones)| indexes.zip(ones))
    {
        if let Some((indexes, ones)) = indexes.get("serverStatus").zip(ones.get("serverStatus")) {
            plan.add(status(indexes).figures, &status(ones).figures);
        }
        if let Some((indexes, ones)) = indexes.get("replSetGetStatus").zip(ones.get("replSetGetStatus")) {
            plan.add(replica_set(indexes), &replica_set(ones));
        }
        if let Some(machine) = indexes.get("systemMetrics").filter(|_| !is_machine_known) {
            is_machine_known = true;
            plan.columns.extend(machine::columns(machine));
        }
    }
    Ok(plan)
}

impl Plan {
    /// Adds figures made of indexes, given the same figures made of ones.
    fn add(&mut self, indexes: Vec<Figure>, ones: &[Figure]) {
        for (figure, one) in indexes.into_iter().zip(ones) {
            let place = (figure.value / one.value).round() - 1.0;
            if figure.metric != one.metric || !(0.0..1e9).contains(&place) {
                continue;
            }
            self.columns.push(Column {
                is_time: figure.metric == metrics::mongodb::REPLICA_OPTIME.name,
                is_named: NAMED.contains(figure.metric.as_str()),
                metric: figure.metric,
                labels: figure.labels,
                terms: vec![(place as usize, one.value)],
                is_host: false,
            });
        }
    }
}

/// Counts the figures of a sample.
struct Count {
    next: usize,
    is_index: bool,
}

impl Count {
    fn indexes() -> Self {
        Self { next: 0, is_index: true }
    }

    fn ones() -> Self {
        Self { next: 0, is_index: false }
    }

    /// The number for the next `count` figures: indexes begin at 1, because 0 stands for no time.
    fn take(&mut self, count: usize) -> i64 {
        let first = self.next;
        self.next += count;
        if self.is_index { first as i64 + 1 } else { 1 }
    }
}

/// The sample with each number replaced. Its depth and its number of figures were checked before.
fn numbered(document: Document<'_>, count: &mut Count) -> Value {
    let entries = document.elements().map_while(Result::ok).map(|(name, element)| {
        let name = String::from_utf8_lossy(name).into_owned();
        let value = match element {
            Element::Map(inner) => numbered(inner, count),
            Element::List(inner) => match numbered(inner, count) {
                Value::Map(entries) => Value::List(entries.into_iter().map(|(_, value)| value).collect()),
                other => other,
            },
            Element::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
            other => {
                let number = count.take(leaf(other).len());
                match other {
                    Element::Double(_) | Element::Int(_) | Element::Long(_) => Value::Number(number as f64),
                    Element::Time(_) => Value::Time(number),
                    Element::Bool(is_true) => Value::Bool(is_true),
                    _ => Value::Null,
                }
            }
        };
        (name, value)
    });
    Value::Map(entries.collect())
}
