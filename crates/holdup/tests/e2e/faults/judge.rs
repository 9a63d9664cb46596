//! What a recording lost around a fault, and whether it says so. Pure: a recording and the times of the fault in, figures and
//! problems out.

use std::collections::BTreeMap;

use holdup_recording::{CoverageState, Recording, RunState};
use serde_json::{Value, json};

use super::draw::{Draw, Fault};

/// What may be lost around a fault, seconds.
const LOST_MAX_S: f64 = 2.0;

/// Rows that are missing for longer while the fault lasts have to be said, seconds.
const TOLD_FROM_S: f64 = 1.5;

/// What happened, besides what is in the recording. Times are nanoseconds since the epoch.
pub struct Played {
    pub code: Option<i32>,
    pub stderr: String,
    /// When the fault began, and when it was over; what does not pass is over when holdup has ended.
    pub from: i64,
    pub to: i64,
    /// When holdup had ended.
    pub ended: i64,
    /// The longest that this very process was kept from running, seconds.
    pub stalled_s: f64,
    /// Sources that were watched; `requests` stands for those of the load.
    pub sources: Vec<String>,
    /// Source of the server that the fault hit.
    pub server: Option<String>,
}

/// Where a source has no rows: from one row to the next.
struct Hole<'r> {
    source: &'r str,
    /// What is usual between two of its rows, seconds.
    usual_s: f64,
    /// When it begins, seconds from the fault's begin.
    from_s: f64,
    /// Seconds of it before, within and after the fault.
    before_s: f64,
    within_s: f64,
    after_s: f64,
}

/// The line of a draw: its figures, and in `problems` what is not as it should be.
pub fn line(draw: &Draw, played: &Played, opened: Result<Recording, String>) -> Value {
    let mut line = json!({
        "seed": draw.seed, "subject": format!("{:?}", draw.subject), "fault": format!("{:?}", draw.fault),
        "server": draw.fault.is_of_server().then(|| format!("{:?}", draw.server)),
        "length_s": draw.length.as_secs_f64(), "at_s": draw.at.as_secs_f64(), "lasts_s": draw.lasts.as_secs_f64(),
        "code": played.code, "stalled_s": played.stalled_s, "opened": opened.is_ok(),
    });
    let recording = match opened {
        Ok(recording) => recording,
        Err(why) => {
            line["problems"] = json!([format!("it does not open: {why}; {}", played.stderr)]);
            return line;
        }
    };
    let holes = holes(draw, played, &recording);
    let of_server = |hole: &Hole<'_>| played.server.as_deref() == Some(hole.source);
    // After its fault a server is asked again in growing steps, which is no loss of rows that were there.
    let lost = |hole: &Hole<'_>| hole.before_s + if of_server(hole) { 0.0 } else { hole.after_s } - hole.usual_s;
    let worst = holes.iter().max_by(|a, b| lost(a).total_cmp(&lost(b)));
    let lost_s = worst.map_or(0.0, lost).max(0.0);
    line["lost_s"] = json!(lost_s);
    line["lost_of"] = json!(worst.map(|hole| hole.source));
    line["lost_from_s"] = json!(worst.map(|hole| hole.from_s));
    let missing = holes.iter().max_by(|a, b| a.within_s.total_cmp(&b.within_s));
    line["missing_s"] = json!(missing.map(|hole| hole.within_s));
    line["missing_of"] = json!(missing.map(|hole| hole.source));
    line["back_s"] = json!(holes.iter().filter(|hole| of_server(hole)).map(|hole| hole.after_s).reduce(f64::max));
    line["state"] = json!(recording.manifest.state);
    let mut problems = Vec::new();
    if lost_s > LOST_MAX_S + played.stalled_s {
        problems.push(format!("{lost_s:.2} s of rows are lost around the fault"));
    }
    let silent: Vec<&Hole<'_>> =
        holes.iter().filter(|hole| hole.within_s > TOLD_FROM_S && !is_said(&recording, hole.source)).collect();
    line["said"] = json!(silent.is_empty());
    problems.extend(silent.iter().map(|h| format!("{:.2} s of {} are missing and not said", h.within_s, h.source)));
    problems.extend(end_of(draw.fault, played, &recording));
    problems.extend(outside(played, &recording));
    line["problems"] = json!(problems);
    line
}

/// What is wrong with how holdup and the recording ended.
fn end_of(fault: Fault, played: &Played, recording: &Recording) -> Option<String> {
    let (code, state) = (played.code, recording.manifest.state);
    let own = recording.manifest.coverage.iter().find(|part| part.source == "recording");
    let is_right = match fault {
        Fault::Killed => code.is_none() && state == RunState::Running,
        Fault::HungUp | Fault::Terminated => code == Some(130) && state == RunState::Interrupted,
        // The last rows may find room on a full disk: that of the reserve. The report then may not.
        Fault::FullToTheEnd | Fault::BrokenToTheEnd if state == RunState::Complete => {
            let is_report_lost = code == Some(2) && played.stderr.contains("report.html: No space left");
            (code == Some(0) || is_report_lost) && own.is_some_and(|own| own.gaps_total > 0)
        }
        Fault::FullToTheEnd | Fault::BrokenToTheEnd => code == Some(2),
        Fault::Full | Fault::Broken | Fault::NoDescriptors => {
            code == Some(0) && state == RunState::Complete && own.is_some_and(|own| own.gaps_total > 0)
        }
        Fault::ServerKilled | Fault::ServerHung | Fault::ServerRefuses | Fault::ClockAhead | Fault::ClockBehind => {
            code == Some(0) && state == RunState::Complete && own.is_none()
        }
    };
    let is_told = !fault.is_of_writes() || played.stderr.contains("cannot be written");
    (!is_right || !is_told || played.stderr.contains("panicked"))
        .then(|| format!("it ended with {code:?} as {state:?}, own coverage {own:?}: {}", played.stderr))
}

/// A row at a time at which holdup did not record: the wall clock was believed after it was set.
fn outside(played: &Played, recording: &Recording) -> Option<String> {
    let within = recording.manifest.started_at..=played.ended;
    let samples = recording.tables.samples.rows.iter().map(|sample| sample.observed_at);
    let requests = recording.tables.requests.rows.iter().map(|request| request.done_at);
    let ends = recording.manifest.ended_at;
    let stray = samples.chain(requests).chain(ends).find(|time| !within.contains(time))?;
    Some(format!("a row or the end is at {stray}, outside {within:?}"))
}

/// Whether the recording tells that rows of `source` are missing.
fn is_said(recording: &Recording, source: &str) -> bool {
    let is_gap = |c: &holdup_recording::Coverage| c.source == source && c.state != CoverageState::Complete;
    let is_event = |kind: &str, of: &str| kind == "gap" && of == source;
    recording.manifest.state != RunState::Complete
        || recording.manifest.coverage.iter().any(|part| is_gap(part) && part.gaps_total > 0)
        || recording.tables.events.rows.iter().any(|event| is_event(&event.kind, &event.source))
}

fn holes<'r>(draw: &Draw, played: &'r Played, recording: &'r Recording) -> Vec<Hole<'r>> {
    // A source of which there is nothing is one hole.
    let begun = recording.manifest.started_at;
    let mut times: BTreeMap<&str, Vec<i64>> = played.sources.iter().map(|s| (s.as_str(), vec![begun])).collect();
    for sample in &recording.tables.samples.rows {
        times.entry(&sample.source).or_default().push(sample.observed_at);
    }
    for request in &recording.tables.requests.rows {
        times.entry("requests").or_default().push(request.intended_at);
    }
    // The load ends before its last sample, and what was due at a signal may end before.
    let ended = recording.manifest.ended_at.unwrap_or(played.ended);
    let load_ends = recording.manifest.phases.last().map_or(ended, |phase| phase.to.min(ended));
    let mut holes = Vec::new();
    for (source, mut times) in times {
        let end = if source == "requests" { load_ends } else { ended };
        let end = if draw.fault.ends() { played.from.min(end) } else { end };
        times.retain(|time| *time < end);
        times.push(end);
        times.sort_unstable();
        let mut steps: Vec<i64> = times.windows(2).map(|two| two[1] - two[0]).filter(|step| *step > 0).collect();
        steps.sort_unstable();
        let usual_s = steps.get(steps.len() / 2).map_or(0.0, |step| *step as f64 / 1e9);
        let fault = (played.from, played.to);
        holes.extend(times.windows(2).map(|two| Hole { usual_s, ..hole(source, (two[0], two[1]), fault) }));
    }
    holes
}

fn hole(source: &str, (from, to): (i64, i64), fault: (i64, i64)) -> Hole<'_> {
    let s = |from: i64, to: i64| (to - from).max(0) as f64 / 1e9;
    let within = (from.max(fault.0), to.min(fault.1));
    Hole {
        source,
        usual_s: 0.0,
        from_s: (from - fault.0) as f64 / 1e9,
        before_s: s(from, to.min(fault.0)),
        within_s: s(within.0, within.1),
        after_s: s(from.max(fault.1), to),
    }
}
