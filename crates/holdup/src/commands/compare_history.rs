//! Reads recordings as builds in order of time, for `holdup compare --history`.

use holdup_compare::recordings::history::{History, history};
use holdup_compare::recordings::{Group, Options, Run};
use holdup_diagnose::diagnose;
use holdup_recording::Recording;

use super::compare_groups::{NamedGroup, read_any};
use super::store::fetched::Inputs;
use crate::failure::Failure;
use crate::progress::Line;

/// What changed for good among the recordings, beginning with the build `since`.
///
/// # Errors
/// If a recording cannot be read, or `since` names none of them.
pub(super) fn read(inputs: &Inputs, since: Option<&str>, options: Options) -> Result<History, Failure> {
    let mut builds = in_order(&read_any(&inputs.texts)?, inputs)?;
    if let Some(name) = since {
        let at = builds.iter().position(|build| build.name == name).ok_or_else(|| {
            let names: Vec<&str> = builds.iter().map(|build| build.name.as_str()).collect();
            Failure::Unusable(format!("--since {name} names none of the recordings; these exist: {}", names.join(", ")))
        })?;
        builds.drain(..at);
    }
    Ok(history(&builds, options))
}

/// Reads the builds, one recording after the other, and puts them in order of time.
///
/// # Errors
/// If a recording cannot be read.
pub(super) fn in_order(named: &[NamedGroup], inputs: &Inputs) -> Result<Vec<Group>, Failure> {
    let all: usize = named.iter().map(|build| build.recordings.len()).sum();
    let mut progress = Line::new(all < 2);
    let mut builds: Vec<(i64, Group)> = Vec::new();
    let mut done = 0;
    for build in named {
        let (mut started, mut runs) = (i64::MAX, Vec::new());
        for (path, round) in &build.recordings {
            progress.show(|| format!("read {done} of {all} recordings"));
            let recording = Recording::open(path).map_err(Failure::unusable)?;
            started = started.min(recording.manifest.started_at);
            let diagnosis = diagnose(&recording, None);
            runs.push(Run::from_recording(inputs.shown(path), &recording, &diagnosis, *round));
            done += 1;
        }
        builds.push((started, Group { name: build.name.clone(), runs }));
    }
    progress.clear();
    // The order of the command line stays where recordings began at once.
    builds.sort_by_key(|(started, _)| *started);
    Ok(builds.into_iter().map(|(_, build)| build).collect())
}
