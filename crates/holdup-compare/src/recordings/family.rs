//! Corrects for many figures of the same two recordings: of twenty unchanged ones, one differs by
//! chance. Only what remains after that is called better or worse. Headline figures, which decide
//! the whole, use Hochberg's procedure (Y. Hochberg, "A sharper Bonferroni procedure for multiple
//! tests of significance", 1988). It keeps the chance that any of them is called so falsely at 5 %,
//! even if they move together as percentiles do. The others use the procedure of Benjamini and
//! Hochberg (1995), which limits the share of false ones to the same. A figure that is equal in
//! both does not count.

/// Chance of a false alarm.
pub(super) const FALSE_ALARMS: f64 = 0.05;

/// Each of `chances` corrected for the others, in their order: the chance that any result below
/// [`FALSE_ALARMS`] is false is that small.
pub(super) fn hochberg(chances: &[f64]) -> Vec<f64> {
    adjusted(chances, |chance, rank, _| chance * (rank as f64))
}

/// The same for the share of false results.
pub(crate) fn benjamini_hochberg(chances: &[f64]) -> Vec<f64> {
    adjusted(chances, |chance, rank, count| chance * count as f64 / ((count + 1 - rank) as f64))
}

/// `by` gets a chance, its rank from the greatest (1), and their number.
fn adjusted(chances: &[f64], by: impl Fn(f64, usize, usize) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).filter(|i| chances[*i] < 1.0).collect();
    order.sort_by(|a, b| chances[*b].total_cmp(&chances[*a]));
    let mut all = vec![1.0; chances.len()];
    let mut least: f64 = 1.0;
    for (rank, &i) in order.iter().enumerate() {
        least = least.min(by(chances[i], rank + 1, order.len()));
        all[i] = least;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        let near = |a: Vec<f64>, b: [f64; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(
            near(hochberg(&[0.01, 0.04, 0.03, 1.0]), [0.03, 0.04, 0.04, 1.0]),
            "{:?}",
            hochberg(&[0.01, 0.04, 0.03, 1.0])
        );
        assert!(near(benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]), [0.02, 0.04, 0.04, 0.02]));
        assert_eq!(hochberg(&[]), Vec::<f64>::new());
    }
}
