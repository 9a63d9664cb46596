//! Sessions at a commit that wait for a replica: MySQL's semi-synchronous, PostgreSQL's synchronous replication.

use crate::instant::facts::Facts;
use crate::instant::{MOST, SOME, Signs};
use crate::strength::{FAIR, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let waits = |_: &str, state: &str| state.starts_with("Waiting for semi-sync ACK") || state.ends_with("SyncRep");
    let what = "waited for a replica to have their changes";
    facts.holds(signs, (STRONG, MOST), what, waits);
    facts.holds(signs, (FAIR * 0.5, SOME), what, waits);
}
