//! Nonlinear least squares of a few parameters, within bounds: damped Gauss-Newton steps (K. Levenberg 1944, D. Marquardt
//! 1963) with numerical derivatives; a step that leaves the bounds is cut at them.

/// The result.
#[derive(Clone, Debug)]
pub(crate) struct Solution<const P: usize> {
    /// The parameters.
    pub at: [f64; P],
    /// Half the sum of squared residuals there.
    pub cost: f64,
    /// `J^T J` there.
    pub information: [[f64; P]; P],
}

/// Iterations at most. Problems of this crate need 10 to 30.
const ITERATIONS: usize = 60;

/// Minimises half the sum of the squares of `residuals(parameters, out)` from `start` on, within
/// `bounds`.
pub(crate) fn minimise<const P: usize>(
    start: [f64; P],
    bounds: [(f64, f64); P],
    mut residuals: impl FnMut(&[f64; P], &mut Vec<f64>),
) -> Solution<P> {
    let clamp = |mut at: [f64; P]| {
        for (value, (low, high)) in at.iter_mut().zip(bounds) {
            *value = value.clamp(low, high);
        }
        at
    };
    let (mut here, mut there, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = clamp(start);
    residuals(&at, &mut here);
    let mut cost = half_square(&here);
    let mut damping = 1e-3;
    let mut information = [[0.0; P]; P];
    for _ in 0..ITERATIONS {
        let mut columns: [Vec<f64>; P] = std::array::from_fn(|_| Vec::new());
        for (index, column) in columns.iter_mut().enumerate() {
            let mut nudged = at;
            let step = 1e-5 * at[index].abs().max(1e-2);
            // Away from the nearer bound, so that the derivative is taken inside.
            let step = if at[index] + step > bounds[index].1 { -step } else { step };
            nudged[index] += step;
            residuals(&nudged, &mut moved);
            column.extend(moved.iter().zip(&here).map(|(after, before)| (after - before) / step));
        }
        let mut gradient = [0.0; P];
        for row in 0..P {
            gradient[row] = dot(&columns[row], &here);
            for column in 0..P {
                information[row][column] = dot(&columns[row], &columns[column]);
            }
        }
        let mut is_better = false;
        for _ in 0..12 {
            let mut damped = information;
            for (index, row) in damped.iter_mut().enumerate() {
                row[index] += damping * row[index].max(1e-12);
            }
            let Some(step) = solve(damped, gradient) else {
                damping *= 10.0;
                continue;
            };
            let next = clamp(std::array::from_fn(|index| at[index] - step[index]));
            residuals(&next, &mut there);
            let next_cost = half_square(&there);
            if next_cost < cost {
                is_better = cost - next_cost > 1e-10 * cost;
                (at, cost) = (next, next_cost);
                std::mem::swap(&mut here, &mut there);
                damping = (damping * 0.2).max(1e-12);
                break;
            }
            damping *= 5.0;
        }
        if !is_better {
            break;
        }
    }
    Solution { at, cost, information }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

fn half_square(values: &[f64]) -> f64 {
    let sum = 0.5 * dot(values, values);
    if sum.is_finite() { sum } else { f64::MAX }
}

/// Solves `matrix x = right` by Gaussian elimination with pivots. None when it is singular.
pub(crate) fn solve<const P: usize>(mut matrix: [[f64; P]; P], mut right: [f64; P]) -> Option<[f64; P]> {
    for column in 0..P {
        let pivot = (column..P).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-300 || !matrix[pivot][column].is_finite() {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..P {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            for (value, by) in matrix[row].iter_mut().zip(above).skip(column) {
                *value -= factor * by;
            }
            right[row] -= factor * right[column];
        }
    }
    for column in (0..P).rev() {
        right[column] /= matrix[column][column];
        for row in 0..column {
            right[row] -= matrix[row][column] * right[column];
        }
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_minimum_of_rosenbrocks_valley() {
        let solution = minimise([-1.2, 1.0], [(-5.0, 5.0); 2], |at, out| {
            out.clear();
            out.extend([10.0 * (at[1] - at[0] * at[0]), 1.0 - at[0]]);
        });
        assert!((solution.at[0] - 1.0).abs() < 1e-4 && (solution.at[1] - 1.0).abs() < 1e-4, "{solution:?}");
    }

    #[test]
    fn stays_within_bounds() {
        let solution = minimise([3.0], [(0.5, 9.0)], |at, out| {
            out.clear();
            out.push(at[0]);
        });
        assert_eq!(solution.at, [0.5]);
    }

    #[test]
    fn a_singular_system_has_no_solution() {
        assert_eq!(solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]), None);
        assert_eq!(solve([[0.0, 2.0], [4.0, 0.0]], [2.0, 8.0]), Some([2.0, 1.0]));
    }
}
