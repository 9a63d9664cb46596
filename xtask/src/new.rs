//! Stubs of new rules, resources and collectors: the file with its fixed headings, and the one line to add elsewhere.
//! A stub compiles and is registered by hand; the tidy test fails until its texts are written.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

/// `crates/holdup-diagnose/src/rules/<name>.rs`.
pub fn rule(root: &Path, name: &str) -> Result<()> {
    let stub = RULE.replace("NAME", checked(name)?);
    write(root, &format!("crates/holdup-diagnose/src/rules/{name}.rs"), &stub)?;
    println!("add to crates/holdup-diagnose/src/rules/mod.rs, where a request meets it:");
    println!("    pub(crate) mod {name};\n    &{name}::RULE,        (in ALL)");
    println!("then write its texts, first of all, and run: cargo xtask docs");
    Ok(())
}

/// `crates/holdup-diagnose/src/resources/<name>.rs`.
pub fn resource(root: &Path, name: &str) -> Result<()> {
    write(root, &format!("crates/holdup-diagnose/src/resources/{}.rs", checked(name)?), RESOURCE)?;
    println!("add to crates/holdup-diagnose/src/resources/mod.rs:\n    pub mod {name};");
    println!("rules ask it by: crate::resources::{name}::Measured::of(case)?");
    Ok(())
}

/// `crates/holdup-collect/src/<name>.rs`.
pub fn collector(root: &Path, name: &str) -> Result<()> {
    let stub = COLLECTOR.replace("NAME", checked(name)?);
    write(root, &format!("crates/holdup-collect/src/{name}.rs"), &stub)?;
    println!("add to crates/holdup-collect/src/lib.rs:\n    mod {name};");
    println!("add to SCHEMES in crates/holdup-collect/src/watch.rs:");
    println!("    scheme(\"{name}:\", \"{name}:ADDRESS\", \"what it is\", Asked, crate::{name}::make),");
    println!("then run: cargo xtask docs");
    Ok(())
}

/// A name is a file name and a slug.
fn checked(name: &str) -> Result<&str> {
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if good { Ok(name) } else { bail!("\"{name}\": write it in small letters, digits and _, named for the problem") }
}

fn write(root: &Path, path: &str, text: &str) -> Result<()> {
    if root.join(path).exists() {
        bail!("{path} is there already");
    }
    fs::write(root.join(path), text)?;
    println!("wrote {path}");
    Ok(())
}

// Each is compiled by the tests of the crate that it is for, so that what is written here compiles there.
const RULE: &str = include_str!("../stubs/rule.rs");
const RESOURCE: &str = include_str!("../stubs/resource.rs");
const COLLECTOR: &str = include_str!("../stubs/collector.rs");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_written_once_and_named_for_the_file() {
        let root = std::env::temp_dir().join(format!("xtask-new-{}", std::process::id()));
        fs::create_dir_all(root.join("crates/holdup-diagnose/src/rules")).unwrap();
        rule(&root, "missing_index").unwrap();
        let path = root.join("crates/holdup-diagnose/src/rules/missing_index.rs");
        assert!(fs::read_to_string(path).unwrap().contains("cause: \"missing_index\""));
        assert!(rule(&root, "missing_index").is_err());
        assert!(rule(&root, "Missing-Index").is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
