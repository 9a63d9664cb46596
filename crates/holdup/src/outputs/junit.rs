//! `junit:FILE`: a test case an objective, for programs that show test results (JUnit's XML as Jenkins, GitLab and
//! others read it). What is not an objective is not a test: the culprit is in the verdict.

use std::fmt::Write as _;

/// What became of one objective.
pub struct Case {
    /// The objective as it was written.
    pub name: String,
    /// How it was missed, in words; none if it was met.
    pub missed: Option<String>,
}

/// The document of the run `name`, which lasted `seconds`.
pub fn document(name: &str, seconds: f64, cases: &[Case]) -> String {
    let (tests, failures) = (cases.len(), cases.iter().filter(|case| case.missed.is_some()).count());
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"{seconds:.3}\"");
    let name = escaped(name);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"holdup\" {counts}>\n  <testsuite name=\"{name}\" {counts}>\n"
    );
    for case in cases {
        let _ =
            write!(out, "    <testcase classname=\"{name}\" name=\"{}\" time=\"{seconds:.3}\"", escaped(&case.name));
        let _ = match &case.missed {
            None => writeln!(out, "/>"),
            Some(why) => {
                let why = escaped(why);
                writeln!(out, ">\n      <failure type=\"objective\" message=\"{why}\">{why}</failure>\n    </testcase>")
            }
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// Text as it may stand in an attribute; characters that XML 1.0 has no place for are left out.
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
        let case = |name: &str, missed: Option<&str>| Case { name: name.to_owned(), missed: missed.map(str::to_owned) };
        let cases = [case("p99 < 500ms", None), case("errors < 1%", Some("7 of \"9\" failed & more\u{1}"))];
        let text = document("a <b>", 2.5, &cases);
        assert!(text.contains("<testsuite name=\"a &lt;b&gt;\" tests=\"2\" failures=\"1\""), "{text}");
        assert!(text.contains("name=\"p99 &lt; 500ms\" time=\"2.500\"/>"), "{text}");
        assert!(text.contains("message=\"7 of &quot;9&quot; failed &amp; more\">"), "{text}");
        assert_eq!(text.matches("<testcase").count(), 2);
        assert!(document("none", 1.0, &[]).contains("tests=\"0\""));
    }
}
