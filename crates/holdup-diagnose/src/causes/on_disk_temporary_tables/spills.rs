//! The same on PostgreSQL: a sort or hash that is larger than work_mem is written to temporary
//! files. They may stay in the kernel's cache and cost CPU time, or fill the disk.

use std::collections::BTreeSet;

use crate::change::Fix;
use holdup_recording::metrics;
use holdup_recording::rows::Session;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use crate::case::Case;
use crate::causes::parts::cpu_work;
use crate::causes::{CauseFinding, Others, Outcome, Role, bytes_per_second, ms};
use crate::resources::is_felt;
use crate::resources::volume::demand::{demand, share_text};
use crate::strength::{CERTAIN, FAIR, STRONG};

const ENABLE: &str = "--watch postgresql://USER@HOST:PORT/DATABASE";

const WRITTEN: &str = metrics::postgresql::STAT_DATABASE_TEMP_BYTES.name;

/// Fewer bytes per second than this are written by the way: a disk of 1 MB/s is a slow one.
const LEAST: f64 = 1e6;

/// Least factor by which it must have grown since the baseline window.
const TIMES: f64 = 3.0;

/// Judges PostgreSQL's temporary files; none if it did not count them, or if they cannot be held
/// against the delay.
pub(super) fn judge(case: &Case<'_>, others: &Others) -> Option<Outcome> {
    let view = case.slow();
    let now = view.counter(WRITTEN, &[], ENABLE).ok()?;
    let before =
        case.baseline().and_then(|baseline| baseline.counter(WRITTEN, &[], ENABLE).ok()).map_or(0.0, |c| c.rate());
    let (is, was) = (bytes_per_second(now.rate()), bytes_per_second(before));
    let text = format!("the server wrote {is} to temporary files, {was} in the baseline window");
    let written = now.evidence(is, was, text);
    if now.rate() < LEAST || now.rate() < TIMES * before {
        return Some(Outcome::Cleared(vec![written]));
    }
    let theirs = spilling(&view);
    let text = theirs.iter().next().cloned().unwrap_or_default();
    let mut found = CauseFinding {
        explains_ms: 0.0,
        evidence: vec![written],
        weights: vec![CERTAIN],
        fixes: fixes(&text),
        prove: "The same load again: no temporary files are written (pg_stat_database.temp_bytes).".to_owned(),
        role: Role::Root,
    };
    if let Some((explains_ms, taken)) = by_disk(case, now.rate()) {
        (found.explains_ms, found.weights) = (explains_ms, vec![CERTAIN, STRONG]);
        found.evidence.push(taken);
        return Some(Outcome::Found(found));
    }
    let is_theirs = |row: &Session| row.digest_text.as_deref().is_some_and(|text| theirs.contains(text));
    let work = cpu_work::of_sessions(case, others, is_theirs)?;
    found.explains_ms = work.explains_ms;
    found.evidence.extend(work.evidence);
    found.weights = vec![CERTAIN, FAIR, FAIR];
    Some(Outcome::Found(found))
}

/// What requests wait for the disk because of so many bytes per second, with evidence.
fn by_disk(case: &Case<'_>, rate: f64) -> Option<(f64, Evidence)> {
    let demand = demand(case).ok()?;
    let share = demand.share(rate);
    let waited = demand.waited_ms(case).ok()?;
    let explains_ms = waited * share;
    if !is_felt(case, explains_ms).ok()? {
        return None;
    }
    let slow = case.slow().window;
    let text = format!("that is up to {}; a request waits {} for it", share_text(&demand, share), ms(waited));
    let unit = holdup_signals::host::throttle::Unit::Bytes;
    Some((explains_ms, demand.flow.evidence(unit, slow, ms(explains_ms), "a small part of the delay".into(), text)))
}

/// Statements that were seen writing or reading temporary files.
fn spilling(view: &View<'_>) -> BTreeSet<String> {
    let rows = view.sessions(&["observed_at", "state", "digest_text"]).unwrap_or_default();
    let spills = |row: &&&Session| row.state.as_deref().is_some_and(|state| state.to_lowercase().contains("buffile"));
    rows.iter().filter(spills).filter_map(|row| row.digest_text.as_deref()).map(str::to_owned).collect()
}

fn fixes(text: &str) -> Vec<Fix> {
    let of = if text.is_empty() { String::new() } else { format!(": {text}") };
    let fix = Fix::by_command;
    vec![
        fix(format!("Sort or group fewer rows, or give the sort an index that returns its order{of}"), None, None),
        fix(
            "Give the role that runs it more memory for sorts, and let it reconnect.".to_owned(),
            Some("ALTER ROLE its_role SET work_mem = '64MB';"),
            Some("Each sort or hash of each session may take that much memory."),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 100 requests of 400 ms a second behind a disk of 10 MB/s, `bytes` of which are temporary files.
    fn server(bytes: f64) -> SyntheticRecording {
        SyntheticRecording::new(30)
            .requests(100, 400)
            .asleep(40, "io_schedule", "io_schedule < __iomap_dio_rw < vfs_read", None)
            .disk("vda", (60.0, 100e3, 100.0), (40.0, 100e3, 100.0))
            .counter("postgresql://db", WRITTEN, &[("database", "shop")], bytes)
    }

    #[test]
    fn temporary_files_have_their_share_of_the_disk() {
        assert!(
            (server(6e6).explains(&DEFINITION).unwrap() - 240.0).abs() < 20.0,
            "{:?}",
            server(6e6).explains(&DEFINITION)
        );
        assert_eq!(server(0.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(server(6e6).without(WRITTEN).explains(&DEFINITION), None);
    }
}
