//! The list of kinds for docs/strangers/kinds.md, made from the faults themselves; a test holds the document to it.

use std::fmt::Write as _;

use crate::faults::{self, Family, Fault};

/// A table for each layer.
pub fn table() -> String {
    let mut text = String::new();
    for family in Family::ALL {
        let kinds: Vec<&Fault> = faults::all().into_iter().filter(|fault| fault.family == family).collect();
        let _ = writeln!(text, "### {}: {}\n", family.name(), kinds.len());
        text.push_str("| kind | mechanism | from barely visible to harsh | right names |\n|---|---|---|---|\n");
        kinds.iter().for_each(|fault| text.push_str(&row(fault)));
        text.push('\n');
    }
    text
}

fn row(fault: &Fault) -> String {
    let ranges: Vec<String> =
        fault.parameters.iter().map(|p| format!("`{}` {} to {}", p.name, p.mild, p.harsh)).collect();
    let causes: Vec<String> = fault.causes.iter().map(|slug| format!("`{slug}`")).collect();
    let or = |list: Vec<String>, otherwise: &str| {
        if list.is_empty() { otherwise.to_owned() } else { list.join(", ") }
    };
    let none = if fault.is_control() { "nothing is wrong" } else { "none yet" };
    format!("| `{}` | {} | {} | {} |\n", fault.name, fault.mechanism, or(ranges, "-"), or(causes, none))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_every_kind() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/strangers/kinds.md");
        let text = std::fs::read_to_string(path).unwrap();
        let list = text.split("<!-- kinds -->\n").nth(1).unwrap_or_default();
        assert_eq!(list.trim(), table().trim(), "run: cargo xtask strangers --kinds");
    }
}
