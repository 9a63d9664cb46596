//! `kubectl top pods`, also by container and of all namespaces, and `kubectl top nodes`: CPU and
//! memory in use, averages of the last quarter or half minute.

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, kubernetes, kubernetes_node};

use super::super::{Context, Kind, Line};
use super::{asked_namespace, bytes, each_row, has_columns, millicores, source};

pub(in super::super) const KIND: Kind = Kind::lines("kubectl top", recognises, read);

fn recognises(lines: &[Line]) -> bool {
    has_columns(lines, &["MEMORY(bytes)", "CPU(cores)"])
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let now = context.instant_of(KIND.name);
    let asked = asked_namespace(context);
    each_row(lines, context, recognises, |row, context| {
        let cpus = row.text(&["CPU(cores)"]).and_then(millicores).map(|thousandths| thousandths / 1e3);
        let memory = row.text(&["MEMORY(bytes)"]).and_then(bytes);
        let pod = row.text(&["POD", "NAME"]).filter(|_| cpus.is_some() || memory.is_some())?;
        let share = |names: &[&str]| row.number(names).map(|percent| percent / 100.0);
        let mut put = |source: &str, metric: Metric, labels: &Labels, value: Option<f64>| {
            if let Some(value) = value {
                context.out.gauge(now, source, metric.name, labels.clone(), value);
            }
        };
        match row.has_any(&["CPU%", "CPU(%)"]) {
            // The sum of all pods, with `--sum`.
            _ if pod.starts_with("___") => {}
            true => {
                let (source, labels) = (format!("kubernetes_node:{pod}"), Labels::none());
                put(&source, kubernetes_node::CPU_USAGE_CORES, &labels, cpus);
                put(&source, kubernetes_node::MEMORY_USAGE_BYTES, &labels, memory);
                let (cpu_share, memory_share) = (share(&["CPU%", "CPU(%)"]), share(&["MEMORY%", "MEMORY(%)"]));
                put(&source, kubernetes_node::CPU_UTILIZATION_RATIO, &labels, cpu_share);
                put(&source, kubernetes_node::MEMORY_UTILIZATION_RATIO, &labels, memory_share);
            }
            false => {
                let container = row.text(&["NAME"]).filter(|_| row.has_any(&["POD"]));
                let labels = Labels::new(container.map(|container| ("container", container)));
                let source = source(row.text(&["NAMESPACE"]).unwrap_or(&asked), Some(pod));
                put(&source, kubernetes::CPU_USAGE_CORES, &labels, cpus);
                put(&source, kubernetes::MEMORY_USAGE_BYTES, &labels, memory);
            }
        }
        Some(())
    })
}
