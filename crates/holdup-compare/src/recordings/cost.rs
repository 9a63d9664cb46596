//! The cost of serving requests: CPU time per thousand requests, and memory, for every watched
//! source. The growth of counters is divided by the requests that ended between the same two
//! samples.

use holdup_recording::{Recording, metrics};

use super::measure::{Measure, Precondition, Scale};
use super::outcome::Section;
use super::within::{Stretch, per_count, phase};
use holdup_diagnose::case::Case;
use holdup_signals::host::cpu;
use holdup_signals::time::requests::is_latency;
use holdup_signals::{Growth, View, Window};

/// How much CPU time per request differs from run to run (standard deviation of its logarithm):
/// bench/runs, compare.
const CPU_SPREAD: f64 = 0.03;

/// The same for memory.
const MEMORY_SPREAD: f64 = 0.05;

/// A smaller difference in CPU time (seconds) per thousand requests, a microsecond per request,
/// does not count.
const LEAST_CPU_S: f64 = 0.001;

/// A smaller difference in MiB does not count.
const LEAST_MIB: f64 = 1.0;

/// CPU time of processes comes in ticks of this, seconds.
const TICK_S: f64 = 0.01;

const MIB: f64 = 1_048_576.0;

/// Counters of CPU time: metric, owner, whether it comes in ticks. The first one that was recorded
/// is the cost of serving; the others are listed below it.
const CPU: &[(&str, &str, bool)] = &[
    (metrics::server::THREAD_CPU_TIME.name, "server", false),
    (metrics::process::CPU_TIME.name, "process", true),
    (metrics::app::PROCESS_CPU.name, "process", true),
    (metrics::cgroup::CPU_USAGE.name, "cgroup of", false),
];

/// Resident memory.
const MEMORY: &[(&str, &str)] = &[
    (metrics::server::MEMORY_USAGE_BYTES.name, "server"),
    (metrics::process::MEMORY_USAGE_BYTES.name, "process"),
    (metrics::app::PROCESS_RESIDENT_MEMORY_BYTES.name, "process"),
    (metrics::cgroup::MEMORY_USAGE_BYTES.name, "cgroup of"),
];

/// All cost figures of `recording`.
pub(super) fn measures(case: &Case<'_>, recording: &Recording) -> Vec<Measure> {
    let Some(window) = served(case, recording) else { return Vec::new() };
    let view = case.view(window);
    let ended = EndedRequests::from_case(case);
    let mut measures: Vec<Measure> = Vec::new();
    for (metric, what, in_ticks) in CPU {
        for (source, name) in named_sources(recording, &view, metric, what) {
            let growths = growths(&view, metric, source);
            let mut measure = cpu(&ended, &growths, *in_ticks, format!("CPU per 1,000 requests ({name})"));
            if let Some(measure) = &mut measure {
                measure.is_headline = measures.is_empty();
            }
            measures.extend(measure);
        }
    }
    measures.extend(cpu(&ended, &host(&view), false, "CPU per 1,000 requests (all of the host)".to_owned()));
    for (metric, what) in MEMORY {
        for (source, name) in named_sources(recording, &view, metric, what) {
            let deepest = deepest(&view, metric, source);
            let labels: &[(&str, &str)] = &deepest.as_deref().map_or(Vec::new(), |path| vec![("cgroup", path)]);
            let levels = view.total(source, metric, labels);
            if levels.is_empty() {
                continue;
            }
            let mean = levels.iter().map(|(_, bytes)| bytes).sum::<f64>() / levels.len() as f64;
            measures.push(Measure {
                needs: Precondition::SameOperations,
                spread: MEMORY_SPREAD,
                least: LEAST_MIB,
                ..Measure::new(Section::Cost, format!("memory ({name})"), "MiB", mean / MIB)
            });
            measures.extend(growth(&ended, &levels, &name));
        }
    }
    measures.dedup_by(|a, b| a.is_same(b));
    measures
}

/// The judged window as far as requests were due in it.
fn served(case: &Case<'_>, recording: &Recording) -> Option<Window> {
    let (phases, whole) = (&recording.manifest.phases, case.whole());
    match (phases.first(), phases.last()) {
        (Some(first), Some(last)) => Some(Window { from: first.from.max(whole.from), to: last.to.min(whole.to) }),
        _ => Some(whole).filter(|whole| whole.to < i64::MAX),
    }
    .filter(|served| served.from < served.to)
}

/// Sources of `metric` under a name that another run also has, because ports and process ids change
/// from run to run. They keep their order.
fn named_sources<'v>(recording: &Recording, view: &View<'v>, metric: &str, what: &str) -> Vec<(&'v str, String)> {
    let mut sources = view.sources_of(metric);
    let place = |source: &str| recording.manifest.coverage.iter().position(|c| c.source == source);
    sources.sort_by_key(|source| place(source).unwrap_or(usize::MAX));
    let comm = |source: &str| {
        let settings = &recording.tables.settings.rows;
        let is_name = |name: &str| matches!(name, "comm" | "server.name");
        settings.iter().find(|s| s.source == source && is_name(&s.name)).map(|s| s.value.clone())
    };
    let mut named: Vec<(&str, String)> = Vec::new();
    for source in sources {
        let kind = source.split(':').next().unwrap_or(source);
        let kind = if kind == "pid" { what } else { kind };
        let base = comm(source).map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"));
        let before = named.iter().filter(|(_, name)| *name == base || name.starts_with(&format!("{base} ("))).count();
        named.push((source, if before == 0 { base } else { format!("{base} ({})", before + 1) }));
    }
    named
}

/// Control groups are nested, and the innermost level is the watched one. None for sources without
/// levels.
fn deepest(view: &View<'_>, metric: &str, source: &str) -> Option<String> {
    let series = view.index.series(metric, &[]).filter(|((of, _), _)| of == source);
    let paths = series.filter_map(|((_, labels), _)| labels.get("cgroup").map(str::to_owned));
    paths.max_by_key(String::len)
}

/// Growth of `metric` of `source`.
fn growths(view: &View<'_>, metric: &str, source: &str) -> Vec<Growth> {
    match deepest(view, metric, source) {
        Some(path) => view.growths(|s| s == source, metric, &[("cgroup", &path)]),
        None => view.growths(|s| s == source, metric, &[]),
    }
}

/// CPU time of the host that was neither idle nor stolen.
fn host(view: &View<'_>) -> Vec<Growth> {
    let intervals = cpu::intervals(view.index, view.window, |source| source == "host").into_iter();
    intervals.map(|(window, cpu)| Growth { window, delta: cpu.worked() }).collect()
}

fn cpu(ended: &EndedRequests<'_, '_>, growths: &[Growth], in_ticks: bool, indicator: String) -> Option<Measure> {
    let stretches = by_sample(ended, growths)?;
    let (for_one, error) = per_count(&stretches)?;
    let used: f64 = stretches.iter().map(|s| s.amount).sum();
    if used <= 0.0 {
        return None;
    }
    // The first and the last read each fall somewhere within a tick.
    let ticks = if in_ticks { TICK_S / 6.0_f64.sqrt() / used } else { 0.0 };
    Some(Measure {
        needs: Precondition::SameOperations,
        error: error.unwrap_or(0.0).hypot(ticks),
        spread: CPU_SPREAD,
        least: LEAST_CPU_S,
        ..Measure::new(Section::Cost, indicator, "s", for_one * 1e3)
    })
}

/// Memory that a thousand requests took for good: from the first to the last sample.
fn growth(ended: &EndedRequests<'_, '_>, levels: &[(i64, f64)], name: &str) -> Option<Measure> {
    let ((from, first), (to, last)) = (levels.first()?, levels.last()?);
    let requests = ended.within(Window { from: *from, to: *to }).filter(|n| *n > 0.0)?;
    let kib = (last - first) / 1_024.0 / requests * 1e3;
    Some(Measure {
        needs: Precondition::SameOperations,
        scale: Scale::Difference,
        // A process takes memory by the megabyte.
        spread: (MIB / 1_024.0 / requests * 1e3).max(kib.abs() / 2.0),
        least: 16.0,
        ..Measure::new(Section::Cost, format!("memory growth per 1,000 requests ({name})"), "KiB", kib)
    })
}

/// Growth from sample to sample, and the requests that ended meanwhile.
fn by_sample(ended: &EndedRequests<'_, '_>, growths: &[Growth]) -> Option<Vec<Stretch>> {
    let phases: Vec<i64> = ended.case.recording.manifest.phases.iter().map(|p| p.from).collect();
    let middle = |window: Window| window.from + (window.to - window.from) / 2;
    let counted = growths.iter().map(|growth| {
        let phase = phase(&phases, middle(growth.window));
        Some(Stretch { amount: growth.delta, count: ended.within(growth.window)?, phase })
    });
    counted.collect::<Option<Vec<_>>>().filter(|stretches| !stretches.is_empty())
}

/// Requests that were served, by end time.
struct EndedRequests<'c, 'r> {
    case: &'c Case<'r>,
    /// End time of each request and the number that had ended until then, in order of time; empty
    /// without rows.
    until: Vec<(i64, u64)>,
}

impl<'c, 'r> EndedRequests<'c, 'r> {
    fn from_case(case: &'c Case<'r>) -> Self {
        let rows = case.requests_in(case.whole()).unwrap_or_default();
        let served = rows.iter().filter(|r| is_latency(r) && r.sent_at.is_some());
        let mut until: Vec<(i64, u64)> = served.map(|r| (r.done_at, r.count())).collect();
        until.sort_unstable();
        let mut sum = 0;
        for (_, count) in &mut until {
            sum += *count;
            *count = sum;
        }
        Self { case, until }
    }

    fn within(&self, window: Window) -> Option<f64> {
        if self.until.is_empty() {
            return self.case.completed_in(window).ok();
        }
        let before = |at: i64| match self.until.partition_point(|(done, _)| *done < at) {
            0 => 0,
            i => self.until[i - 1].1,
        };
        Some((before(window.to) - before(window.from)) as f64)
    }
}
