//! The causes that a verdict can name, as pages with the same sections: those that rules measure in
//! milliseconds, and those that only counters show. `holdup explain` and `docs/causes` show them.

use crate::counters::judge::Part;
use crate::counters::patterns::{self, Doc, Pattern};

use crate::rules::{self, Rule};
use holdup_recording::words::capital;

/// All there is to know about a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Slug.
    pub cause: &'static str,
    /// Name in a sentence.
    pub title: String,
    /// Its source file, from the project's root.
    pub source: String,
    /// Headings and texts in order.
    pub sections: Vec<(&'static str, String)>,
}

/// A page for every cause: the measured ones in the order in which a request meets them, then those
/// that only counters show.
pub fn pages() -> Vec<Page> {
    let told = patterns::ALL.iter().filter_map(|pattern| Some(of_counters(pattern, &pattern.doc?)));
    rules::ALL.iter().map(|rule| of_rule(rule)).chain(told).collect()
}

fn of_rule(rule: &Rule) -> Page {
    Page {
        cause: rule.cause,
        title: rule.doc.title.to_owned(),
        source: format!("crates/holdup-diagnose/src/rules/{}.rs", rule.cause),
        sections: rule.doc.sections().map(|(heading, text)| (heading, predicted(rule, heading, text))).to_vec(),
    }
}

/// A section of a rule's page; for its predictions, with the patterns that the cause leaves in
/// counters.
fn predicted(rule: &Rule, heading: &str, text: &str) -> String {
    let patterns = patterns::ALL.iter().filter(|pattern| heading == PREDICTS && pattern.cause == rule.cause);
    let told = patterns.map(|pattern| {
        let looked_for = listed(pattern, &[Part::Defines, Part::Supports]);
        format!(" By counters alone ({}): {looked_for}.", pattern.title)
    });
    std::iter::once(text.to_owned()).chain(told).collect()
}

/// What a pattern requires in these parts of its account, in words.
fn listed(pattern: &Pattern, parts: &[Part]) -> String {
    let votes = pattern.looks_for();
    let texts: Vec<&str> = votes.iter().filter(|(part, _)| parts.contains(part)).map(|(_, what)| *what).collect();
    texts.join("; ")
}

fn of_counters(pattern: &Pattern, doc: &Doc) -> Page {
    let listed = |parts: &[Part]| listed(pattern, parts);
    let missed = match listed(&[Part::Gates]) {
        needed if needed.is_empty() => String::new(),
        needed => format!(" It is cleared unless {needed}."),
    };
    let refuted = match listed(&[Part::Refutes]) {
        refuting if refuting.is_empty() => "None of the above is seen.".to_owned(),
        refuting => format!("{}.", capital(&refuting)),
    };
    Page {
        cause: pattern.cause,
        title: capital(pattern.title),
        source: format!("crates/holdup-diagnose/src/counters/patterns/{}.rs", pattern.name),
        sections: vec![
            ("What it is", doc.what.to_owned()),
            ("Why it hurts", doc.hurts.to_owned()),
            ("What is needed", NEEDS.to_owned()),
            (PREDICTS, format!("{}.", capital(&listed(&[Part::Defines, Part::Supports])))),
            ("What clears it", refuted + &missed),
            ("What else looks like this", doc.looks_like.to_owned()),
            ("How to fix", pattern.fix.unwrap_or_default().to_owned()),
            ("How to prove", PROVE.to_owned()),
            ("References", doc.references.to_owned()),
        ],
    }
}

/// The heading of a page's section on predictions.
const PREDICTS: &str = "What it predicts";

const NEEDS: &str = "Counters of the database and of its host, during the episode and at a normal time (--watch mysql://USER@HOST:PORT or postgresql://…, with --watch host; or an import). It is judged by counters alone, which show what changed but not what that costs. If response time was measured, it is named beside the verdict and never overrules it.";

const PROVE: &str = "Measure response time (holdup run, or --watch prometheus:http://APP/metrics), and again after the change: the conspicuous counters are normal again, and so is response time.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_page_and_all_sections() {
        let pages = pages();
        for pattern in patterns::ALL {
            assert_eq!(pages.iter().filter(|page| page.cause == pattern.cause).count(), 1, "{}", pattern.name);
            // A rule documents its cause itself.
            assert_eq!(pattern.doc.is_none(), rules::by_cause(pattern.cause).is_some(), "{}", pattern.name);
        }
        let headings: Vec<&str> = pages[0].sections.iter().map(|(heading, _)| *heading).collect();
        for page in &pages {
            assert_eq!(
                page.sections.iter().map(|(heading, _)| *heading).collect::<Vec<_>>(),
                headings,
                "{}",
                page.cause
            );
            assert!(page.sections.iter().all(|(_, text)| text.len() > 20), "{}", page.cause);
        }
    }

    #[test]
    fn what_counters_look_for_is_told_from_the_account_itself() {
        let pages = pages();
        let section = |cause: &str, name: &str| {
            let page = pages.iter().find(|page| page.cause == cause).unwrap();
            page.sections.iter().find(|(heading, _)| *heading == name).unwrap().1.clone()
        };
        let predicted = section("cpu_saturated", PREDICTS);
        let told =
            "By counters alone (another process uses the CPU): the CPU has no idle time left; the server's share";
        assert!(predicted.contains(told), "{predicted}");
        let backup = section("backup_or_bulk_load", PREDICTS);
        assert_eq!(backup.matches("By counters alone").count(), 2, "{backup}");
        let cleared = section("network_delay", "What clears it");
        assert_eq!(cleared, "Work continues inside the server; the CPU has less idle time.");
    }
}
