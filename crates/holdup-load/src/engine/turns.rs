//! Which operation the next request is of.

/// Whose turn it is, by weight and evenly mixed: each turn every operation gains its weight, the richest
/// goes and pays the sum (smooth weighted round robin).
pub(super) struct Turns {
    weights: Vec<i64>,
    credit: Vec<i64>,
}

impl Turns {
    pub fn new(weights: impl Iterator<Item = u32>) -> Self {
        let weights: Vec<i64> = weights.map(i64::from).collect();
        Self { credit: vec![0; weights.len()], weights }
    }

    pub fn next(&mut self) -> usize {
        let total: i64 = self.weights.iter().sum();
        let mut best = 0;
        for (i, weight) in self.weights.iter().enumerate() {
            self.credit[i] += weight;
            if self.credit[i] > self.credit[best] {
                best = i;
            }
        }
        self.credit[best] -= total;
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_the_weights() {
        let mut turns = Turns::new([5, 1, 1].into_iter());
        let order: Vec<usize> = (0..14).map(|_| turns.next()).collect();
        assert_eq!(order[..7], [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(order.iter().filter(|&&o| o == 0).count(), 10);
    }
}
