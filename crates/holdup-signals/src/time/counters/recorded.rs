//! A recording's samples as a table of equal steps: counters as growth per second, with restarts
//! and gaps left blank. The judging modules interpret it.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use super::names::{Conversion, SIGNALS, SampleOrigin, Term};
use super::{Frame, Signal};
use crate::{Growth, View, Window, database::memory_setting};

/// Shortest step, seconds: counters are judged in seconds, whatever their sampling interval.
const LEAST_STEP_S: f64 = 1.0;

/// Most steps: a day is judged in steps of half a minute.
const MOST_STEPS: f64 = 4_000.0;

/// Samples further apart than this many usual intervals have a gap between them.
const GAP: f64 = 2.5;

/// A step with less than this share (0-1) read is a gap.
const COVERED: f64 = 0.5;

/// Names of a database's processes.
const SERVERS: [&str; 4] = ["mysqld", "mariadbd", "postgres", "postmaster"];

/// Devices on top of others, whose traffic would count twice.
const UPON_OTHERS: [&str; 3] = ["loop", "dm-", "md"];

/// A recording's counters, step by step.
pub struct Table {
    /// The table.
    pub frame: Frame,
    /// Its steps.
    pub steps: Vec<Window>,
    /// The metric behind a signal, the first one if there are several.
    pub read_from: BTreeMap<Signal, &'static str>,
}

/// A constant value from one instant to another.
struct Piece {
    window: Window,
    value: f64,
}

impl Table {
    /// The counters in `view`; none without those of a database.
    pub fn new(view: &View<'_>) -> Option<Self> {
        let sources = Sources::find(view);
        // These causes are about a database: a host alone does not suffice.
        sources.database()?;
        let steps = steps(view, &sources)?;
        let period_s = steps.first()?.seconds();
        let mut frame = Frame::new(steps.len(), period_s);
        let mut read_from = BTreeMap::new();
        for made in SIGNALS {
            let counts = |values: &[f64]| values.iter().any(|v| *v > 0.0);
            let before = frame.get(made.signal).map(counts);
            let series: Option<Vec<Vec<f64>>> =
                made.of.iter().map(|term| series(view, &sources, term, &steps)).collect();
            let Some(series) = series else { continue };
            let sum = |row: usize| series.iter().map(|values| values[row]).sum::<f64>();
            let values: Vec<f64> = (0..steps.len()).map(sum).collect();
            // A counter that never counted may exist under another name.
            if before == Some(true) || before == Some(false) && !counts(&values) {
                continue;
            }
            frame.set(made.signal, values);
            read_from.extend(made.of.first().map(|term| (made.signal, term.metric)));
        }
        if let Some(bytes) = sources.database().and_then(|(source, name)| setting(view, source, name)) {
            frame.set(Signal::PoolBytes, vec![bytes; steps.len()]);
        }
        frame.signals().next()?;
        Some(Self { frame: frame.blanked(), steps, read_from })
    }

    /// Indices of the steps that lie in `window`.
    pub fn rows(&self, window: Window) -> Vec<usize> {
        let middle = |w: &Window| w.from + (w.to - w.from) / 2;
        (0..self.steps.len()).filter(|i| window.contains(middle(&self.steps[*i]))).collect()
    }
}

/// The sources: the host, one database, and the processes of its server.
struct Sources<'a> {
    host: Vec<&'a str>,
    server: Vec<&'a str>,
    mysql: Vec<&'a str>,
    postgres: Vec<&'a str>,
}

impl<'a> Sources<'a> {
    fn find(view: &View<'a>) -> Self {
        let mysql = busiest(view, metrics::mysql::GLOBAL_STATUS_QUESTIONS.name);
        // A table of two databases would describe one that does not exist.
        let postgres = busiest(view, metrics::postgresql::STAT_DATABASE_XACT_COMMIT.name).filter(|_| mysql.is_none());
        let processes = view.processes_with(metrics::process::CPU_TIME.name);
        let is_server = |name: &str| SERVERS.iter().any(|server| name.starts_with(server));
        Self {
            host: view.sources_of(metrics::host::CPU_TIME.name),
            server: processes.iter().filter(|p| is_server(p.name)).map(|p| p.source).collect(),
            mysql: mysql.into_iter().collect(),
            postgres: postgres.into_iter().collect(),
        }
    }

    fn of_whom(&self, whose: SampleOrigin) -> &[&'a str] {
        match whose {
            SampleOrigin::Host => &self.host,
            SampleOrigin::Server => &self.server,
            SampleOrigin::Mysql => &self.mysql,
            SampleOrigin::Postgres => &self.postgres,
        }
    }

    /// The database, and the name of its pool-size setting.
    fn database(&self) -> Option<(&'a str, &'static str)> {
        let mysql = self.mysql.first().map(|source| (*source, "innodb_buffer_pool_size"));
        mysql.or_else(|| self.postgres.first().map(|source| (*source, "shared_buffers")))
    }
}

/// The source with the greatest growth of `metric`.
fn busiest<'a>(view: &View<'a>, metric: &str) -> Option<&'a str> {
    let grown = |source: &str| view.counter_where(|s| s == source, metric, &[], "").map_or(0.0, |c| c.delta);
    view.sources_of(metric).into_iter().max_by(|a, b| grown(a).total_cmp(&grown(b)))
}

/// A size in bytes. PostgreSQL's sizes without a unit are in pages.
fn setting(view: &View<'_>, source: &str, name: &str) -> Option<f64> {
    let plain = if name == "shared_buffers" { 8_192.0 } else { 1.0 };
    memory_setting::bytes_of(view.setting_of(source, name)?, plain).filter(|bytes| *bytes > 0.0)
}

/// Equal steps from the first sample to the last, as long as the slowest source's interval; none
/// for too few samples.
fn steps(view: &View<'_>, sources: &Sources<'_>) -> Option<Vec<Window>> {
    let clocks = [
        (&sources.host, metrics::host::CPU_TIME.name),
        (&sources.mysql, metrics::mysql::GLOBAL_STATUS_QUESTIONS.name),
        (&sources.postgres, metrics::postgresql::STAT_DATABASE_XACT_COMMIT.name),
    ];
    let all: Vec<Vec<Window>> = clocks
        .iter()
        .map(|(of, metric)| view.growths(|s| of.contains(&s), metric, &[]).iter().map(|g| g.window).collect())
        .filter(|windows: &Vec<Window>| windows.len() >= 2)
        .collect();
    let from = all.iter().flatten().map(|w| w.from).min()?;
    let to = all.iter().flatten().map(|w| w.to).max()?;
    let usual = all.iter().map(|windows| usual_s(windows)).fold(LEAST_STEP_S, f64::max);
    let step_s = usual.round().max(((to - from) as f64 / 1e9 / MOST_STEPS).ceil());
    let step = (step_s * 1e9) as i64;
    let count = (to - from) / step;
    (count > 1).then(|| (0..count).map(|i| Window { from: from + i * step, to: from + (i + 1) * step }).collect())
}

/// Median length, seconds.
fn usual_s(windows: &[Window]) -> f64 {
    let mut lengths: Vec<f64> = windows.iter().map(Window::seconds).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied().unwrap_or(0.0)
}

/// The values of a term, step by step; none if it was not recorded.
fn series(view: &View<'_>, sources: &Sources<'_>, term: &Term, steps: &[Window]) -> Option<Vec<f64>> {
    let of = sources.of_whom(term.whose);
    let (label, values) = term.only;
    let upon = |device: &str| UPON_OTHERS.iter().any(|kind| device.starts_with(kind));
    let devices: Vec<String> =
        view.label_values(term.metric, "device").into_iter().filter(|d| !d.is_empty() && !upon(d)).collect();
    let growths = |labels: &[(&str, &str)]| -> Vec<Vec<Piece>> {
        let piece = |g: &Growth| Piece { window: g.window, value: g.rate() };
        let grown = of.iter().map(|source| view.growths(|s| s == *source, term.metric, labels));
        grown.map(|all| all.iter().map(piece).collect()).collect()
    };
    // Every combination of the requested values and the counting devices.
    let each = |labels: &[(&str, &str)]| -> Vec<Vec<Piece>> {
        if devices.is_empty() {
            return growths(labels);
        }
        let with = |device: &String| growths(&[labels, &[("device", device.as_str())]].concat());
        devices.iter().flat_map(with).collect()
    };
    let selected = || -> Vec<Vec<Piece>> {
        if values.is_empty() { each(&[]) } else { values.iter().flat_map(|value| each(&[(label, *value)])).collect() }
    };
    let placed = |pieces: Vec<Vec<Piece>>| -> Vec<Vec<f64>> {
        pieces.iter().filter(|of| !of.is_empty()).map(|of| on_steps(of, steps)).collect()
    };
    match term.take {
        Conversion::Rate(factor) => added(&placed(selected())).map(|all| all.iter().map(|v| v * factor).collect()),
        Conversion::Busiest => greatest(&placed(selected())).map(|all| all.iter().map(|v| v.min(1.0)).collect()),
        Conversion::Share => {
            let (part, all) = (added(&placed(selected()))?, added(&placed(growths(&[])))?);
            Some(part.iter().zip(&all).map(|(part, all)| if *all > 0.0 { part / all } else { f64::NAN }).collect())
        }
        Conversion::Level => {
            let is_it = |l: &Labels| values.is_empty() || l.get(label).is_some_and(|v| values.contains(&v));
            let pieces = held(&levels(view, of, term.metric, is_it));
            (!pieces.is_empty()).then(|| on_steps(&pieces, steps))
        }
    }
}

/// Levels in time order, summed by instant over the series that `is_it` accepts: zero where only
/// others were read.
fn levels(view: &View<'_>, of: &[&str], metric: &str, is_it: impl Fn(&Labels) -> bool) -> Vec<(i64, f64)> {
    let mut instants: BTreeMap<i64, f64> = BTreeMap::new();
    for ((_, labels), series) in view.index.series(metric, &[]).filter(|((source, _), _)| of.contains(&source.as_str()))
    {
        for (at, value) in series.iter().filter(|(at, _)| view.window.contains(*at)) {
            *instants.entry(*at).or_default() += if is_it(labels) { *value } else { 0.0 };
        }
    }
    instants.into_iter().collect()
}

/// Levels, each held until the next sample, but no longer than a gap.
fn held(levels: &[(i64, f64)]) -> Vec<Piece> {
    let windows: Vec<Window> = levels.windows(2).map(|pair| Window { from: pair[0].0, to: pair[1].0 }).collect();
    let longest = (GAP * usual_s(&windows) * 1e9) as i64;
    let pieces = windows.iter().zip(levels);
    pieces
        .map(|(w, (_, value))| Piece { window: Window { to: w.to.min(w.from + longest), ..*w }, value: *value })
        .collect()
}

/// Means over the steps; a step with too little data is a gap, and so is the time between samples
/// too far apart.
fn on_steps(pieces: &[Piece], steps: &[Window]) -> Vec<f64> {
    let windows: Vec<Window> = pieces.iter().map(|p| p.window).collect();
    let longest = GAP * usual_s(&windows);
    let mut sums = vec![(0.0, 0.0); steps.len()];
    let (Some(first), Some(period)) = (steps.first(), steps.first().map(|s| s.to - s.from)) else { return Vec::new() };
    for piece in pieces.iter().filter(|p| p.window.seconds() <= longest) {
        let at = |t: i64| ((t - first.from).max(0) / period) as usize;
        for (step, (sum, covered)) in
            steps.iter().zip(&mut sums).take(at(piece.window.to) + 1).skip(at(piece.window.from))
        {
            let overlap = (piece.window.to.min(step.to) - piece.window.from.max(step.from)).max(0) as f64;
            *sum += overlap * piece.value;
            *covered += overlap;
        }
    }
    let enough = COVERED * period as f64;
    sums.into_iter().map(|(sum, covered)| if covered >= enough { sum / covered } else { f64::NAN }).collect()
}

/// Sums over series; a step without any value is a gap. None without series.
fn added(series: &[Vec<f64>]) -> Option<Vec<f64>> {
    combined(series, |a, b| a + b)
}

fn greatest(series: &[Vec<f64>]) -> Option<Vec<f64>> {
    combined(series, f64::max)
}

fn combined(series: &[Vec<f64>], of: impl Fn(f64, f64) -> f64) -> Option<Vec<f64>> {
    let rows = series.first()?.len();
    let at = |row: usize| series.iter().map(|values| values[row]).filter(|v| v.is_finite()).reduce(&of);
    Some((0..rows).map(|row| at(row).unwrap_or(f64::NAN)).collect())
}
