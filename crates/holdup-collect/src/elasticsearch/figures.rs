//! The figures of `_nodes/stats` and `_cluster/health`: where each stands in the answer, and which metric
//! it is. Names of nodes are data from outside: bounded in number and length.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::Metric;
use holdup_recording::metrics::elasticsearch as metric;
use serde_json::Value;

use crate::reading::Out;

/// Most nodes in one sample: those with the most tasks at work and waiting.
pub(super) const NODES_MAX: usize = 100;

/// Most garbage collectors of a node; a runtime has two or three.
const COLLECTORS_MAX: usize = 8;

/// Characters kept of a name.
const NAME_CHARACTERS_MAX: usize = 100;

/// The thread pools of requests and of what runs beside them, as versions call them.
const POOLS: [&str; 10] =
    ["write", "bulk", "index", "search", "get", "search_worker", "index_searcher", "refresh", "flush", "force_merge"];

const BREAKERS: [&str; 6] = ["parent", "request", "fielddata", "in_flight_requests", "inflight_requests", "accounting"];

/// A figure: where it stands, which metric it is, and its unit in the metric's.
type Figure = (&'static str, Metric, f64);

/// Each kind of work: where its number, its time and what is under way stand.
const OPERATIONS: [(&str, [&str; 3]); 6] = [
    ("indexing", ["indexing/index_total", "indexing/index_time_in_millis", "indexing/index_current"]),
    ("query", ["search/query_total", "search/query_time_in_millis", "search/query_current"]),
    ("fetch", ["search/fetch_total", "search/fetch_time_in_millis", "search/fetch_current"]),
    ("merge", ["merges/total", "merges/total_time_in_millis", "merges/current"]),
    ("refresh", ["refresh/total", "refresh/total_time_in_millis", ""]),
    ("flush", ["flush/total", "flush/total_time_in_millis", ""]),
];

const OF_NODE: &[Figure] = &[
    ("indices/indexing/index_failed", metric::INDEXING_FAILED, 1.0),
    ("indices/indexing/throttle_time_in_millis", metric::INDEXING_THROTTLED_TIME, 1e-3),
    ("indices/merges/total_throttled_time_in_millis", metric::MERGE_THROTTLED_TIME, 1e-3),
    ("indexing_pressure/memory/current/all_in_bytes", metric::INDEXING_PRESSURE_BYTES, 1.0),
    ("indexing_pressure/memory/limit_in_bytes", metric::INDEXING_PRESSURE_LIMIT_BYTES, 1.0),
    ("jvm/mem/heap_used_in_bytes", metric::HEAP_USED_BYTES, 1.0),
    ("jvm/mem/heap_max_in_bytes", metric::HEAP_MAX_BYTES, 1.0),
    ("jvm/uptime_in_millis", metric::UPTIME, 1e-3),
    ("fs/total/total_in_bytes", metric::DISK_SIZE_BYTES, 1.0),
    ("fs/total/available_in_bytes", metric::DISK_AVAILABLE_BYTES, 1.0),
    ("fs/io_stats/total/read_operations", metric::DISK_READS, 1.0),
    ("fs/io_stats/total/write_operations", metric::DISK_WRITES, 1.0),
    ("fs/io_stats/total/read_kilobytes", metric::DISK_READ_BYTES, 1024.0),
    ("fs/io_stats/total/write_kilobytes", metric::DISK_WRITTEN_BYTES, 1024.0),
    ("fs/io_stats/total/io_time_in_millis", metric::DISK_BUSY_TIME, 1e-3),
];

const OF_POOL: &[Figure] = &[
    ("threads", metric::POOL_THREADS, 1.0),
    ("active", metric::POOL_ACTIVE, 1.0),
    ("queue", metric::POOL_QUEUE, 1.0),
    ("completed", metric::POOL_COMPLETED, 1.0),
    ("rejected", metric::POOL_REJECTED, 1.0),
    ("total_wait_time_in_nanos", metric::POOL_WAIT_TIME, 1e-9),
];

/// In the answer of `_nodes/thread_pool`; older versions name the size of a fixed pool `max`.
const OF_LIMITS: &[Figure] =
    &[("size", metric::POOL_SIZE, 1.0), ("max", metric::POOL_SIZE, 1.0), ("queue_size", metric::POOL_QUEUE_LIMIT, 1.0)];

const OF_BREAKER: &[Figure] = &[
    ("estimated_size_in_bytes", metric::BREAKER_BYTES, 1.0),
    ("limit_size_in_bytes", metric::BREAKER_LIMIT_BYTES, 1.0),
    ("tripped", metric::BREAKER_TRIPS, 1.0),
];

const OF_COLLECTOR: &[Figure] =
    &[("collection_count", metric::COLLECTIONS, 1.0), ("collection_time_in_millis", metric::COLLECTION_TIME, 1e-3)];

const OF_CLUSTER: &[Figure] = &[
    ("number_of_nodes", metric::NODES, 1.0),
    ("unassigned_shards", metric::UNASSIGNED_SHARDS, 1.0),
    ("initializing_shards", metric::INITIALIZING_SHARDS, 1.0),
    ("relocating_shards", metric::RELOCATING_SHARDS, 1.0),
    ("number_of_pending_tasks", metric::PENDING_TASKS, 1.0),
    ("task_max_waiting_in_queue_millis", metric::PENDING_TASK_AGE, 1e-3),
];

const STATES: [&str; 3] = ["green", "yellow", "red"];

/// The limits of nodes' pools, as they started: by node and pool.
pub(super) type Limits = BTreeMap<(String, &'static str), Vec<(Metric, f64)>>;

/// What stands at `path`, names with a slash between.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('/').try_fold(value, |value, name| value.get(name))
}

/// A number that counts something: servers write -1 for what is unknown or has no limit.
fn number(value: &Value, path: &str) -> Option<f64> {
    at(value, path)?.as_f64().filter(|number| *number >= 0.0)
}

/// A name of the server's, bounded and on one line.
pub(super) fn name(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(NAME_CHARACTERS_MAX).collect()
}

/// The nodes of an answer by the name that rows have: with the id where several have it.
pub(super) fn nodes(answer: &Value) -> Vec<(String, &Value)> {
    let all = || answer.get("nodes").and_then(Value::as_object).into_iter().flatten();
    let own = |node: &Value| node.get("name").and_then(Value::as_str).map(name);
    let mut known: BTreeMap<Option<String>, usize> = BTreeMap::new();
    all().for_each(|(_, node)| *known.entry(own(node)).or_default() += 1);
    let named = all().map(|(id, node)| match own(node) {
        Some(name) if known.get(&Some(name.clone())) == Some(&1) => (name, node),
        given => (format!("{} ({})", given.unwrap_or_default(), name(id)).trim_start().to_owned(), node),
    });
    let mut named: Vec<(String, &Value)> = named.collect();
    if named.len() > NODES_MAX {
        named.sort_by(|(_, a), (_, b)| tasks(b).total_cmp(&tasks(a)));
        named.truncate(NODES_MAX);
    }
    named
}

/// Tasks that a node's pools have.
fn tasks(node: &Value) -> f64 {
    let of = |pool: &&str| {
        let pool = at(node, "thread_pool").and_then(|pools| pools.get(*pool));
        pool.map_or(0.0, |pool| number(pool, "active").unwrap_or(0.0) + number(pool, "queue").unwrap_or(0.0))
    };
    POOLS.iter().map(of).sum()
}

/// Adds the figures of all nodes.
pub(super) fn put_nodes(answer: &Value, limits: &Limits, out: &mut Out) {
    for (name, node) in nodes(answer) {
        let labels = Labels::new([("node", name.as_str())]);
        put(node, OF_NODE, &labels, out);
        if let Some(indices) = node.get("indices") {
            for (operation, [count, time, active]) in OPERATIONS {
                let figures = [
                    (count, metric::OPERATIONS, 1.0),
                    (time, metric::OPERATION_TIME, 1e-3),
                    (active, metric::OPERATIONS_ACTIVE, 1.0),
                ];
                put(indices, &figures, &labels.clone().with("operation", operation), out);
            }
        }
        for pool in POOLS {
            let Some(figures) = node.get("thread_pool").and_then(|pools| pools.get(pool)) else { continue };
            let labels = labels.clone().with("pool", pool);
            put(figures, OF_POOL, &labels, out);
            for (metric, limit) in limits.get(&(name.clone(), pool)).into_iter().flatten() {
                out.put(metric, labels.clone(), *limit);
            }
        }
        for stage in ["coordinating", "primary", "replica"] {
            let path = format!("indexing_pressure/memory/total/{stage}_rejections");
            let rejections = [(metric::INDEXING_PRESSURE_REJECTIONS, number(node, &path))];
            out.put_known(&labels.clone().with("stage", stage), rejections);
        }
        for breaker in BREAKERS {
            let Some(figures) = node.get("breakers").and_then(|breakers| breakers.get(breaker)) else { continue };
            put(figures, OF_BREAKER, &labels.clone().with("breaker", breaker), out);
        }
        let collectors = at(node, "jvm/gc/collectors").and_then(Value::as_object).into_iter().flatten();
        for (collector, figures) in collectors.take(COLLECTORS_MAX) {
            put(figures, OF_COLLECTOR, &labels.clone().with("collector", self::name(collector)), out);
        }
    }
}

fn put(value: &Value, figures: &[Figure], labels: &Labels, out: &mut Out) {
    out.put_known(labels, figures.iter().map(|(path, metric, unit)| (metric, number(value, path).map(|v| v * unit))));
}

/// Adds the state of the cluster.
pub(super) fn put_health(answer: &Value, out: &mut Out) {
    put(answer, OF_CLUSTER, &Labels::none(), out);
    let state = answer.get("status").and_then(Value::as_str);
    let state = state.and_then(|state| STATES.iter().position(|known| *known == state));
    out.put_known(&Labels::none(), [(metric::STATUS, state.map(|state| state as f64))]);
}

/// The limits of pools in an answer of `_nodes/thread_pool`.
pub(super) fn limits(answer: &Value) -> Limits {
    let of = |(name, node): (String, &Value)| {
        let pools = node.get("thread_pool").cloned().unwrap_or_default();
        POOLS.into_iter().filter_map(move |pool| {
            let figures = pools.get(pool)?;
            let known =
                OF_LIMITS.iter().filter_map(|(path, metric, unit)| Some((*metric, number(figures, path)? * unit)));
            Some(((name.clone(), pool), known.collect()))
        })
    };
    nodes(answer).into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use holdup_recording::Batch;
    use serde_json::json;

    use super::*;

    fn put_all(answer: &Value) -> Batch {
        let mut batch = Batch::default();
        put_nodes(answer, &Limits::new(), &mut Out::new(&mut batch, "elasticsearch://h:9200"));
        batch
    }

    #[test]
    fn nodes_of_one_name_are_kept_apart_and_hostile_names_are_bounded() {
        let long = "n\n".repeat(1_000);
        let answer = json!({"nodes": {
            "a": {"name": "data", "jvm": {"uptime_in_millis": 1}},
            "b": {"name": "data", "jvm": {"uptime_in_millis": 2}},
            "c": {"name": long, "jvm": {"uptime_in_millis": 3}},
            "d": {"name": 7, "jvm": {"uptime_in_millis": "x"}}, "e": null,
        }});
        let names: Vec<String> = nodes(&answer).into_iter().map(|(name, _)| name).collect();
        assert_eq!((names[0].as_str(), names[1].as_str(), names[3].as_str()), ("data (a)", "data (b)", "(d)"));
        assert!(names[2].chars().count() == NAME_CHARACTERS_MAX && !names[2].contains('\n'));
        let values: Vec<f64> = put_all(&answer).samples.iter().map(|sample| sample.value).collect();
        assert_eq!(values, [0.001, 0.002, 0.003]);
    }

    #[test]
    fn unknown_and_unlimited_are_not_figures() {
        let answer = json!({"nodes": {"a": {"name": "n", "indices": {"indexing": {"index_total": -1, "index_current": 0}},
            "thread_pool": {"write": {"queue": null, "rejected": "7"}, "evil": {"queue": 1}}}}});
        let samples = put_all(&answer).samples;
        assert_eq!(samples.len(), 1, "{samples:?}");
        assert_eq!((samples[0].metric.as_str(), samples[0].value), ("elasticsearch_operations_active", 0.0));
        let pools = json!({"write": {"size": 2, "queue_size": -1}, "search": {"max": 3, "queue_size": 1000}});
        let of = limits(&json!({"nodes": {"a": {"name": "n", "thread_pool": pools}}}));
        assert_eq!(of[&("n".to_owned(), "write")], [(metric::POOL_SIZE, 2.0)]);
        assert_eq!(of[&("n".to_owned(), "search")], [(metric::POOL_SIZE, 3.0), (metric::POOL_QUEUE_LIMIT, 1_000.0)]);
    }

    #[test]
    fn of_many_nodes_the_busiest_are_kept() {
        let node =
            |i: usize| (format!("id{i}"), json!({"name": format!("n{i}"), "thread_pool": {"write": {"queue": i}}}));
        let answer = json!({"nodes": (0..NODES_MAX + 5).map(node).collect::<serde_json::Map<_, _>>()});
        let kept = nodes(&answer);
        assert_eq!((kept.len(), kept[0].0.as_str()), (NODES_MAX, "n104"));
        assert!(kept.iter().all(|(name, _)| name != "n0"));
    }
}
