//! The distance between points, for files that do not give it.

/// The greatest number of nanoseconds of which all distances of one series are multiples, so that
/// gaps do not stretch it. `points` are in order of time, one per moment. 0 if there is only one.
pub(super) fn regular(points: &[(i64, f64)]) -> i64 {
    points.windows(2).fold(0, |known, pair| gcd(known, pair[1].0 - pair[0].0))
}

/// The median distance: for moments without a common period.
pub(super) fn usual(points: &[(i64, f64)]) -> i64 {
    let mut distances: Vec<i64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    distances.sort_unstable();
    distances.get(distances.len() / 2).copied().unwrap_or(0)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(moments: &[i64]) -> Vec<(i64, f64)> {
        moments.iter().map(|at| (*at, 0.0)).collect()
    }

    #[test]
    fn gaps_do_not_stretch_it() {
        assert_eq!(regular(&points(&[60, 180, 360, 480])), 60);
        assert_eq!((regular(&points(&[60])), regular(&[])), (0, 0));
        assert_eq!(usual(&points(&[0, 61, 120, 181, 900])), 61);
        assert_eq!(usual(&points(&[7])), 0);
    }
}
