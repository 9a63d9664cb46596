//! What a stage becomes: an archive to unpack anywhere, a .deb and an .rpm, and Homebrew's formula for the archives. The same
//! files give the same bytes.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::stage::Stage;
use super::tools::Tools;
use super::{PLATFORMS, Release};
use crate::steps::{ask, command, run as run_command};

/// Runs tar as it writes the same bytes everywhere: `verb` is `--create` or `--append`, `words` are flags and files of `dir`.
pub fn tar(dir: &Path, epoch: &str, to: &Path, verb: &str, owner: &str, words: &[&str]) -> Result<()> {
    let mut tar = command(dir, "tar", &[verb, "--format=gnu", "--sort=name", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{epoch}")).arg(format!("--owner={owner}")).arg(format!("--group={owner}"));
    tar.arg("--file").arg(to).args(words);
    run_command(tar)
}

/// The files below `usr/`, in a folder called `name`.
pub fn tarball(stage: &Stage, release: &Release, to: &Path, name: &str) -> Result<()> {
    let into = format!("--transform=s,^\\.,{name},");
    // The service is for packages: it starts /usr/bin/holdup.
    let words = ["--use-compress-program=gzip -n9", "--exclude=./lib", &into, "."];
    tar(&stage.dir.join("usr"), &release.epoch, to, "--create", "0", &words)
}

/// The .deb and the .rpm in `out`.
pub fn packages(root: &Path, stage: &Stage, release: &Release, tools: &Tools, out: &Path) -> Result<()> {
    for packager in ["deb", "rpm"] {
        let mut nfpm = command(&stage.dir, tools.nfpm(), &["package", "--packager", packager, "--target"]);
        nfpm.arg(out).arg("--config").arg(root.join("packaging/nfpm.yaml"));
        nfpm.env("HOLDUP_ARCH", stage.platform.arch).env("HOLDUP_VERSION", release.version);
        nfpm.env("SOURCE_DATE_EPOCH", &release.epoch);
        run_command(nfpm)?;
    }
    Ok(())
}

/// The formula, for archives in `out` that will be fetched from `url`.
pub fn formula(template: &str, release: &Release, url: &str, out: &Path) -> Result<String> {
    let home = url.split_once("/releases/").map_or(url, |(home, _)| home);
    let mut text = template.replace("@VERSION@", release.version).replace("@URL@", url).replace("@HOME@", home);
    for platform in &PLATFORMS {
        let archive = out.join(format!("{}.tar.gz", release.name(platform)));
        text = text.replace(&format!("@SHA256_{}@", platform.cpu), &digest(&archive)?);
    }
    if text.matches('@').count() > 0 {
        bail!("the formula has a name between @ that has no value");
    }
    Ok(text)
}

/// The SHA-256 of a file, in hexadecimal.
pub fn digest(file: &Path) -> Result<String> {
    let said = ask(command(Path::new("/"), "sha256sum", &[Path::new("--"), file]));
    let digest = said.as_deref().and_then(|said| said.split(' ').next()).map(|digest| digest.trim_start_matches('\\'));
    Ok(digest.with_context(|| format!("no digest of {}", file.display()))?.to_owned())
}

/// The names of the files in `out`, in order.
pub fn files(out: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(out)?.flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_does_not_depend_on_the_times_and_rights_of_its_files() {
        let dir = std::env::temp_dir().join(format!("xtask-tar-{}", std::process::id()));
        let made = |time: &str, mode: &str| {
            fs::create_dir_all(dir.join("files")).unwrap();
            fs::write(dir.join("files/a"), "x").unwrap();
            run_command(command(&dir, "touch", &["-d", time, "files/a"])).unwrap();
            run_command(command(&dir, "chmod", &[mode, "files/a"])).unwrap();
            tar(&dir.join("files"), "1000000000", &dir.join("a.tar"), "--create", "0", &["."]).unwrap();
            digest(&dir.join("a.tar")).unwrap()
        };
        assert_eq!(made("2001-01-01", "600"), made("2026-01-01", "664"));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_formula_has_every_value() {
        let dir = std::env::temp_dir().join(format!("xtask-formula-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let release = Release { version: "0.1.0", commit: String::new(), epoch: String::new() };
        for platform in &PLATFORMS {
            fs::write(dir.join(format!("{}.tar.gz", release.name(platform))), "").unwrap();
        }
        let template = fs::read_to_string(crate::root().join("packaging/holdup.rb")).unwrap();
        // The comment says what the marks are.
        let template = template.split_once('\n').unwrap().1;
        let text = formula(template, &release, "https://example.org/releases/v0.1.0", &dir).unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(text.matches(empty).count(), 2);
        assert!(text.contains("homepage \"https://example.org\""), "{text}");
        assert!(formula("@OTHER@", &release, "", &dir).is_err());
        fs::remove_dir_all(dir).unwrap();
    }
}
