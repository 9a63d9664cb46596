//! One quick statement that runs thousands of times a second and is most of all calls.

use holdup_recording::words::{ms, percent, thousands};

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::instant::statements::cut;
use crate::strength::WEAK;

/// A rate of one statement that a loop makes, calls a second.
const RATE: f64 = 1_000.0;

/// Longer calls do more than look up a row, seconds.
const QUICK_S: f64 = 0.002;

/// Its share (0-1) of all calls.
const NEARLY_ALL: f64 = 0.8;

/// A key-value load looks the same: only a request's own account tells a loop from many requests.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let Some((of, share)) = &facts.statements.most_called else { return };
    let rate = of.calls / facts.view.window.seconds().max(1.0);
    let each_s = of.seconds / of.calls.max(1.0);
    if rate < RATE || each_s > QUICK_S || *share < NEARLY_ALL {
        return;
    }
    let text = format!(
        "one statement ran {} times a second, {} each, {} of all calls: {}",
        thousands(rate),
        ms(each_s * 1e3),
        percent(*share),
        cut(&of.text)
    );
    signs.add(WEAK, facts.view.digest_evidence(of, "calls", format!("{} a second", thousands(rate)), "", text));
}
