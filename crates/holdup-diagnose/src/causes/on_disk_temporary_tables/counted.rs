//! Evidence that counts: temporary tables on disk, and threads asleep for them.

use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Asleep, Counter, View};

use super::ENABLE;
use crate::causes::ms;

/// The tables that were made.
pub(super) fn made(view: &View<'_>, created: &Counter, per_request: f64) -> Evidence {
    let all = view.counter(metrics::mysql::GLOBAL_STATUS_CREATED_TMP_TABLES.name, &[], ENABLE);
    let of = all.map_or_else(|_| String::new(), |all| format!(", of {:.0} temporary tables per second", all.rate()));
    created.evidence(
        format!("{per_request:.2} a request"),
        "about none",
        format!(
            "the server made {:.0} temporary tables per second on disk, {per_request:.2} per request{of}",
            created.rate()
        ),
    )
}

/// Says that threads slept elsewhere, or not at all.
pub(super) fn elsewhere(asleep: &Asleep, inside: f64, completed: f64, tmpdirs: &[String]) -> Evidence {
    let here = asleep.per_request_ms(inside, completed);
    let all = asleep.per_request_ms(asleep.mean, completed);
    asleep.counted(
        format!("{} a request", ms(here)),
        "most of the delay, if temporary tables were the cause",
        format!(
            "threads slept uninterruptibly for {} per request, {} of it on files of tmpdir ({})",
            ms(all),
            ms(here),
            tmpdirs.join(":")
        ),
    )
}
