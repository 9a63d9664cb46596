//! The findings as suspects: which of them carries the answer, and which other explains the same
//! time.

use super::LEAST_CONFIDENCE;
use crate::cause::Cause;
use crate::rivals;
use crate::verdict::{Finding, Role, round};

/// The findings, and the one that carries the answer.
pub(super) struct Suspects {
    pub findings: Vec<Finding>,
    /// Which of them.
    root: Option<usize>,
    /// Another cause of the same time.
    pub rival: Option<Finding>,
    /// Says so where the evidence for the rival is as strong: then no name is given.
    pub tied: Option<String>,
}

impl Suspects {
    /// The first of `findings` that can `carry` the answer, less sure if there is a rival. `claims`
    /// are causes that would be roots if another did not explain more.
    pub(super) fn weigh(mut findings: Vec<Finding>, claims: &[Cause], carry: impl Fn(&Finding) -> bool) -> Self {
        let root = findings.iter().position(carry);
        let rival = root.and_then(|i| rivals::find_rival(&findings[i], &findings, claims)).cloned();
        let tied = root.zip(rival.as_ref()).filter(|(i, rival)| rival.confidence >= findings[*i].confidence);
        let tied = tied.map(|(i, rival)| rivals::tied(&findings[i], rival));
        if let (Some(i), Some(rival)) = (root, &rival) {
            let shared = rivals::shared(findings[i].confidence, rival.confidence);
            findings[i].confidence = round(shared.max(LEAST_CONFIDENCE), 2);
        }
        Self { findings, root, rival, tied }
    }

    /// The one that carries the answer.
    pub(super) fn root(&self) -> Option<&Finding> {
        self.root.map(|i| &self.findings[i])
    }

    /// The same, if it may be named.
    pub(super) fn culprit(&self) -> Option<&Finding> {
        self.root().filter(|_| self.tied.is_none())
    }

    /// Where measurements were disturbed, what they say of a cause they say of the disturbance.
    pub(super) fn withdraw(&mut self) {
        self.findings.iter_mut().filter(|f| f.role == Role::Root).for_each(|f| f.role = Role::Contributor);
    }
}
