//! A cgroup's limit on a disk, and how to raise it.

use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::host::throttle::{Throttle, Unit};

use crate::change::Fix;

use crate::change::Steps;
use crate::change::host::Place;
use crate::resources::volume::level::rate;

/// `6.0 MB/s`, and what it was before if it was changed: `6.0 MB/s, lowered from 40 MB/s`.
pub(crate) fn limit_words(throttle: &Throttle) -> String {
    let limit = rate(throttle.unit, throttle.limit);
    match throttle.before {
        Some(before) if before.is_infinite() => format!("{limit}, where there was none before"),
        Some(before) if before > throttle.limit => format!("{limit}, lowered from {}", rate(throttle.unit, before)),
        Some(before) => format!("{limit}, raised from {}", rate(throttle.unit, before)),
        None => limit,
    }
}

/// The limit that would also let through the operations that wait now.
pub(crate) fn raise(view: &View<'_>, throttle: &Throttle) -> Fix {
    let path = view.cgroup_of(&throttle.source, metrics::cgroup::DISK_OPERATIONS.name);
    let v2 = view.setting_of(&throttle.source, "cgroup.version") == Some("2");
    let to = 2.0 * throttle.limit;
    let device = format!("$(lsblk -ndo MAJ:MIN /dev/{} | tr -d ' ')", throttle.device);
    let letter = &throttle.direction[..1];
    let (unit_v1, unit_v2, systemd) = match throttle.unit {
        Unit::Bytes => ("bps", "bps", "Bandwidth"),
        Unit::Operations => ("iops", "iops", "IOPS"),
    };
    let command = if v2 {
        format!("echo \"{device} {letter}{unit_v2}={to:.0}\" > /sys/fs/cgroup{path}/io.max")
    } else {
        format!(
            "echo \"{device} {to:.0}\" > /sys/fs/cgroup/blkio{path}/blkio.throttle.{}_{unit_v1}_device",
            throttle.direction
        )
    };
    let systemd = format!(
        "IO{}{systemd}Max=/dev/{} {to:.0} of its systemd unit",
        if throttle.direction == "read" { "Read" } else { "Write" },
        throttle.device
    );
    let steps = match Place::find(view, &throttle.source) {
        Place::Machine => Steps {
            command: Some(command),
            keep: Some(format!("the same limit where the cgroup is configured: {systemd}")),
            effect: "Takes effect at once.".to_owned(),
        },
        // A runtime sets such limits when it starts a container; no command of it changes them.
        Place::Docker(..) => Steps {
            keep: Some(format!(
                "start the container with --device-{}-{unit_v1}=/dev/{}:{to:.0}",
                throttle.direction, throttle.device
            )),
            ..Steps::default()
        },
        _ => {
            Steps { keep: Some("raise it on the node, where the cgroup is configured".to_owned()), ..Steps::default() }
        }
    };
    Fix {
        text: format!(
            "Raise the cgroup's limit from {:.0} to {to:.0} per second to start with, or remove it (0 in version 1, max in version 2).{}",
            throttle.limit,
            steps.note()
        ),
        command: steps.command,
        keep: steps.keep,
        risk: Some(
            "Takes effect at once. Other services on the same disk get less of it: that may be what the limit is for."
                .to_owned(),
        ),
    }
}
