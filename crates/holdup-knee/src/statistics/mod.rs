//! The statistics that the judgement needs: order statistics, straight lines, seeded random
//! numbers, least squares. The caller knows units and meaning.

mod least_squares;
mod matrix;
mod random;
pub(crate) mod scalability;

pub(crate) use least_squares::{Solution, minimise, solve};
pub(crate) use matrix::{cholesky, inverse};
pub(crate) use random::Random;

/// Median; 0 if empty.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Quantile by linear interpolation between order statistics; 0 if empty.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// Arithmetic mean; 0 if empty.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Standard deviation of the sample; 0 with fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    (values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// Median absolute deviation from the median, scaled to the standard deviation of a normal distribution (by 1.4826).
pub(crate) fn robust_deviation(values: &[f64]) -> f64 {
    let centre = median(values);
    1.4826 * median(&values.iter().map(|value| (value - centre).abs()).collect::<Vec<_>>())
}

/// The least squares line through points: slope, and the share of the variance it explains. None with fewer than three.
pub(crate) fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < 3 {
        return None;
    }
    let (x_mean, y_mean) = (
        mean(&points.iter().map(|point| point.0).collect::<Vec<_>>()),
        mean(&points.iter().map(|point| point.1).collect::<Vec<_>>()),
    );
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        xx += (x - x_mean).powi(2);
        xy += (x - x_mean) * (y - y_mean);
        yy += (y - y_mean).powi(2);
    }
    (xx > 0.0).then(|| (xy / xx, if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 }))
}

/// Lower end of Wilson's interval of a share (E. B. Wilson, "Probable inference, the law of succession, and statistical
/// inference", JASA 22, 1927), for `z` standard deviations.
pub(crate) fn share_low(hits: f64, of: f64, z: f64) -> f64 {
    if of <= 0.0 {
        return 0.0;
    }
    let (share, z2) = (hits / of, z * z);
    let centre = share + z2 / (2.0 * of);
    let half = z * (share * (1.0 - share) / of + z2 / (4.0 * of * of)).max(0.0).sqrt();
    ((centre - half) / (1.0 + z2 / of)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics_of_known_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(quantile(&[0.0, 10.0], 0.25), 2.5);
        assert!((robust_deviation(&[1.0, 2.0, 3.0, 4.0, 1000.0]) - 1.4826).abs() < 1e-9);
    }

    #[test]
    fn a_line_is_found_and_no_line_in_two_points() {
        let (slope, explained) = line(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert!((slope - 2.0).abs() < 1e-12 && (explained - 1.0).abs() < 1e-12);
        assert_eq!(line(&[(0.0, 1.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn wilson_of_ten_in_a_hundred() {
        assert!((share_low(10.0, 100.0, 1.96) - 0.0552).abs() < 1e-3);
    }
}
