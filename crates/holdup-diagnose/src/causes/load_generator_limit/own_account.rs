//! The generator's own figures, loop by loop, and every limit of its own that bound.

use crate::generator::GeneratorWords;
use holdup_recording::{Labels, metrics};
use holdup_signals::Window;
use holdup_signals::client::validity::{Label, Limit};
use holdup_signals::evidence::Evidence;

use crate::case::Case;
use crate::causes::percent;

pub(super) fn own_account(case: &Case<'_>) -> Vec<Evidence> {
    let view = case.slow();
    let mut own = Vec::new();
    let loops = view.label_values(metrics::load::CPU.name, "loop");
    let several = loops.len() > 1;
    for name in &loops {
        let pair = [("loop", name.as_str())];
        let labels: &[(&str, &str)] = if name.is_empty() { &[] } else { &pair };
        let read = |metric: &str| view.counter(metric, labels, "holdup run").ok();
        let share = |metric: &str| read(metric).map(|c| percent(c.rate()));
        if let Some(cpu) = read(metrics::load::CPU.name) {
            let which = if several { format!("loop {name}") } else { "its loop".to_owned() };
            let awake = share(metrics::load::BUSY.name)
                .map_or_else(String::new, |s| format!(", was awake for {s} of the time"));
            let waited = share(metrics::load::RUN_QUEUE.name)
                .map_or_else(String::new, |s| format!(", waited for a CPU for {s}"));
            let text = format!("{which} used {} of one core{awake}{waited}", percent(cpu.rate()));
            own.push(cpu.evidence(percent(cpu.rate()), "below 100 %", text));
        }
    }
    for (limit, _, text) in case.validity.sentences() {
        let Some(window) = case.validity.windows(Label::GeneratorLimited).reduce(|a, b| Window { to: b.to, ..a })
        else {
            break;
        };
        let evidence = |table: &str, column: &str, labels: Labels| {
            Evidence::new(table, column, labels, window, "", "", text.clone())
        };
        let sample = |metric: &str| evidence("samples", "value", Labels::new([("metric", metric)]));
        own.push(match limit {
            Limit::Busy => sample(metrics::load::BUSY.name),
            Limit::RunQueue => sample(metrics::load::RUN_QUEUE.name),
            Limit::Throttled => sample(metrics::load::THROTTLED.name),
            Limit::SendLag => evidence("requests", "sent_at", Labels::none()),
            Limit::LocalPorts => evidence("requests", "outcome", Labels::none()),
            Limit::InFlight => continue,
        });
    }
    own
}
