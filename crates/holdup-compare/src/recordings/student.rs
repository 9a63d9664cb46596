//! Student's distribution: the uncertainty of a mean of few values, by the incomplete beta function
//! (Abramowitz and Stegun, 26.7.1). Degrees of freedom need not be whole.

use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::erfc;

/// Probability that a value of Student's distribution with `df` degrees of freedom is further from 0 than `t`.
pub(crate) fn two_sided(t: f64, df: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    checked_beta_reg(df / 2.0, 0.5, df / (df + t * t)).map_or(1.0, |chance| chance.clamp(0.0, 1.0))
}

/// The same of the normal distribution, which Student's is with very many degrees of freedom.
pub(crate) fn two_sided_normal(z: f64) -> f64 {
    erfc(z.abs() / std::f64::consts::SQRT_2)
}

/// The value that is exceeded, to either side, with probability `p`.
pub(crate) fn quantile(p: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, df) > p && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, df) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_every_textbook() {
        for (p, df, t) in
            [(0.05, 1.0, 12.706), (0.05, 4.0, 2.776), (0.01, 4.0, 4.604), (0.05, 8.0, 2.306), (0.05, 1e6, 1.960)]
        {
            assert!((quantile(p, df) - t).abs() < 1e-3, "{p} {df}: {}", quantile(p, df));
            assert!((two_sided(t, df) - p).abs() < 1e-4);
        }
        assert_eq!((two_sided(0.0, 3.0), two_sided(f64::INFINITY, 3.0)), (1.0, 0.0));
        assert!((two_sided_normal(-1.959_964) - 0.05).abs() < 1e-6 && two_sided_normal(0.0) == 1.0);
    }
}
