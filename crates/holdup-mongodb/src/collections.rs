//! Collections, indexes and the replica set as figures: the answers of `top`, `collStats`,
//! `$indexStats` and `replSetGetStatus`. Names are cut, lists are bounded, and a figure that the answer
//! lacks is left out.

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, mongodb as metric};

use crate::Figure;
use crate::value::Value;

/// Characters kept of a name.
const NAME_CHARACTERS_MAX: usize = 120;

/// Most indexes of a collection, and most members of a replica set: a server allows 64 and 50.
const ROWS_MAX: usize = 64;

/// Databases of the server itself.
pub const OWN_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// Fields of `collStats`.
const SIZES: &[(&[&str], Metric)] = &[
    (&["size"], metric::COLLECTION_DATA_BYTES),
    (&["storageSize"], metric::COLLECTION_STORAGE_BYTES),
    (&["freeStorageSize"], metric::COLLECTION_FREE_BYTES),
    (&["totalIndexSize"], metric::COLLECTION_INDEX_BYTES),
    (&["count"], metric::COLLECTION_OBJECTS),
    (&["wiredTiger", "cache", "bytes currently in the cache"], metric::COLLECTION_CACHE_BYTES),
    (&["wiredTiger", "cache", "bytes read into cache"], metric::COLLECTION_CACHE_READ_BYTES),
];

/// Times of a member of a replica set, by stage.
const STAGES: &[(&str, &str)] =
    &[("optimeWrittenDate", "written"), ("optimeDate", "applied"), ("optimeDurableDate", "durable")];

fn cut(name: &str) -> String {
    name.chars().take(NAME_CHARACTERS_MAX).collect()
}

fn labels(database: &str, collection: &str, more: Option<(&'static str, &str)>) -> Labels {
    let own = [("database", cut(database)), ("collection", cut(collection))];
    Labels::new(own.into_iter().chain(more.map(|(name, value)| (name, cut(value)))))
}

/// Collections by the time that operations on them took, the busiest first, with that time in
/// microseconds: the answer of `top`. The server's own databases are left out.
fn by_time(top: &Value) -> Vec<(&str, &str, f64)> {
    let entries = top.get("totals").map(Value::entries).unwrap_or_default();
    let mut all: Vec<(&str, &str, f64)> = entries
        .iter()
        .filter_map(|(name, totals)| {
            let (database, collection) = name.split_once('.')?;
            let time = totals.at(&["total", "time"]).and_then(Value::number)?;
            (!OWN_DATABASES.contains(&database)).then_some((database, collection, time))
        })
        .collect();
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    all
}

/// The use of the `most` busiest collections, and their names: the answer of `top`.
#[must_use]
pub fn usage(top: &Value, most: usize) -> (Vec<Figure>, Vec<(String, String)>) {
    let mut figures = Vec::new();
    let mut names = Vec::new();
    for (database, collection, _) in by_time(top).into_iter().take(most) {
        names.push((database.to_owned(), collection.to_owned()));
        for (kind, field) in [("reads", "readLock"), ("writes", "writeLock")] {
            let number = |of: &str| top.at(&["totals", &format!("{database}.{collection}"), field, of])?.number();
            let labels = labels(database, collection, Some(("kind", kind)));
            figures
                .extend(number("count").map(|count| Figure::new(metric::COLLECTION_OPERATIONS, labels.clone(), count)));
            figures.extend(number("time").map(|us| Figure::new(metric::COLLECTION_TIME, labels, us / 1e6)));
        }
    }
    (figures, names)
}

/// The sizes of a collection: the answer of `collStats` in bytes.
#[must_use]
pub fn collection(stats: &Value, database: &str, name: &str) -> Vec<Figure> {
    let sizes = SIZES.iter().filter_map(|(path, metric)| Some((metric, stats.at(path)?.number()?)));
    let mut figures: Vec<Figure> =
        sizes.map(|(metric, value)| Figure::new(*metric, labels(database, name, None), value)).collect();
    let indexes = stats.get("indexSizes").map(Value::entries).unwrap_or_default();
    for (index, size) in indexes.iter().take(ROWS_MAX) {
        let labels = labels(database, name, Some(("index", index.as_str())));
        figures.extend(size.number().map(|bytes| Figure::new(metric::INDEX_BYTES, labels, bytes)));
    }
    figures
}

/// How often each index was used: documents of `$indexStats`.
#[must_use]
pub fn index_uses(documents: &[Value], database: &str, name: &str) -> Vec<Figure> {
    let uses = documents.iter().take(ROWS_MAX).filter_map(|document| {
        let labels = labels(database, name, Some(("index", document.get("name")?.text()?)));
        Some(Figure::new(metric::INDEX_USES, labels, document.at(&["accesses", "ops"])?.number()?))
    });
    uses.collect()
}

/// How far each member of the replica set is: the answer of `replSetGetStatus`.
#[must_use]
pub fn replica_set(status: &Value) -> Vec<Figure> {
    let mut figures = Vec::new();
    let seconds = |value: &Value| match value {
        // A member that was never reached has the year 1970.
        Value::Time(ms) if *ms > 0 => Some(*ms as f64 / 1e3),
        _ => None,
    };
    for member in status.get("members").map(Value::items).unwrap_or_default().iter().take(ROWS_MAX) {
        let text = |field: &str| cut(member.get(field).and_then(Value::text).unwrap_or_default());
        let (name, state) = (text("name"), text("stateStr"));
        if let Some(health) = member.get("health").and_then(Value::number) {
            let labels = Labels::new([("member", name.as_str()), ("state", state.as_str())]);
            figures.push(Figure::new(metric::REPLICA_HEALTH, labels, health));
        }
        let is_self = member.get("self").is_some_and(Value::is_true);
        let committed = status.at(&["optimes", "lastCommittedWallTime"]).filter(|_| is_self).and_then(seconds);
        let reached = STAGES.iter().filter_map(|(field, stage)| Some((*stage, seconds(member.get(field)?)?)));
        for (stage, at) in reached.chain(committed.map(|at| ("committed", at))) {
            let labels = Labels::new([("member", name.as_str()), ("state", state.as_str()), ("stage", stage)]);
            figures.push(Figure::new(metric::REPLICA_OPTIME, labels, at));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::Document;
    use crate::writer::Writer;

    fn read(document: Writer) -> Value {
        Document::read(&document.finish()).unwrap().value().unwrap()
    }

    fn shown(figures: &[Figure]) -> Vec<String> {
        figures.iter().map(|it| format!("{} {} {}", it.metric, it.labels, it.value)).collect()
    }

    #[test]
    fn the_busiest_collections_come_first() {
        let use_of = |us: i64, count: i32| Writer::new().long("time", us).int("count", count);
        let totals = |us| {
            let all = Writer::new().document("total", use_of(us, 9));
            all.document("readLock", use_of(us / 2, 6)).document("writeLock", use_of(us / 2, 3))
        };
        let all = Writer::new()
            .text("note", "all times in microseconds")
            .document("shop.idle", totals(10))
            .document("local.oplog.rs", totals(90_000_000))
            .document("shop.a.b", totals(4_000_000));
        let (figures, names) = usage(&read(Writer::new().document("totals", all)), 1);
        assert_eq!(names, [("shop".to_owned(), "a.b".to_owned())]);
        let labels = |kind| labels("shop", "a.b", Some(("kind", kind)));
        assert_eq!(figures[0], Figure::new(metric::COLLECTION_OPERATIONS, labels("reads"), 6.0));
        assert_eq!(figures[3], Figure::new(metric::COLLECTION_TIME, labels("writes"), 2.0));
    }

    #[test]
    fn sizes_and_uses_of_indexes() {
        let cache = Writer::new().long("bytes currently in the cache", 4_096);
        let stats = Writer::new()
            .long("size", 900)
            .long("count", 3)
            .document("wiredTiger", Writer::new().document("cache", cache))
            .document("indexSizes", Writer::new().long("_id_", 70).long("total_1", 80));
        let figures = collection(&read(stats), "shop", "orders");
        assert_eq!(figures.len(), 5, "{:?}", shown(&figures));
        assert_eq!(
            figures[4],
            Figure::new(metric::INDEX_BYTES, labels("shop", "orders", Some(("index", "total_1"))), 80.0)
        );
        let used = read(Writer::new().text("name", "total_1").document("accesses", Writer::new().long("ops", 5)));
        let uses = index_uses(&[used, Value::Null], "shop", "orders");
        assert_eq!(uses.len(), 1);
        assert_eq!(uses[0].value, 5.0);
    }

    #[test]
    fn each_member_is_at_a_place_for_each_stage() {
        let member = |name, state, applied, durable| {
            let head = Writer::new().text("name", name).double("health", 1.0).text("stateStr", state);
            head.time("optimeDate", applied).time("optimeDurableDate", durable)
        };
        let members = Writer::list(|list| {
            list.document("0", member("a:1", "PRIMARY", 9_000, 8_500).bool("self", true))
                .document("1", member("b:1", "SECONDARY", 5_000, 0))
        });
        let optimes = Writer::new().time("lastCommittedWallTime", 4_000);
        let status = read(Writer::new().document("optimes", optimes).list_of("members", members));
        let figures = replica_set(&status);
        let at = |member: &str, stage: &str| {
            let is_it = |it: &&Figure| it.labels.contains(&[("member", member), ("stage", stage)]);
            figures.iter().find(is_it).map(|it| it.value)
        };
        assert_eq!((at("a:1", "applied"), at("b:1", "applied")), (Some(9.0), Some(5.0)));
        assert_eq!((at("a:1", "durable"), at("b:1", "durable")), (Some(8.5), None), "1970 is no time");
        assert_eq!((at("a:1", "committed"), at("b:1", "committed")), (Some(4.0), None));
    }
}
