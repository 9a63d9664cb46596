//! Which operation, or which kind of session, a request belongs to: by the weights of the phase in
//! which it is due. It is a pure function of the phase and the request's number, which the schedule
//! determines.

use crate::scenario::Scenario;

/// See the module.
pub struct Turns {
    own: Order,
    /// The orders of phases whose mix differs.
    phases: Vec<Option<Order>>,
}

impl Turns {
    /// For the operations of `scenario`, or the flows of its sessions.
    pub fn new(scenario: &Scenario) -> Self {
        let own = match &scenario.sessions {
            Some(s) => {
                let flows = s.script.flows.iter().skip(s.first as usize).take(s.flows as usize);
                Order::new(flows.map(|flow| u64::from(flow.weight)))
            }
            None => Order::new(scenario.operations.iter().map(|operation| u64::from(operation.weight))),
        };
        let phases = scenario.mixes.iter().map(|mix| mix.as_ref().map(|mix| Order::new(mix.iter().copied())));
        Self { own, phases: phases.collect() }
    }

    /// Index of the operation of request `number`, which is due in `phase`.
    #[inline]
    pub fn index(&self, phase: u32, number: u64) -> u32 {
        self.phases.get(phase as usize).and_then(Option::as_ref).unwrap_or(&self.own).index(number)
    }
}

/// The order of operations: by weight, evenly mixed, as a pure function of the request's number, so
/// that every shard and loop agrees. The multiples of the golden ratio, modulo 1, fall into any
/// interval in proportion to its length, and as evenly as possible (H. Weyl 1916); each operation
/// has an interval as long as its weight.
struct Order {
    /// Upper end of each operation's interval, as a fraction of 2^64.
    ends: Vec<u64>,
    /// The last operation that is sent at all.
    last: usize,
}

/// The golden ratio's fraction times 2^64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Order {
    /// For these weights, whose sum is below 2^64.
    fn new(weights: impl Iterator<Item = u64>) -> Self {
        let weights: Vec<u64> = weights.collect();
        let total: u128 = weights.iter().map(|w| u128::from(*w)).sum::<u128>().max(1);
        let mut sum = 0_u128;
        let ends = weights.iter().map(|w| {
            sum += u128::from(*w);
            ((sum << 64) / total).min(u128::from(u64::MAX)) as u64
        });
        let last = weights.iter().rposition(|weight| *weight > 0).unwrap_or(0);
        Self { ends: ends.collect(), last }
    }

    /// Index of the operation of request `number`.
    fn index(&self, number: u64) -> u32 {
        let point = number.wrapping_mul(GOLDEN);
        self.ends.partition_point(|&end| end <= point).min(self.last) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_the_weights_also_in_every_share_of_them() {
        let order = Order::new([5, 1, 1].into_iter());
        for (from, step) in [(0, 1), (0, 2), (1, 2), (3, 5)] {
            let mut counts = [0_i32; 3];
            let mut longest = 0;
            let mut run = 0;
            for k in 0..7_000 {
                let operation = order.index(from + k * step) as usize;
                counts[operation] += 1;
                run = if operation == 0 { run + 1 } else { 0 };
                longest = longest.max(run);
            }
            let off = [5_000, 1_000, 1_000].iter().zip(counts).map(|(want, got)| (want - got).abs()).max();
            assert!(off <= Some(20) && longest < 30, "{counts:?}, {longest} in a row from {from} by {step}");
        }
        assert_eq!(Order::new([3].into_iter()).index(9), 0);
    }
    /// In any stretch of numbers, also of one share, each operation has its part, and one without weight has none.
    #[test]
    fn parts_come_out_wherever_a_phase_begins() {
        let weights = [0, 7_000_000, 1, 0, 2_999_999, 0];
        let order = Order::new(weights.into_iter());
        for (from, step) in [(0, 1), (12_345, 1), (1_000_003, 7), (u64::MAX / 3, 1)] {
            for length in [10_u64, 100, 1_000, 100_000] {
                let mut counts = [0_u64; 6];
                (0..length).for_each(|k| counts[order.index(from + k * step) as usize] += 1);
                for (count, weight) in counts.into_iter().zip(weights) {
                    let expected = length as f64 * weight as f64 / 1e7;
                    assert!(
                        (count as f64 - expected).abs() < 4.0 + (length as f64).ln(),
                        "{counts:?} of {length} from {from}"
                    );
                    assert!(weight > 0 || count == 0, "{counts:?}");
                }
            }
        }
        // The number whose point is the very last goes to an operation that has a weight.
        let inverse = (0..6).fold(1_u64, |x, _| x.wrapping_mul(2_u64.wrapping_sub(GOLDEN.wrapping_mul(x))));
        assert_eq!(order.index(inverse.wrapping_mul(u64::MAX)), 4);
    }

    #[test]
    fn a_phase_has_its_own_mix() {
        let text = "
target: http://h
load:
  phases:
    - {rate: 200, for: 10s}
    - {rate: 200, for: 10s, mix: {search: 1}}
    - {rate: 200, for: 10s, mix: {report: 50/s}}
    - {for: 10s, mix: {report: 5/s, search: 45/s}}
operations: [{name: search, get: /a, weight: 3}, {name: order, get: /b}, {name: report, get: /c, weight: 0}]
";
        let scenario = Scenario::parse(text, "s.yaml").unwrap();
        let crate::model::Load::Open(schedule) = &scenario.load else { panic!("it is open") };
        let turns = Turns::new(&scenario);
        let mut counts = [[0_i64; 3]; 4];
        for arrival in schedule.arrivals(crate::schedule::Share::WHOLE) {
            counts[arrival.phase as usize][turns.index(arrival.phase, arrival.number) as usize] += 1;
        }
        let expected = [[1_500, 500, 0], [1_000, 1_000, 0], [1_500, 500, 500], [450, 0, 50]];
        for (counts, expected) in counts.iter().zip(expected) {
            assert_eq!(counts.iter().sum::<i64>(), expected.iter().sum::<i64>(), "the rate is exact");
            assert!(
                counts.iter().zip(expected).all(|(count, want)| (count - want).abs() <= 8),
                "{counts:?} {expected:?}"
            );
            assert!(
                counts.iter().zip(expected).all(|(count, want)| want > 0 || *count == 0),
                "{counts:?} {expected:?}"
            );
        }
    }
}
