//! What to do about a limit on memory that killed a process: a higher one, or less memory.

use super::{Limit, MIB};
use crate::change::host::Place;
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit, host};
use holdup_signals::View;

/// How much more than its peak a limit should allow, as a factor.
const ROOM: f64 = 1.5;

pub(super) fn fixes(view: &View<'_>, limit: Option<&Limit>) -> Vec<Fix> {
    let less = Fix {
        text:
            "Reduce its memory: smaller caches and buffers, fewer connections and workers; see what grows under load."
                .to_owned(),
        command: limit
            .and_then(|l| l.source.strip_prefix("pid:"))
            .map(|pid| format!("grep -E 'VmHWM|VmRSS' /proc/{pid}/status")),
        keep: None,
        risk: None,
    };
    let Some(limit) = limit else {
        return vec![
            less,
            Fix {
                text: "Give the host more memory or swap, or move other services away.".to_owned(),
                command: Some("free -m; ps -eo rss,comm --sort=-rss | head".to_owned()),
                keep: None,
                risk: None,
            },
        ];
    };
    vec![raise(view, limit), less]
}

/// A higher limit, within the machine's memory and where the limit is made.
fn raise(view: &View<'_>, limit: &Limit) -> Fix {
    let bounds = Bounds { least: 0.0, most: host::memory_bytes(view).unwrap_or(f64::MAX) / MIB };
    let (from, to) = (limit.bytes / MIB, (limit.bytes * ROOM / MIB).ceil());
    let name = format!("the memory limit of {}", limit.name);
    let change = match SettingChange::new(Direction::Raise, &name, Unit::Mebibytes, Some(from), to, bounds) {
        Ok(change) => change,
        Err(stay) => return stay.fix("The machine has no more memory to give."),
    };
    let container = view.container_with("memory_limit_bytes", limit.bytes);
    let place = if container.is_some() { Place::Kubernetes } else { Place::find(view, &limit.source) };
    let steps = place.memory(change.to, &limit.file);
    let text = format!(
        "{}, watch where its use settles, and set the limit to 1.5 times that.{}",
        change.sentence(),
        steps.note()
    );
    let risk = "A leak is only killed later; other services on the host get less memory.".to_owned();
    Fix { text, command: steps.command, keep: steps.keep, risk: Some(risk) }
}
