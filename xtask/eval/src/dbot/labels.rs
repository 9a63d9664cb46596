//! The set's labels, and which causes of the judge are what they say. A label that says "or" is right with either. One that no
//! cause stands for is never right.

/// Labels as the set and its papers write them, and the causes that mean the same. What the set's triggers call
/// `LOCK_CONTENTION` and `VACUUM` it mostly labels as concurrent updates and deletes itself.
const LABELS: &[(&str, &[&str])] = &[
    ("TOO_MANY_INDEXES", &["too_many_indexes"]),
    ("REDUNDANT_INDEX", &["too_many_indexes"]),
    ("REDUNDANT_INDEXES", &["too_many_indexes"]),
    ("MISSING_INDEX", &["missing_index"]),
    ("MISSING_INDEXES", &["missing_index"]),
    ("HIGHLY_DELETES", &["heavy_deletes"]),
    ("HIGHLY_CONCURRENT_DELETES", &["heavy_deletes"]),
    ("VACUUM", &["heavy_deletes"]),
    ("HIGHLY_UPDATES", &["concurrent_updates"]),
    ("HIGHLY_CONCURRENT_UPDATES", &["concurrent_updates"]),
    ("LOCK_CONTENTION", &["row_lock_contention", "concurrent_updates"]),
    ("HIGHLY_INSERTS", &["concurrent_inserts"]),
    ("HIGHLY_CONCURRENT_INSERTS", &["concurrent_inserts"]),
    ("HIGHLY_COMMITS", &["concurrent_commits"]),
    ("HIGHLY_CONCURRENT_COMMITS", &["concurrent_commits"]),
    ("INSERT_LARGE_DATA", &["insert_large_data"]),
    ("FETCH_LARGE_DATA", &["fetch_large_data"]),
    ("CORRELATED_SUBQUERY", &["correlated_subquery"]),
    ("CORRELATED_SUBQUERIES", &["correlated_subquery"]),
    ("POOR_JOIN", &["poor_join"]),
    ("POOR_JOIN_PERFORMANCE", &["poor_join"]),
    ("CPU_CONTENTION", &["cpu_contention"]),
    ("IO_CONTENTION", &["io_contention"]),
    ("I_O_CONTENTION", &["io_contention"]),
];

/// The causes a label stands for; none if it is unknown.
pub fn causes(label: &str) -> Vec<&'static str> {
    let word: String =
        label.trim().chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let known = word.split("_OR_").filter_map(|part| LABELS.iter().find(|(label, _)| *label == part));
    known.flat_map(|(_, causes)| causes.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_stands_for_causes_that_exist() {
        for (label, causes) in LABELS {
            for cause in *causes {
                assert!(
                    crate::dbot::course_judge::causes::ALL.iter().any(|known| known.slug == *cause),
                    "{label}: {cause}"
                );
            }
        }
        let either = causes("highly concurrent commits or highly concurrent inserts");
        assert_eq!(either, ["concurrent_commits", "concurrent_inserts"]);
        assert!(causes("SOMETHING_ELSE").is_empty());
    }
}
