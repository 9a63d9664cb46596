//! Compares a variant's diagnosis with the lab's expectation, and words the differences. Pure.

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
    if let Some(wanted) = expect.verdict.as_ref().filter(|wanted| *wanted != verdict || expect.culprit != d.culprit) {
        let name = |culprit: &Option<String>| culprit.clone().unwrap_or_else(|| "no culprit".to_owned());
        return Some(format!("expected {wanted} ({}), got {verdict} ({})", name(&expect.culprit), name(&d.culprit)));
    }
    let next = d.next.as_ref().map(|next| next.cause.as_str());
    if let Some(expected) = expect.next.as_deref().filter(|expected| next != Some(expected)) {
        return Some(format!("expected {expected} to bind next, got {}", next.unwrap_or("nothing")));
    }
    let roles =
        [("contributors", Role::Contributor, &expect.contributors), ("symptoms", Role::Symptom, &expect.symptoms)];
    for (words, role, causes) in roles {
        let has_it = |cause: &String| d.findings.iter().any(|f| f.cause == *cause && f.role == role);
        let lacking: Vec<&str> = causes.iter().filter(|c| !has_it(c)).map(String::as_str).collect();
        if !lacking.is_empty() {
            return Some(format!("not named as {words}: {}", lacking.join(", ")));
        }
    }
    let missing: Vec<&str> =
        expect.cleared.iter().filter(|c| !d.cleared.iter().any(|x| x.cause == **c)).map(String::as_str).collect();
    (!missing.is_empty()).then(|| format!("not cleared: {}", missing.join(", ")))
}

/// The difference from the expected knee of `d`, which must lie above that of `other` (its name and
/// diagnosis).
pub fn knee(d: &Diagnosis, other: Option<(&str, &Diagnosis)>) -> Option<String> {
    let interval = |d: &Diagnosis| d.search.as_ref().and_then(|search| search.knee);
    let Some(knee) = interval(d) else {
        let why = d.search.as_ref().and_then(|search| search.refused.as_deref()).unwrap_or("the load was not a search");
        return Some(format!("no knee was found: {why}"));
    };
    let (name, other) = other?;
    let Some(other) = interval(other) else {
        return Some(format!("{name} has no knee to compare with"));
    };
    below(knee, name, other)
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
    }
}
