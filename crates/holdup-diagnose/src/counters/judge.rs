//! Scores every pattern by itself and ranks them. Patterns share no budget: two causes at once are
//! the two with the highest scores. A judgement keeps each vote with its figures, so that a verdict
//! can print what supports a cause and what clears it.

use crate::cause::Cause;
use crate::trace::Pattern;
use crate::trace::view::{Normal, View};
use crate::trace::votes::{Vote, Votes};
use holdup_signals::time::counters::frame::Rows;
use holdup_signals::time::counters::jitter::Jitter;

/// Score from which a cause is named: half of the weight of everything its mechanism must do.
pub const NAMED: f64 = 0.5;

/// A pattern as it was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The pattern's name.
    pub pattern: &'static str,
    /// The cause that leaves it.
    pub cause: Cause,
    /// From -1 (refuted) to 1 (the whole mechanism was seen); `None` if it could not be judged.
    pub score: Option<f64>,
    /// Every vote with its figures.
    pub votes: Vec<Vote>,
}

impl Suspect {
    /// Judges a pattern of a cause by its account.
    #[must_use]
    pub fn new(pattern: &'static str, cause: Cause, account: Votes, jitter: Jitter) -> Self {
        Self { pattern, cause, score: account.score(jitter, pattern), votes: account.into_votes() }
    }
}

/// All patterns, likeliest first; those that could not be judged last.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The patterns in that order.
    pub suspects: Vec<Suspect>,
}

impl Ranking {
    /// Ranks patterns; equal scores keep their order.
    #[must_use]
    pub fn new(mut suspects: Vec<Suspect>) -> Self {
        suspects.sort_by(|a, b| b.score.unwrap_or(f64::NEG_INFINITY).total_cmp(&a.score.unwrap_or(f64::NEG_INFINITY)));
        Self { suspects }
    }

    /// The named ones: none if no score is high enough.
    pub fn named(&self) -> impl Iterator<Item = &Suspect> {
        self.suspects.iter().filter(|suspect| suspect.score.is_some_and(|score| score >= NAMED))
    }

    /// The likeliest, named or not.
    #[must_use]
    pub fn first(&self) -> Option<&Suspect> {
        self.suspects.first().filter(|suspect| suspect.score.is_some())
    }
}

/// Every pattern and the cause that leaves it, in the order in which a request meets the resource.
#[must_use]
pub fn patterns() -> Vec<(Cause, &'static Pattern)> {
    let of = |cause: Cause| cause.definition().traces.iter().map(move |pattern| (cause, pattern));
    Cause::ALL.iter().copied().flat_map(of).collect()
}

/// Judges an episode against normal time by every pattern.
#[must_use]
pub fn judge(episode: &Rows, normal: &Normal) -> Ranking {
    judge_by(&patterns(), episode, normal, Jitter::NONE)
}

/// Judges an episode by some patterns, with constants that may be moved.
#[must_use]
pub fn judge_by(patterns: &[(Cause, &Pattern)], episode: &Rows, normal: &Normal, jitter: Jitter) -> Ranking {
    let suspects = patterns.iter().map(|(cause, pattern)| {
        let account = (pattern.account)(&View::new(episode, normal, jitter, pattern.name));
        Suspect::new(pattern.name, *cause, account, jitter)
    });
    Ranking::new(suspects.collect())
}
