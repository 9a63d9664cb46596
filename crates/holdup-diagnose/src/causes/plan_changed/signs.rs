//! Plans that were executed: a planner that was wrong about the rows of the step that took the time, and the same
//! statement by two plans.

use holdup_recording::plan::Node;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::database::plans::{misestimate, parting};

use crate::instant::facts::Facts;
use crate::instant::plans::{self, BETTER, Executed};
use crate::instant::{SOME, Signs};
use crate::strength::{FAIR, STRONG};

/// Statistics are off by a factor of ten everywhere; by this factor another plan would have been chosen.
const WRONG: f64 = 100.0;

/// Few rows cost little, however wrong the planner was.
const ROWS: f64 = 1_000.0;

/// An execution of this time is felt, milliseconds.
const FELT_MS: f64 = 100.0;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let all = plans::all(&facts.view);
    let slow = all.iter().filter_map(|plan| Some((plan, plan.took_ms().filter(|took| *took >= FELT_MS)?)));
    let Some((worst, worst_ms)) = slow.max_by(|(_, a), (_, b)| a.total_cmp(b)) else { return };
    wrong(facts, worst, signs);
    let same = all.iter().filter(|plan| plan.is_same(worst));
    let others = same.filter_map(|plan| Some((plan, plan.took_ms().filter(|took| *took <= BETTER * worst_ms)?)));
    if let Some((other, other_ms)) = others.min_by(|(_, a), (_, b)| a.total_cmp(b)) {
        let differs =
            parting(&other.tree, &worst.tree).map_or_else(String::new, |parting| format!(": {}", parting.text()));
        let text = format!("one plan took {}, another one {}{differs}", ms(worst_ms), ms(other_ms));
        signs.add(STRONG, worst.evidence(&facts.view, ms(worst_ms), &text));
    }
}

/// Milliseconds of all runs of a step with those below.
fn whole_ms(node: &Node) -> Option<f64> {
    Some(node.time_ms? * node.loops.unwrap_or(1.0).max(1.0))
}

/// A planner that expected few rows and met many, in the step that took most of the time.
fn wrong(facts: &Facts<'_>, plan: &Executed<'_>, signs: &mut Signs) {
    let Some((node, factor)) = misestimate(&plan.tree) else { return };
    let (Some(expected), Some(came)) = (node.rows_estimated, node.rows_actual) else { return };
    let share = whole_ms(node).zip(plan.took_ms()).map_or(0.0, |(own, whole)| (own / whole.max(1e-9)).min(1.0));
    if factor < WRONG || came.max(expected) < ROWS || share < SOME {
        return;
    }
    let text = format!(
        "the planner expected {} rows from {} and met {}: a factor of {}, in the step that took {} of the time",
        thousands(expected),
        node.name(),
        thousands(came),
        thousands(factor),
        percent(share)
    );
    signs.add(FAIR * 0.9, plan.evidence(&facts.view, format!("{} rows", thousands(came)), &text));
}

#[cfg(test)]
mod tests {
    use holdup_recording::plan::Node;
    use holdup_recording::rows::Plan;

    use crate::instant::Signs;
    use crate::instant::facts::Facts;
    use crate::testing::SyntheticRecording;

    fn plan(kind: &str, ms: f64, rows: (f64, f64)) -> Plan {
        let scan = Node {
            kind: kind.to_owned(),
            relation: Some("items".to_owned()),
            rows_estimated: Some(rows.0),
            rows_actual: Some(rows.1),
            loops: Some(1.0),
            time_ms: Some(ms),
            ..Node::default()
        };
        let root = Node { kind: "Sort".to_owned(), time_ms: Some(ms + 1.0), children: vec![scan], ..Node::default() };
        Plan {
            source: "postgresql://pasted".to_owned(),
            duration_ns: Some((ms * 1e6) as i64),
            shape: root.structure(),
            plan: root.to_json(),
            kind: "analyze".to_owned(),
            ..Plan::default()
        }
    }

    fn is_sign(plans: Vec<Plan>) -> bool {
        let made = SyntheticRecording::new(1).tables(|tables| {
            tables.plans.present = true;
            tables.plans.rows = plans;
        });
        made.seen(|view| {
            let mut signs = Signs::default();
            super::find(&Facts::read(*view), &mut signs);
            signs.weigh().is_some()
        })
    }

    #[test]
    fn a_planner_that_is_wrong_where_the_time_goes_is_a_sign() {
        assert!(is_sign(vec![plan("Nested Loop", 21_000.0, (1.0, 9_000.0))]));
        assert!(!is_sign(vec![plan("Nested Loop", 21_000.0, (4_000.0, 9_000.0))]), "as far as statistics are off");
        assert!(!is_sign(vec![plan("Nested Loop", 4.0, (1.0, 9_000.0))]), "quick all the same");
    }

    #[test]
    fn one_statement_by_two_plans_is_a_sign_and_two_statements_are_not() {
        let rows = (100.0, 100.0);
        assert!(is_sign(vec![plan("Index Scan", 9_000.0, rows), plan("Seq Scan", 700.0, rows)]));
        assert!(!is_sign(vec![plan("Index Scan", 900.0, rows), plan("Seq Scan", 700.0, rows)]));
        let other =
            Plan { digest: "b".to_owned(), digest_text: "select 2".to_owned(), ..plan("Seq Scan", 700.0, rows) };
        let one =
            Plan { digest: "a".to_owned(), digest_text: "select 1".to_owned(), ..plan("Index Scan", 9_000.0, rows) };
        assert!(!is_sign(vec![one, other]));
    }
}
