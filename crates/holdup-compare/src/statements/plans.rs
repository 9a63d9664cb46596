//! Whether a statement's plan differs on the new server, if both recordings have plans of it.

use std::collections::BTreeMap;

use holdup_recording::Recording;
use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;
use serde::Serialize;

/// Plans of a statement on both servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plans {
    /// Whether they share no shape: a server may use several for one statement, depending on its
    /// values.
    pub is_other: bool,
    /// The most frequent one on the old server: kinds of nodes, tables, indexes; no figures and no
    /// values.
    pub old: String,
    /// The same on the new server.
    pub new: String,
}

/// Plans of a statement by shape, with their counts.
type Shapes<'a> = BTreeMap<&'a str, (usize, &'a Plan)>;

/// Plans of `digest`; none if one of the servers has none of the same kind.
pub(super) fn compare_plans(digest: &str, old: &[Recording], new: &[Recording]) -> Option<Plans> {
    let (old, new) = (by_kind(digest, old), by_kind(digest, new));
    // Executed and merely explained plans may differ for that reason alone, so kinds are compared
    // separately.
    let mut of_both = old.iter().filter_map(|(kind, was)| Some((was, new.get(kind)?)));
    let (was, is) = of_both.next()?;
    let is_other = |(was, is): (&Shapes<'_>, &Shapes<'_>)| !was.keys().any(|shape| is.contains_key(shape));
    Some(Plans { is_other: is_other((was, is)) && of_both.all(is_other), old: most_usual(was), new: most_usual(is) })
}

fn by_kind<'a>(digest: &str, recordings: &'a [Recording]) -> BTreeMap<&'a str, Shapes<'a>> {
    let mut kinds: BTreeMap<&str, Shapes<'_>> = BTreeMap::new();
    let plans = recordings.iter().flat_map(|recording| &recording.tables.plans.rows);
    for plan in plans.filter(|plan| plan.digest == digest) {
        let seen = kinds.entry(&plan.kind).or_default().entry(&plan.shape).or_insert((0, plan));
        seen.0 += 1;
    }
    kinds
}

fn most_usual(shapes: &Shapes<'_>) -> String {
    let plan = shapes.values().max_by_key(|(count, _)| *count).map(|(_, plan)| *plan);
    plan.and_then(|plan| Node::from_json(&plan.plan)).map(|tree| tree.structure()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::recorded;
    use super::*;

    fn plans(kinds: &[(&str, &str)]) -> Vec<Recording> {
        let mut recording = recorded(Vec::new());
        for (kind, index) in kinds {
            let index = (!index.is_empty()).then(|| (*index).to_owned());
            let tree = Node { kind: "scan".to_owned(), relation: Some("t".to_owned()), index, ..Node::default() };
            recording.tables.plans.rows.push(Plan {
                digest: "d".to_owned(),
                kind: (*kind).to_owned(),
                shape: tree.structure(),
                plan: tree.to_json(),
                ..Plan::default()
            });
        }
        vec![recording]
    }

    #[test]
    fn plans_of_one_kind_are_held_against_each_other() {
        let old = plans(&[("explain", "a"), ("explain", "b"), ("explain", "b"), ("analyze", "a")]);
        let of = |kinds: &[(&str, &str)]| super::compare_plans("d", &old, &plans(kinds));
        let gone = of(&[("explain", "")]).unwrap();
        assert_eq!((gone.is_other, gone.old.as_str(), gone.new.as_str()), (true, "scan t by b", "scan t"));
        assert!(!of(&[("explain", ""), ("explain", "a")]).unwrap().is_other, "one of them is known");
        assert!(!of(&[("explain", ""), ("analyze", "a")]).unwrap().is_other, "executed it is the same");
        assert_eq!(of(&[("auto_explain", "a")]), None);
        assert_eq!(super::compare_plans("other", &old, &old), None);
    }
}
