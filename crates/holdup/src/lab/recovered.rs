//! Whether waits that a lab puts into known places are found there again: what response time grew by against a calm variant
//! must stand in the ledger's rows of those places, and in no other. Pure.

use holdup_diagnose::ledger::LedgerRow;

/// Part of the growth by which a row may be off.
const RATIO: f64 = 0.05;

/// So many milliseconds it may be off in any case: what two runs of one load differ by.
const LEAST_MS: f64 = 2.0;

/// What is not as it should be in `rows` against those of the `calm` variant, if the waits are in `places`: one line each.
pub fn strayed(calm: &[LedgerRow], rows: &[LedgerRow], places: &[String]) -> Vec<String> {
    let whole = |rows: &[LedgerRow], name: &str| {
        rows.iter().find(|row| row.operation == name && row.band == "all").cloned().ok_or_else(|| name.to_owned())
    };
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| row.band == "all") {
        match whole(calm, &row.operation) {
            Ok(before) => lines.extend(compare(&before, row, places)),
            Err(name) => lines.push(format!("{name} is not in the calm variant's ledger")),
        }
    }
    if lines.is_empty() && !rows.iter().any(|row| row.band == "all") {
        lines.push("there is no ledger".to_owned());
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
            lines.push(format!("{name} grew by {by:.1} ms, where no wait was put"));
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
        let calm = row(4.0, &[("connection_pool_wait", 0.1), ("database_execution", 2.0)]);
        let pool = ["connection_pool_wait".to_owned()];
        let found = row(55.0, &[("connection_pool_wait", 50.2), ("database_execution", 2.5)]);
        assert_eq!(strayed(&calm, &found, &pool), [""; 0]);
        let nowhere = row(55.0, &[("connection_pool_wait", 0.2), ("database_execution", 2.5)]);
        assert_eq!(strayed(&calm, &nowhere, &pool).len(), 1);
        let elsewhere = row(55.0, &[("connection_pool_wait", 0.2), ("database_execution", 52.5)]);
        assert_eq!(strayed(&calm, &elsewhere, &pool).len(), 2);
        assert_eq!(strayed(&calm, &[], &pool), ["there is no ledger"]);
    }
}
