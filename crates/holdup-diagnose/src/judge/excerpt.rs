//! Recordings that do not fit in memory: which stretch is read in full, and the verdict from it and
//! from the course of the whole recording.
//!
//! The stretch lies around the onset of the episode that lost most time, because a cause shows in
//! what changed there. Without an episode it lies around the second with the most waiting. Causes
//! are judged in the stretch as if it had been asked for with `--from` and `--to`. The course
//! decides objectives, lists the episodes, and counts the load.

use crate::cause::Cause;
use std::ops::Range;

use holdup_recording::Recording;
use holdup_recording::excerpt::{Choice, Excerpt, Limits, Room};
use holdup_recording::manifest::CoverageState;
use holdup_recording::words::thousands;
use holdup_signals::{Window, client::latency};

use super::span;
use crate::case::{Case, Incomparable};
use crate::causes::Outcomes;
use crate::counters::CounterJudgement;
use crate::verdict::{CoverageEntry, Diagnosis, ReadReport};
use crate::{links, load};

/// How a recording that does not fit in memory is read.
pub const CHOICE: Choice = Choice { limits: Limits::GIGABYTE, is_fine: latency::is_measure, stretch };

/// Columns that no verdict, comparison or report depends on, as table and column.
pub const UNREAD: [(&str, &str); 8] = [
    ("samples", "window_ns"),
    ("threads", "tid"),
    ("threads", "thread"),
    ("threads", "cpu_ns_total"),
    ("threads", "run_queue_ns_total"),
    ("statements", "temporary_tables"),
    ("exchanges", "request_bytes"),
    ("executions", "logged_ns"),
];

/// An episode is judged at its onset if there was so much time without one before it, nanoseconds;
/// otherwise at its end, if there is more after it.
const BEFORE_NS: i64 = 60_000_000_000;

/// What is read behind an episode, nanoseconds.
const BEHIND_NS: i64 = 60_000_000_000;

/// The stretch of the recording with this `course` to read in full.
fn stretch(course: &Recording, room: &Room<'_>) -> Range<i64> {
    let part = room.part.as_ref().map(|part| Window { from: part.start, to: part.end });
    let case = Case::new(course, part);
    let whole = case.whole().from.max(case.warm_up.measured_from())..case.whole().to;
    let by_counters = || CounterJudgement::judge(&case)?.alone(&case);
    let symptom = case.degradation.as_ref().map(|of| of.slow).or_else(by_counters);
    let (at, within) =
        symptom.map_or_else(|| (worst(&case), whole.clone()), |slow| edge(slow, case.episodes(), &whole));
    room.around(at, &within)
}

/// The onset of the episode `slow`, or its end, and the time around it that has no other episode.
fn edge(slow: Window, episodes: &[Window], whole: &Range<i64>) -> (i64, Range<i64>) {
    let before = episodes.iter().map(|of| of.to).filter(|to| *to <= slow.from).fold(whole.start, i64::max);
    let after = episodes.iter().map(|of| of.from).filter(|from| *from >= slow.to).fold(whole.end, i64::min);
    let (room_before, room_after) = (slow.from.saturating_sub(before), after.saturating_sub(slow.to));
    if room_before >= BEFORE_NS || room_before >= room_after {
        (slow.from, before..after.min(slow.to.saturating_add(BEHIND_NS)))
    } else {
        (slow.to, slow.from..after)
    }
}

/// The second in which requests waited longest in all, or the start.
fn worst(case: &Case<'_>) -> i64 {
    let waited = case.client.seconds.iter().filter_map(|second| {
        let ms = second.response_ms.mean()?;
        Some((ms * second.offered as f64 / second.window.seconds().max(1e-9), second.window.from))
    });
    waited.max_by(|(a, _), (b, _)| a.total_cmp(b)).map_or(case.whole().from, |(_, at)| at)
}

/// The cases of the course and of the stretch of `recording`, of which only `excerpt` is in memory,
/// or of the part of it in `window`. None if that part is there in full.
///
/// # Errors
/// Why it can't be compared with `healthy`.
pub(super) fn cases<'a>(
    recording: &'a Recording,
    excerpt: &'a Excerpt,
    window: Option<Window>,
    healthy: Option<&'a Recording>,
) -> Result<Option<(Case<'a>, Case<'a>)>, Incomparable> {
    let Some(course) = &excerpt.course else { return Ok(None) };
    let course = match healthy {
        Some(healthy) => Case::against(course, window, healthy)?,
        None => Case::new(course, window),
    };
    let stretch = Window { from: excerpt.stretch.start, to: excerpt.stretch.end };
    let case = Case::within(recording, stretch, &course, healthy)?;
    Ok(Some((course, case)))
}

/// The verdict on it, with what rules found on other hosts.
///
/// # Errors
/// As [`cases`].
pub(super) fn judged(
    recording: &Recording,
    excerpt: &Excerpt,
    window: Option<Window>,
    healthy: Option<&Recording>,
    elsewhere: Vec<Outcomes>,
) -> Result<Option<Diagnosis>, Incomparable> {
    let Some((course, case)) = cases(recording, excerpt, window, healthy)? else { return Ok(None) };
    let mut diagnosis = super::judged(case, elsewhere);
    add_course(&mut diagnosis, &course);
    add_reading(&mut diagnosis, excerpt, &course);
    Ok(Some(diagnosis))
}

/// Adds what only the course of the whole recording shows.
fn add_course(diagnosis: &mut Diagnosis, course: &Case<'_>) {
    let start = course.recording.manifest.started_at;
    let found: Vec<Cause> = diagnosis.findings.iter().map(|finding| finding.cause).collect();
    let disturbed = diagnosis.load.disturbed.take();
    diagnosis.load = load::LoadReport { disturbed, ..load::report(course, &found) };
    diagnosis.debt = links::debt(course);
    let judged = diagnosis.episode;
    let Some((degradation, judged)) = course.degradation.as_ref().zip(judged) else { return };
    let all = span(degradation.slow, start);
    if judged.from_s < all.to_s && all.from_s < judged.to_s {
        diagnosis.episode = Some(all);
        diagnosis.episodes = links::episodes(course, degradation);
    }
}

/// Says what was read in full, and what was not looked at.
fn add_reading(diagnosis: &mut Diagnosis, excerpt: &Excerpt, course: &Case<'_>) {
    let start = course.recording.manifest.started_at;
    let window = span(Window { from: excerpt.stretch.start, to: excerpt.stretch.end }, start);
    let step_s = excerpt.step_ns as f64 / 1e9;
    let often = if step_s > 0.0 { format!("counters every {step_s:.0} s") } else { "counters".to_owned() };
    let text = format!(
        "the recording does not fit in memory; holdup read {} s to {} s in full and judged causes there; \
         of the rest it read response time and {often}, but no single statements, sessions or threads",
        thousands(window.from_s),
        thousands(window.to_s)
    );
    diagnosis.coverage.push(CoverageEntry {
        source: "holdup".to_owned(),
        state: CoverageState::Partial,
        why: Some(text.clone()),
        enable: Some("holdup diagnose RECORDING --from TIME --to TIME, to judge another part".to_owned()),
        cpu_ratio: None,
        host: None,
    });
    diagnosis.read = Some(ReadReport { window, step_s, text });
}
