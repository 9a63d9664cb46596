//! What a cloud's figures of a database clear where its host cannot be watched: they are means over
//! a minute or more, and the time to explain is that of the volume. They accuse nothing: a mean
//! shows that something had room, and not who waited for it.

use holdup_recording::words::{bytes, bytes_per_second, percent, thousands};
use holdup_recording::{Labels, metrics};
use holdup_signals::client::latency::Origin;
use holdup_signals::evidence::Evidence;

use crate::case::Case;
use crate::causes::Outcome;

/// CPUs whose mean over a minute is below this share (0-1) leave no thread waiting for long (B.
/// Gregg, Systems Performance, 2nd ed., 2.5.1: 70 %) …
const CPUS_FREE: f64 = 0.7;

/// … unless some minutes are above this one.
const CPUS_FULL: f64 = 0.9;

/// With this share (0-1) of the memory free or easily freed, no allocation waits: the kernel begins
/// to free pages in advance far below it.
const MEMORY_FREE: f64 = 0.05;

/// Growth of the swapped-out memory that is noise, bytes.
const SWAPPED: f64 = 16.0 * 1_048_576.0;

/// Below this share (0-1) of a limit it is not reached, even at moments within a minute.
const CLEAR_OF: f64 = 0.8;

/// Share (0-1) of the periods near the greatest value from which a figure stands at it, …
const STANDS: f64 = 0.5;

/// … and how near (0-1) that is.
const NEAR: f64 = 0.01;

/// A figure of one instance in the episode.
struct Figure {
    metric: &'static str,
    instance: String,
    values: Vec<f64>,
    /// Greatest outside of the episode; absent without such a time.
    most_outside: Option<f64>,
}

impl Figure {
    /// The mean over the instance; none unless only a cloud's figures measured response time.
    fn read(case: &Case<'_>, metric: &'static str) -> Option<Self> {
        const LABEL: &str = "db_instance";
        let view = case.slow();
        let instance = view.label_values(metric, LABEL).into_iter().find(|name| !name.is_empty());
        let instance = instance.filter(|_| case.origin == Origin::Volume)?;
        let labels = [(LABEL, instance.as_str())];
        let of_it = view.index.series(metric, &labels);
        let (_, series) = of_it.min_by_key(|((_, labels), _)| labels.iter().count())?;
        let (inside, outside): (Vec<_>, Vec<_>) = series.iter().partition(|(at, _)| view.window.contains(*at));
        let most_outside = outside.into_iter().map(|(_, value)| value).reduce(f64::max);
        let values: Vec<f64> = inside.into_iter().map(|(_, value)| value).collect();
        (!values.is_empty()).then_some(Self { metric, instance, values, most_outside })
    }

    fn most(&self) -> f64 {
        self.values.iter().copied().fold(f64::MIN, f64::max)
    }

    fn least(&self) -> f64 {
        self.values.iter().copied().fold(f64::MAX, f64::min)
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }

    /// Whether it stays at its greatest value, as at a limit.
    fn stands(&self) -> bool {
        let near = self.values.iter().filter(|value| **value >= (1.0 - NEAR) * self.most()).count();
        near as f64 >= STANDS * self.values.len() as f64
    }

    fn evidence(&self, case: &Case<'_>, observed: String, expected: &str, text: String) -> Evidence {
        let labels = Labels::new([("metric", self.metric), ("db_instance", self.instance.as_str())]);
        Evidence::new("samples", "value", labels, case.slow().window, observed, expected, text)
    }
}

/// A number that `describe-db-instances` or `describe-instance-types` gave.
fn described(case: &Case<'_>, name: &str) -> Option<f64> {
    let rows = case.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
    rows.iter().rev().find(|row| row.source == "aws" && row.name == name)?.value.parse().ok()
}

/// Clears a shortage of CPUs.
pub(crate) fn cpus(case: &Case<'_>) -> Option<Outcome> {
    let busy = Figure::read(case, metrics::aws::CPU_UTILIZATION_RATIO.name)?;
    let has_room = busy.mean() < CPUS_FREE && busy.most() < CPUS_FULL;
    has_room.then(|| {
        let (mean, most) = (percent(busy.mean()), percent(busy.most()));
        let text = format!("CPUs were {mean} busy on average and {most} in the busiest period");
        Outcome::Cleared(vec![busy.evidence(case, most, "near 100 %, if CPU were the cause", text)])
    })
}

/// Clears a shortage of memory.
pub(crate) fn memory(case: &Case<'_>) -> Option<Outcome> {
    let free = Figure::read(case, metrics::aws::FREEABLE_MEMORY_BYTES.name)?;
    let swapped = Figure::read(case, metrics::aws::SWAP_USAGE_BYTES.name);
    let all = described(case, "instance.memory_bytes");
    let is_free = all.is_some_and(|all| free.least() >= MEMORY_FREE * all);
    let grew = swapped.as_ref().map(|swapped| swapped.most() - swapped.least());
    let is_clear = match grew {
        Some(grew) => grew <= SWAPPED && (is_free || all.is_none()),
        None => is_free,
    };
    is_clear.then(|| {
        let least = bytes(free.least());
        let of = all.map_or_else(String::new, |all| format!(" of {}", bytes(all)));
        let text = format!("{least}{of} of memory were free or could be freed at any time");
        let mut evidence = vec![free.evidence(case, least, "near nothing, if memory were the cause", text)];
        evidence.extend(swapped.as_ref().zip(grew).map(|(swapped, grew)| {
            let text = format!("no more than {} were swapped out meanwhile", bytes(grew));
            swapped.evidence(case, bytes(grew), "growing, if memory were the cause", text)
        }));
        Outcome::Cleared(evidence)
    })
}

/// Clears a limit of connections: one that is reached is where their number stays.
pub(crate) fn connections(case: &Case<'_>) -> Option<Outcome> {
    let open = Figure::read(case, metrics::aws::DATABASE_CONNECTIONS.name)?;
    let limit = described(case, "max_connections");
    let is_clear = match limit {
        Some(limit) => open.most() < CLEAR_OF * limit,
        None => !open.stands() || open.most_outside.is_some_and(|most| most > (1.0 + NEAR) * open.most()),
    };
    is_clear.then(|| {
        let (least, most) = (thousands(open.least()), thousands(open.most()));
        let text = match limit {
            Some(limit) => format!("at most {most} connections were open, and max_connections is {}", thousands(limit)),
            None => format!("between {least} and {most} connections were open: their number does not stay at a limit"),
        };
        Outcome::Cleared(vec![open.evidence(case, most, "at the limit all the time, if it were the cause", text)])
    })
}

/// Clears the network: its bytes stay below the instance's bandwidth, or were as many at other
/// times.
pub(crate) fn network(case: &Case<'_>) -> Option<Outcome> {
    let limit = described(case, "instance.network_baseline_bytes_per_second");
    let ways = [
        ("received", metrics::aws::NETWORK_RECEIVE_THROUGHPUT_BYTES_PER_SECOND.name),
        ("sent", metrics::aws::NETWORK_TRANSMIT_THROUGHPUT_BYTES_PER_SECOND.name),
    ];
    let mut evidence = Vec::new();
    for (verb, metric) in ways {
        let flow = Figure::read(case, metric)?;
        let most = flow.most();
        let is_usual = flow.most_outside.is_some_and(|outside| most <= (1.0 + NEAR) * outside);
        let why = match limit {
            Some(limit) if most < CLEAR_OF * limit => format!("of {} at all times", bytes_per_second(limit)),
            _ if is_usual => "no more than at other times".to_owned(),
            _ if !flow.stands() => "without staying at a level".to_owned(),
            _ => return None,
        };
        let text = format!("the instance {verb} at most {}, {why}", bytes_per_second(most));
        evidence.push(flow.evidence(case, bytes_per_second(most), "at its limit all the time", text));
    }
    Some(Outcome::Cleared(evidence))
}

/// The space that is left on the volume, for the reader of a finding on it.
pub(crate) fn space(case: &Case<'_>) -> Option<Evidence> {
    let free = Figure::read(case, metrics::aws::FREE_STORAGE_SPACE_BYTES.name)?;
    let least = bytes(free.least());
    let of = described(case, "volume.size_bytes").map_or_else(String::new, |all| format!(" of {}", bytes(all)));
    let text = format!("{least}{of} of storage were free at any time: the volume is not full");
    (free.least() > 0.0).then(|| free.evidence(case, least, "0, if the volume were full", text))
}

#[cfg(test)]
mod tests {
    use crate::cause::Cause;
    use crate::causes::{connection_limit, cpu_saturated, memory_pressure};
    use crate::testing::{Judged as _, SyntheticRecording};

    const LABELS: [(&str, &str); 1] = [("db_instance", "db")];

    /// A volume whose operations take fifty times as long from 60 s on, and a figure of its instance.
    fn volume(metric: &str, of: impl Fn(i64) -> f64) -> SyntheticRecording {
        let mut made = SyntheticRecording::new(120).counted("cw", metric, &LABELS, of);
        for direction in ["read", "write"] {
            made = made.gauge("cw", &format!("aws_{direction}_iops"), &LABELS, 1_000.0).counted(
                "cw",
                &format!("aws_{direction}_latency_seconds"),
                &LABELS,
                |s| if s < 60 { 0.001 } else { 0.05 },
            );
        }
        made
    }

    #[test]
    fn room_clears_and_its_lack_leaves_the_question_open() {
        let cpu = |busy: f64| volume("aws_cpu_utilization_ratio", move |_| busy).explains(&cpu_saturated::DEFINITION);
        assert_eq!((cpu(0.5), cpu(0.95)), (Some(0.0), None));
        let connections =
            |of: fn(i64) -> f64| volume("aws_database_connections", of).explains(&connection_limit::DEFINITION);
        assert_eq!((connections(|s| 300.0 + (s % 40) as f64), connections(|_| 340.0)), (Some(0.0), None));
        let memory = |free: f64| {
            let made =
                volume("aws_freeable_memory_bytes", move |_| free).setting("aws", "instance.memory_bytes", "64e9");
            made.explains(&memory_pressure::DEFINITION)
        };
        assert_eq!((memory(30e9), memory(1e9)), (Some(0.0), None));
        // Without a database's volume to explain, a cloud's figures say nothing of a host.
        let network = Cause::NetworkBandwidth.definition();
        assert_eq!(SyntheticRecording::new(20).requests(100, 50).explains(network), None);
    }
}
