//! Stubs of new causes, resources and collectors: the file with its fixed headings, and the lines to add elsewhere.
//! A stub compiles and is registered by hand; the tidy test fails until its texts are written.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

/// Writes the stub of a `cause`, a `resource` or a `collector`, and says which lines to add where.
pub fn stub(root: &Path, kind: &str, name: &str) -> Result<()> {
    let judge = "crates/holdup-diagnose/src";
    let collect = "crates/holdup-collect/src";
    let (path, text, add) = match kind {
        "cause" => (
            format!("{judge}/causes/NAME/mod.rs"),
            CAUSE,
            format!(
                "add to {judge}/causes/mod.rs:\n    pub(crate) mod NAME;\n\
                 add to the list in {judge}/cause.rs, where a request meets it:\n    NAME VARIANT,\n\
                 then write its texts, first of all, and run: cargo xtask docs"
            ),
        ),
        "resource" => (
            format!("{judge}/resources/NAME.rs"),
            RESOURCE,
            format!(
                "add to {judge}/resources/mod.rs:\n    pub mod NAME;\n\
                 causes ask it by: crate::resources::NAME::Measured::of(case)?"
            ),
        ),
        "collector" => (
            format!("{collect}/NAME.rs"),
            COLLECTOR,
            format!(
                "add to {collect}/lib.rs:\n    mod NAME;\nadd to SCHEMES in {collect}/watch.rs:\n    \
                 scheme(\"NAME:\", \"NAME:ADDRESS\", \"what it is\", Asked, crate::NAME::make),\nthen run: cargo xtask docs"
            ),
        ),
        _ => bail!("\"{kind}\" has no stub; cause, resource and collector have"),
    };
    let variant: String = checked(name)?.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    let (path, text, add) = (path.replace("NAME", name), text.replace("NAME", name), add.replace("NAME", name));
    if root.join(&path).exists() {
        bail!("{path} is there already");
    }
    fs::create_dir_all(root.join(&path).parent().unwrap_or(root))?;
    // The stub compiles as a cause that there is.
    fs::write(root.join(&path), text.replace("Cause::DiskFull", &format!("Cause::{variant}")))?;
    println!("wrote {path}\n{}", add.replace("VARIANT", &variant));
    Ok(())
}

/// A name is a file name and a slug.
fn checked(name: &str) -> Result<&str> {
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && name.split('_').all(|word| !word.is_empty());
    if good { Ok(name) } else { bail!("\"{name}\": write it in small letters, digits and _, named for the problem") }
}

// Each is compiled by the tests of the crate that it is for, so that what is written here compiles there.
const CAUSE: &str = include_str!("../stubs/cause.rs");
const RESOURCE: &str = include_str!("../stubs/resource.rs");
const COLLECTOR: &str = include_str!("../stubs/collector.rs");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_written_once_and_named_for_the_file() {
        let root = std::env::temp_dir().join(format!("xtask-new-{}", std::process::id()));
        stub(&root, "cause", "missing_index").unwrap();
        let path = root.join("crates/holdup-diagnose/src/causes/missing_index/mod.rs");
        assert!(fs::read_to_string(path).unwrap().contains("Cause::MissingIndex"));
        assert!(stub(&root, "cause", "missing_index").is_err());
        for wrong in ["Missing-Index", "missing__index", "missing_"] {
            assert!(stub(&root, "cause", wrong).is_err(), "{wrong}");
        }
        assert!(stub(&root, "rule", "missing_index").is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
