//! How certain a finding is: the chance that not all of its evidence misleads. Evidence from one
//! source about one mechanism may mislead together: the wait for a pooled connection, the requests
//! that wait and the connections in use are three figures of one pool. So each family counts once,
//! by its strongest piece; families are treated as independent.

use std::collections::BTreeMap;

use crate::causes::CauseFinding;
use crate::strength::CERTAIN;
use holdup_signals::evidence::Evidence;

/// Families of names: one of these plus the next two words is one mechanism.
const NAMESPACES: [&str; 8] = [
    "mongodb_server_status_wired_tiger_",
    "mongodb_server_status_",
    "mysql_global_status_innodb_",
    "mysql_global_status_",
    "postgresql_statio_",
    "postgresql_stat_",
    "holdup_load_",
    "aws_",
];

/// Words of a metric's name after its namespace that tell mechanisms apart: `system_disk`,
/// `db_client`, `row_lock`.
const WORDS: usize = 2;

/// The chance (0-1) that not all of the evidence of `found` misleads. The weights match its first
/// pieces in order.
pub(crate) fn combine(found: &CauseFinding) -> f64 {
    let mut strongest: BTreeMap<String, f64> = BTreeMap::new();
    for (i, weight) in found.weights.iter().map(|strength| strength.chance()).enumerate() {
        // A weight without a piece belongs to something that no row shows, and forms its own
        // family.
        let family = found.evidence.get(i).map_or_else(|| format!("weight {i}"), family);
        let of = strongest.entry(family).or_insert(0.0);
        *of = of.max(weight);
    }
    1.0 - strongest.values().map(|weight| 1.0 - weight).product::<f64>()
}

/// Whether spans of single requests assign the time of `found`: no other cause is in that time.
pub(crate) fn is_accounted(found: &CauseFinding) -> bool {
    let pieces = found.evidence.iter().zip(&found.weights);
    pieces.into_iter().any(|(piece, weight)| piece.table == "spans" && *weight >= CERTAIN)
}

/// Confidence (0-1) from which the product of the evidence promises more than verdicts keep.
const SHOWN: f64 = 0.8;

/// `confidence` as far as verdicts on drawn faults bear it out (`docs/verdict.md`). Of culprits named with 0.5
/// to 0.7, and with 0.7 to 0.9, at least that share was right. Of 18 above 0.9, with 0.93 on average,
/// 83 % were: pieces of evidence that seem independent may have a cause in common that no rule
/// knows. So what exceeds [`SHOWN`] counts half. The order of suspects stays.
pub(crate) fn calibrated(confidence: f64) -> f64 {
    confidence.min(SHOWN + (confidence - SHOWN) / 2.0)
}

/// Source and mechanism of a piece of evidence.
fn family(piece: &Evidence) -> String {
    let Some(metric) = piece.labels.get("metric").filter(|_| piece.table == "samples") else {
        return piece.table.clone();
    };
    let (space, name) =
        NAMESPACES.iter().find_map(|space| Some((*space, metric.strip_prefix(space)?))).unwrap_or(("", metric));
    let words: Vec<&str> = name.split('_').take(WORDS).collect();
    format!("{space}{}", words.join("_"))
}

#[cfg(test)]
mod tests {
    use holdup_recording::Labels;

    use super::*;
    use crate::causes::Role;
    use crate::strength::{FAIR, STRONG, Strength, WEAK};
    use holdup_signals::Window;

    fn found(pieces: &[(&str, &str, Strength)]) -> CauseFinding {
        let window = Window { from: 0, to: 1 };
        let piece = |(table, metric, _): &(&str, &str, Strength)| {
            let labels = if metric.is_empty() { Labels::none() } else { Labels::new([("metric", *metric)]) };
            Evidence::new(table, "value", labels, window, "", "", "")
        };
        CauseFinding {
            explains_ms: 1.0,
            evidence: pieces.iter().map(piece).collect(),
            weights: pieces.iter().map(|(.., weight)| *weight).collect(),
            fixes: Vec::new(),
            prove: String::new(),
            role: Role::Root,
        }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a}, not {b}");
    }

    #[test]
    fn confidence_above_the_calibrated_range_counts_half() {
        close(calibrated(0.55), 0.55);
        close(calibrated(0.93), 0.865);
        close(calibrated(-0.2), -0.2);
        assert!(calibrated(1.0) <= 0.9 + 1e-9);
    }

    #[test]
    fn one_family_of_evidence_counts_once() {
        let wait = ("samples", "db_client_connection_wait_time_seconds_sum", STRONG);
        let used = ("samples", "db_client_connection_count", FAIR);
        close(combine(&found(&[wait, used])), 0.75);
        // Another's account of it, or another mechanism, is more.
        close(combine(&found(&[wait, used, ("sessions", "", FAIR)])), 1.0 - 0.25 * 0.45);
        let disk = ("samples", "system_disk_in_flight", FAIR);
        let cpu = ("samples", "system_cpu_time_seconds_total", FAIR);
        close(combine(&found(&[disk, cpu])), 1.0 - 0.45 * 0.45);
        let of_locks = ("samples", "mysql_global_status_innodb_row_lock_time", FAIR);
        close(combine(&found(&[of_locks, ("samples", "mysql_global_status_innodb_row_lock_waits", WEAK)])), 0.55);
        close(combine(&found(&[of_locks, ("samples", "mysql_global_status_threads_running", WEAK)])), 1.0 - 0.45 * 0.7);
        close(combine(&found(&[])), 0.0);
    }
}
