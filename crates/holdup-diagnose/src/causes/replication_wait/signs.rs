//! Sessions at a commit that wait for a replica: MySQL's semi-synchronous, PostgreSQL's synchronous
//! replication. Operations of MongoDB that waited for other members of the replica set, by the log.

use holdup_recording::words::percent;

use crate::instant::facts::Facts;
use crate::instant::{MOST, SOME, Signs};
use crate::strength::{FAIR, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let waits = |_: &str, state: &str| state.starts_with("Waiting for semi-sync ACK") || state.ends_with("SyncRep");
    let what = "waited for a replica to have their changes";
    signs.extend(STRONG, facts.sessions_in(MOST, what, waits));
    signs.extend(FAIR * 0.5, facts.sessions_in(SOME, what, waits));
    for heavy in &facts.statements.heavy {
        let waited = heavy.in_stages(&["write_concern_wait", "flow_control_wait"]);
        if waited >= MOST && heavy.share * waited >= SOME {
            let why = format!("{} of that waited for other members of the replica set", percent(waited));
            let evidence = heavy.evidence(&facts.view, "duration_ns", percent(waited), &why);
            signs.accounting(STRONG, evidence, heavy.share(waited));
        }
    }
}
