//! Whether code names metrics by the registry's constants. It reads the registry as text; whether the registry itself is in order, its
//! own tests say.

use std::collections::BTreeSet;

use super::Source;
use super::checks::{is_test_file, without_tests};

const REGISTRY: &str = "crates/holdup-recording/src/metrics/";

/// Crates that may not import the registry: the lab's app and the reader of Amazon's files have names of their own.
const WITHOUT: [&str; 2] = ["crates/holdup-lab/", "crates/holdup-import/"];

/// Texts that are a metric's name by chance: path, and what stands there.
const OTHER_MEANING: [(&str, &str); 1] = [
    // The name of a signal of counters.
    ("crates/holdup-signals/src/time/counters/signal.rs", "tcp_connections"),
];

/// Ends of names that only a metric has.
const ENDS: [&str; 3] = ["_total", "_seconds", "_bytes"];

/// String literals that are a metric's name, or look like one that is not registered.
pub fn problems(sources: &[Source]) -> Vec<String> {
    let registry: Vec<&str> = sources
        .iter()
        .filter(|source| source.path.starts_with(REGISTRY))
        .flat_map(|source| source.text.lines())
        .filter(|line| line.starts_with("    "))
        .collect();
    let names: BTreeSet<&str> = registry.iter().filter_map(|line| name(line)).collect();
    let prefixes: BTreeSet<&str> = registry.iter().filter_map(|line| prefix(line)).collect();
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| is_reader(source)) {
        let code = without_tests(&source.text).filter(|line| !line.trim_start().starts_with("//"));
        for text in code.flat_map(literals).filter(|text| !OTHER_MEANING.contains(&(&source.path, text))) {
            let looks_like_one =
                || prefixes.iter().any(|p| text.starts_with(p)) && ENDS.iter().any(|end| text.ends_with(end));
            if names.contains(text) {
                problems.push(format!("{}: \"{text}\" has a constant in {REGISTRY}: use it", source.path));
            } else if text.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) && looks_like_one() {
                problems.push(format!("{}: \"{text}\" looks like a metric and is not in {REGISTRY}", source.path));
            }
        }
    }
    problems
}

/// The metric that a line of the registry declares; none of a family, whose line begins with `@`.
fn name(line: &str) -> Option<&str> {
    let is_family = line.trim_start().starts_with('@');
    line.split_once(" = \"").filter(|_| !is_family)?.1.split('"').next()
}

/// The prefix in the head of a source: `"host", "The Linux host", "system_";`.
fn prefix(line: &str) -> Option<&str> {
    let head = line.trim().strip_suffix("\";").filter(|head| head.starts_with('"'))?;
    head.rsplit('"').next().filter(|prefix| prefix.ends_with('_'))
}

fn is_reader(source: &Source) -> bool {
    let path = &source.path;
    path.starts_with("crates/")
        && path.contains("/src/")
        && path.ends_with(".rs")
        && !path.starts_with(REGISTRY)
        && !WITHOUT.iter().any(|crate_| path.starts_with(crate_))
        && !path.ends_with("/testing.rs")
        && !is_test_file(source)
}

/// What stands between quotes in a line.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with `text` in a crate beside a registry of one metric.
    fn found(path: &str, text: &str) -> Vec<String> {
        let registry = "metrics! {\n    \"host\", \"The Linux host\", \"system_\";\n\n    \
                        Gauge THREADS: Count = \"system_threads\", \"Threads\";\n    \
                        @family ANY: \"any\" = \"\", \"Others\";\n}\n";
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        problems(&[source(&format!("{REGISTRY}host.rs"), registry), source(path, text)])
    }

    #[test]
    fn a_registered_name_has_a_constant() {
        let rule = "crates/holdup-diagnose/src/rules/x.rs";
        let all = found(rule, "let it = view.gauge(\"system_threads\", \"\", &[(\"state\", \"D\")]);\n");
        assert_eq!(all, [format!("{rule}: \"system_threads\" has a constant in {REGISTRY}: use it")]);
        assert_eq!(found(rule, "// \"system_threads\"\nlet it = host::THREADS;\n"), [""; 0]);
        assert_eq!(found(rule, "#[cfg(test)]\nmod tests {\n    const X: &str = \"system_threads\";\n}\n"), [""; 0]);
        assert_eq!(found("crates/holdup-lab/src/x.rs", "\"system_threads\"\n"), [""; 0]);
    }

    #[test]
    fn a_misspelt_name_is_not_registered() {
        let all = found("crates/holdup/src/x.rs", "let it = [\"system_tread_time_seconds\", \"system_user\"];\n");
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("\"system_tread_time_seconds\" looks like a metric"), "{all:?}");
    }
}
