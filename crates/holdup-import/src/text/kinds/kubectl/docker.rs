//! `docker stats`, also of Podman: CPU and memory in use by container.

use holdup_recording::Labels;
use holdup_recording::metrics::kubernetes;

use super::super::{Context, Kind, Line, number};
use super::{bytes, each_row, has_columns};

pub(in super::super) const KIND: Kind = Kind::lines("docker stats", recognises, read);

const USAGE: [&str; 2] = ["MEM USAGE / LIMIT", "MEM USAGE/LIMIT"];
const NAME: [&str; 3] = ["NAME", "CONTAINER", "CONTAINER ID"];

fn recognises(lines: &[Line]) -> bool {
    USAGE.iter().any(|usage| NAME.iter().any(|name| has_columns(lines, &[name, "CPU %", usage])))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let now = context.instant_of(KIND.name);
    each_row(lines, context, recognises, |row, context| {
        let name = row.text(&NAME)?;
        let source = format!("docker:{name}");
        let cpus = number(row.text(&["CPU %"])?).map(|percent| percent / 100.0);
        let (used, limit) = row.text(&USAGE)?.split_once('/')?;
        // It writes `MiB` where Kubernetes writes `Mi`.
        let size = |text: &str| bytes(text.trim().trim_end_matches('B'));
        for (metric, value) in [(kubernetes::CPU_USAGE_CORES, cpus), (kubernetes::MEMORY_USAGE_BYTES, size(used))] {
            if let Some(value) = value {
                context.out.gauge(now, &source, metric.name, Labels::new([("container", name)]), value);
            }
        }
        if let Some(limit) = size(limit) {
            context.out.setting(now, &source, format!("container.{name}.memory_limit_bytes"), limit.to_string());
        }
        Some(())
    })
}
