//! Operations in the queue while no ticket is left.

use holdup_recording::words::percent;

use crate::instant::facts::Facts;
use crate::instant::{MANY, MOST, SOME, Signs};
use crate::strength::{CERTAIN, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let queued = facts.documents.queued.as_ref().filter(|(count, _)| *count >= MANY);
    signs.extend(CERTAIN, queued.map(|(_, evidence)| evidence.clone()));
    if facts.documents.is_there {
        let waiting = |_: &str, state: &str| state == "waiting for a ticket";
        signs.extend(CERTAIN, facts.sessions_in(SOME, "waited for a ticket", waiting));
    }
    for heavy in &facts.statements.heavy {
        let waited = heavy.in_stages(&["ticket_wait"]);
        if waited >= MOST && heavy.share * waited >= SOME {
            let why = format!("{} of that waited for a ticket of the storage engine", percent(waited));
            let evidence = heavy.evidence(&facts.view, "duration_ns", percent(waited), &why);
            signs.accounting(STRONG, evidence, heavy.share(waited));
        }
    }
}
