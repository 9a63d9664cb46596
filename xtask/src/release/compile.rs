//! The program for one platform: static, without symbols, and without a word about the machine that built it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::tools::Tools;
use super::{Platform, Release};
use crate::steps::{command, run as run_command, without_ours};

/// Builds holdup for `platform` in the folder `target`.
pub fn program(root: &Path, release: &Release, tools: &Tools, platform: &Platform, target: &Path) -> Result<()> {
    let words = ["zigbuild", "--locked", "--profile=dist", "--package=holdup", "--target", platform.target];
    let mut build = without_ours(command(root, tools.zigbuild(), &words));
    let places = places(root);
    let for_rust = places.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let for_c = places.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    build
        .arg("--target-dir")
        .arg(target)
        .env("PATH", tools.path())
        .env("CARGO_ENCODED_RUSTFLAGS", for_rust.collect::<Vec<_>>().join("\x1f"))
        .env(format!("CFLAGS_{}", platform.target.replace('-', "_")), for_c.collect::<Vec<_>>().join(" "))
        // Incremental code lies in other pieces from build to build.
        .env("CARGO_INCREMENTAL", "0")
        .env("HOLDUP_COMMIT", &release.commit)
        .env("SOURCE_DATE_EPOCH", &release.epoch);
    run_command(build)
}

/// Folders whose names would end up in the program, and what stands for them there. Of two that fit, compilers take the later.
fn places(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let cargo = cargo_home();
    let registries = fs::read_dir(cargo.join("registry/src")).into_iter().flatten().flatten();
    let registries = registries.map(|folder| (folder.path(), "/crates"));
    [(root.to_owned(), "/holdup"), (cargo.clone(), "/cargo")].into_iter().chain(registries).collect()
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// No path of this machine is in the program.
///
/// # Errors
/// If one is.
pub fn tells_no_path(root: &Path, binary: &Path) -> Result<()> {
    let bytes = fs::read(binary).with_context(|| format!("failed to read {}", binary.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    for (place, _) in places(root) {
        let place = place.display().to_string();
        if let Some(at) = text.find(&place) {
            let said: String = text[at..].chars().take(120).collect();
            bail!("{} tells a path of this machine: {said}", binary.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_tells_where_it_was_built_is_found() {
        let binary = std::env::temp_dir().join(format!("xtask-path-{}", std::process::id()));
        let root = crate::root();
        fs::write(&binary, b"\x7fELF\xff crates/holdup/src/main.rs").unwrap();
        tells_no_path(&root, &binary).unwrap();
        fs::write(&binary, [b"\x7fELF\xff ".as_slice(), root.display().to_string().as_bytes()].concat()).unwrap();
        assert!(tells_no_path(&root, &binary).is_err());
        fs::remove_file(binary).unwrap();
    }
}
