//! A cgroup's limit on a disk, and how to raise it.

use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::throttle::{Throttle, Unit};

use holdup_signals::evidence::Fix;

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
    let direction = if throttle.direction == "read" { "Read" } else { "Write" };
    Fix {
        text: format!(
            "Raise the cgroup's limit, starting with twice the present one ({to:.0}), or remove it (0 in version 1, max in version 2)."
        ),
        command: Some(command),
        keep: Some(format!(
            "the same limit where the cgroup is configured: IO{direction}{systemd}Max=/dev/{} {to:.0} of its systemd unit, or the options of its container",
            throttle.device
        )),
        risk: Some(
            "Takes effect at once. Other services on the same disk get less of it: that may be what the limit is for."
                .to_owned(),
        ),
    }
}
