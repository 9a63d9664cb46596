//! Limits of a cloud's volume that the provider itself says are reached: its percentages of them.

use holdup_signals::host::flows::{Flow, FlowSource, SMALL_BYTES};
use holdup_signals::host::limit_shares::{LimitShare, Limited};
use holdup_signals::host::throttle::Unit;

use crate::case::Case;

/// A limit that binds for most of the episode by the provider's percentage.
pub struct Stated {
    /// The percentage.
    pub share: LimitShare,
    /// What is limited.
    pub unit: Unit,
    /// The volume's own rates, if they were recorded.
    pub flow: Option<Flow>,
}

/// The limits of a volume that bind in the episode by their percentages.
pub fn stated(case: &Case<'_>) -> Vec<Stated> {
    let view = case.view(case.whole());
    let binding = view.limit_shares().into_iter().filter(|share| share.binds(case.slow().window));
    let mut binding = binding.filter(|share| share.limited != Limited::Cpu).peekable();
    if binding.peek().is_none() {
        return Vec::new();
    }
    let flows: Vec<Flow> = view.flows().unwrap_or_default();
    let stated = |share: LimitShare| {
        let is_it = |flow: &&Flow| flow.counted == FlowSource::Cloud && flow.name == share.instance;
        let flow = flows.iter().find(is_it).cloned();
        Stated { unit: unit(case, share.limited, flow.as_ref()), share, flow }
    };
    binding.map(stated).collect()
}

/// What is limited. Where the percentage does not say, the size of operations does: large ones reach
/// a limit on bytes first. Without sizes operations are the likelier limit of a database.
fn unit(case: &Case<'_>, limited: Limited, flow: Option<&Flow>) -> Unit {
    let is_large = |flow: &Flow| flow.bytes_each(case.slow().window) > SMALL_BYTES;
    match limited {
        Limited::Bytes | Limited::LogBytes => Unit::Bytes,
        Limited::OperationsOrBytes if flow.is_some_and(is_large) => Unit::Bytes,
        _ => Unit::Operations,
    }
}

impl Stated {
    /// The limit that the percentage gives, per second: the rate divided by its share.
    pub fn level(&self, case: &Case<'_>) -> Option<f64> {
        let slow = case.slow().window;
        let rate = self.flow.as_ref()?.mean(self.unit, slow)?;
        Some(rate / self.share.mean(slow).max(f64::MIN_POSITIVE))
    }
}
