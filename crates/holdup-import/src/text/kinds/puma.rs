//! What Puma's control server answers (`pumactl stats`, `/stats`): the figures that the collector reads.

use holdup_recording::Labels;
use holdup_recording::layouts::puma::{CLUSTER, PROCESS};
use holdup_recording::metrics::Metric;

use super::{Context, Document, Kind, Value};

pub(super) const KIND: Kind = Kind::document(NAME, recognises, read);

const NAME: &str = "pumactl stats";

/// The source of its rows.
const SOURCE: &str = "puma:";

fn recognises(head: &Value) -> bool {
    let has = |fields: &[&str]| fields.iter().all(|field| head.get(field).is_some());
    has(&["worker_status", "booted_workers"]) || has(&["pool_capacity", "max_threads"])
}

fn read(document: &Document, context: &mut Context) {
    if document.is_cut {
        context.out.note("Puma: the document ends before its last bracket; what follows is unknown");
    }
    let at = context.instant_of(NAME);
    let stats = &document.value;
    put(CLUSTER, stats, at, &Labels::none(), context);
    let Some(workers) = stats.get("worker_status") else {
        return put(PROCESS, stats, at, &Labels::new([("worker", "0")]), context);
    };
    for worker in workers.items() {
        let number = |field: &str| worker.get(field).and_then(Value::number);
        let (Some(index), Some(status)) = (number("index"), worker.get("last_status")) else { continue };
        put(PROCESS, status, at, &Labels::new([("worker", index.to_string())]), context);
    }
}

fn put(fields: &[(&str, Metric)], of: &Value, at: i64, labels: &Labels, context: &mut Context) {
    for (field, metric) in fields {
        if let Some(value) = of.get(field).and_then(Value::number) {
            context.out.gauge(at, SOURCE, metric.name, labels.clone(), value);
        }
    }
}
