//! What to do about a limit of the network, by its kind.

use crate::change::host::Place;
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit};
use holdup_recording::metrics::host::NETWORK_CONNTRACK_MAX;
use holdup_signals::View;

use crate::resources::network_limits::{HOST, LimitKind, NetworkLimit};

/// Most entries that the table is given: each takes about 320 bytes of kernel memory.
const ENTRIES_MAX: f64 = 4_194_304.0;

/// Longest backlog: more packets are old before they are read.
const BACKLOG_MAX: f64 = 65_536.0;

/// Safest first.
pub(super) fn fixes(view: &View<'_>, limit: &NetworkLimit) -> Vec<Fix> {
    let place = &limit.place;
    let fix = |text: &str, command: Option<String>, risk: Option<&str>| Fix {
        text: text.to_owned(),
        command,
        keep: None,
        risk: risk.map(str::to_owned),
    };
    let kept = "Keep connections open (keep-alive, a pool): each new one takes an entry, and keeps it for a while \
                after it has ended.";
    let larger = "Move to an instance with a larger allowance: its network figures are per size.";
    match limit.kind {
        LimitKind::Conntrack => vec![
            fix(kept, Some("conntrack -S; sysctl net.netfilter | grep timeout".to_owned()), None),
            raise(
                view,
                "net.netfilter.nf_conntrack_max",
                ENTRIES_MAX,
                "An entry takes about 320 bytes of kernel memory.",
            ),
        ],
        LimitKind::Backlog => vec![
            raise(view, "net.core.netdev_max_backlog", BACKLOG_MAX, "A longer queue makes packets wait in a burst."),
            spread("DEVICE"),
        ],
        LimitKind::ReceivingCpu => vec![spread("DEVICE")],
        LimitKind::Bandwidth => vec![
            fix(
                "Send fewer bytes: compress, ask for the columns that are used, move copies to another time.",
                None,
                None,
            ),
            fix(larger, Some(format!("ethtool -S {place} | grep allowance")), Some("Costs more.")),
        ],
        LimitKind::Packets => vec![
            fix(
                "Send fewer and larger packets: batch small statements and requests, use jumbo frames within the cloud.",
                None,
                None,
            ),
            fix(larger, Some(format!("ethtool -S {place} | grep allowance")), Some("Costs more.")),
        ],
        LimitKind::Connections => vec![
            fix(kept, Some(format!("ethtool -S {place} | grep conntrack_allowance")), None),
            fix(
                "Let the security group admit this traffic from and to everywhere, where a network ACL filters it: the cloud does not track it then.",
                None,
                Some("The ACL is then the only filter."),
            ),
            fix(larger, None, Some("Costs more.")),
        ],
    }
}

/// Twice as much, at most `most`. These are the machine's: no container has one of its own.
fn raise(view: &View<'_>, name: &str, most: f64, risk: &str) -> Fix {
    let setting = view.setting(name, HOST).ok().and_then(|value| value.parse::<f64>().ok());
    let table = || view.gauge(NETWORK_CONNTRACK_MAX.name, &[], HOST).ok().map(|gauge| gauge.max);
    let now = setting.or_else(|| table().filter(|_| name.ends_with("nf_conntrack_max")));
    let bounds = Bounds { least: 1.0, most };
    match SettingChange::new(Direction::Raise, name, Unit::Count, now, 2.0 * now.unwrap_or(0.0), bounds) {
        Ok(change) => {
            let (command, keep) = (format!("sysctl -w {name}={}", change.to), "the same in a file of /etc/sysctl.d/");
            let steps = Place::find(view, "host").machine(command, keep.to_owned());
            change.fix("packets beyond it were dropped", steps, risk)
        }
        Err(stay) => stay.fix("Let fewer packets and connections arrive at once."),
    }
}

/// Several CPUs for what one does.
fn spread(device: &str) -> Fix {
    Fix {
        text: "Let several CPUs receive: as many queues as the device offers (RSS), or receive packet steering (RPS) \
               where it has one."
            .to_owned(),
        command: Some(format!(
            "ethtool -l {device}; ethtool -x {device}; grep . /sys/class/net/{device}/queues/rx-*/rps_cpus"
        )),
        keep: None,
        risk: Some("Changing the queues stops the device for a moment.".to_owned()),
    }
}
