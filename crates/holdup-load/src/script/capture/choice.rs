//! Which of several occurrences a capture takes.

use std::ops::ControlFlow;

use crate::script::Random;

/// Which of the occurrences to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// Any one, with equal probability.
    Random,
    /// All of them, as a list.
    All,
    /// Their number, also if it is 0.
    Count,
}

/// The choice among the occurrences so far.
pub(super) struct Choice<'r, T> {
    pick: Pick,
    random: &'r mut Random,
    one: Option<T>,
    all: Vec<T>,
    count: u64,
}

/// The final choice.
pub(super) enum Chosen<T> {
    /// There was none.
    Nothing,
    One(T),
    All(Vec<T>),
    Count(u64),
}

impl<'r, T> Choice<'r, T> {
    pub(super) fn new(pick: Pick, random: &'r mut Random) -> Self {
        Self { pick, random, one: None, all: Vec::new(), count: 0 }
    }

    /// Takes the next occurrence; breaks if no further one is needed.
    pub(super) fn offer(&mut self, occurrence: T) -> ControlFlow<()> {
        self.count += 1;
        match self.pick {
            Pick::First => {
                self.one = Some(occurrence);
                return ControlFlow::Break(());
            }
            Pick::Last => self.one = Some(occurrence),
            // The n-th replaces the earlier choice with a probability of 1/n, which makes all
            // equally likely in the end.
            Pick::Random if self.random.below(self.count) == 0 => self.one = Some(occurrence),
            Pick::All => self.all.push(occurrence),
            Pick::Random | Pick::Count => {}
        }
        ControlFlow::Continue(())
    }

    pub(super) fn end(self) -> Chosen<T> {
        match (self.pick, self.one) {
            (Pick::Count, _) => Chosen::Count(self.count),
            (Pick::All, _) if !self.all.is_empty() => Chosen::All(self.all),
            (_, Some(one)) => Chosen::One(one),
            _ => Chosen::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_random_each_is_as_likely_as_another() {
        let mut random = Random::new(1);
        let mut chosen = [0; 4];
        for _ in 0..8_000 {
            let mut choice = Choice::new(Pick::Random, &mut random);
            (0..4).for_each(|index: usize| assert!(choice.offer(index).is_continue()));
            let Chosen::One(index) = choice.end() else { panic!("none") };
            chosen[index] += 1;
        }
        assert!(chosen.iter().all(|n| (1_800..2_200).contains(n)), "{chosen:?}");
    }
}
