//! Differences between the answers of the two servers.

use std::collections::BTreeSet;

use serde::Serialize;

use super::pairs::{Answer, Digest, Pair};

/// Numbers of executions that differed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnswerDifferences {
    /// Succeeded on the old server, failed on the new one.
    pub fails: u64,
    /// The new server's error codes of those.
    pub errors: Vec<String>,
    /// Failed on the old server, succeeded on the new one.
    pub succeeds: u64,
    /// A different number of rows, sent or changed.
    pub rows: u64,
    /// The same number of rows with different contents, if they were hashed.
    pub contents: u64,
    /// More warnings.
    pub warnings: u64,
}

impl AnswerDifferences {
    /// Whether an application would notice.
    pub fn matters(&self) -> bool {
        self.fails + self.rows + self.contents > 0
    }
}

/// The differences of a digest; none if there are none.
pub(super) fn differences(digest: &Digest) -> Option<AnswerDifferences> {
    let count = |is_so: &dyn Fn(&Pair) -> bool| digest.all.iter().filter(|pair| is_so(pair)).count() as u64;
    let both = |pair: &Pair| pair.old.is_ok && pair.new.is_ok;
    let sizes = |answer: &Answer| (answer.rows, answer.affected);
    let errors: BTreeSet<String> =
        digest.all.iter().filter(|p| p.old.is_ok && !p.new.is_ok).filter_map(|p| p.new.error.clone()).collect();
    let differs = AnswerDifferences {
        fails: count(&|pair| pair.old.is_ok && !pair.new.is_ok),
        errors: errors.into_iter().collect(),
        succeeds: count(&|pair| !pair.old.is_ok && pair.new.is_ok),
        rows: count(&|pair| both(pair) && sizes(&pair.old) != sizes(&pair.new)),
        contents: count(&|pair| {
            let hashes = pair.old.hash.zip(pair.new.hash);
            both(pair) && sizes(&pair.old) == sizes(&pair.new) && hashes.is_some_and(|(old, new)| old != new)
        }),
        warnings: count(&|pair| both(pair) && pair.new.warnings > pair.old.warnings),
    };
    (differs != AnswerDifferences::default()).then_some(differs)
}
