//! Many idle connections while hardly one works.

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::WEAK;

/// The app may hold connections without a statement because it waits for something else.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some((idle, _)) = facts.hidden_idle() {
        let text = format!("{idle:.0} of the app's connections had no statement: it may wait for something else");
        signs.extend(WEAK, facts.idle_sessions(text));
    }
}
