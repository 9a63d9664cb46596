//! Compares a variant's diagnosis with the lab's expectation, and words the differences. Pure.

use holdup_diagnose::Cause;
use holdup_diagnose::Diagnosis;
use holdup_diagnose::search::Interval;
use holdup_diagnose::verdict::{Answer, Role};

use super::definition::Expect;

/// The first difference from the lab's expectation.
pub fn unexpected(expect: &Expect, d: &Diagnosis) -> Option<String> {
    let verdict = match d.verdict {
        Answer::Found => "found",
        Answer::Healthy => "healthy",
        Answer::Undecided => "undecided",
    };
    if let Some(wanted) = expect
        .verdict
        .as_ref()
        .filter(|wanted| *wanted != verdict || expect.culprit.as_deref() != d.culprit.map(Cause::slug))
    {
        let wanted_culprit = expect.culprit.as_deref().unwrap_or("no culprit");
        let culprit = d.culprit.map_or("no culprit", Cause::slug);
        return Some(format!("expected {wanted} ({wanted_culprit}), got {verdict} ({culprit})"));
    }
    let next = d.next.as_ref().map(|next| next.cause.slug());
    if let Some(expected) = expect.next.as_deref().filter(|expected| next != Some(expected)) {
        return Some(format!("expected {expected} to bind next, got {}", next.unwrap_or("nothing")));
    }
    let roles =
        [("contributors", Role::Contributor, &expect.contributors), ("symptoms", Role::Symptom, &expect.symptoms)];
    for (words, role, causes) in roles {
        let has_it = |cause: &String| d.findings.iter().any(|f| f.cause.slug() == cause && f.role == role);
        let lacking: Vec<&str> = causes.iter().filter(|c| !has_it(c)).map(String::as_str).collect();
        if !lacking.is_empty() {
            return Some(format!("not named as {words}: {}", lacking.join(", ")));
        }
    }
    let missing: Vec<&str> =
        expect.cleared.iter().filter(|c| !d.cleared.iter().any(|x| x.cause.slug() == *c)).map(String::as_str).collect();
    (!missing.is_empty()).then(|| format!("not cleared: {}", missing.join(", ")))
}

/// The difference from the expected knee of `d`, which must lie above that of `other` (its name and
/// diagnosis).
pub fn knee(d: &Diagnosis, other: Option<(&str, &Diagnosis)>) -> Option<String> {
    let interval = |d: &Diagnosis| d.search.as_ref().and_then(|search| search.knee);
    let Some(search) = &d.search else { return Some("no knee was found: the load was not a search".to_owned()) };
    if let Some(refused) = &search.refused {
        return Some(format!("no knee was found: {refused}"));
    }
    let carried = search.points.iter().filter(|point| point.held == "yes").map(|point| point.offered);
    not_above(search.knee, carried.reduce(f64::max), other.map(|(name, other)| (name, interval(other))))
}

/// The difference of a search with this `knee`, or else with what it saw `carried` (requests per second), from
/// one that lies above that of `other`. On a fast machine a search may end below its knee.
fn not_above(knee: Option<Interval>, carried: Option<f64>, other: Option<(&str, Option<Interval>)>) -> Option<String> {
    let beyond = carried.filter(|_| knee.is_none() && other.is_some());
    let beyond = beyond.map(|carried| Interval { low: carried, value: carried, high: f64::INFINITY });
    let Some(knee) = knee.or(beyond) else { return Some("no knee was found".to_owned()) };
    match other? {
        (name, Some(other)) => below(knee, name, other),
        (name, None) => Some(format!("{name} has no knee to compare with")),
    }
}

/// Reports a `knee` that is not above the whole interval of `other`, which belongs to `name`.
fn below(knee: Interval, name: &str, other: Interval) -> Option<String> {
    (knee.low <= other.high).then(|| {
        format!(
            "its knee, {:.0}/s to {:.0}/s, is not above that of {name}, {:.0}/s to {:.0}/s",
            knee.low, knee.high, other.low, other.high
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_is_above_another_if_their_intervals_do_not_meet() {
        let interval = |low, value, high| Interval { low, value, high };
        let puma = interval(65.0, 74.0, 83.0);
        assert_eq!(below(interval(216.0, 259.0, 265.0), "puma", puma), None);
        let said = below(interval(80.0, 90.0, 100.0), "puma", puma).unwrap();
        assert_eq!(said, "its knee, 80/s to 100/s, is not above that of puma, 65/s to 83/s");
        // Carried up to the end of the search: its knee lies beyond.
        let of_puma = Some(("puma", Some(puma)));
        assert_eq!(not_above(None, Some(1_000.0), of_puma), None);
        assert!(not_above(None, Some(80.0), of_puma).is_some() && not_above(None, None, of_puma).is_some());
        assert_eq!(not_above(None, Some(1_000.0), None).as_deref(), Some("no knee was found"));
        assert_eq!(not_above(Some(puma), None, None), None);
    }
}
