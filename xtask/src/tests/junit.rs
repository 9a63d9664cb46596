//! Reads the JUnit file that nextest writes: which test ended how, after how long, and what it said. It judges nothing.

use std::path::Path;

use anyhow::{Context as _, Result};
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

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

fn parse(text: &str) -> Result<Vec<Case>> {
    let mut reader = Reader::from_str(text);
    let (mut cases, mut suite, mut open) = (Vec::new(), String::new(), None::<Case>);
    let mut is_said = false;
    loop {
        match reader.read_event()? {
            Event::Eof => return Ok(cases),
            Event::Start(tag) => match tag.name().as_ref() {
                "testsuite" => suite = attribute(&tag, "name")?,
                "testcase" => open = Some(case(&tag, &suite)?),
                "failure" | "error" => open.iter_mut().for_each(|case| case.has_failed = true),
                "system-out" | "system-err" => is_said = true,
                _ => {}
            },
            Event::Empty(tag) => match tag.name().as_ref() {
                "testcase" => cases.push(case(&tag, &suite)?),
                "failure" | "error" => open.iter_mut().for_each(|case| case.has_failed = true),
                _ => {}
            },
            Event::End(tag) => match tag.name().as_ref() {
                "testcase" => cases.extend(open.take()),
                "system-out" | "system-err" => {
                    is_said = false;
                    open.iter_mut().for_each(|case| case.said.push('\n'));
                }
                _ => {}
            },
            Event::Text(text) if is_said => say(&mut open, &text),
            Event::CData(text) if is_said => say(&mut open, &text),
            Event::GeneralRef(name) if is_said => {
                let name = name.into_inner();
                let text = quick_xml::escape::unescape(&format!("&{name};"))?.into_owned();
                say(&mut open, &text);
            }
            _ => {}
        }
    }
}

fn say(open: &mut Option<Case>, text: &str) {
    open.iter_mut().for_each(|case| case.said.push_str(text));
}

fn case(tag: &BytesStart<'_>, suite: &str) -> Result<Case> {
    let seconds = attribute(tag, "time")?.parse().unwrap_or(0.0);
    Ok(Case { binary: suite.to_owned(), name: attribute(tag, "name")?, seconds, ..Case::default() })
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<String> {
    let found = tag.try_get_attribute(name)?.with_context(|| format!("a test has no \"{name}\""))?;
    Ok(quick_xml::escape::unescape(&found.value)?.into_owned())
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
        assert!(cases[1].said.starts_with("undecided: "), "{:?}", cases[1].said);
        assert!(parse("<testsuite><testcase name='a' time='1'/></testsuite>").is_err(), "a suite has a name");
    }
}
