//! How much a piece of evidence is worth: one of a few grades, in whole or in part. A cause picks a
//! grade; it never makes up a number.

use std::ops::Mul;

/// The chance (0-1) that a piece of evidence, taken alone, would be right about its cause. The
/// grades are judgements and not measured frequencies; [`crate::confidence`] combines them.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Strength(f64);

/// A counter or an event that only this mechanism moves: the server's own queue, a kernel's count
/// of drops, a kill in the log.
pub const CERTAIN: Strength = Strength(0.9);
/// A prediction of this mechanism and few others: a level held while waits grow, threads asleep in
/// that kernel function.
pub const STRONG: Strength = Strength(0.75);
/// Fits this mechanism and some others: more time in a state, a share of the failed requests.
pub const FAIR: Strength = Strength(0.55);
/// Fits many mechanisms, or replaces a better source that is missing.
pub const WEAK: Strength = Strength(0.3);
/// Shown for the reader only; it proves nothing.
pub const NONE: Strength = Strength(0.0);

/// The part (0-1) that is left of a strength if the finding is known to follow from something else:
/// the evidence shows the queue, and not its cause.
pub const AS_SYMPTOM: f64 = 0.3;

/// The part (0-1) that is left of a root's evidence for each cause that may lead to it and could not
/// be judged: the same time would then be that cause's. One in ten is what [`crate::causes::MATTERS`]
/// counts as little.
pub const UNSEEN: f64 = 0.9;

impl Strength {
    /// The chance, 0-1.
    #[must_use]
    pub fn chance(self) -> f64 {
        self.0
    }
}

/// A part (0-1) of a strength: a queue that stood half of the time proves half as much. A factor
/// that is not a number proves nothing.
impl Mul<f64> for Strength {
    type Output = Self;

    fn mul(self, part: f64) -> Self {
        Self(if part.is_nan() { 0.0 } else { self.0 * part.clamp(0.0, 1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_strength_is_never_more_than_it() {
        assert_eq!(STRONG * 1.7, STRONG);
        assert_eq!((STRONG * -1.0, STRONG * f64::NAN), (NONE, NONE));
        assert!(WEAK < FAIR * 0.9 && FAIR < STRONG && STRONG < CERTAIN);
    }
}
