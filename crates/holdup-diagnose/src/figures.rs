//! What Amazon's figures of a database say where they name no cause: how its disk responded.

use crate::case::Case;
use holdup_recording::metrics;
use holdup_signals::view::stretches::within;

/// A delay of the disk: its name, its metric, and the scale and unit in which it is shown.
const SHOWN: [(&str, &str, f64, &str); 4] = [
    ("writes took", metrics::aws::WRITE_LATENCY.name, 1e3, " ms"),
    ("reads took", metrics::aws::READ_LATENCY.name, 1e3, " ms"),
    ("operations in the disk's queue were", metrics::aws::DISK_QUEUE_DEPTH.name, 1.0, ""),
    ("CPU was", metrics::aws::CPU_UTILIZATION_RATIO.name, 100.0, " %"),
];

/// How the disk responded by Amazon's figures, in a sentence; none without such figures.
pub(crate) fn headline(case: &Case<'_>) -> Option<String> {
    let view = case.view(case.whole());
    let amazons = view.index.condensed.series.by_metric.iter().filter(|(metric, _)| metric.starts_with("aws_"));
    let heard = amazons.flat_map(|(_, series)| series).filter(|(_, series)| !within(series, view.window).is_empty());
    let mut instances: Vec<&str> = heard.filter_map(|((_, labels), _)| labels.get("db_instance")).collect();
    instances.sort_unstable();
    instances.dedup();
    let first = instances.first()?;
    let of =
        if instances.len() > 1 { format!("{first}, the first of {}", instances.len()) } else { (*first).to_owned() };
    let facts: Vec<String> = SHOWN
        .iter()
        .filter_map(|(what, metric, factor, unit)| {
            let of = view
                .index
                .series(metric, &[])
                .filter(|((_, labels), _)| labels.get("db_instance") == Some(first) && labels.get("stat").is_none());
            let mut values: Vec<f64> =
                of.flat_map(|(_, series)| within(series, view.window)).map(|(_, value)| value * factor).collect();
            values.sort_by(f64::total_cmp);
            let (median, most) = (values.get(values.len() / 2)?, values.last()?);
            Some(format!("{what} {}{unit} in the median and {}{unit} at most", brief(*median), brief(*most)))
        })
        .collect();
    (!facts.is_empty()).then(|| format!("Amazon's figures of {of}: {}.", facts.join(", ")))
}

/// As many digits as matter.
fn brief(number: f64) -> String {
    if number.abs() < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

#[cfg(test)]
mod tests {
    use holdup_recording::manifest::{Host, Manifest};
    use holdup_recording::rows::Sample;
    use holdup_recording::tables::Tables;
    use holdup_recording::{Labels, Recording};

    use super::headline;
    use crate::case::Case;

    #[test]
    fn amazons_figures_alone_name_no_cause() {
        let mut manifest = Manifest::starting("made", 0, Host::default());
        manifest.ended_at = Some(10_000_000_000);
        let (dir, tables) = (Default::default(), Tables::default());
        let mut recording = Recording { dir, manifest, tables, latencies: Vec::new(), search: None, excerpt: None };
        assert_eq!(headline(&Case::new(&recording, None)), None);
        for (at, value, stat) in [(1, 0.015, None), (2, 0.1, None), (3, 0.02, None), (4, 9.0, Some("Maximum"))] {
            let labels = Labels::new([("db_instance", "orders-db")]);
            recording.tables.samples.rows.push(Sample {
                observed_at: at * 1_000_000_000,
                metric: "aws_write_latency_seconds".to_owned(),
                labels: stat.map_or(labels.clone(), |stat| labels.with("stat", stat)),
                value,
                ..Sample::default()
            });
        }
        let text = headline(&Case::new(&recording, None)).expect("figures");
        assert!(
            text.contains("Amazon's figures of orders-db: writes took 20 ms in the median and 100 ms at most."),
            "{text}"
        );
        // Latencies may stand for what clients waited; how busy a CPU is does not.
        for row in &mut recording.tables.samples.rows {
            "aws_cpu_utilization_ratio".clone_into(&mut row.metric);
        }
        let diagnosis = crate::diagnose(&recording, None);
        assert!(diagnosis.culprit.is_none() && diagnosis.cleared.is_empty(), "{}", diagnosis.headline);
        assert!(diagnosis.headline.contains("CPU was 2.0 % in the median and 10 % at most"), "{}", diagnosis.headline);
    }
}
