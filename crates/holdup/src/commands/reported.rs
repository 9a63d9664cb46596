//! The user's word: that something is slow, and since when. `holdup import` asks for it on a
//! terminal, and `holdup diagnose --slow` takes it, because evidence without a stopwatch does not show it.

use std::io::{BufRead, IsTerminal as _};
use std::path::Path;

use holdup_recording::manifest::Reported;
use holdup_recording::{Manifest, Recording, clock};

use super::moment::{Moment, moment};
use crate::failure::Failure;

const DAY_NS: i64 = 86_400_000_000_000;

/// Keeps the user's word in the recording at `dir`: the answer of a user who can be asked, or, if it
/// is evidence, that something is wrong, as its importer says.
///
/// # Errors
/// If it cannot be kept.
pub(super) fn keep(dir: &Path, is_evidence: bool, may_ask: bool) -> Result<(), Failure> {
    let answer = if may_ask { asked() } else { None };
    if answer.is_none() && !is_evidence {
        return Ok(());
    }
    let mut manifest = Recording::open(dir).map_err(Failure::unusable)?.manifest;
    let said = answer.and_then(|answer| word(&answer, &manifest));
    manifest.reported = said.or(manifest.reported).or_else(|| is_evidence.then(Reported::default));
    manifest.write(dir).map_err(|e| Failure::Unusable(format!("{}: {e}", dir.display())))
}

/// Adds the time of `--slow` to a recording's manifest.
///
/// # Errors
/// If it is not a time, or lies outside of the recording.
pub(super) fn add(manifest: &mut Manifest, said: &str) -> Result<(), Failure> {
    let wrong = |why: String| Failure::Unusable(format!("--slow {said}: {why}"));
    let reported = word(said, manifest).filter(|reported| reported.from.is_some());
    let reported = reported.ok_or_else(|| wrong("expected a time (UTC), e.g. 14:03 or 14:03-14:20".to_owned()))?;
    let (start, end) = (manifest.started_at, manifest.ended_at.unwrap_or(i64::MAX));
    if reported.from.is_some_and(|from| from >= end) || reported.to.is_some_and(|to| to <= start) {
        let runs = format!("from {} to {}", clock::rfc3339(start), clock::rfc3339(end));
        return Err(wrong(format!("outside the recording, which runs {runs}")));
    }
    manifest.reported = Some(reported);
    Ok(())
}

/// The answer of a user at a terminal.
fn asked() -> Option<String> {
    let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return None;
    }
    errln!(
        "Since when is it slow, or what fails? e.g. 14:03, 14:03-14:20 (UTC), time-outs since 14:03; Enter if unknown:"
    );
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).ok().map(|_| answer)
}

/// What an answer says of a recording; none if it says nothing. A time without a date is the last
/// one before the recording's end.
fn word(answer: &str, manifest: &Manifest) -> Option<Reported> {
    let answer = answer.trim();
    let end = manifest.ended_at.unwrap_or(manifest.started_at);
    let at = |text: &str| match moment(text.trim()).ok()? {
        Moment::At(at) => Some(at),
        Moment::Clock(of_day) => {
            let today = end - end.rem_euclid(DAY_NS) + of_day;
            Some(if today > end { today - DAY_NS } else { today })
        }
        after @ Moment::After(_) => Some(after.within(manifest.started_at)),
    };
    let words = (!answer.is_empty()).then(|| answer.to_owned())?;
    let mut times = answer.split_whitespace().filter(|word| word.contains(':'));
    let (from, to) = match times.next() {
        Some(time) => match time.split_once('-').filter(|_| at(time).is_none()) {
            Some((from, to)) => (at(from), at(to)),
            None => (at(time), times.next().and_then(at)),
        },
        None => (None, None),
    };
    Some(Reported { from, to: to.filter(|to| from.is_some_and(|from| *to > from)), words: Some(words) })
}

#[cfg(test)]
mod tests {
    use holdup_recording::clock;
    use holdup_recording::manifest::Host;

    use super::*;

    #[test]
    fn a_time_without_a_date_is_the_last_one_before_the_end() {
        let time = |text: &str| clock::parse_rfc3339(text).unwrap();
        let end = time("2026-11-26T14:31:00Z");
        let manifest = Manifest { ended_at: Some(end), ..Manifest::starting("r", end - 60, Host::default()) };
        let said = |answer: &str| word(answer, &manifest).map(|reported| (reported.from, reported.to));
        assert_eq!(said("  \n"), None);
        assert_eq!(said("14:03"), Some((Some(time("2026-11-26T14:03:00Z")), None)));
        assert_eq!(said("14:45"), Some((Some(time("2026-11-25T14:45:00Z")), None)));
        let both = Some((Some(time("2026-11-26T14:03:00Z")), Some(time("2026-11-26T14:20:30Z"))));
        assert_eq!(said("users see time-outs 14:03-14:20:30\n"), both);
        assert_eq!(said("from 14:03 to 14:20:30"), both);
        assert_eq!(said("2026-11-26T14:03:00Z"), Some((Some(time("2026-11-26T14:03:00Z")), None)));
        assert_eq!(said("since the deploy"), Some((None, None)));
        let added = |said: &str| add(&mut manifest.clone(), said).map_err(|failure| failure.to_string());
        assert_eq!(added("14:30:10"), Ok(()));
        assert!(added("14:45-14:50").unwrap_err().contains("outside the recording"));
        assert!(added("since the deploy").unwrap_err().contains("expected a time"));
        assert_eq!(word("since the deploy", &manifest).unwrap().words.as_deref(), Some("since the deploy"));
    }
}
