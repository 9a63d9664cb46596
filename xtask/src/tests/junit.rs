//! Reads the JUnit file that nextest writes: which test ended how, after how long, and what it said. It judges nothing.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// One test, as the file has it.
#[derive(Debug, Default, PartialEq)]
pub struct Case {
    /// Package and binary: `holdup::e2e`.
    pub binary: String,
    /// Modules and function: `demo::names_the_pool`.
    pub name: String,
    pub seconds: f64,
    pub has_failed: bool,
    /// Standard output and errors, each whole.
    pub said: String,
}

/// Reads a file.
///
/// # Errors
/// If it cannot be read or is no XML.
pub fn read(path: &Path) -> Result<Vec<Case>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    parse(&text).with_context(|| format!("{} is not what nextest writes", path.display()))
}

#[derive(Deserialize)]
struct Report {
    #[serde(rename = "testsuite", default)]
    suites: Vec<Suite>,
}

#[derive(Deserialize)]
struct Suite {
    #[serde(rename = "@name")]
    binary: String,
    #[serde(rename = "testcase", default)]
    cases: Vec<Element>,
}

/// A test's element.
#[derive(Deserialize)]
struct Element {
    #[serde(rename = "@name")]
    name: String,
    #[serde(rename = "@time")]
    seconds: f64,
    failure: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    #[serde(rename = "system-out", default)]
    output: String,
    #[serde(rename = "system-err", default)]
    errors: String,
}

fn parse(text: &str) -> Result<Vec<Case>> {
    let report: Report = quick_xml::de::from_str(text)?;
    let cases = report.suites.into_iter().flat_map(|Suite { binary, cases }| {
        cases.into_iter().map(move |Element { name, seconds, failure, error, output, errors }| Case {
            binary: binary.clone(),
            name,
            seconds,
            has_failed: failure.is_some() || error.is_some(),
            said: format!("{output}\n{errors}\n"),
        })
    });
    Ok(cases.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_seconds_failures_and_words_are_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3">
  <testsuite name="holdup::e2e" tests="2">
    <testcase name="demo::good" classname="holdup::e2e" time="1.250"><system-out>skipped: no &lt;disk&gt;</system-out></testcase>
    <testcase name="lab::bad" classname="holdup::e2e" time="2">
      <failure message="panicked" type="test failure">thread panicked: said elsewhere</failure>
      <system-err><![CDATA[undecided: lab::bad: late
]]></system-err>
    </testcase>
  </testsuite>
  <testsuite name="holdup-sql"><testcase name="lexer" classname="x" time="0.001"/></testsuite>
</testsuites>"#;
        let cases = parse(text).unwrap();
        let short: Vec<_> = cases.iter().map(|c| (c.binary.as_str(), c.name.as_str(), c.has_failed)).collect();
        assert_eq!(
            short,
            [("holdup::e2e", "demo::good", false), ("holdup::e2e", "lab::bad", true), ("holdup-sql", "lexer", false)]
        );
        assert_eq!((cases[0].seconds, cases[0].said.trim()), (1.25, "skipped: no <disk>"));
        assert!(cases[1].said.trim().starts_with("undecided: "), "{:?}", cases[1].said);
        assert!(
            parse("<testsuites><testsuite><testcase name='a' time='1'/></testsuite></testsuites>").is_err(),
            "a suite has a name"
        );
    }
}
