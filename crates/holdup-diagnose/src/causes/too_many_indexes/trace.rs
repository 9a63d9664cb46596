//! Every change maintains more indexes than needed.
//!
//! A changed row costs more log and more pages than in other runs, while changed rows are flat or
//! down and the log as a whole is not down: in a stall, any figure per row grows without bound. A
//! weak signal: a state, not an event.

use crate::trace::Pattern;
use crate::trace::quantities::{
    CHANGED, CONNECTED, LOG, LOG_PER_CHANGE, PAGES_PER_CHANGE, REQUESTS_PER_CHANGE, REQUESTS_PER_COMMIT,
    SCANNED_PER_COMMIT,
};
use crate::trace::view::{Observation, View, all, any, group};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern =
    Pattern { name: "too_many_indexes", title: "every change maintains too many indexes", fix: None, account };

fn account(seen: &View) -> Votes {
    // Slower writes keep up to a sixth more sessions busy, all the time; new clients would be more,
    // or would arrive.
    let state = all([
        seen.higher_from_to(&CONNECTED, 0.02, 0.05),
        seen.began(&CONNECTED, 0.02, 0.1)
            .or_else(|| seen.higher_from_to(&CONNECTED, 0.2, 0.3))
            .map(Observation::inverse),
    ]);
    Votes::new()
        .defines(
            3.0,
            "a changed row costs more log, or there are a few more sessions all the time",
            any([seen.up(&LOG_PER_CHANGE, 0.5), state]),
        )
        .supports(1.0, "and more pages", group([seen.up(&PAGES_PER_CHANGE, 0.5), seen.up(&REQUESTS_PER_CHANGE, 0.5)]))
        .supports(1.0, "no more rows are changed than before", seen.steady(&CHANGED, 0.5))
        .gates("the log as a whole is not down", seen.not_down(&LOG, 1.0))
        .refutes(
            3.0,
            "far more pages or rows are read per transaction: it is reads",
            any([seen.up(&SCANNED_PER_COMMIT, 2.0), seen.up(&REQUESTS_PER_COMMIT, 2.0)]),
        )
}
