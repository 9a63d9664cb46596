//! The rows that readers make, named as the collectors name them. Tools print rates and shares; a
//! recording holds counters. So each rate becomes a counter that grows by it over its interval.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::metrics::{self, Metric};
use holdup_recording::rows::{Event, Sample, Session, Setting};
use holdup_recording::{Batch, Labels};

/// The source of the host's rows.
pub(super) const HOST: &str = "host";

/// The source of sessions that the titles of PostgreSQL's processes tell.
pub(super) const TITLES: &str = "postgresql://ps";

/// The modes of CPU time, as the collector of the host names them.
pub(super) const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "interrupt", "softirq", "steal"];

/// A stretch of time that a report covers, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// When it was printed.
    pub(super) at: i64,
    /// The interval before that.
    pub(super) interval_ns: i64,
    /// Whether its rates are means since boot, and not of this interval.
    pub(super) is_since_boot: bool,
}

/// Growth per second over an interval, as one tool printed it.
struct Rate {
    from: i64,
    to: i64,
    per_second: f64,
    kind: &'static str,
    is_since_boot: bool,
}

/// Readings of a counter since boot, by time.
type Totals = BTreeMap<(String, &'static str, Labels), Vec<(i64, f64)>>;

/// Rows so far, and notes for the user.
#[derive(Default)]
pub(super) struct Out {
    pub(super) batch: Batch,
    pub(super) notes: BTreeSet<String>,
    /// Number of CPUs, once an output shows it.
    pub(super) cpus: Option<f64>,
    rates: BTreeMap<(String, &'static str, Labels), Vec<Rate>>,
    totals: Totals,
    settings: BTreeSet<(String, String, i64)>,
    /// Names of processes, as the last output showed them.
    names: BTreeMap<i64, String>,
    reported: usize,
}

impl Out {
    /// Adds a note, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.insert(text.into());
    }

    /// Adds a value at an instant.
    pub(super) fn gauge(&mut self, at: i64, source: &str, metric: &str, labels: Labels, value: f64) {
        // A product of odd numbers may be out of range.
        if !value.is_finite() {
            return;
        }
        let (source, metric) = (source.to_owned(), metric.to_owned());
        self.batch.samples.push(Sample { observed_at: at, window_ns: 0, source, metric, labels, value });
    }

    /// Adds a value of the host.
    pub(super) fn host(&mut self, at: i64, metric: Metric, labels: Labels, value: f64) {
        self.gauge(at, HOST, metric.name, labels, value);
    }

    /// Adds growth per second over a report's interval.
    pub(super) fn rate(
        &mut self,
        kind: &'static str,
        report: Report,
        source: &str,
        (metric, labels): (Metric, Labels),
        per_second: f64,
    ) {
        let Report { at, interval_ns, is_since_boot } = report;
        if (0.0..1e18).contains(&per_second) && interval_ns > 0 {
            let rate = Rate { from: at.saturating_sub(interval_ns), to: at, per_second, kind, is_since_boot };
            self.reported += 1;
            self.rates.entry((source.to_owned(), metric.name, labels)).or_default().push(rate);
        }
    }

    /// Adds a reading of a host's counter since boot.
    pub(super) fn total(&mut self, at: i64, metric: Metric, labels: Labels, value: f64) {
        if value.is_finite() && value >= 0.0 {
            self.reported += 1;
            self.totals.entry((HOST.to_owned(), metric.name, labels)).or_default().push((at, value));
        }
    }

    /// Adds shares of CPU time by mode, percent. They become seconds when the number of CPUs is
    /// known.
    pub(super) fn cpu(&mut self, kind: &'static str, report: Report, shares: &[(&str, f64)]) {
        for mode in MODES {
            let of_mode: Vec<f64> = shares.iter().filter(|(name, _)| *name == mode).map(|(_, v)| *v).collect();
            if !of_mode.is_empty() {
                let labels = Labels::new([("cpu_mode", mode)]);
                let share = of_mode.iter().sum::<f64>() / 100.0;
                self.rate(kind, report, HOST, (metrics::host::CPU_TIME, labels), share);
            }
        }
    }

    /// Adds a setting; an equal one of the same time is left out.
    pub(super) fn setting(&mut self, at: i64, source: &str, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        if self.settings.insert((source.to_owned(), name.clone(), at)) {
            self.batch.settings.push(Setting { observed_at: at, source: source.to_owned(), name, value });
        }
    }

    /// Adds the name of a process, if it is new.
    pub(super) fn name_process(&mut self, at: i64, pid: i64, name: &str) {
        if !name.is_empty() && self.names.get(&pid).is_none_or(|known| known != name) {
            self.names.insert(pid, name.to_owned());
            self.setting(at, &format!("pid:{pid}"), "comm", name);
        }
    }

    /// The name of a process, if an output showed it.
    pub(super) fn name_of(&self, pid: i64) -> Option<String> {
        let named = self.batch.threads.iter().rev().find(|row| row.pid == pid && pid > 0);
        self.names.get(&pid).cloned().or_else(|| named.map(|row| row.process.clone()))
    }

    /// Adds an event of the host.
    pub(super) fn event(&mut self, at: i64, kind: &str, text: String, labels: Labels) {
        self.batch.events.push(Event { observed_at: at, source: HOST.to_owned(), kind: kind.to_owned(), text, labels });
    }

    /// Number of rows and rates so far.
    pub(super) fn count(&self) -> usize {
        self.batch.samples.len()
            + self.batch.sessions.len()
            + self.batch.threads.len()
            + self.batch.settings.len()
            + self.batch.statements.len()
            + self.batch.plans.len()
            + self.batch.events.len()
            + self.reported
    }

    /// Learns the number of CPUs.
    pub(super) fn learn_cpus(&mut self, count: f64) {
        if (1.0..=65_536.0).contains(&count) {
            self.cpus = Some(self.cpus.map_or(count, |known| known.max(count)));
        }
    }

    /// All rows, with rates as counters.
    pub(super) fn finish(mut self) -> (Batch, BTreeSet<String>) {
        let rates = self.take_rates();
        let has_shares = rates.keys().any(|(_, metric, _)| *metric == metrics::host::CPU_TIME.name);
        if self.cpus.is_none() && has_shares {
            self.note(
                "no output shows the number of CPUs; 1 is assumed for CPU seconds, and load is not judged per CPU: \
                 add the output of nproc, or --cpus N",
            );
        }
        let factor = self.cpus.unwrap_or(1.0);
        for ((source, metric, labels), rates) in rates {
            let factor = if metric == metrics::host::CPU_TIME.name { factor } else { 1.0 };
            for (at, value) in counter(rates) {
                self.gauge(at, &source, metric, labels.clone(), value * factor);
            }
        }
        self.put_cpus();
        let is_title = |row: &Session| row.source == TITLES;
        let is_pasted = |row: &Session| row.source.starts_with("postgresql:") && !is_title(row);
        if self.batch.sessions.iter().any(is_pasted) {
            self.batch.sessions.retain(|row| !is_title(row));
        }
        self.batch.samples.sort_by_key(|sample| sample.observed_at);
        (self.batch, self.notes)
    }

    /// The rates that count. A counter's readings and a tool's rates would not make one series, so one of
    /// them counts; and means since boot only where nothing shows an interval.
    fn take_rates(&mut self) -> BTreeMap<(String, &'static str, Labels), Vec<Rate>> {
        let mut rates = std::mem::take(&mut self.rates);
        let totals = std::mem::take(&mut self.totals);
        let of = |(source, metric, _): &(String, &'static str, Labels)| (source.clone(), *metric);
        let repeated: BTreeSet<_> = totals.iter().filter(|(_, all)| all.len() > 1).map(|(key, _)| of(key)).collect();
        let shown: BTreeSet<_> = rates
            .iter()
            .filter(|(_, all)| all.iter().any(|rate| !rate.is_since_boot))
            .map(|(key, _)| of(key))
            .collect();
        let mut means: BTreeMap<(String, &'static str), &'static str> = BTreeMap::new();
        rates.retain(|key, all| {
            let key = of(key);
            let is_better = shown.contains(&key) || repeated.contains(&key);
            let kind = all.first().map_or("", |rate| rate.kind);
            let before = all.len();
            all.retain(|rate| !rate.is_since_boot || !is_better);
            if all.len() < before {
                let left_out = "the first report of each run covers the time since boot; it was left out";
                self.notes.insert(format!("{kind}: {left_out}"));
            }
            if all.first().is_some_and(|rate| rate.is_since_boot) {
                means.insert(key, kind);
            }
            !all.is_empty()
        });
        for ((source, metric), kind) in means {
            let what = "its only report covers the time since boot: means may hide the present";
            self.note(format!("{kind}: {what}; add reports with an interval ({kind} 1 5)"));
            let at = rates.iter().filter(|((of, name, _), _)| *of == source && *name == metric);
            if let Some(at) = at.filter_map(|(_, all)| all.last()).map(|rate| rate.to).max() {
                self.setting(at, &source, format!("since_boot[{metric}]"), kind);
            }
        }
        let is_rated: BTreeSet<_> = rates.keys().map(of).collect();
        for (key, all) in totals.into_iter().filter(|(key, _)| !is_rated.contains(&of(key))) {
            for (at, value) in all {
                self.gauge(at, &key.0, key.1, key.2.clone(), value);
            }
        }
        rates
    }

    /// The number of CPUs at the first and the last instant of the host.
    fn put_cpus(&mut self) {
        let Some(cpus) = self.cpus else { return };
        let of_host = self.batch.samples.iter().filter(|sample| sample.source == HOST).map(|it| it.observed_at);
        let Some((first, last)) = of_host.fold(None, |span: Option<(i64, i64)>, at| {
            Some(span.map_or((at, at), |(first, last)| (first.min(at), last.max(at))))
        }) else {
            return;
        };
        for at in BTreeSet::from([first, last]) {
            self.host(at, metrics::host::CPU_LOGICAL_COUNT, Labels::none(), cpus);
        }
        self.setting(first, HOST, "cpu_logical_count", cpus.to_string());
    }
}

/// The longest time between two reports in which a counter goes on, nanoseconds: a round of outputs
/// pasted one after another takes seconds.
const ROUND_NS: i64 = 30 * 1_000_000_000;

/// A counter that grows by `rates`. Where two tools cover the same time, the one with more reports
/// counts. Between the reports of two rounds it grows by the mean of both rates, so that a rate over
/// several rounds is not thinned by the time in which other tools ran. It stands still in a longer
/// time that no report covers.
fn counter(mut rates: Vec<Rate>) -> Vec<(i64, f64)> {
    let mut reports: BTreeMap<&str, usize> = BTreeMap::new();
    for rate in &rates {
        *reports.entry(rate.kind).or_default() += 1;
    }
    rates.sort_by_key(|rate| (std::cmp::Reverse(reports.get(rate.kind).copied()), rate.kind, rate.to));
    let mut kept: BTreeMap<i64, Rate> = BTreeMap::new();
    for rate in rates {
        let before = kept.range(..rate.to).next_back();
        if before.is_none_or(|(_, earlier)| earlier.to <= rate.from) {
            kept.insert(rate.from, rate);
        }
    }
    let (mut value, mut points) = (0.0, Vec::new());
    let mut before: Option<(i64, f64)> = None;
    for rate in kept.into_values() {
        let gap = before.map(|(to, per_second)| (rate.from.saturating_sub(to), per_second));
        if let Some((gap_ns, per_second)) = gap.filter(|(gap_ns, _)| *gap_ns <= ROUND_NS) {
            value += f64::midpoint(per_second, rate.per_second) * gap_ns as f64 / 1e9;
        }
        before = Some((rate.to, rate.per_second));
        if points.last().is_none_or(|(at, _)| *at < rate.from) {
            points.push((rate.from, value));
        }
        value += rate.per_second * rate.to.saturating_sub(rate.from) as f64 / 1e9;
        points.push((rate.to, value));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn rate(kind: &'static str, from: i64, to: i64, per_second: f64) -> Rate {
        Rate { from: from * S, to: to * S, per_second, kind, is_since_boot: false }
    }

    #[test]
    fn rates_become_one_counter() {
        let rates = vec![
            rate("a", 0, 5, 2.0),
            rate("b", 3, 6, 9.0),
            rate("b", 7, 12, 9.0),
            rate("a", 5, 10, 4.0),
            rate("a", 20, 21, 1.0),
            rate("a", 60, 61, 1.0),
        ];
        let points = [
            (0, 0.0),
            (5 * S, 10.0),
            (10 * S, 30.0),
            // Ten seconds at the mean of 4 and 1; a pause of 39 s is another paste.
            (20 * S, 55.0),
            (21 * S, 56.0),
            (60 * S, 56.0),
            (61 * S, 57.0),
        ];
        assert_eq!(counter(rates), points);
    }

    #[test]
    fn shares_wait_for_the_number_of_cpus() {
        let mut out = Out::default();
        out.cpu(
            "top",
            Report { at: 10 * S, interval_ns: 2 * S, is_since_boot: false },
            &[("user", 25.0), ("idle", 75.0)],
        );
        out.learn_cpus(4.0);
        let (batch, notes) = out.finish();
        assert!(notes.is_empty());
        let user: Vec<(i64, f64)> = batch
            .samples
            .iter()
            .filter(|sample| sample.labels.get("cpu_mode") == Some("user"))
            .map(|sample| (sample.observed_at, sample.value))
            .collect();
        assert_eq!(user, [(8 * S, 0.0), (10 * S, 2.0)]);
    }
}
