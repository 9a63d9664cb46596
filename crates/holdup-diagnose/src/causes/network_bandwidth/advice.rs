//! What to do about a link that is full: fewer bytes, or more room for them.

use crate::causes::{bytes, bytes_per_second, thousands};
use crate::change::host::Place;
use crate::change::{Bounds, Direction, Fix, SettingChange, Steps, Unit};
use crate::resources::interfaces::{HOST, InterfaceDirection};
use holdup_signals::View;

pub(super) fn fixes(view: &View<'_>, way: &InterfaceDirection, each: f64) -> Vec<Fix> {
    let device = &way.device;
    let mut fixes = vec![Fix {
        text: format!(
            "Fewer bytes: interfaces carry {} per request. Compress responses (gzip, zstd), drop unused fields, cache.",
            bytes(each)
        ),
        command: None,
        keep: None,
        risk: Some("Compressing takes CPU: about 20 to 50 ms for each MiB.".to_owned()),
    }];
    let shaper = way.limit.filter(|(_, what)| what.contains("shaper"));
    if let Some((rate, _)) = shaper {
        fixes.push(faster_shaper(view, device, rate));
    } else {
        fixes.push(Fix {
            text: format!(
                "More bandwidth than the {} of {device}: a larger instance or link, or several hosts.",
                bytes_per_second(way.level.level)
            ),
            command: None,
            keep: None,
            risk: None,
        });
    }
    fixes
}

/// Twice the rate of a token bucket, to start with. Another kind of queue needs another command.
fn faster_shaper(view: &View<'_>, device: &str, bytes_per_second: f64) -> Fix {
    let name = format!("the rate of the shaper on {device}");
    let from = bytes_per_second * 8.0 / 1e6;
    let bounds = Bounds { least: 0.001, most: 1e6 };
    let risk = "It may be there for a reason: a smaller link behind it, whose queue then becomes the long one.";
    let change = match SettingChange::new(Direction::Raise, &name, Unit::Fraction, Some(from), 2.0 * from, bounds) {
        Ok(change) => change,
        Err(stay) => return stay.fix("Use another link."),
    };
    let keep = "the same rate where the shaper is configured".to_owned();
    let is_bucket = view.setting(&format!("net.{device}.qdisc"), HOST).is_ok_and(|kind| kind == "tbf");
    let steps = if is_bucket {
        let rate = format!("{:.0}bit", change.to * 1e6);
        let command = format!("tc qdisc change dev {device} root tbf rate {rate} burst 256kb latency 50ms");
        Place::find(view, "host").machine(command, keep)
    } else {
        Steps { command: None, keep: Some(keep), effect: String::new() }
    };
    let text = format!(
        "Raise {name} from {} to {} Mbit/s to start with.{}",
        thousands(from),
        thousands(change.to),
        steps.note()
    );
    Fix { text, command: steps.command, keep: steps.keep, risk: Some(risk.to_owned()) }
}
