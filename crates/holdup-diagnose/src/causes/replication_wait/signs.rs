//! Operations that spent their time waiting for other members of the replica set, by the log.

use holdup_recording::words::percent;

use crate::instant::facts::Facts;
use crate::instant::{MOST, SOME, Signs};
use crate::strength::STRONG;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for heavy in &facts.statements.heavy {
        let waited = heavy.in_stages(&["write_concern_wait", "flow_control_wait"]);
        if waited >= MOST && heavy.share * waited >= SOME {
            let why = format!("{} of that waited for other members of the replica set", percent(waited));
            let evidence = heavy.evidence(&facts.view, "duration_ns", percent(waited), &why);
            signs.accounting(STRONG, evidence, heavy.share(waited));
        }
    }
}
