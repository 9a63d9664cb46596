//! The causes that a verdict can name, as pages with the same sections. `holdup explain` and
//! `docs/causes` show them.

use crate::cause::Cause;
use crate::trace::Pattern;
use crate::trace::votes::Part;

use crate::causes::Definition;

/// All there is to know about a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Slug.
    pub cause: Cause,
    /// Name in a sentence.
    pub title: String,
    /// Its source file, from the project's root.
    pub source: String,
    /// Headings and texts in order.
    pub sections: Vec<(&'static str, String)>,
}

/// A page for every cause, in the order in which a request meets them.
pub fn pages() -> Vec<Page> {
    Cause::ALL.iter().map(|cause| page(*cause)).collect()
}

fn page(cause: Cause) -> Page {
    let of = cause.definition();
    Page {
        cause,
        title: of.doc.title.to_owned(),
        source: format!("crates/holdup-diagnose/src/causes/{cause}"),
        sections: of.doc.sections().map(|(heading, text)| (heading, predicted(of, heading, text))).to_vec(),
    }
}

/// A section of a cause's page; for its predictions, with the patterns that the cause leaves in
/// counters.
fn predicted(of: &Definition, heading: &str, text: &str) -> String {
    let patterns = of.traces.iter().filter(|_| heading == PREDICTS);
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

/// The heading of a page's section on predictions.
const PREDICTS: &str = "What it predicts";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_page_and_all_sections() {
        let pages = pages();
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
    fn pages_take_counter_patterns_from_their_votes() {
        let pages = pages();
        let section = |cause: Cause, name: &str| {
            let page = pages.iter().find(|page| page.cause == cause).unwrap();
            page.sections.iter().find(|(heading, _)| *heading == name).unwrap().1.clone()
        };
        let predicted = section(Cause::CpuSaturated, PREDICTS);
        let told =
            "By counters alone (another process uses the CPU): the CPU has no idle time left; the server's share";
        assert!(predicted.contains(told), "{predicted}");
        let backup = section(Cause::BackupOrBulkLoad, PREDICTS);
        assert_eq!(backup.matches("By counters alone").count(), 2, "{backup}");
        let network = section(Cause::NetworkDelay, PREDICTS);
        assert!(
            network.contains("By counters alone") && network.contains("bytes both ways fall together"),
            "{network}"
        );
    }
}
