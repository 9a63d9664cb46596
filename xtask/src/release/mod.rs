//! `cargo xtask dist`: what a release consists of, in one folder. It deliberately publishes nothing. How a program is built is
//! in `compile`, which files lie where in `stage`, and what they become in `archives`, `image` and `crates`.

mod archives;
mod compile;
mod crates;
mod image;
mod stage;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::steps::{ask, command, run as run_command, step};
use tools::Tools;

/// Largest program that is shipped, in bytes.
const LARGEST_BYTES: u64 = 25_000_000;

/// A kind of machine that there are artefacts for.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// As Rust calls it.
    target: &'static str,
    /// Its CPU as the kernel calls it.
    cpu: &'static str,
    /// Its CPU as Go, Debian and OCI call it.
    arch: &'static str,
}

const PLATFORMS: [Platform; 2] = [
    Platform { target: "x86_64-unknown-linux-musl", cpu: "x86_64", arch: "amd64" },
    Platform { target: "aarch64-unknown-linux-musl", cpu: "aarch64", arch: "arm64" },
];

/// What is to be made.
#[derive(Debug, PartialEq, Eq)]
pub struct Wish {
    platforms: Vec<&'static Platform>,
    out: PathBuf,
    /// Where the artefacts will be fetched from: for Homebrew's formula, which is left out without it.
    url: Option<String>,
    /// Whether programs are built; else those that were built before are packed.
    builds: bool,
    /// Whether everything is made a second time, from nothing, and has to be the same.
    is_twice: bool,
    /// Whether the artefacts are installed and run afterwards.
    checks: bool,
}

impl Wish {
    /// Reads the flags of the command line.
    pub fn parse(flags: &[&str]) -> Result<Self> {
        let mut wish = Self {
            platforms: Vec::new(),
            out: PathBuf::from("target/dist"),
            url: None,
            builds: true,
            is_twice: false,
            checks: false,
        };
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let mut value = || flags.next().ok_or_else(|| anyhow!("{flag} needs a value"));
            match *flag {
                "--target" => wish.platforms.push(platform(value()?)?),
                "--out" => wish.out = PathBuf::from(value()?),
                "--url" => wish.url = Some((*value()?).to_owned()),
                "--no-build" => wish.builds = false,
                "--twice" => wish.is_twice = true,
                "--check" => wish.checks = true,
                _ => bail!("{flag}: cargo xtask dist has --target, --out, --url, --no-build, --twice and --check"),
            }
        }
        if wish.platforms.is_empty() {
            wish.platforms = PLATFORMS.iter().collect();
        }
        Ok(wish)
    }
}

fn platform(name: &str) -> Result<&'static Platform> {
    let found = PLATFORMS.iter().find(|platform| [platform.target, platform.cpu, platform.arch].contains(&name));
    found.ok_or_else(|| anyhow!("no artefacts for \"{name}\"; there are {}", PLATFORMS.map(|p| p.cpu).join(" and ")))
}

/// What is released: the same for the same commit, so that everybody makes the same bytes.
struct Release {
    version: &'static str,
    /// As `holdup --version` shows it.
    commit: String,
    /// When it was committed, in seconds since 1970: the time of every file.
    epoch: String,
}

impl Release {
    fn read(root: &Path) -> Result<Self> {
        let git = |words: &[&str]| ask(command(root, "git", words)).context("git does not tell the commit");
        let shown = git(&["log", "-1", "--format=%h %cd", "--abbrev=10", "--date=format:%Y-%m-%d"])?;
        let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: if changed.is_empty() { shown } else { format!("{shown}, changed") },
            epoch: git(&["log", "-1", "--format=%ct"])?,
        })
    }

    /// The name that archives of a platform begin with.
    fn name(&self, platform: &Platform) -> String {
        format!("holdup-{}-{}-linux", self.version, platform.cpu)
    }
}

/// Makes everything that `wish` asks for.
pub fn run(root: &Path, wish: &Wish) -> Result<()> {
    let release = Release::read(root)?;
    let tools = step("tools", "see above for what to install", || Tools::find(root))?;
    let out = root.join(&wish.out);
    make(root, wish, &release, &tools, &out, &root.join("target"))?;
    if wish.is_twice {
        let again = beside(&out, "again");
        make(root, wish, &release, &tools, &again, &root.join("target/again"))?;
        let sums =
            |dir: &Path| fs::read_to_string(dir.join(SUMS)).with_context(|| format!("{} is gone", dir.display()));
        let (first, second) = (sums(&out)?, sums(&again)?);
        let other: Vec<&str> = second.lines().filter(|line| !first.lines().any(|known| known == *line)).collect();
        if !other.is_empty() || first.lines().count() != second.lines().count() {
            bail!("the second time these came out otherwise:\n  {}", other.join("\n  "));
        }
        println!("   twice the same, bit for bit: {} files", first.lines().count());
    }
    if wish.checks {
        let check = [Path::new("packaging/check.sh"), &out];
        step("check", "see above which artefact does not do", || run_command(command(root, "sh", &check)))?;
    }
    Ok(())
}

/// File with the digests of all others.
const SUMS: &str = "SHA256SUMS";

/// Makes the artefacts in `out`, with programs built in `target`.
fn make(root: &Path, wish: &Wish, release: &Release, tools: &Tools, out: &Path, target: &Path) -> Result<()> {
    let work = beside(out, "work");
    for dir in [out, &work] {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir)?;
    }
    let mut stages = Vec::new();
    for platform in &wish.platforms {
        let name = release.name(platform);
        let binary = target.join(platform.target).join("dist/holdup");
        if wish.builds {
            step(&format!("build for {}", platform.cpu), "mend what the compiler says above", || {
                compile::program(root, release, tools, platform, target)
            })?;
        }
        fit(&binary)?;
        compile::tells_no_path(root, &binary)?;
        let crates = crates::of(root, platform)?;
        fs::write(out.join(format!("{name}.cdx.json")), crates::bill(release, &crates).to_string() + "\n")?;
        let stage = stage::Stage::new(root, release, platform, &work.join(platform.cpu), &binary)?;
        stage.fill(&crates::notices(&crates)?)?;
        archives::tarball(&stage, release, &out.join(format!("{name}.tar.gz")), &name)?;
        archives::packages(root, &stage, release, tools, out)?;
        stages.push(stage);
    }
    image::archive(release, &stages, &work.join("image"), &out.join(format!("holdup-{}-oci.tar", release.version)))?;
    if let Some(url) = &wish.url {
        let formula = fs::read_to_string(root.join("packaging/holdup.rb"))?;
        fs::write(out.join("holdup.rb"), archives::formula(&formula, release, url, out)?)?;
    }
    let files = archives::files(out)?;
    let sums = ask(command(out, "sha256sum", &files)).context("sha256sum does not tell the digests")?;
    fs::write(out.join(SUMS), format!("{sums}\n"))?;
    println!("   {} files in {}", files.len() + 1, out.display());
    Ok(())
}

/// The folder beside `out` that serves to make it.
fn beside(out: &Path, what: &str) -> PathBuf {
    out.with_extension(what)
}

fn fit(binary: &Path) -> Result<()> {
    let bytes = fs::metadata(binary).with_context(|| format!("{} was not built", binary.display()))?.len();
    println!("   {}: {bytes} bytes", binary.display());
    if bytes > LARGEST_BYTES {
        bail!("{}: {bytes} bytes, {LARGEST_BYTES} are allowed", binary.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_what_is_made() {
        let all = Wish::parse(&[]).unwrap();
        assert_eq!((all.platforms.len(), all.builds, all.checks), (2, true, false));
        let some = Wish::parse(&["--target", "arm64", "--no-build", "--check", "--out", "x", "--url", "u"]).unwrap();
        assert_eq!((some.builds, some.checks), (false, true));
        assert_eq!((some.platforms, some.out), (vec![&PLATFORMS[1]], PathBuf::from("x")));
        for wrong in [&["--target"][..], &["--target", "sparc"], &["--upload"]] {
            assert!(Wish::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
