//! The crates that the program consists of: as a bill of materials (CycloneDX), and their licences' texts, which those want to be
//! passed on. Crates that only build or test it are not in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Platform, Release};
use crate::steps::{ask, cargo};

/// A crate at a version.
type Id = (String, String);

/// What is known of a crate.
#[derive(Default)]
pub struct Crate {
    license: String,
    /// The registry's digest of it; none of our own.
    checksum: Option<String>,
    /// Where its source lies.
    folder: PathBuf,
    needs: BTreeSet<Id>,
}

pub type Crates = BTreeMap<Id, Crate>;

/// The crates of the program for `platform`.
pub fn of(root: &Path, platform: &Platform) -> Result<Crates> {
    let shape = ["--edges=normal,no-proc-macro", "--prefix=depth", "--format= {p}", "--target", platform.target];
    let tree = [&["tree", "--locked", "--package=holdup"][..], &shape].concat();
    let tree = ask(cargo(root, &tree)).context("cargo tree does not tell what holdup is linked with")?;
    let mut crates = linked(&tree);
    let known = ["metadata", "--locked", "--format-version=1", "--filter-platform", platform.target];
    let known = ask(cargo(root, &known)).context("cargo metadata does not tell the crates")?;
    let known: Value = serde_json::from_str(&known)?;
    let sums = checksums(&fs::read_to_string(root.join("Cargo.lock"))?);
    for package in known["packages"].as_array().into_iter().flatten() {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let id = (text("name"), text("version"));
        if let Some(found) = crates.get_mut(&id) {
            found.license = text("license").replace('/', " OR ");
            found.checksum = sums.get(&id).cloned();
            found.folder = Path::new(&text("manifest_path")).parent().unwrap_or(root).to_owned();
        }
    }
    Ok(crates)
}

/// The lines of `cargo tree`, each with its depth: `1 serde v1.0.1`.
fn linked(tree: &str) -> Crates {
    let mut crates = Crates::new();
    let mut above: Vec<Id> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(depth) = depth.parse::<usize>() else { continue };
        let id = (name.to_owned(), version.trim_start_matches('v').to_owned());
        above.truncate(depth);
        if let Some(user) = above.last().and_then(|user| crates.get_mut(user)) {
            user.needs.insert(id.clone());
        }
        crates.entry(id.clone()).or_default();
        above.push(id);
    }
    crates
}

/// The checksums of a `Cargo.lock`, whose fields come in this order.
fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let field = |part: &str, name: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    let parts = lock.split("[[package]]").skip(1);
    parts.filter_map(|p| Some(((field(p, "name")?, field(p, "version")?), field(p, "checksum")?))).collect()
}

fn purl((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// The bill of materials.
pub fn bill(release: &Release, crates: &Crates) -> Value {
    let component = |id: &Id, known: &Crate| {
        let mut component = json!({
            "type": if id.0 == "holdup" { "application" } else { "library" },
            "bom-ref": purl(id),
            "name": id.0,
            "version": id.1,
            "purl": purl(id),
            "licenses": [{"expression": known.license}],
        });
        if let Some(checksum) = &known.checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let own = ("holdup".to_owned(), release.version.to_owned());
    let others = crates.iter().filter(|(id, _)| **id != own);
    let dependencies = crates
        .iter()
        .map(|(id, known)| json!({"ref": purl(id), "dependsOn": known.needs.iter().map(purl).collect::<Vec<_>>()}));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": crates.get(&own).map(|known| component(&own, known))},
        "components": others.map(|(id, known)| component(id, known)).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    })
}

/// The licences' texts of the crates that others wrote, each under the crate's name.
pub fn notices(crates: &Crates) -> Result<String> {
    let mut text = "holdup contains these crates, which others wrote, under these licences.\n".to_owned();
    for ((name, version), known) in crates.iter().filter(|(_, known)| known.checksum.is_some()) {
        write!(text, "\n\n==== {name} {version}: {}\n", known.license)?;
        let mut files: Vec<PathBuf> = known.folder.read_dir()?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        let is_notice = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_uppercase();
            file.is_file()
                && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"].iter().any(|n| name.starts_with(n))
        };
        for file in files.iter().filter(|file| is_notice(file)) {
            write!(text, "\n{}\n", String::from_utf8_lossy(&fs::read(file)?).trim())?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0 holdup v0.1.0 (/x/holdup)\n1 a v1.0.0\n2 b v2.0.0\n1 b v2.0.0\n1 a v1.0.0 (*)\n1 c v3.0.0\n";

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"aa\"\n\n[[package]]\nname = \"holdup\"\nversion = \"0.1.0\"\n";

    #[test]
    fn the_bill_has_each_crate_once_and_what_it_needs() {
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let mut crates = linked(TREE);
        assert_eq!(checksums(LOCK), BTreeMap::from([(id("a", "1.0.0"), "aa".to_owned())]));
        crates.get_mut(&id("a", "1.0.0")).unwrap().checksum = Some("aa".to_owned());
        let release = Release { version: "0.1.0", commit: String::new(), epoch: String::new() };
        let bill = bill(&release, &crates);
        let names: Vec<&str> =
            bill["components"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "aa");
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/holdup@0.1.0");
        let needed = json!({"ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/b@2.0.0"]});
        assert!(bill["dependencies"].as_array().unwrap().contains(&needed), "{bill}");
    }

    /// A crate without a licence, or without its text, would be passed on against its terms.
    #[test]
    fn each_crate_of_the_program_has_a_licence() {
        let crates = of(&crate::root(), &super::super::PLATFORMS[0]).unwrap();
        assert!(crates.len() > 100 && !crates.contains_key(&("heed".to_owned(), "0.22.0".to_owned())));
        let without: Vec<&Id> = crates.iter().filter(|(_, known)| known.license.is_empty()).map(|(id, _)| id).collect();
        assert!(without.is_empty(), "{without:?}");
        assert!(notices(&crates).unwrap().contains("==== ring "));
    }
}
