//! Combines several searches of the same thing into one figure.

use super::{Z, spread};
use crate::Estimate;

/// One figure for all `runs` of the same search: the weighted mean of their logarithms. If they
/// differ by more than their intervals allow, the interval is widened by that (R. T. Birge, "The
/// calculation of errors by the method of least squares", Physical Review 40, 1932). None without
/// runs.
pub fn pooled(runs: &[Estimate]) -> Option<Estimate> {
    if let [only] = runs {
        return Some(*only);
    }
    let usable: Vec<(f64, f64)> =
        runs.iter().filter(|run| run.value > 0.0).map(|run| (run.value.ln(), spread(run))).collect();
    let weights: f64 = usable.iter().map(|(_, deviation)| deviation.powi(-2)).sum();
    if usable.is_empty() {
        return None;
    }
    let mean = usable.iter().map(|(value, deviation)| value / deviation.powi(2)).sum::<f64>() / weights;
    let squares: f64 = usable.iter().map(|(value, deviation)| ((value - mean) / deviation).powi(2)).sum();
    let degrees = usable.len() as f64 - 1.0;
    let birge = if degrees > 0.0 { (squares / degrees).sqrt().max(1.0) } else { 1.0 };
    let half = Z * birge / weights.sqrt();
    Some(Estimate { value: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
}
