//! Many figures of the same two recordings: of twenty that did not change, one differs by chance. What is called better or worse is
//! what remains after that: of the headline figures, which decide the whole, by Hochberg's procedure (Y. Hochberg, "A sharper
//! Bonferroni procedure for multiple tests of significance", 1988), which keeps the chance that any of them is called so for
//! nothing at 5 %, also where they move together as percentiles do; of the others by Benjamini's and Hochberg's (1995), which keeps
//! the share of false ones at that. A figure that is equal in both can't be called anything and does not count.

/// Chance of calling anything better or worse that is not.
pub(super) const FALSE_ALARMS: f64 = 0.05;

/// Each of `chances` as it counts among the others, in their order: all that are called are called with a chance below
/// [`FALSE_ALARMS`] altogether.
pub(super) fn hochberg(chances: &[f64]) -> Vec<f64> {
    adjusted(chances, |chance, rank, _| chance * (rank as f64))
}

/// The same for the share of false ones.
pub(crate) fn benjamini_hochberg(chances: &[f64]) -> Vec<f64> {
    adjusted(chances, |chance, rank, count| chance * count as f64 / ((count + 1 - rank) as f64))
}

/// `by` gets a chance, its rank from the greatest (1), and how many there are.
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
