//! Threads that remove files from a directory, and sessions that say what they do.

use holdup_recording::words::percent;
use holdup_signals::host::disk_waits::Wait;

use crate::instant::facts::Facts;
use crate::instant::load::{WaitKind, kind};
use crate::instant::{MOST, SOME, Signs, is_removal};
use crate::strength::{FAIR, NONE, STRONG};

/// Files that come and go by the hundred are temporary. They are slow to remove because of the
/// directory's lock, or because the disk is.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let strength = if facts.waits_for_no_disk() { STRONG } else { FAIR };
    for sign in facts.asleep_in(|place, wait| wait == Wait::Directory && is_removal(place)) {
        signs.add(strength, sign);
    }
    if let Some((strength, evidence)) = &facts.counts.temporary {
        signs.add(*strength, evidence.clone());
    }
    let of_file = |_: &str, state: &str| kind(state) == WaitKind::Temporary;
    signs.extend(STRONG, facts.sessions_in(MOST, "read or wrote temporary files", of_file));
    let of_table = |_: &str, state: &str| state.to_lowercase().contains("tmp table");
    signs.extend(FAIR, facts.sessions_in(SOME, "made or removed a temporary table", of_table));
    let on_disk = |_: &str, state: &str| {
        let state = state.to_lowercase();
        state.contains("on disk") && state.contains("tmp") || state.starts_with("converting heap")
    };
    signs.extend(STRONG, facts.sessions_in(SOME, "wrote a temporary table to disk", on_disk));
    for (evidence, share) in crate::instant::plans::spilled(&facts.view) {
        signs.accounting(FAIR * share.ratio, evidence, share);
    }
    for heavy in facts.statements.heavy.iter().filter(|heavy| heavy.spilled() >= MOST && heavy.locked() < MOST) {
        let spilled = percent(heavy.spilled());
        let why = format!("{spilled} of its calls wrote a temporary table or file to disk");
        let evidence = heavy.evidence(&facts.view, "temporary_disk_tables", spilled, &why);
        signs.accounting(STRONG * heavy.spilled(), evidence, heavy.share(1.0));
        let text = format!("next, its plan: {}", heavy.explain());
        signs.add(NONE, facts.view.digest_evidence(&heavy.of, "digest_text", "", "", text));
    }
}
