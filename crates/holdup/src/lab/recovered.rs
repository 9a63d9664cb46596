//! Checks whether the delays that a lab inserts are recovered: the growth of response time over the
//! baseline variant must appear in the ledger's rows of those places, and nowhere else. Pure.

use holdup_diagnose::ledger::LedgerRow;

/// Tolerance of a row, as a share of the growth.
const RATIO: f64 = 0.05;

/// Minimum tolerance in milliseconds: two runs of one load differ by this much.
const LEAST_MS: f64 = 2.0;

/// Describes each row of `rows` that deviates from the expectation: growth over the `baseline` variant
/// only in `places`.
pub fn strayed(baseline: &[LedgerRow], rows: &[LedgerRow], places: &[String]) -> Vec<String> {
    let whole = |rows: &[LedgerRow], name: &str| {
        rows.iter().find(|row| row.operation == name && row.band == "all").cloned().ok_or_else(|| name.to_owned())
    };
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| row.band == "all") {
        match whole(baseline, &row.operation) {
            Ok(before) => lines.extend(compare(&before, row, places)),
            Err(name) => lines.push(format!("{name} is not in the baseline variant's ledger")),
        }
    }
    if lines.is_empty() && !rows.iter().any(|row| row.band == "all") {
        lines.push("the ledger is missing".to_owned());
    }
    lines
}

fn compare(before: &LedgerRow, row: &LedgerRow, places: &[String]) -> Vec<String> {
    let grew = row.response_ms - before.response_ms;
    let allowed = LEAST_MS.max(RATIO * grew.abs());
    let part =
        |row: &LedgerRow, name: &str| row.parts.iter().find(|part| part.part == name).map_or(0.0, |part| part.ms);
    let mut found = 0.0;
    let mut lines = Vec::new();
    for name in row.parts.iter().map(|part| part.part.as_str()) {
        let by = part(row, name) - part(before, name);
        if places.iter().any(|place| place == name) {
            found += by;
        } else if by.abs() > allowed {
            lines.push(format!("{name} grew by {by:.1} ms, where no delay was inserted"));
        }
    }
    if (found - grew).abs() > allowed {
        lines.push(format!("{} grew by {found:.1} ms, response time by {grew:.1} ms", places.join(" + ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use holdup_diagnose::ledger::Part;

    use super::*;

    fn row(response_ms: f64, parts: &[(&str, f64)]) -> Vec<LedgerRow> {
        let parts: Vec<Part> =
            parts.iter().map(|(part, ms)| Part { part: (*part).to_owned(), ms: *ms, error_ms: 0.0 }).collect();
        let residual_ms = response_ms - parts.iter().map(|part| part.ms).sum::<f64>();
        let (operation, band) = ("get".to_owned(), "all".to_owned());
        vec![LedgerRow { operation, band, requests: 10, response_ms, parts, residual_ms }]
    }

    #[test]
    fn growth_in_its_place_and_elsewhere() {
        let baseline = row(4.0, &[("connection_pool_wait", 0.1), ("database_execution", 2.0)]);
        let pool = ["connection_pool_wait".to_owned()];
        let found = row(55.0, &[("connection_pool_wait", 50.2), ("database_execution", 2.5)]);
        assert_eq!(strayed(&baseline, &found, &pool), [""; 0]);
        let nowhere = row(55.0, &[("connection_pool_wait", 0.2), ("database_execution", 2.5)]);
        assert_eq!(strayed(&baseline, &nowhere, &pool).len(), 1);
        let elsewhere = row(55.0, &[("connection_pool_wait", 0.2), ("database_execution", 52.5)]);
        assert_eq!(strayed(&baseline, &elsewhere, &pool).len(), 2);
        assert_eq!(strayed(&baseline, &[], &pool), ["the ledger is missing"]);
    }
}
