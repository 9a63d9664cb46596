//! `kubectl top pods`, also by container and of all namespaces, and `kubectl top nodes`: CPU and
//! memory in use, averages of the last quarter or half minute.

use holdup_recording::{Labels, metrics};

use super::super::super::context::Context;
use super::super::super::number::number;
use super::super::super::paste::Line;
use super::super::{Kind, text};
use super::table::Table;
use super::{asked_namespace, bytes, each_row, millicores, source};

pub(in super::super) const KIND: Kind = Kind { name: "kubectl top", recognises, read };

fn recognises(lines: &[Line]) -> bool {
    let header = text(lines, 0);
    header.contains("CPU(cores)") && Table::new(header).has(&["CPU(cores)", "MEMORY(bytes)"])
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let now = context.instant_of(KIND.name);
    let asked = asked_namespace(context);
    let table = Table::new(text(lines, 0));
    let is_of_nodes = table.has(&["CPU%"]) || table.has(&["CPU(%)"]);
    each_row(lines, context, recognises, |row, context| {
        let of = |names: &[&str]| row.cell(names).map(str::to_owned);
        let cpus = of(&["CPU(cores)"]).and_then(|text| millicores(&text)).map(|thousandths| thousandths / 1e3);
        let memory = of(&["MEMORY(bytes)"]).and_then(|text| bytes(&text));
        let pod = of(&["POD", "NAME"]).filter(|_| cpus.is_some() || memory.is_some())?;
        // The sum of all pods, with `--sum`.
        if pod.starts_with("___") {
            return Some(());
        }
        let (source, labels) = match is_of_nodes {
            true => (format!("kubernetes_node:{pod}"), Labels::none()),
            false => {
                let container = of(&["NAME"]).filter(|_| table.has(&["POD"]));
                let labels = Labels::new(container.map(|container| ("container", container)));
                (source(&of(&["NAMESPACE"]).unwrap_or_else(|| asked.clone()), Some(&pod)), labels)
            }
        };
        let (cpu_metric, memory_metric) = match is_of_nodes {
            true => (metrics::kubernetes_node::CPU_USAGE_CORES, metrics::kubernetes_node::MEMORY_USAGE_BYTES),
            false => (metrics::kubernetes::CPU_USAGE_CORES, metrics::kubernetes::MEMORY_USAGE_BYTES),
        };
        let share = |names: &[&str]| of(names).and_then(|text| number(&text)).map(|percent| percent / 100.0);
        let (cpu_share, memory_share) = (share(&["CPU%", "CPU(%)"]), share(&["MEMORY%", "MEMORY(%)"]));
        for (metric, value) in [
            (cpu_metric, cpus),
            (memory_metric, memory),
            (metrics::kubernetes_node::CPU_UTILIZATION_RATIO, cpu_share.filter(|_| is_of_nodes)),
            (metrics::kubernetes_node::MEMORY_UTILIZATION_RATIO, memory_share.filter(|_| is_of_nodes)),
        ] {
            if let Some(value) = value {
                context.out.gauge(now, &source, metric.name, labels.clone(), value);
            }
        }
        Some(())
    })
}
