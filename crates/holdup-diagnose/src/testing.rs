//! Judges small synthetic recordings. Never compiled into holdup.

pub(crate) use holdup_signals::testing::*;

use crate::case::Case;
use crate::causes::{Definition, Outcome};
use crate::ledger::ledger;
use crate::verdict::Diagnosis;
use holdup_signals::Missing;

/// The judge's view of a synthetic recording.
pub(crate) trait Judged {
    /// The whole diagnosis, with the likeliest cause as the culprit however unsure it is: small recordings
    /// lack what makes an answer sure.
    fn diagnose(&self) -> Diagnosis;

    fn with<T>(&self, judge: impl FnOnce(&Case<'_>) -> T) -> T;

    /// The outcome of `rule`. Its evidence must resolve.
    fn judge(&self, rule: &Definition) -> Result<Outcome, Missing>;

    /// The share (0-1) of failed requests that `rule` explains; 0 if none; none if it can't judge.
    fn fails(&self, rule: &Definition) -> Option<f64>;

    /// Milliseconds that `rule` explains; 0 if it clears, none if it can't judge.
    fn explains(&self, rule: &Definition) -> Option<f64>;

    /// Milliseconds of `part` in the ledger's row `all`, whose parts must sum to its response time.
    fn part(&self, part: &str) -> f64;
}

impl Judged for SyntheticRecording {
    fn diagnose(&self) -> Diagnosis {
        crate::judge::likeliest(self.recording(), None)
    }

    fn with<T>(&self, judge: impl FnOnce(&Case<'_>) -> T) -> T {
        judge(&Case::new(self.recording(), None))
    }

    fn judge(&self, rule: &Definition) -> Result<Outcome, Missing> {
        let outcome = self.with(|case| rule.cause.judge(case));
        let evidence = match &outcome {
            Ok(Outcome::Found(found) | Outcome::Fails(found, _) | Outcome::Uncounted(found, _)) => &found.evidence[..],
            Ok(Outcome::Cleared(evidence)) => evidence,
            Err(_) => &[],
        };
        for piece in evidence {
            assert!(piece.resolves(self.recording()), "{piece:?} points nowhere");
        }
        outcome
    }

    fn fails(&self, rule: &Definition) -> Option<f64> {
        match self.judge(rule) {
            Ok(Outcome::Fails(_, failed)) => Some(failed),
            Ok(Outcome::Uncounted(..)) => None,
            Ok(_) => Some(0.0),
            Err(_) => None,
        }
    }

    fn explains(&self, rule: &Definition) -> Option<f64> {
        match self.judge(rule) {
            Ok(Outcome::Found(found) | Outcome::Fails(found, _)) => Some(found.explains_ms),
            Ok(Outcome::Uncounted(..)) => None,
            Ok(Outcome::Cleared(_)) => Some(0.0),
            Err(_) => None,
        }
    }

    fn part(&self, part: &str) -> f64 {
        let rows = self.with(ledger);
        // Without the row no comparison holds.
        rows.iter().find(|row| row.band == "all").map_or(f64::NAN, |all| {
            let sum: f64 = all.parts.iter().map(|p| p.ms).sum();
            assert!((sum + all.residual_ms - all.response_ms).abs() < 0.01, "{all:?}");
            all.parts.iter().find(|p| p.part == part).map_or(0.0, |p| p.ms)
        })
    }
}
