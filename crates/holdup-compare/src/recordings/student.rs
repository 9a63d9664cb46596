//! Student's distribution: the uncertainty of a mean of few values. By the incomplete beta
//! function's continued fraction (Abramowitz and Stegun, 26.5.8 and 26.7.1); degrees of freedom
//! need not be whole.

/// Probability that a value of Student's distribution with `df` degrees of freedom is further from 0 than `t`.
pub(crate) fn two_sided(t: f64, df: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    incomplete_beta(df / (df + t * t), df / 2.0, 0.5).clamp(0.0, 1.0)
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

/// The regularized incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |v: f64| if v.abs() < TINY { TINY } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            value *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    value
}

/// Logarithm of the gamma function, by Stirling's series after the argument was raised.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let series = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1260.0;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
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
        assert!(
            (ln_gamma(5.0) - 24.0_f64.ln()).abs() < 1e-9
                && (ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-9
        );
    }
}
