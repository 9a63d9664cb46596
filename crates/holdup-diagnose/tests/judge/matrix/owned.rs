//! How much of the slowest requests' time the ledger gives to somebody.

use holdup_diagnose::verdict::Diagnosis;
use holdup_recording::Recording;

/// The share (0-1) of the slowest hundredth's time that parts of the ledger own; none where there are no such requests. What overlaps is
/// as wrong as what is missing, and calls of a database server of which only the app told lie between several owners.
pub fn owned(diagnosis: &Diagnosis, recording: &Recording) -> Option<f64> {
    let is_database = |source: &str| source.starts_with("mysql") || source.starts_with("postgres");
    let has_server = recording.tables.samples.rows.iter().any(|s| is_database(&s.source));
    let (mut owned, mut all) = (0.0, 0.0);
    for row in diagnosis.ledger.iter().filter(|row| row.band == "p99-100") {
        let one_sided = row.parts.iter().filter(|part| part.part == "database" && has_server).map(|part| part.ms);
        owned += row.requests as f64 * (row.response_ms - row.residual_ms.abs() - one_sided.sum::<f64>());
        all += row.requests as f64 * row.response_ms;
    }
    (all > 0.0).then(|| owned / all)
}
