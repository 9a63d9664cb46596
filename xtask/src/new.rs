//! Stubs of new rules, resources and collectors: the file with its fixed headings, and the one line to add elsewhere.
//! A stub compiles and is registered by hand; the tidy test fails until its texts are written.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

/// Writes the stub of a `rule`, a `resource` or a `collector`, and says which lines to add where.
pub fn stub(root: &Path, kind: &str, name: &str) -> Result<()> {
    let judge = "crates/holdup-diagnose/src";
    let collect = "crates/holdup-collect/src";
    let (folder, text, add) = match kind {
        "rule" => (
            format!("{judge}/rules"),
            RULE,
            format!(
                "add to {judge}/rules/mod.rs, where a request meets it:\n    pub(crate) mod NAME;\n    &NAME::RULE,        (in ALL)\n\
                 then write its texts, first of all, and run: cargo xtask docs"
            ),
        ),
        "resource" => (
            format!("{judge}/resources"),
            RESOURCE,
            format!(
                "add to {judge}/resources/mod.rs:\n    pub mod NAME;\n\
                 rules ask it by: crate::resources::NAME::Measured::of(case)?"
            ),
        ),
        "collector" => (
            collect.to_owned(),
            COLLECTOR,
            format!(
                "add to {collect}/lib.rs:\n    pub mod NAME;\nadd to SCHEMES in {collect}/watch.rs:\n    \
                 (\"NAME:\", \"NAME:ADDRESS\", \"what it is\", crate::NAME::make),\nthen run: cargo xtask docs"
            ),
        ),
        _ => bail!("\"{kind}\" has no stub; rule, resource and collector have"),
    };
    let path = format!("{folder}/{}.rs", checked(name)?);
    if root.join(&path).exists() {
        bail!("{path} is there already");
    }
    fs::write(root.join(&path), text.replace("NAME", name))?;
    println!("wrote {path}\n{}", add.replace("NAME", name));
    Ok(())
}

/// A name is a file name and a slug.
fn checked(name: &str) -> Result<&str> {
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if good { Ok(name) } else { bail!("\"{name}\": write it in small letters, digits and _, named for the problem") }
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
        stub(&root, "rule", "missing_index").unwrap();
        let path = root.join("crates/holdup-diagnose/src/rules/missing_index.rs");
        assert!(fs::read_to_string(path).unwrap().contains("cause: \"missing_index\""));
        assert!(stub(&root, "rule", "missing_index").is_err());
        assert!(stub(&root, "rule", "Missing-Index").is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
