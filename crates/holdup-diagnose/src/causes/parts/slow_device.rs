//! A device that got slow under no more demand than before: what shows it.

use holdup_recording::Labels;
use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::flows::{Flow, Slowed};

use crate::causes::{ms, thousands};

/// That its operations take longer, and that no more of them are demanded.
pub(crate) fn slowed_evidence(view: &View<'_>, flow: &Flow, slowed: &Slowed) -> Evidence {
    let (now, before) = slowed.operations;
    let (took, took_before) = (ms(1e3 * slowed.took_s.0), ms(1e3 * slowed.took_s.1));
    let text = format!(
        "an operation of {} took {took} instead of {took_before}, with {:.1} in flight, at {} operations/s instead of {}: the device got slow, and no more was demanded of it",
        flow.name,
        slowed.queued,
        thousands(now),
        thousands(before),
    );
    let labels = Labels::new([("metric", metrics::host::DISK_WEIGHTED_IO_TIME.name), ("device", flow.name.as_str())]);
    Evidence::new("samples", "value", labels, view.window, took, took_before, text)
}
