//! Figures over rounds: medians with their range, and ratios that are taken within a round before anything is summed
//! up, so that a slow minute of the machine is on both sides of them.

use crate::results::{Results, Run};

/// A figure over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Least.
    pub least: f64,
    /// Greatest.
    pub most: f64,
}

impl Spread {
    /// Of these values; None if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, least, most })
    }

    /// With so many decimals: `7.20 (6.90-8.10)`, or `7.20` of one round.
    pub fn show(&self, decimals: usize) -> String {
        let Self { median, least, most } = *self;
        if least < most {
            format!("{median:.decimals$} ({least:.decimals$}-{most:.decimals$})")
        } else {
            format!("{median:.decimals$}")
        }
    }
}

/// A figure of an entrant over rounds.
pub fn over_rounds(
    results: &Results,
    scenario: &str,
    entrant: &str,
    figure: impl Fn(&Run) -> Option<f64>,
) -> Option<Spread> {
    Spread::of(results.of(scenario, entrant).into_iter().filter_map(figure))
}

/// A figure of an entrant over that of another in the same round.
pub fn ratio(
    results: &Results,
    scenario: &str,
    (entrant, to): (&str, &str),
    figure: impl Fn(&Run) -> Option<f64>,
) -> Option<Spread> {
    let others = results.of(scenario, to);
    let paired = results.of(scenario, entrant).into_iter().filter_map(|run| {
        let other = others.iter().find(|other| other.round == run.round)?;
        Some(figure(run)? / figure(other)?)
    });
    Spread::of(paired)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(entrant: &str, round: u32, cpu_seconds: f64) -> Run {
        let mut run = Run { entrant: entrant.into(), round, user_seconds: cpu_seconds, ..Run::default() };
        run.reported.completed = 1_000_000;
        run
    }

    #[test]
    fn medians() {
        let of = |values: &[f64]| Spread::of(values.iter().copied()).map(|spread| spread.median);
        assert_eq!((of(&[3.0, 1.0, 2.0]), of(&[4.0, 1.0]), of(&[])), (Some(2.0), Some(2.5), None));
        assert_eq!(Spread::of([2.0, 1.0, 9.0]).unwrap().show(1), "2.0 (1.0-9.0)");
        assert_eq!(Spread::of([2.0]).unwrap().show(1), "2.0");
    }

    #[test]
    fn ratios_are_of_a_round() {
        // The second round's machine is ten times slower, and the third lacks the other.
        let runs = vec![run("a", 1, 2.0), run("b", 1, 1.0), run("a", 2, 20.0), run("b", 2, 10.0), run("a", 3, 7.0)];
        let results = Results { runs, ..Results::default() };
        let spread = ratio(&results, "", ("a", "b"), Run::cpu_us).unwrap();
        assert_eq!(spread, Spread { median: 2.0, least: 2.0, most: 2.0 });
        assert_eq!(over_rounds(&results, "", "a", Run::cpu_us).unwrap().most, 20.0);
    }
}
