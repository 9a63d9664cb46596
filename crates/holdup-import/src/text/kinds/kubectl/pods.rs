//! `kubectl get pods`, also `-o wide` and of all namespaces: restarts of each pod, whether it is
//! ready, and its state if that is not a healthy one. How a container ended is not in it.

use holdup_recording::{Labels, metrics};

use super::super::{Context, Kind, Line};
use super::{age_ns, asked_namespace, each_row, happened, has_columns, source};

pub(in super::super) const KIND: Kind = Kind::lines("kubectl get pods", recognises, read);

/// States that need no event.
const USUAL: [&str; 5] = ["Running", "Completed", "Succeeded", "ContainerCreating", "PodInitializing"];

fn recognises(lines: &[Line]) -> bool {
    has_columns(lines, &["NAME", "READY", "STATUS", "AGE", "RESTARTS"])
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let now = context.instant_of(KIND.name);
    let asked = asked_namespace(context);
    each_row(lines, context, recognises, |row, context| {
        let restarts = row.text(&["RESTARTS"])?;
        let (count, ago) = restarts.split_once('(').unwrap_or((restarts, ""));
        let (name, count) = (row.text(&["NAME"])?, count.trim().parse::<u32>().ok()?);
        let source = source(row.text(&["NAMESPACE"]).unwrap_or(&asked), Some(name));
        let mut put = |metric, value| context.out.gauge(now, &source, metric, Labels::none(), value);
        put(metrics::kubernetes::RESTARTS.name, f64::from(count));
        if let Some((ready, all)) = row.text(&["READY"]).and_then(|ready| ready.split_once('/')) {
            put(metrics::kubernetes::READY.name, if ready == all { 1.0 } else { 0.0 });
        }
        if let Some(ago) = age_ns(ago.trim_end_matches(')')).filter(|_| count > 0) {
            let labels = Labels::new([("reason", "unknown"), ("restarts", "1")]);
            let text = format!(
                "a container of {name} was restarted, {count} times so far; the table does not say how it ended"
            );
            happened::put(context, now.saturating_sub(ago), &source, "container_restarted", text, labels);
        }
        let status = row.text(&["STATUS"]).unwrap_or_default();
        if !USUAL.contains(&status) {
            let text = format!("{name}: {status}");
            happened::put(context, now, &source, "kubernetes", text, Labels::new([("reason", status)]));
        }
        if let Some(node) = row.text(&["NODE"]) {
            context.out.setting(now, &source, "pod.node", node);
        }
        Some(())
    })
}
