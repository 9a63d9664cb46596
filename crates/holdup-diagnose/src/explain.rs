//! What a verdict can name, as pages of the same sections: causes that rules measure in milliseconds, and those that only counters
//! tell. `holdup explain` and `docs/causes` show them.

use crate::counters::causes::{self, Cause, Doc};
use crate::counters::judge::Part;

use crate::rules::{self, Rule};
use holdup_signals::words::capital;

/// All that is to know of a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Slug.
    pub cause: &'static str,
    /// Name in a sentence.
    pub title: String,
    /// The file that it is made of, from the project's folder.
    pub source: String,
    /// Headings and texts in order.
    pub sections: Vec<(&'static str, String)>,
}

/// A page for every cause: those that are measured in the order in which a request meets them, then those that only counters tell.
pub fn pages() -> Vec<Page> {
    let told = causes::ALL.iter().filter_map(|cause| Some(of_counters(cause, &cause.doc?)));
    rules::ALL.iter().map(|rule| of_rule(rule)).chain(told).collect()
}

fn of_rule(rule: &Rule) -> Page {
    Page {
        cause: rule.cause,
        title: rule.doc.title.to_owned(),
        source: format!("crates/holdup-diagnose/src/rules/{}.rs", rule.cause),
        sections: rule.doc.sections().map(|(heading, text)| (heading, text.to_owned())).to_vec(),
    }
}

fn of_counters(cause: &Cause, doc: &Doc) -> Page {
    let votes = cause.looks_for();
    let listed = |parts: &[Part]| {
        let texts = votes.iter().filter(|(part, _)| parts.contains(part)).map(|(_, what)| *what);
        texts.collect::<Vec<_>>().join("; ")
    };
    let missed = match listed(&[Part::Gates]) {
        needed if needed.is_empty() => String::new(),
        needed => format!(" It is cleared unless {needed}."),
    };
    let refuted = match listed(&[Part::Refutes]) {
        refuting if refuting.is_empty() => "Nothing of the above is seen.".to_owned(),
        refuting => format!("{}.", capital(&refuting)),
    };
    Page {
        cause: cause.slug,
        title: capital(cause.title),
        source: format!("crates/holdup-diagnose/src/counters/causes/{}.rs", cause.slug),
        sections: vec![
            ("What it is", doc.what.to_owned()),
            ("Why it hurts", doc.hurts.to_owned()),
            ("What is needed", NEEDS.to_owned()),
            ("What it predicts", format!("{}.", capital(&listed(&[Part::Defines, Part::Supports])))),
            ("What clears it", refuted + &missed),
            ("What else looks like this", doc.looks_like.to_owned()),
            ("How to fix", doc.fix.to_owned()),
            ("How to prove", PROVE.to_owned()),
            ("References", doc.references.to_owned()),
        ],
    }
}

const NEEDS: &str = "Counters of the database and of its host, in the slow time and in a normal one (--watch mysql://USER@HOST:PORT or postgresql://…, with --watch host; or an import). It is judged by counters alone, which tell what changed and not what that costs: where response time was measured, it is named beside the verdict and never overrules it.";

const PROVE: &str = "Measure what requests take (holdup run, or --watch prometheus:http://APP/metrics), and the same again after the change: what stood out does so no more, and requests take what they did.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_page_and_all_sections() {
        let pages = pages();
        for cause in causes::ALL {
            assert_eq!(pages.iter().filter(|page| page.cause == cause.slug).count(), 1, "{}", cause.slug);
            // A rule tells it better, and would be told twice.
            assert_eq!(cause.doc.is_none(), rules::by_cause(cause.slug).is_some(), "{}", cause.slug);
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
        let page = pages.iter().find(|page| page.cause == "cpu_taken_by_others").unwrap();
        let section = |name: &str| page.sections.iter().find(|(heading, _)| *heading == name).unwrap().1.as_str();
        assert_eq!(page.title, "The CPU is used by something beside the database");
        assert!(section("What it predicts").starts_with("The CPU has no idle time left; the server's share"));
        assert_eq!(
            section("What clears it"),
            "The server itself uses more CPU. It is cleared unless more of the CPU is in use than normally."
        );
    }
}
