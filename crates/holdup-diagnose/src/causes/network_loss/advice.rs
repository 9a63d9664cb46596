//! Where packets are lost, and what to do about it.

use crate::change::Fix;
use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use super::HOST;
use crate::causes::thousands;

/// Packets that an interface of this host dropped or found broken.
pub(super) fn dropped(view: &View<'_>) -> Option<Evidence> {
    let metrics = [
        metrics::host::NETWORK_DROPPED.name,
        metrics::host::NETWORK_ERRORS.name,
        metrics::host::NETWORK_QDISC_DROPPED.name,
    ];
    let counters = metrics.iter().filter_map(|m| view.counter(m, &[], HOST).ok());
    let most = counters.filter(|c| c.delta > 0.0).max_by(|a, b| a.delta.total_cmp(&b.delta))?;
    let text = format!("{} packets were dropped or broken at this host's own interfaces", thousands(most.delta));
    Some(most.evidence(thousands(most.delta), "0", text))
}

/// What to do.
pub(super) fn fixes(view: &View<'_>) -> Vec<Fix> {
    let here = dropped(view).is_some();
    let text = if here {
        "Some are lost at this host's own interfaces: see which queue or cable (drops of the qdisc, errors of the interface)."
    } else {
        "None are lost at this host's own interfaces: check the other end, and the path in between (mtr shows the hop)."
    };
    let command = if here {
        "tc -s qdisc show; ip -s -s link show"
    } else {
        "mtr --tcp --report ADDRESS; ss -ti state established"
    };
    vec![
        Fix { text: text.to_owned(), command: Some(command.to_owned()), keep: None, risk: None },
        Fix {
            text: "A limit on packets or bandwidth that drops instead of queueing (a policer, a cloud instance's allowance, conntrack's table) looks like this: check its counters."
                .to_owned(),
            command: Some("ethtool -S DEVICE | grep -iE 'drop|exceed|allowance'; conntrack -S".to_owned()),
            keep: None,
            risk: None,
        },
    ]
}
