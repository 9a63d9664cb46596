//! What was measured of a machine's nodes (NUMA), for the advice to spread a server's memory over them:
//! whether new pages were spread, how many were taken on another node than wanted, and whether one
//! node ran out while another had memory left. It gives no advice of its own.

use holdup_recording::metrics::host as metric;
use holdup_recording::words::{bytes, percent};
use holdup_signals::View;

use crate::case::Case;
use crate::verdict::Note;

/// The check that asks for it.
const CHECK: &str = "numa_interleave";

/// With this share (0-1) of new pages spread on purpose, memory is interleaved.
const SPREAD: f64 = 0.5;

/// Completes the notes of the check: leaves them out if pages were spread, and else says what was
/// measured.
pub(super) fn complete(case: &Case<'_>, notes: &mut Vec<Note>) {
    let view = case.view(case.whole());
    let Some(pages) = Pages::measure(&view) else { return };
    if pages.spread >= SPREAD {
        return notes.retain(|note| note.check != CHECK);
    }
    let told = format!(
        "{} of new pages were spread over the nodes, {} were taken on another node than wanted{}",
        percent(pages.spread),
        percent(pages.missed),
        uneven(&view)
    );
    for note in notes.iter_mut().filter(|note| note.check == CHECK) {
        note.text = format!("{told}; {}", note.text);
    }
}

/// Pages that were taken, by how.
struct Pages {
    /// Share (0-1) that was spread on purpose.
    spread: f64,
    /// Share (0-1) that was wanted on another node.
    missed: f64,
}

impl Pages {
    fn measure(view: &View<'_>) -> Option<Self> {
        let of = |kind: &str| view.counter(metric::NUMA_PAGES.name, &[("kind", kind)], "--watch host").ok();
        let (hit, missed) = (of("hit")?.delta, of("miss")?.delta);
        let spread = of("interleave").map_or(0.0, |spread| spread.delta);
        let all = hit + missed;
        (all > 0.0).then(|| Self { spread: spread / all, missed: missed / all })
    }
}

/// The node with least and with most free memory, if one of them had hardly any.
fn uneven(view: &View<'_>) -> String {
    let free = metric::NUMA_MEMORY_FREE_BYTES.name;
    let level = |name: &str, node: &str| view.gauge(name, &[("node", node)], "--watch host").ok();
    let nodes = view.label_values(free, "node").into_iter();
    let mut all: Vec<(String, f64, f64)> = nodes
        .filter_map(|node| {
            let total = level(metric::NUMA_MEMORY_TOTAL_BYTES.name, &node)?.max;
            Some((node.clone(), level(free, &node)?.mean, total))
        })
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    match (all.first(), all.last()) {
        (Some(least), Some(most)) if least.1 < FULL * least.2 && most.1 > ROOM * most.2 => {
            format!("; node {} had {} free and node {} {}", least.0, bytes(least.1), most.0, bytes(most.1))
        }
        _ => String::new(),
    }
}

/// A node with a smaller share (0-1) of its memory free is full, and one with a larger share than the
/// second has room.
const FULL: f64 = 0.02;
const ROOM: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// A machine with two nodes and a mongod, where `spread` and `missed` of 100 new pages a second were so.
    fn made(spread: f64, missed: f64) -> Option<String> {
        let pages = |made: SyntheticRecording, kind: &'static str, rate: f64| {
            made.counter("host", "system_numa_pages_total", &[("node", "0"), ("kind", kind)], rate)
        };
        let made = SyntheticRecording::new(10)
            .setting("host", "numa_nodes", "2")
            .setting("pid:7", "comm", "mongod")
            .gauge("host", "system_numa_memory_total_bytes", &[("node", "0")], 64e9)
            .gauge("host", "system_numa_memory_total_bytes", &[("node", "1")], 64e9)
            .gauge("host", "system_numa_memory_free_bytes", &[("node", "0")], 1e8)
            .gauge("host", "system_numa_memory_free_bytes", &[("node", "1")], 32e9);
        let made = pages(pages(pages(made, "hit", 100.0 - missed), "miss", missed), "interleave", spread);
        let notes = made.with(|case| super::super::notes(case, &[]));
        notes.into_iter().find(|note| note.check == CHECK).map(|note| note.text)
    }

    #[test]
    fn pages_that_are_spread_are_as_advised_and_others_are_counted() {
        assert_eq!(made(90.0, 1.0), None);
        let text = made(0.0, 30.0).unwrap();
        for part in ["30 % were taken on another node", "node 0 had", "node 1 "] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
