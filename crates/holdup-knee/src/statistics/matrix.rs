//! Small dense matrices.

use super::solve;

/// The inverse, times a factor; its diagonal is raised a little, so that a parameter without
/// information becomes uncertain instead of an error.
pub(crate) fn inverse<const P: usize>(matrix: &[[f64; P]; P], times: f64) -> Option<[[f64; P]; P]> {
    let mut damped = *matrix;
    for (index, row) in damped.iter_mut().enumerate() {
        row[index] += 1e-6;
    }
    let mut inverse = [[0.0; P]; P];
    for column in 0..P {
        let mut unit = [0.0; P];
        unit[column] = 1.0;
        let solved = solve(damped, unit)?;
        for row in 0..P {
            inverse[row][column] = solved[row] * times;
        }
    }
    Some(inverse)
}

/// The lower triangle whose product with its mirror is the matrix.
pub(crate) fn cholesky<const P: usize>(matrix: &[[f64; P]; P]) -> [[f64; P]; P] {
    let mut factor = [[0.0; P]; P];
    for row in 0..P {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|index| factor[row][index] * factor[column][index]).sum();
            let value = matrix[row][column] - sum;
            factor[row][column] = if row == column { value.max(1e-12).sqrt() } else { value / factor[column][column] };
        }
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_of_an_inverse_times_itself_is_the_inverse() {
        let inverse = inverse(&[[2.0, 0.0], [0.0, 4.0]], 1.0).unwrap();
        assert!((inverse[0][0] - 0.5).abs() < 1e-5 && (inverse[1][1] - 0.25).abs() < 1e-5);
        let factor = cholesky(&[[4.0, 2.0], [2.0, 5.0]]);
        assert_eq!(factor, [[2.0, 0.0], [1.0, 2.0]]);
    }
}
