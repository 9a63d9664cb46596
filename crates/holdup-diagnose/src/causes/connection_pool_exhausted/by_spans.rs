//! From the app's spans of waits for a connection, which do not count connections.

use crate::change::Fix;
use holdup_recording::Labels;
use holdup_signals::app::accounts::Owner;
use holdup_signals::evidence::Evidence;

use super::advice::POOL_RISK;
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role, ms};
use crate::resources::is_too_small;
use crate::strength::STRONG;

/// None if the app does not report such waits.
pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    if !case.recording.tables.spans.rows.iter().any(|s| s.resource == "pool") {
        return None;
    }
    let waited = case.accounts().mean_ms_of_app(Owner::PoolWait)?;
    let text = format!("a request waited {} for a connection of the pool, by the app's spans", ms(waited));
    let labels = Labels::new([("resource", "pool")]);
    let evidence = Evidence::new("spans", "duration_ns", labels, case.slow().window, ms(waited), "near 0 ms", text);
    if is_too_small(case, waited).ok()? {
        return Some(Outcome::Cleared(vec![evidence]));
    }
    Some(Outcome::Found(CauseFinding {
        explains_ms: waited,
        evidence: vec![evidence],
        weights: vec![STRONG],
        fixes: vec![Fix {
            text: "See in single requests why a connection is held; return it earlier, then raise the pool.".to_owned(),
            command: None,
            keep: None,
            risk: Some(POOL_RISK.to_owned()),
        }],
        prove: "Run the same scenario again: the pool wait leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}
