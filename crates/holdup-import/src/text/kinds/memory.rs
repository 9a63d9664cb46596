//! `free` in any unit, and `/proc/meminfo`.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use super::{Columns, Context, Kind, Line, number, size, text};

pub(super) const FREE: Kind = Kind::lines("free", |lines| names(lines).is_some(), read_free);

pub(super) const MEMINFO: Kind = Kind::lines(
    "/proc/meminfo",
    |lines| entry(text(lines, 0)).is_some_and(|(name, _)| name == "MemTotal"),
    read_meminfo,
);

/// Largest total, in the unit of a `free` whose command is unknown, that cannot be KiB.
const LEAST_KIB: f64 = 200_000.0;

/// Memory at an instant, bytes.
#[derive(Default)]
pub(super) struct Usage {
    pub(super) total: Option<f64>,
    pub(super) free: Option<f64>,
    pub(super) buffers: Option<f64>,
    pub(super) cached: Option<f64>,
    pub(super) available: Option<f64>,
    pub(super) swap_total: Option<f64>,
    pub(super) swap_free: Option<f64>,
}

impl Usage {
    /// Adds the values that are known. Used memory is the rest, as the collector counts it.
    pub(super) fn put(&self, at: i64, context: &mut Context) {
        let out = &mut context.out;
        let mut put = |metric, state: Option<&str>, value: Option<f64>| {
            if let Some(value) = value {
                out.host(at, metric, Labels::new(state.map(|state| ("state", state))), value);
            }
        };
        let usage = metrics::host::MEMORY_USAGE_BYTES;
        let rest = self.total.zip(self.free).zip(self.cached);
        let used = rest.map(|((total, free), cached)| (total - free - cached - self.buffers.unwrap_or(0.0)).max(0.0));
        put(metrics::host::MEMORY_TOTAL_BYTES, None, self.total);
        put(metrics::host::MEMORY_AVAILABLE_BYTES, None, self.available);
        put(usage, Some("free"), self.free);
        put(usage, Some("buffers"), self.buffers);
        put(usage, Some("cached"), self.cached);
        put(usage, Some("used"), used);
        let swap_used = self.swap_total.zip(self.swap_free).map(|(total, free)| (total - free).max(0.0));
        put(metrics::host::PAGING_USAGE_BYTES, Some("used"), swap_used);
        put(metrics::host::PAGING_USAGE_BYTES, Some("free"), self.swap_free);
        for (name, value) in [("memory_total_bytes", self.total), ("swap_total_bytes", self.swap_total)] {
            if let Some(value) = value {
                context.out.setting(at, super::super::out::HOST, name, value.round().to_string());
            }
        }
    }
}

/// The header in English. In other languages the same columns stand at the same places: six names,
/// six sizes, three sizes.
fn names(lines: &[Line]) -> Option<&str> {
    let first = text(lines, 0);
    let columns = Columns::new(first);
    // In French, that of swap space has two words.
    let is_label = |label: &str| !label.trim().is_empty() && !label.contains(|c: char| c.is_ascii_digit());
    let is_labelled = |line: &str| line.split_once(':').is_some_and(|(label, _)| is_label(label));
    let is_english = columns.has(&["total", "used", "free", "shared"]);
    if is_english && is_labelled(text(lines, 1)) {
        return Some(first);
    }
    let sizes = |line: &str, count: usize| {
        let words: Vec<&str> = line.split_once(':').map_or("", |(_, rest)| rest).split_whitespace().collect();
        is_labelled(line) && words.len() == count && words.iter().all(|word| size(word, 1.0, 1024.0).is_some())
    };
    let is_other = columns.len() == 6 && first.starts_with("    ") && !first.contains(|c: char| c.is_ascii_digit());
    (is_other && sizes(text(lines, 1), 6) && sizes(text(lines, 2), 3))
        .then_some("total used free shared buff/cache available")
}

fn read_free(lines: &[Line], context: &mut Context) -> usize {
    let header = format!("name {}", names(lines).unwrap_or_default());
    let columns = Columns::new(&header);
    let unit = unit_bytes(lines, context);
    let base = if context.words().any(|word| word == "--si") { 1000.0 } else { 1024.0 };
    let mut usage = Usage::default();
    let mut used = 1;
    for line in lines.iter().skip(1) {
        let Some((label, rest)) = line.text.split_once(':') else { break };
        let is_size = |word: &str| size(word, 1.0, 1024.0).is_some();
        if label.contains(|c: char| c.is_ascii_digit()) || !rest.split_whitespace().all(is_size) {
            break;
        }
        let whole = format!("{}: {rest}", label.replace(' ', "_"));
        let row = columns.row(&whole);
        let Some(name) = row.text(&["name"]).filter(|name| name.ends_with(':') || name.starts_with("-/+")) else {
            break;
        };
        let bytes = |aliases: &[&str]| size(row.text(aliases)?, unit, base);
        match name {
            // Old versions print a line without caches, and its label has two words.
            _ if name.starts_with("-/+") => {}
            // The line above may be cut away.
            _ if used == 1 && !name.starts_with("Swap") => {
                usage.total = bytes(&["total"]);
                usage.free = bytes(&["free"]);
                usage.available = bytes(&["available"]);
                usage.buffers = bytes(&["buffers"]);
                usage.cached = bytes(&["buff/cache", "cached", "cache"]);
            }
            _ if (used >= 2 || name.starts_with("Swap")) && usage.swap_total.is_none() && row.len() <= 4 => {
                usage.swap_total = bytes(&["total"]);
                usage.swap_free = bytes(&["free"]);
            }
            _ => {}
        }
        used += 1;
    }
    let at = context.instant_of("free");
    usage.put(at, context);
    used
}

/// Bytes of the unit, by the command's flag; without a command, by the size of the total.
fn unit_bytes(lines: &[Line], context: &mut Context) -> f64 {
    let units = [('b', 1.0), ('k', 1024.0), ('m', 1_048_576.0), ('g', 1_073_741_824.0)];
    let is_own = context.words().any(|word| word.rsplit('/').next() == Some("free"));
    if is_own {
        let long = [
            ("--bytes", 1.0),
            ("--kibi", 1024.0),
            ("--mebi", 1_048_576.0),
            ("--gibi", 1_073_741_824.0),
            ("--kilo", 1e3),
            ("--mega", 1e6),
            ("--giga", 1e9),
        ];
        if let Some((_, bytes)) = long.into_iter().find(|(flag, _)| context.words().any(|word| word == *flag)) {
            return bytes;
        }
        let said = units.into_iter().find(|(flag, _)| context.has_flag(*flag));
        return said.map_or(1024.0, |(_, bytes)| bytes);
    }
    let total = text(lines, 1).split_whitespace().nth(1).and_then(number);
    if total.is_some_and(|total| total < LEAST_KIB) {
        context.out.note("free: its command is not shown; so small a total was taken to be MiB");
        return 1_048_576.0;
    }
    1024.0
}

/// Name and value of a line such as `MemFree:  108544 kB`.
fn entry(line: &str) -> Option<(&str, f64)> {
    let (name, value) = line.split_once(':')?;
    let mut words = value.split_whitespace();
    let value = number(words.next()?)?;
    let unit = if words.next() == Some("kB") { 1024.0 } else { 1.0 };
    (!name.contains(char::is_whitespace)).then_some((name, value * unit))
}

fn read_meminfo(lines: &[Line], context: &mut Context) -> usize {
    let entries: BTreeMap<&str, f64> = lines.iter().map_while(|line| entry(&line.text)).collect();
    let used = lines.iter().take_while(|line| entry(&line.text).is_some()).count();
    let of = |name: &str| entries.get(name).copied();
    let at = context.instant_of("/proc/meminfo");
    let cached = of("Cached").map(|cached| cached + of("SReclaimable").unwrap_or(0.0));
    let usage = Usage {
        total: of("MemTotal"),
        free: of("MemFree"),
        buffers: of("Buffers"),
        cached,
        available: of("MemAvailable"),
        swap_total: of("SwapTotal"),
        swap_free: of("SwapFree"),
    };
    usage.put(at, context);
    let more = [("Dirty", metrics::host::MEMORY_DIRTY_BYTES), ("Writeback", metrics::host::MEMORY_WRITEBACK_BYTES)];
    for (name, metric) in more {
        if let Some(value) = of(name) {
            context.out.host(at, metric, Labels::none(), value);
        }
    }
    used
}
