//! Index builds in progress, as `currentOp` shows them: one of the server's own threads
//! (`IndexBuildsCoordinatorMongod-0`) does the work and says how far it is, while the client's
//! `createIndexes` waits for it. On secondaries there is only the thread. It keeps the collection's
//! name and nothing of the index.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::mongodb as metric;

use crate::Figure;
use crate::value::Value;

/// Characters kept of a collection's name.
const NAME_CHARACTERS_MAX: usize = 120;

/// Most builds of a sample.
const BUILDS_MAX: usize = 64;

/// What an operation of a build says of it, and its phase.
const PHASES: [(&str, &str); 3] =
    [("scanning collection", "scan"), ("inserting keys", "insert"), ("draining writes", "drain")];

/// What `messages` of builds begin with, whatever the release writes it like.
const BUILD: &str = "index build";

/// The phase of a build that says nothing of it: its client waits, or it is about to end.
const OTHER: &str = "other";

/// How many builds `operations` show, by collection and phase, and how far each is.
pub(crate) fn index_builds(operations: &[Value]) -> Vec<Figure> {
    let mut builds: BTreeMap<String, (&'static str, Option<f64>)> = BTreeMap::new();
    for operation in operations {
        let Some((collection, phase, done)) = build(operation) else { continue };
        if builds.len() < BUILDS_MAX || builds.contains_key(&collection) {
            let known = builds.entry(collection).or_insert((OTHER, None));
            // The thread that works says more than the client that waits.
            if phase != OTHER {
                *known = (phase, done);
            }
        }
    }
    let mut figures = vec![Figure::new(metric::INDEX_BUILDS, Labels::none(), 0.0)];
    for (collection, (phase, done)) in builds {
        let labels = Labels::new([("collection", collection.as_str()), ("phase", phase)]);
        figures.extend(done.map(|done| Figure::new(metric::INDEX_BUILD_PROGRESS_RATIO, labels.clone(), done)));
        figures.push(Figure::new(metric::INDEX_BUILDS, labels, 1.0));
    }
    figures
}

/// Collection, phase, and how much of the phase is done (0-1), of an operation that builds an index.
fn build(operation: &Value) -> Option<(String, &'static str, Option<f64>)> {
    let created = operation.at(&["command", "createIndexes"]).and_then(Value::text);
    let message = operation.get("msg").and_then(Value::text).unwrap_or_default().to_ascii_lowercase();
    if created.is_none() && !message.starts_with(BUILD) {
        return None;
    }
    // A build of a secondary may name its collection as its namespace alone.
    let namespace = operation.get("ns").and_then(Value::text).unwrap_or_default();
    let in_namespace = namespace.split_once('.').map(|(_, name)| name).filter(|name| *name != "$cmd");
    let collection: String = created.or(in_namespace)?.chars().take(NAME_CHARACTERS_MAX).collect();
    let phase = PHASES.iter().find(|(words, _)| message.contains(words)).map_or(OTHER, |(_, phase)| *phase);
    let number = |field| operation.at(&["progress", field]).and_then(Value::number);
    let done = number("done").zip(number("total").filter(|total| *total > 0.0));
    Some((collection, phase, done.map(|(done, total)| (done / total).clamp(0.0, 1.0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::Document;
    use crate::writer::Writer;

    fn operation(fill: impl FnOnce(Writer) -> Writer) -> Value {
        Document::read(&fill(Writer::new().bool("active", true)).finish()).unwrap().value().unwrap()
    }

    fn create(name: &str) -> Writer {
        let key = Writer::new().text("name", "canary_1").document("key", Writer::new().int("canary", 1));
        Writer::new().text("createIndexes", name).list_of("indexes", Writer::list(|list| list.document("0", key)))
    }

    #[test]
    fn a_build_is_counted_once_and_says_how_far_it_is() {
        let message = "Index Build: scanning collection Index Build: scanning collection: 250/1000 25%";
        let progress = Writer::new().int("done", 250).int("total", 1_000);
        let operations = [
            operation(|it| it.int("connectionId", 322).text("ns", "shop.$cmd").document("command", create("orders"))),
            operation(|it| {
                let it = it.text("desc", "IndexBuildsCoordinatorMongod-5").text("ns", "");
                it.document("command", create("orders")).text("msg", message).document("progress", progress)
            }),
            // A secondary of 6.0.
            operation(|it| {
                it.text("ns", "shop.items").text("msg", "Index Build: draining writes received during build")
            }),
            operation(|it| it.text("ns", "shop.$cmd").document("command", Writer::new().int("ping", 1))),
        ];
        let found: Vec<(String, String, f64)> =
            index_builds(&operations).into_iter().map(|it| (it.metric, format!("{}", it.labels), it.value)).collect();
        let labels = |collection, phase| format!("{}", Labels::new([("collection", collection), ("phase", phase)]));
        let builds = |labels, value| (metric::INDEX_BUILDS.name.to_owned(), labels, value);
        let expected = [
            builds(format!("{}", Labels::none()), 0.0),
            builds(labels("items", "drain"), 1.0),
            (metric::INDEX_BUILD_PROGRESS_RATIO.name.to_owned(), labels("orders", "scan"), 0.25),
            builds(labels("orders", "scan"), 1.0),
        ];
        assert_eq!(found, expected);
        assert!(!format!("{found:?}").contains("canary"));
    }

    #[test]
    fn none_is_a_zero_and_many_are_bounded() {
        assert_eq!(index_builds(&[]).len(), 1);
        let many: Vec<Value> =
            (0..300).map(|n| operation(|it| it.document("command", create(&format!("c{n}"))))).collect();
        assert_eq!(index_builds(&many).len(), 1 + BUILDS_MAX);
    }
}
