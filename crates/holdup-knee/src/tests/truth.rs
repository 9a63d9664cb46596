//! The theoretical knee: the rate at which the elasticity of the mean response time is 1.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Arrivals, Length};
use crate::statistics::Random;

/// Erlang's C formula (A. K. Erlang 1917): the share of requests that wait in M/M/c, `load` in workers.
pub(crate) fn erlang_c(workers: usize, load: f64) -> f64 {
    let mut blocked = 1.0;
    for count in 1..=workers {
        blocked = load * blocked / (count as f64 + load * blocked);
    }
    let share = load / workers as f64;
    blocked / (1.0 - share * (1.0 - blocked))
}

/// Knee over capacity. M/M/c is exact; the others use the recursion of J. Kiefer and J. Wolfowitz
/// (1955) with common random numbers.
pub(crate) fn knee_ratio(arrivals: Arrivals, length: Length, workers: usize) -> f64 {
    if (arrivals, length) == (Arrivals::Even, Length::Constant) {
        return 1.0;
    }
    let response = |share: f64| match (arrivals, length) {
        (Arrivals::Poisson, Length::Exponential) => {
            1.0 + erlang_c(workers, share * workers as f64) / (workers as f64 * (1.0 - share))
        }
        _ => simulated(arrivals, length, workers, share),
    };
    let (mut low, mut high) = (0.2, 0.999);
    for _ in 0..14 {
        let middle = 0.5 * (low + high);
        let width = 0.1 * (1.0_f64 - middle).min(0.3);
        let (below, above) = (middle * (1.0 - width), middle * (1.0 + width));
        let elasticity = (response(above) / response(below)).ln() / (above / below).ln();
        if elasticity < 1.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn simulated(arrivals: Arrivals, length: Length, workers: usize, share: f64) -> f64 {
    const REQUESTS: usize = 3_000_000;
    let mut random = Random::new(7);
    let mut free: BinaryHeap<Reverse<u64>> = (0..workers).map(|_| Reverse(0)).collect();
    // Whole 2^-32 of a service time, so that the heap has integers.
    let unit = 2_f64.powi(32);
    let (mut now, mut sum) = (0.0, 0.0);
    for _ in 0..REQUESTS {
        let (a, b) = (random.uniform(), random.uniform());
        now += match arrivals {
            Arrivals::Even => 1.0,
            Arrivals::Poisson => -(1.0 - a).ln(),
        } / (share * workers as f64);
        let work = match length {
            Length::Constant => 1.0,
            Length::Exponential => -(1.0 - b).ln(),
        };
        let Reverse(at) = free.pop().expect("a worker");
        let ends = (at as f64 / unit).max(now) + work;
        free.push(Reverse((ends * unit) as u64));
        sum += ends - now;
    }
    sum / REQUESTS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erlang_c_of_one_worker_is_its_load() {
        assert!((erlang_c(1, 0.7) - 0.7).abs() < 1e-12);
        // Two workers at half load: 2 r^2 / (1 + r) with r = 0.5.
        assert!((erlang_c(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_knee_of_one_exponential_worker_is_half_its_capacity() {
        assert!((knee_ratio(Arrivals::Poisson, Length::Exponential, 1) - 0.5).abs() < 1e-3);
    }

    #[test]
    #[ignore = "prints the constants of the sweeps: minutes in a debug build"]
    fn print_truths() {
        for (arrivals, length) in [
            (Arrivals::Poisson, Length::Constant),
            (Arrivals::Even, Length::Exponential),
            (Arrivals::Poisson, Length::Exponential),
        ] {
            for workers in [1, 2, 4, 8, 16, 32] {
                println!("{arrivals:?} {length:?} {workers} {:.4}", knee_ratio(arrivals, length, workers));
            }
        }
    }
}
