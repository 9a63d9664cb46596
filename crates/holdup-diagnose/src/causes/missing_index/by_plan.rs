//! The rule on PostgreSQL, from plans and counters of sequential scans: it does not count rows.

use crate::change::Fix;
use holdup_recording::plan::Node;

use super::conditions::columns;
use super::scan::{SEQUENTIAL, Scan};
use super::{EXAMINED_PER_USED, INDEX_COST, ROSE, ROW_MS, ROWS, time_taken};
use crate::case::{Band, Case, Change};
use crate::causes::parts::identifier;
use crate::causes::{CauseFinding, Outcome, Role, percent, thousands};
use crate::resources::{is_felt, statements};
use crate::strength::{FAIR, NONE, STRONG};
use holdup_signals::database::plans::{PLANS, Shape, shapes};
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing, View};

/// Share (0-1) of the statements' time for which plans must be known before they can clear.
const KNOWN: f64 = 0.5;

/// Judges PostgreSQL's statements.
pub(super) fn judge(case: &Case<'_>, executed: &[&DigestUse], completed: f64) -> Result<Outcome, Missing> {
    let view = case.slow();
    let plans = match view.plans() {
        Ok(plans) => plans,
        Err(missing) => return without_plans(&view, completed).ok_or(missing),
    };
    let (mut known, mut all) = (0.0, 0.0);
    let mut nearest: Option<(&DigestUse, Shape<'_>, Scan)> = None;
    for of in executed {
        all += of.seconds;
        let by_kind = shapes(&plans, of);
        // An executed plan knows more than one that was only planned.
        let Some(shape) = ["auto_explain", "analyze", "explain"].iter().find_map(|kind| by_kind.get(kind)?.first())
        else {
            continue;
        };
        if Scan::is_one_unknown(&view, &shape.tree) {
            continue;
        }
        known += of.seconds;
        let Some(scan) = Scan::worst(&view, &shape.tree) else { continue };
        let in_vain = scan.examined >= ROWS && scan.examined >= EXAMINED_PER_USED * scan.kept.max(1.0);
        if in_vain && statements::is_of_requests(case, &view, of, completed) {
            return Ok(told(case, &view, of, shape, &scan, completed));
        }
        if nearest.as_ref().is_none_or(|(_, _, other)| other.examined < scan.examined) {
            nearest = Some((of, shape.clone(), scan));
        }
    }
    if known < KNOWN * all {
        let what = format!("plans of the statements (known: {} of their time)", percent(known / all.max(1e-9)));
        return without_plans(&view, completed).ok_or(Missing::new(what, PLANS));
    }
    let evidence = match &nearest {
        Some((of, shape, scan)) => {
            let text = format!(
                "the largest reader of whole tables is {}: {} rows per call, of which it keeps {}: {}",
                scan.node.name(),
                thousands(scan.examined),
                thousands(scan.kept),
                of.text
            );
            view.plan_evidence(shape, format!("{} rows per call", thousands(scan.examined)), "", text)
        }
        None => {
            let plan = plans.iter().find_map(|plan| {
                let tree = Node::from_json(&plan.plan)?;
                Some(Shape { count: 1, plan, tree })
            });
            let Some(shape) = plan else { return Err(Missing::new("plans of the statements", PLANS)) };
            let text = format!(
                "none of the {} plans, which cover {} of the statements' time, reads a whole table to discard rows",
                plans.len(),
                percent(known / all.max(1e-9))
            );
            view.plan_evidence(&shape, "no Seq Scan with a filter", "", text)
        }
    };
    Ok(Outcome::Cleared(vec![evidence]))
}

/// If sequential scans read hardly anything, no index is missing, whatever the plans.
fn without_plans(view: &View<'_>, completed: f64) -> Option<Outcome> {
    let read = view.counter(SEQUENTIAL, &[], PLANS).ok()?;
    let each = read.delta / completed;
    let text = format!("sequential scans of all tables together read {} rows per request", thousands(each));
    let told = read.evidence(format!("{} rows per request", thousands(each)), "", text);
    (each < ROWS).then(|| Outcome::Cleared(vec![told]))
}

fn told(case: &Case<'_>, view: &View<'_>, of: &DigestUse, shape: &Shape<'_>, scan: &Scan, completed: f64) -> Outcome {
    let explains_ms = (of.seconds * 1e3).min(of.calls * scan.examined * ROW_MS) / completed;
    let text = format!(
        "{} reads {} rows per call ({}) and keeps {} of them: {}",
        scan.node.name(),
        thousands(scan.examined),
        scan.known,
        thousands(scan.kept),
        of.text
    );
    let mut evidence = vec![
        view.plan_evidence(
            shape,
            format!("{} rows per call", thousands(scan.examined)),
            "about as many as it keeps",
            text,
        ),
        time_taken(view, of, completed, explains_ms),
    ];
    if !is_felt(case, explains_ms).unwrap_or(true) {
        return Outcome::Cleared(evidence);
    }
    let mut weights = vec![STRONG, FAIR];
    if let Some((change, told)) = against_baseline(case, of, scan, completed) {
        evidence.push(told);
        if change.stayed(ROSE) {
            return Outcome::Cleared(evidence);
        }
        weights.push(if change.rose(ROSE) { STRONG } else { NONE });
    }
    Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: fixes(of, scan),
        prove: format!(
            "Run the same scenario again: hardly any of the {} rows read per call are left, and seq_tup_read of the table does not grow.",
            thousands(scan.examined)
        ),
        role: Role::Root,
    })
}

/// Growth of the table's rows read per request since the baseline window, if known there.
fn against_baseline(case: &Case<'_>, of: &DigestUse, scan: &Scan, completed: f64) -> Option<(Change, Evidence)> {
    let baseline = case.baseline()?;
    let before = baseline.executed(super::COLUMNS).ok()?;
    let served = case.completed_in(baseline.window).ok().filter(|served| *served > 0.0)?;
    let then = before.iter().find(|then| then.digest == of.digest && then.source == of.source)?;
    let plans = baseline.plans().ok()?;
    let by_kind = shapes(&plans, then);
    let shape = by_kind.values().filter_map(|shapes| shapes.first()).max_by_key(|shape| shape.count)?;
    let read = Scan::worst(&baseline, &shape.tree).filter(|then| then.node.relation == scan.node.relation);
    let (was, is) =
        (read.map_or(0.0, |read| read.examined * then.calls / served), scan.examined * of.calls / completed);
    let text = format!("it read {} rows per request, against {} in the baseline window", thousands(is), thousands(was));
    let told = baseline.plan_evidence(shape, format!("{} a request", thousands(is)), thousands(was), text);
    Some((Band::of_count(is, of.calls).since(Band::of_count(was.max(1.0), then.calls)), told))
}

pub(super) fn fixes(of: &DigestUse, scan: &Scan) -> Vec<Fix> {
    let name = scan.node.relation.clone().unwrap_or_default();
    let quoted = |name: &str| identifier::quoted(name, '"');
    let schema = scan.node.schema.as_ref().map_or_else(String::new, |schema| format!("{}.", quoted(schema)));
    let table = format!("{schema}{}", quoted(&name));
    let of_filter = columns(&format!("x WHERE {}", scan.node.filter.as_deref().unwrap_or_default()));
    let list = if of_filter.is_empty() { columns(&of.text) } else { of_filter };
    let mut fixes = vec![Fix {
        text: format!("See how many rows of {table} its filter discards. Replace each ? by a value."),
        command: Some(format!("EXPLAIN (ANALYZE, BUFFERS) {};", of.text.trim_end_matches(';'))),
        keep: None,
        risk: Some("It executes the statement.".to_owned()),
    }];
    if !list.is_empty() {
        fixes.push(Fix {
            text: format!("Add an index on the compared columns: {}.", list.join(", ")),
            command: Some(format!(
                "CREATE INDEX CONCURRENTLY ON {table} ({});",
                list.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
            )),
            keep: None,
            risk: Some(format!("Reads the whole table twice. {INDEX_COST}")),
        });
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use super::*;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_recording::rows::Plan;

    const TEXT: &str = "SELECT note FROM orders WHERE customer = ?";
    const SOURCE: &str = "postgresql://db:5432";
    const TABLE: [(&str, &str); 1] = [("table", "public.orders")];

    fn plan(kind: &str, actual: Option<(f64, f64)>) -> Plan {
        let tree = Node {
            kind: kind.to_owned(),
            relation: Some("orders".to_owned()),
            schema: Some("public".to_owned()),
            filter: Some("(customer = ?)".to_owned()),
            rows_estimated: Some(5.0),
            rows_actual: actual.map(|(came, _)| came),
            rows_removed: actual.map(|(_, removed)| removed),
            ..Node::default()
        };
        Plan {
            observed_at: 6_000_000_000,
            source: SOURCE.to_owned(),
            kind: "explain".to_owned(),
            digest: TEXT.to_owned(),
            digest_text: TEXT.to_owned(),
            shape: tree.structure(),
            plan: tree.to_json(),
            ..Plan::default()
        }
    }

    /// 50 requests of 400 ms a second, each with the statement, 350 ms of it; the table has 200,000 rows.
    fn server(plans: Vec<Plan>) -> SyntheticRecording {
        SyntheticRecording::new(12)
            .requests(50, 400)
            .digest(TEXT, |s| (50 * s, 50 * 350 * s, 0, 50 * 5 * s, 0))
            .gauge(SOURCE, "postgresql_table_rows", &TABLE, 200_000.0)
            .tables(|tables| {
                tables.statements.rows.iter_mut().for_each(|row| row.source = SOURCE.to_owned());
                tables.plans.present = true;
                tables.plans.rows = plans;
            })
    }

    #[test]
    fn a_scan_that_throws_rows_away_is_named_with_its_index() {
        for made in [
            server(vec![plan("Seq Scan", None)]),
            server(vec![plan("Parallel Seq Scan", Some((5.0, 199_995.0)))]).without("postgresql_table_rows"),
            server(vec![plan("Seq Scan", None)])
                .without("postgresql_table_rows")
                .counter(SOURCE, SEQUENTIAL, &TABLE, 50.0 * 200_000.0)
                .counter(SOURCE, "postgresql_stat_tables_seq_scan", &TABLE, 50.0),
        ] {
            assert!((made.explains(&DEFINITION).unwrap() - 350.0).abs() < 30.0);
            let diagnosis = made.diagnose();
            assert_eq!(diagnosis.culprit, Some(Cause::MissingIndex));
            let index = diagnosis.findings[0].fixes[1].command.as_deref().unwrap();
            assert_eq!(index, "CREATE INDEX CONCURRENTLY ON public.orders (customer);");
        }
    }

    #[test]
    fn a_plan_that_reads_only_needed_rows_clears_it() {
        assert_eq!(server(vec![plan("Index Scan", None)]).explains(&DEFINITION), Some(0.0));
        assert_eq!(
            server(vec![plan("Seq Scan", Some((150_000.0, 50_000.0)))]).explains(&DEFINITION),
            Some(0.0),
            "most are kept"
        );
        assert_eq!(server(vec![plan("Seq Scan", Some((1.0, 500.0)))]).explains(&DEFINITION), Some(0.0), "few rows");
        let idle = server(vec![]).counter(SOURCE, SEQUENTIAL, &TABLE, 50.0);
        assert_eq!(idle.explains(&DEFINITION), Some(0.0), "nothing is read by scans");
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        assert_eq!(server(vec![]).explains(&DEFINITION), None, "no plans");
        // Scans of a table that two statements share are either's.
        let busy = server(vec![]).counter(SOURCE, SEQUENTIAL, &TABLE, 50.0 * 200_000.0);
        let other = |s: i64| (50 * s, 50 * 360 * s, 0, 50 * 5 * s, 0);
        let shared = busy.clone().digest("SELECT max(id) FROM orders WHERE state = ?", other).tables(|tables| {
            tables.statements.rows.iter_mut().for_each(|row| row.source = SOURCE.to_owned());
        });
        assert_eq!(shared.explains(&DEFINITION), None, "scans, whoever's they are");
        assert!(busy.explains(&DEFINITION).is_some_and(|ms| ms > 300.0), "the only statement on the table");
        let other = Plan { digest: "other".to_owned(), ..plan("Seq Scan", None) };
        assert_eq!(server(vec![other]).explains(&DEFINITION), None);
        let unknown = server(vec![plan("Seq Scan", None)]).without("postgresql_table_rows");
        assert_eq!(unknown.explains(&DEFINITION), None, "how large the table is");
    }
}
