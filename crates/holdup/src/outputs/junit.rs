//! `junit:FILE`: a test case per objective, for programs that show test results (JUnit's XML as
//! Jenkins, GitLab and others read it). Only objectives are test cases; the culprit is in the
//! verdict.

use std::fmt::Write as _;

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::{ObjectiveReport, State};

/// The result of one objective.
pub struct Case {
    /// The objective as it was written.
    pub name: String,
    /// Whether it was met.
    pub end: End,
}

/// How a test case ended.
pub enum End {
    /// The objective was met.
    Met,
    /// It was missed; the text says how.
    Missed(String),
    /// It could not be judged; the text says why.
    NotJudged(String),
}

/// The objectives of `diagnosis` as test cases.
pub fn cases(diagnosis: &Diagnosis) -> Vec<Case> {
    // The missed ones also exist as words, in the same order.
    let mut missed = diagnosis.load.objectives_missed.iter();
    let case = |objective: &ObjectiveReport| Case {
        name: objective.text.clone(),
        end: match objective.state {
            State::Met => End::Met,
            State::Missed => End::Missed(missed.next().unwrap_or(&objective.text).clone()),
            State::NotJudged => End::NotJudged(objective.why.clone().unwrap_or_default()),
        },
    };
    diagnosis.objectives.iter().map(case).collect()
}

/// The document for the run `name`, which lasted `seconds`.
pub fn document(name: &str, seconds: f64, cases: &[Case]) -> String {
    let count = |is: fn(&End) -> bool| cases.iter().filter(|case| is(&case.end)).count();
    let (failures, skipped) =
        (count(|end| matches!(end, End::Missed(_))), count(|end| matches!(end, End::NotJudged(_))));
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\"",
        cases.len()
    );
    let name = escaped(name);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"holdup\" {counts}>\n  <testsuite name=\"{name}\" {counts}>\n"
    );
    for case in cases {
        let _ =
            write!(out, "    <testcase classname=\"{name}\" name=\"{}\" time=\"{seconds:.3}\"", escaped(&case.name));
        let _ = match &case.end {
            End::Met => writeln!(out, "/>"),
            End::Missed(why) => {
                let why = escaped(why);
                writeln!(out, ">\n      <failure type=\"missed\" message=\"{why}\">{why}</failure>\n    </testcase>")
            }
            End::NotJudged(why) => {
                writeln!(out, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(why))
            }
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// Escapes text for an attribute; drops characters that XML 1.0 forbids.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_an_objective() {
        let case = |name: &str, end: End| Case { name: name.to_owned(), end };
        let cases = [
            case("p99 < 500ms", End::Met),
            case("errors < 1%", End::Missed("7 of \"9\" failed & more\u{1}".to_owned())),
            case("a p50 < 1ms", End::NotJudged("nothing ended".to_owned())),
        ];
        let text = document("a <b>", 2.5, &cases);
        assert!(
            text.contains("<testsuite name=\"a &lt;b&gt;\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""),
            "{text}"
        );
        assert!(text.contains("name=\"p99 &lt; 500ms\" time=\"2.500\"/>"), "{text}");
        assert!(text.contains("message=\"7 of &quot;9&quot; failed &amp; more\">"), "{text}");
        assert!(text.contains("<skipped message=\"nothing ended\"/>"), "{text}");
        assert_eq!(text.matches("<testcase").count(), 3);
        assert!(document("none", 1.0, &[]).contains("tests=\"0\""));
    }
}
