//! The supply chain: licences, sources and duplicates of crates (`deny.toml`, by cargo-deny), known holes of crates and of npm's
//! packages, and what the product is linked with. Databases of known holes need a network: where one is out of reach, the pass
//! says so and goes on.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::setup::{DRIVERS, Tools};
use crate::steps::{ask, cargo, command, run as run_command};

/// What only labs may be linked with.
const LABS_ONLY: [&str; 3] = ["fuser", "heed", "lmdb-master-sys"];

/// Checks everything.
///
/// # Errors
/// If a crate or a package is not as it should be, or an exception's time is over.
pub fn run(root: &Path, tools: &Tools) -> Result<()> {
    exceptions(root)?;
    product(root)?;
    let deny = |words: &[&str]| command(root, tools.cargo_deny(), &[&["--locked"], words].concat());
    run_command(deny(&["check", "licenses", "bans", "sources"]))?;
    if ask(deny(&["fetch", "db"])).is_some() {
        run_command(deny(&["check", "advisories"]))?;
    } else {
        println!("   crates: NOT checked for advisories, RustSec's database is out of reach");
    }
    packages(root, tools)
}

/// No exception in `deny.toml` is past its date.
fn exceptions(root: &Path) -> Result<()> {
    let today = ask(command(root, "date", &["-u", "+%F"])).context("date does not tell the day")?;
    let text = fs::read_to_string(root.join("deny.toml")).context("failed to read deny.toml")?;
    let over = overdue(&text, &today);
    if !over.is_empty() {
        bail!("exceptions in deny.toml without \"until DATE\", or past it:\n  {}", over.join("\n  "));
    }
    Ok(())
}

/// Lines of exceptions that have no date or one before `today` (`2026-11-25`).
fn overdue<'a>(deny: &'a str, today: &str) -> Vec<&'a str> {
    let mut is_exception = false;
    let lines = deny.lines().map(str::trim).filter(move |line| {
        is_exception = match *line {
            "ignore = [" | "skip = [" | "skip-tree = [" | "exceptions = [" => true,
            "]" => false,
            _ => is_exception,
        };
        is_exception && line.starts_with(['{', '"'])
    });
    lines
        .filter(|line| {
            let date = line.split_once("reason = \"until ").and_then(|(_, after)| after.get(..today.len()));
            date.is_none_or(|date| date <= today || date.bytes().any(|b| !b.is_ascii_digit() && b != b'-'))
        })
        .collect()
}

/// The product, as `cargo install` builds it, has nothing in it that only labs need.
fn product(root: &Path) -> Result<()> {
    let tree = ["tree", "--locked", "--package=holdup", "--edges=normal,build", "--prefix=none", "--format={p}"];
    let tree = ask(cargo(root, &tree)).context("cargo tree does not tell what holdup is linked with")?;
    let crates = tree.lines().filter_map(|line| line.split(' ').next());
    let found: Vec<&str> = crates.filter(|name| LABS_ONLY.contains(name)).collect();
    if !found.is_empty() {
        bail!("the product is linked with {}: that belongs behind holdup's feature `labs`", found.join(", "));
    }
    Ok(())
}

/// Known holes of npm's packages: the report page's, those that only build it, and the drivers of tests.
fn packages(root: &Path, tools: &Tools) -> Result<()> {
    for folder in ["web", DRIVERS] {
        let mut npm = command(&root.join(folder), tools.npm(), &["audit", "--json"]);
        npm.env("PATH", tools.path());
        let output = npm.output().with_context(|| format!("could not start {npm:?}"))?;
        match holes(&String::from_utf8_lossy(&output.stdout)) {
            None => println!("   packages of {folder}: NOT checked for advisories, npm's registry does not answer"),
            Some(0) => {}
            Some(count) => bail!("npm audit names {count} packages of {folder}/: run it there"),
        }
    }
    Ok(())
}

/// How many packages `npm audit --json` names; none if it could not ask.
fn holes(report: &str) -> Option<u64> {
    let report: Value = serde_json::from_str(report).ok()?;
    report["metadata"]["vulnerabilities"]["total"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_has_neither_fuse_nor_lmdb() {
        product(&crate::root()).unwrap();
    }

    #[test]
    fn an_exception_holds_until_its_date() {
        let exceptions = [
            "allow = [",
            "    \"MIT\",",
            "]",
            "skip = [",
            "    { crate = \"a@1\", reason = \"until 2027-05-25: b\" },",
            "    { crate = \"c@1\", reason = \"until 2026-11-25: d\" },",
            "    { crate = \"e@1\", reason = \"until it is mended\" },",
            "    \"f@1\",",
            "]",
            "deny = [",
            "    { crate = \"g\", reason = \"never\" },",
            "]",
        ];
        let text = exceptions.join("\n");
        let trimmed: Vec<&str> = exceptions.iter().map(|line| line.trim()).collect();
        assert_eq!(overdue(&text, "2026-11-25"), trimmed[5..8]);
        assert_eq!(overdue(&text, "2026-11-24"), trimmed[6..8]);
    }

    #[test]
    fn the_exceptions_of_this_project_have_dates() {
        let text = fs::read_to_string(crate::root().join("deny.toml")).unwrap();
        assert!(overdue(&text, "2000-01-01").is_empty());
        assert!(overdue(&text, "9999-12-31").len() >= 2, "exceptions are not found");
    }

    #[test]
    fn an_audit_that_could_not_ask_is_told_from_one_that_found_nothing() {
        let report =
            |total: u32| format!(r#"{{"auditReportVersion":2,"metadata":{{"vulnerabilities":{{"total":{total}}}}}}}"#);
        assert_eq!((holes(&report(0)), holes(&report(3))), (Some(0), Some(3)));
        assert_eq!(holes(r#"{"message":"405 Method Not Allowed","statusCode":405}"#), None);
        assert_eq!((holes(r#"{"error":{"code":"ENOTFOUND"}}"#), holes("")), (None, None));
    }
}
